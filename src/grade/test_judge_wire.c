/* Questions and answers of judges, against what the vendors' own clients sent and got. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/judge_wire.h"

/* The schema of a verdict, as every request holds it. */
#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"score\":{\"type\":\"number\"},\"rationale\":"          \
    "{\"type\":\"string\"}},\"required\":[\"score\",\"rationale\"],"                               \
    "\"additionalProperties\":false}"

static char *request(enum judge_api api, bool has_temperature)
{
    const struct judge_question question = {
        .api = api,
        .model = "m-1",
        .instructions = "You are a strict grader.",
        .user = "Grade: ...",
        .max_tokens = 1024,
        .has_temperature = has_temperature,
    };
    scoped(json_freep) json_t *json = judge_question_json(&question);
    struct buf text = {0};

    json_write_canonical(&text, json);
    return buf_take(&text);
}

static void asks_in_the_words_of_each_api(void **state)
{
    (void)state;
    static const struct {
        enum judge_api api;
        bool has_temperature;
        const char *body;
    } cases[] = {
        {JUDGE_ANTHROPIC, true,
         "{\"model\":\"m-1\",\"max_tokens\":1024,\"temperature\":0.0,\"system\":[{\"type\":"
         "\"text\",\"text\":\"You are a strict grader.\"}],\"messages\":[{\"role\":\"user\","
         "\"content\":\"Grade: ...\"}],\"tools\":[{\"name\":\"verdict\",\"description\":\"Report "
         "the verdict\",\"input_schema\":" SCHEMA ",\"strict\":true}],\"tool_choice\":{\"type\":"
         "\"tool\",\"name\":\"verdict\",\"disable_parallel_tool_use\":true}}"},
        {JUDGE_RESPONSES, false,
         "{\"model\":\"m-1\",\"input\":[{\"role\":\"developer\",\"content\":\"You are a strict "
         "grader.\"},{\"role\":\"user\",\"content\":\"Grade: ...\"}],\"text\":{\"format\":{"
         "\"type\":\"json_schema\",\"name\":\"verdict\",\"schema\":" SCHEMA ",\"strict\":true}},"
         "\"max_output_tokens\":1024,\"store\":false}"},
        {JUDGE_CHAT, false,
         "{\"model\":\"m-1\",\"messages\":[{\"role\":\"developer\",\"content\":\"You are a strict "
         "grader.\"},{\"role\":\"user\",\"content\":\"Grade: ...\"}],\"response_format\":{"
         "\"type\":\"json_schema\",\"json_schema\":{\"name\":\"verdict\",\"schema\":" SCHEMA
         ",\"strict\":true}},\"max_completion_tokens\":1024}"},
        {JUDGE_GEMINI, true,
         "{\"contents\":[{\"parts\":[{\"text\":\"Grade: ...\"}],\"role\":\"user\"}],"
         "\"systemInstruction\":{\"parts\":[{\"text\":\"You are a strict grader.\"}],\"role\":"
         "\"user\"},\"generationConfig\":{\"temperature\":0.0,\"responseMimeType\":"
         "\"application/json\",\"responseJsonSchema\":" SCHEMA ",\"maxOutputTokens\":1024}}"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *body = request(cases[i].api, cases[i].has_temperature);

        scoped(json_freep) json_t *expected = NULL;
        scoped(buf_done) struct buf text = {0};

        assert_int_equal(json_parse("case", cases[i].body, strlen(cases[i].body), &expected, NULL),
                         0);
        json_write_canonical(&text, expected);
        assert_string_equal(body, buf_text(&text));
    }
}

static void never_gives_a_judge_anything_but_its_verdict(void **state)
{
    (void)state;
    for (size_t api = 0; api < JUDGE_API_COUNT; api++) {
        scoped(mem_freep) char *body = request((enum judge_api)api, true);
        scoped(json_freep) json_t *json = NULL;

        assert_int_equal(json_parse("body", body, strlen(body), &json, NULL), 0);
        assert_int_equal(json_array_size(json_get_array(json, "tools")), api == JUDGE_ANTHROPIC);
        assert_null(strstr(body, "web_search"));
    }
}

static void knows_where_each_api_is_asked(void **state)
{
    (void)state;
    static const char *const paths[JUDGE_API_COUNT] = {
        [JUDGE_ANTHROPIC] = "/v1/messages",
        [JUDGE_RESPONSES] = "/v1/responses",
        [JUDGE_CHAT] = "/v1/chat/completions",
        [JUDGE_GEMINI] = "/v1beta/models/m-1:generateContent",
    };

    for (size_t api = 0; api < JUDGE_API_COUNT; api++) {
        const struct judge_question question = {.api = (enum judge_api)api, .model = "m-1"};
        scoped(mem_freep) char *path = judge_question_path(&question);
        enum judge_api parsed = JUDGE_API_COUNT;

        assert_string_equal(path, paths[api]);
        assert_true(judge_api_parse(judge_api_name((enum judge_api)api), &parsed));
        assert_int_equal(parsed, api);
    }
}

static void sends_no_temperature_to_those_who_refuse_it(void **state)
{
    (void)state;
    assert_false(judge_takes_temperature(JUDGE_RESPONSES, "gpt-6.1-terra"));
    assert_false(judge_takes_temperature(JUDGE_CHAT, "o3-mini"));
    assert_true(judge_takes_temperature(JUDGE_CHAT, "llama"));
    assert_true(judge_takes_temperature(JUDGE_ANTHROPIC, "claude-haiku-4-5"));
}

/* --- answers ---------------------------------------------------------------------------------- */

#define TOOL(input) "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"verdict\",\"input\":" input "}"
#define ANTHROPIC(reason, content)                                                                 \
    "{\"model\":\"m\",\"content\":[" content "],\"stop_reason\":\"" reason "\",\"usage\":{"        \
    "\"input_tokens\":12,\"cache_creation_input_tokens\":162,\"cache_read_input_tokens\":3,"       \
    "\"output_tokens\":25}}"
#define RESPONSES(status, output)                                                                  \
    "{\"model\":\"m\",\"status\":\"" status "\",\"output\":[" output "],\"usage\":{"               \
    "\"input_tokens\":127,\"input_tokens_details\":{\"cached_tokens\":7},\"output_tokens\":25}}"
#define MESSAGE(parts) "{\"type\":\"message\",\"content\":[" parts "]}"
#define OUTPUT(text) "{\"type\":\"output_text\",\"text\":\"" text "\"}"
#define CHAT(reason, message)                                                                      \
    "{\"model\":\"m\",\"choices\":[{\"message\":{" message "},\"finish_reason\":\"" reason         \
    "\"}],\"usage\":{\"prompt_tokens\":128,\"completion_tokens\":25,\"prompt_tokens_details\":{"   \
    "\"cached_tokens\":8}}}"
#define GEMINI(reason, parts)                                                                      \
    "{\"modelVersion\":\"m\",\"candidates\":[{\"content\":{\"parts\":[" parts                      \
    "]},\"finishReason\":\"" reason "\"}],\"usageMetadata\":{\"promptTokenCount\":122,"            \
    "\"candidatesTokenCount\":25,\"thoughtsTokenCount\":5,\"cachedContentTokenCount\":2}}"
#define ONE "{\\\"score\\\": 1, \\\"rationale\\\": \\\"fine\\\"}"

static void reads_the_verdict_and_the_usage_of_each_api(void **state)
{
    (void)state;
    static const struct {
        enum judge_api api;
        const char *body;
        struct judge_usage usage;
    } cases[] = {
        {JUDGE_ANTHROPIC,
         ANTHROPIC("tool_use", TOOL("{\"score\":1,\"rationale\":\"fine\"}")),
         {12, 3, 162, 25}},
        {JUDGE_RESPONSES,
         RESPONSES("completed", "{\"type\":\"reasoning\"}," MESSAGE(OUTPUT(ONE))),
         {120, 7, 0, 25}},
        {JUDGE_CHAT, CHAT("stop", "\"content\":\"" ONE "\""), {120, 8, 0, 25}},
        {JUDGE_GEMINI,
         GEMINI("STOP", "{\"text\":\"so\",\"thought\":true},{\"text\":\"" ONE "\"}"),
         {120, 2, 0, 30}},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judge_answer_done) struct judge_answer answer = {0};

        judge_answer_parse(cases[i].api, cases[i].body, strlen(cases[i].body), &answer);
        if (!answer.is_verdict)
            fail_msg("%s: %s", judge_api_name(cases[i].api), answer.problem);
        assert_true(answer.score == 1);
        assert_string_equal(answer.rationale, "fine");
        assert_string_equal(answer.model, "m");
        assert_true(answer.has_usage);
        assert_memory_equal(&answer.usage, &cases[i].usage, sizeof(answer.usage));
    }
}

static void takes_nothing_else_for_a_verdict(void **state)
{
    (void)state;
    static const struct {
        enum judge_api api;
        const char *body, *problem;
    } cases[] = {
        {JUDGE_ANTHROPIC, "<html>captive portal</html>", "the answer is no JSON object"},
        {JUDGE_ANTHROPIC, "", "the answer is no JSON object"},
        {JUDGE_ANTHROPIC, "[]", "the answer is no JSON object"},
        {JUDGE_ANTHROPIC, "{}", "the judge did not call its verdict tool"},
        {JUDGE_ANTHROPIC, "{\"content\":[{\"type\":\"tool_use\",\"name\":\"verd", "no JSON"},
        {JUDGE_ANTHROPIC, ANTHROPIC("max_tokens", TOOL("{\"score\":1,\"rationale\":\"\"}")),
         "the answer was cut at max_tokens (max_tokens)"},
        {JUDGE_ANTHROPIC, ANTHROPIC("refusal", ""), "the judge refused to answer (refusal)"},
        {JUDGE_ANTHROPIC, ANTHROPIC("end_turn", "{\"type\":\"text\",\"text\":\"score 1\"}"),
         "the judge did not call its verdict tool (end_turn)"},
        {JUDGE_ANTHROPIC,
         ANTHROPIC("tool_use", TOOL("{\"score\":0,\"rationale\":\"\"}") "," TOOL(
                                   "{\"score\":1,\"rationale\":\"\"}")),
         "more than one verdict"},
        {JUDGE_ANTHROPIC,
         ANTHROPIC("tool_use", "{\"type\":\"tool_use\",\"name\":\"bash\",\"input\":{\"score\":1,"
                               "\"rationale\":\"\"}}"),
         "a tool that it was not given"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":1.01,\"rationale\":\"\"}")),
         "not between 0 and 1"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":-0.5,\"rationale\":\"\"}")),
         "not between 0 and 1"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":\"1\",\"rationale\":\"\"}")),
         "no number as its score"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":true,\"rationale\":\"\"}")),
         "no number as its score"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":NaN,\"rationale\":\"\"}")),
         "no JSON object"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":1e999,\"rationale\":\"\"}")),
         "no JSON object"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":1}")), "no text as its rationale"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"score\":1,\"rationale\":7}")),
         "no text as its rationale"},
        {JUDGE_ANTHROPIC,
         ANTHROPIC("tool_use", TOOL("{\"score\":0,\"score\":1,\"rationale\":\"\"}")),
         "no JSON object"},
        {JUDGE_ANTHROPIC,
         ANTHROPIC("tool_use", TOOL("{\"score\":1,\"rationale\":\"\",\"final_score\":0}")),
         "more than score and rationale"},
        {JUDGE_RESPONSES, RESPONSES("incomplete", MESSAGE(OUTPUT(ONE))), "is not complete"},
        {JUDGE_RESPONSES, RESPONSES("completed", ""), "no verdict"},
        {JUDGE_RESPONSES, RESPONSES("completed", MESSAGE(OUTPUT(ONE)) "," MESSAGE(OUTPUT(ONE))),
         "more than one verdict"},
        {JUDGE_RESPONSES,
         RESPONSES("completed", MESSAGE("{\"type\":\"refusal\",\"refusal\":\"no\"}")), "refused"},
        {JUDGE_RESPONSES,
         RESPONSES("completed", "{\"type\":\"function_call\"}," MESSAGE(OUTPUT(ONE))),
         "a tool that it was not given"},
        {JUDGE_CHAT, CHAT("length", "\"content\":\"{\""), "cut at max_tokens"},
        {JUDGE_CHAT, CHAT("stop", "\"content\":null,\"refusal\":\"I cannot\""), "refused"},
        {JUDGE_CHAT, CHAT("stop", "\"content\":\"score: 1\""), "the verdict is not JSON"},
        {JUDGE_CHAT, CHAT("stop", "\"content\":\"" ONE " " ONE "\""), "the verdict is not JSON"},
        {JUDGE_CHAT, CHAT("stop", "\"content\":\"[1]\""), "the verdict is no JSON object"},
        {JUDGE_CHAT,
         CHAT("tool_calls", "\"content\":\"" ONE "\",\"tool_calls\":[{\"type\":\"function\"}]"),
         "a tool that it was not given"},
        {JUDGE_GEMINI, GEMINI("SAFETY", ""), "refused to answer (SAFETY)"},
        {JUDGE_GEMINI, GEMINI("MAX_TOKENS", "{\"text\":\"{\"}"), "cut at max_tokens"},
        {JUDGE_GEMINI, "{\"promptFeedback\":{\"blockReason\":\"OTHER\"}}", "refused"},
        {JUDGE_GEMINI, GEMINI("STOP", "{\"functionCall\":{}},{\"text\":\"" ONE "\"}"),
         "a tool that it was not given"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judge_answer_done) struct judge_answer answer = {0};

        judge_answer_parse(cases[i].api, cases[i].body, strlen(cases[i].body), &answer);
        if (answer.is_verdict || strstr(answer.problem, cases[i].problem) == NULL)
            fail_msg("%s: %s", cases[i].body, answer.is_verdict ? "a verdict" : answer.problem);
    }
}

/* Of a simulated user: asked for a message, and nothing but one is taken. */
static void a_reply_is_a_message_and_nothing_else(void **state)
{
    (void)state;
#define REPLY(input)                                                                               \
    "{\"content\":[{\"type\":\"tool_use\",\"name\":\"reply\",\"input\":" input                     \
    "}],\"stop_reason\":\"tool_use\"}"
    static const struct {
        enum judge_api api;
        const char *body, *message, *problem;
    } cases[] = {
        {JUDGE_ANTHROPIC, REPLY("{\"message\":\"go on\"}"), "go on", NULL},
        {JUDGE_ANTHROPIC, REPLY("{\"message\":\" \\n\"}"), NULL, "the message is empty"},
        {JUDGE_ANTHROPIC, REPLY("{\"message\":\"a\",\"score\":1}"), NULL, "not one message"},
        {JUDGE_ANTHROPIC, ANTHROPIC("tool_use", TOOL("{\"message\":\"a\"}")), NULL,
         "a tool that it was not given"},
        {JUDGE_CHAT,
         "{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":"
         "\"{\\\"message\\\":\\\"x\\\"}\"}}]}",
         "x", NULL},
        {JUDGE_CHAT, "{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":\"x\"}}]}",
         NULL, "is not JSON"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judge_answer_done) struct judge_answer answer = {0};

        judge_reply_parse(cases[i].api, cases[i].body, strlen(cases[i].body), &answer);
        if (cases[i].problem == NULL)
            assert_string_equal(answer.rationale, cases[i].message);
        else if (answer.is_verdict || strstr(answer.problem, cases[i].problem) == NULL)
            fail_msg("%s: %s", cases[i].body, answer.is_verdict ? "taken" : answer.problem);
    }
    for (enum judge_api api = 0; api < JUDGE_API_COUNT; api++) {
        const struct judge_question question = {
            .api = api, .shape = JUDGE_REPLY, .model = "m", .instructions = "i", .user = "u"};
        scoped(json_freep) json_t *body = judge_question_json(&question);
        scoped(buf_done) struct buf text = {0};

        json_write_line(&text, body);
        assert_non_null(strstr(buf_text(&text), "\"message\""));
        assert_null(strstr(buf_text(&text), "score"));
    }
}

static void cuts_a_rationale_that_is_endless(void **state)
{
    (void)state;
    scoped(judge_answer_done) struct judge_answer answer = {0};
    scoped(buf_done) struct buf body = {0};

    buf_text_append(&body, "{\"content\":[{\"type\":\"tool_use\",\"name\":\"verdict\",\"input\":{"
                           "\"score\":0.5,\"rationale\":\"");
    for (size_t i = 0; i < JUDGE_RATIONALE_BYTES_MAX; i++)
        buf_text_append(&body, "é");
    buf_text_append(&body, "\"}}],\"stop_reason\":\"tool_use\"}");
    judge_answer_parse(JUDGE_ANTHROPIC, buf_text(&body), body.size_bytes, &answer);
    assert_true(answer.is_verdict);
    assert_true(strlen(answer.rationale) <= JUDGE_RATIONALE_BYTES_MAX + 16);
    assert_true(str_ends(answer.rationale, "é [cut]"));
}

static void reads_no_answer_that_is_too_large(void **state)
{
    (void)state;
    static const char verdict[] = ANTHROPIC("tool_use", TOOL("{\"score\":1,\"rationale\":\"\"}"));

    for (size_t more = 0; more < 2; more++) {
        scoped(judge_answer_done) struct judge_answer answer = {0};
        scoped(buf_done) struct buf body = {0};

        buf_text_append(&body, verdict);
        while (body.size_bytes < JUDGE_ANSWER_BYTES_MAX + more)
            buf_char(&body, ' ');
        judge_answer_parse(JUDGE_ANTHROPIC, buf_text(&body), body.size_bytes, &answer);
        assert_int_equal(answer.is_verdict, more == 0);
        if (more > 0)
            assert_string_equal(answer.problem, "the answer is too large");
    }
}

static void says_in_one_text_what_an_endpoint_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body, *text;
    } cases[] = {
        {"{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"bad "
         "key\"}}",
         "bad key"},
        {"{\"error\":\"plain\"}", "plain"},
        {"<html>no</html>", "<html>no</html>"},
        {"", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = judge_refusal_text(cases[i].body, strlen(cases[i].body));

        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_in_the_words_of_each_api),
        cmocka_unit_test(never_gives_a_judge_anything_but_its_verdict),
        cmocka_unit_test(knows_where_each_api_is_asked),
        cmocka_unit_test(sends_no_temperature_to_those_who_refuse_it),
        cmocka_unit_test(reads_the_verdict_and_the_usage_of_each_api),
        cmocka_unit_test(takes_nothing_else_for_a_verdict),
        cmocka_unit_test(a_reply_is_a_message_and_nothing_else),
        cmocka_unit_test(cuts_a_rationale_that_is_endless),
        cmocka_unit_test(reads_no_answer_that_is_too_large),
        cmocka_unit_test(says_in_one_text_what_an_endpoint_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
