/* What each API answers, to a verdict or a problem. Hostile input: a model wrote it. */
#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/judge_wire.h"

#define CUT_MARK " [cut]"

void judge_answer_done(struct judge_answer *answer)
{
    free(answer->rationale);
    free(answer->problem);
    free(answer->model);
    *answer = (struct judge_answer){0};
}

/* What an API's reader found: the text or the object of the verdict, or why there is none. */
struct found {
    const json_t *object; /* borrowed; NULL: text holds it */
    struct buf text;
    const char *problem; /* a literal; NULL: none */
    const char *detail;  /* what the endpoint calls it, borrowed; NULL */
    bool is_cut;         /* by the limit of tokens */
    size_t count;        /* of verdicts */
    const char *tool;    /* that the model was to call */
};

static void found_done(struct found *found)
{
    buf_done(&found->text);
}

static bool is(const json_t *object, const char *key, const char *value)
{
    const char *text = json_get_text(object, key);

    return text != NULL && strcmp(text, value) == 0;
}

static uint64_t tokens(const json_t *object, const char *key)
{
    int64_t n = json_get_int(object, key, 0);

    return n < 0 ? 0 : (uint64_t)n;
}

static uint64_t less(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

static void cut(struct found *found)
{
    found->problem = "the answer was cut at max_tokens";
    found->is_cut = true;
}

/* --- the four --------------------------------------------------------------------------------- */

static void read_anthropic(const json_t *body, struct found *found)
{
    const json_t *content = json_get_array(body, "content"), *item;
    size_t i;

    if (is(body, "stop_reason", "max_tokens"))
        cut(found);
    else if (is(body, "stop_reason", "refusal"))
        found->problem = "the judge refused to answer";
    else if (!is(body, "stop_reason", "tool_use"))
        found->problem = "the judge did not call its verdict tool";
    found->detail = json_get_text(body, "stop_reason");
    json_array_foreach (content, i, item) {
        if (!is(item, "type", "tool_use"))
            continue;
        found->count++;
        if (!is(item, "name", found->tool) && found->problem == NULL)
            found->problem = "the judge called a tool that it was not given";
        found->object = json_get_object(item, "input");
    }
}

static void append_text(struct found *found, const json_t *text)
{
    if (json_is_string(text))
        buf_append(&found->text, json_string_value(text), json_string_length(text));
}

static void read_message(const json_t *message, struct found *found)
{
    const json_t *part;
    size_t i;

    json_array_foreach (json_get_array(message, "content"), i, part) {
        if (is(part, "type", "refusal"))
            found->problem = "the judge refused to answer";
        if (!is(part, "type", "output_text"))
            continue;
        found->count++;
        append_text(found, json_object_get(part, "text"));
    }
}

static void read_responses(const json_t *body, struct found *found)
{
    const json_t *item, *details = json_get_object(body, "incomplete_details");
    size_t i;

    if (is(details, "reason", "max_output_tokens"))
        cut(found);
    else if (!is(body, "status", "completed"))
        found->problem = "the answer is not complete";
    found->detail =
        details == NULL ? json_get_text(body, "status") : json_get_text(details, "reason");
    json_array_foreach (json_get_array(body, "output"), i, item) {
        if (is(item, "type", "message"))
            read_message(item, found);
        else if (!is(item, "type", "reasoning") && found->problem == NULL)
            found->problem = "the judge called a tool that it was not given";
    }
}

static void read_chat(const json_t *body, struct found *found)
{
    const json_t *choices = json_get_array(body, "choices");
    const json_t *choice = json_array_get(choices, 0);
    const json_t *message = json_get_object(choice, "message");

    found->count = json_array_size(choices);
    found->detail = json_get_text(choice, "finish_reason");
    if (json_get_text(message, "refusal") != NULL || is(choice, "finish_reason", "content_filter"))
        found->problem = "the judge refused to answer";
    else if (is(choice, "finish_reason", "length"))
        cut(found);
    else if (json_array_size(json_get_array(message, "tool_calls")) > 0)
        found->problem = "the judge called a tool that it was not given";
    else if (!is(choice, "finish_reason", "stop"))
        found->problem = "the answer is not complete";
    append_text(found, json_object_get(message, "content"));
}

static void read_gemini(const json_t *body, struct found *found)
{
    const json_t *candidates = json_get_array(body, "candidates"), *part;
    const json_t *candidate = json_array_get(candidates, 0);
    const json_t *feedback = json_get_object(body, "promptFeedback");
    size_t i;

    found->count = json_array_size(candidates);
    found->detail = json_get_text(candidate, "finishReason");
    if (json_get_text(feedback, "blockReason") != NULL) {
        found->problem = "the judge refused to answer";
        found->detail = json_get_text(feedback, "blockReason");
    } else if (is(candidate, "finishReason", "MAX_TOKENS")) {
        cut(found);
    } else if (!is(candidate, "finishReason", "STOP")) {
        found->problem = "the judge refused to answer";
    }
    json_array_foreach (json_get_array(json_get_object(candidate, "content"), "parts"), i, part) {
        if (json_object_get(part, "functionCall") != NULL && found->problem == NULL)
            found->problem = "the judge called a tool that it was not given";
        if (!json_get_bool(part, "thought", false))
            append_text(found, json_object_get(part, "text"));
    }
}

/* --- usage ------------------------------------------------------------------------------------ */

static bool read_usage(enum judge_api api, const json_t *body, struct judge_usage *ret)
{
    const json_t *usage = json_get_object(body, api == JUDGE_GEMINI ? "usageMetadata" : "usage");

    if (usage == NULL)
        return false;
    switch (api) {
    case JUDGE_ANTHROPIC:
        *ret = (struct judge_usage){
            tokens(usage, "input_tokens"), tokens(usage, "cache_read_input_tokens"),
            tokens(usage, "cache_creation_input_tokens"), tokens(usage, "output_tokens")};
        return true;
    case JUDGE_RESPONSES:
        ret->cache_read = tokens(json_get_object(usage, "input_tokens_details"), "cached_tokens");
        ret->input = less(tokens(usage, "input_tokens"), ret->cache_read);
        ret->output = tokens(usage, "output_tokens");
        return true;
    case JUDGE_CHAT:
        ret->cache_read = tokens(json_get_object(usage, "prompt_tokens_details"), "cached_tokens");
        ret->input = less(tokens(usage, "prompt_tokens"), ret->cache_read);
        ret->output = tokens(usage, "completion_tokens");
        return true;
    case JUDGE_GEMINI:
        ret->cache_read = tokens(usage, "cachedContentTokenCount");
        ret->input = less(tokens(usage, "promptTokenCount"), ret->cache_read);
        ret->output = tokens(usage, "candidatesTokenCount") + tokens(usage, "thoughtsTokenCount");
        return true;
    case JUDGE_API_COUNT:
        break;
    }
    return false;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static void fail(struct judge_answer *answer, const char *problem, const char *detail)
{
    free(answer->problem);
    answer->problem =
        detail == NULL ? str_dup(problem) : str_format("%s (%.200s)", problem, detail);
}

static char *cut_text(const json_t *text, size_t max_bytes)
{
    scoped(buf_done) struct buf kept = {0};
    size_t size = json_string_length(text);
    const char *bytes = json_string_value(text);

    if (size <= max_bytes)
        return str_ndup(bytes, size);
    /* Not inside a character. */
    for (size = max_bytes; size > 0 && ((unsigned char)bytes[size] & 0xc0) == 0x80; size--)
        continue;
    buf_append(&kept, bytes, size);
    buf_text_append(&kept, CUT_MARK);
    return buf_take(&kept);
}

/* {score, rationale} and nothing else. */
static void check_verdict(const json_t *verdict, struct judge_answer *answer)
{
    const json_t *score = json_object_get(verdict, "score");
    const json_t *rationale = json_object_get(verdict, "rationale");
    double value = json_is_number(score) ? json_number_value(score) : (double)NAN;

    if (!json_is_object(verdict))
        fail(answer, "the verdict is no JSON object", NULL);
    else if (!json_is_number(score))
        fail(answer, "the verdict has no number as its score", NULL);
    else if (!(value >= 0 && value <= 1))
        fail(answer, "the verdict's score is not between 0 and 1", NULL);
    else if (!json_is_string(rationale))
        fail(answer, "the verdict has no text as its rationale", NULL);
    else if (json_object_size(verdict) != 2)
        fail(answer, "the verdict holds more than score and rationale", NULL);
    if (answer->problem != NULL)
        return;
    answer->is_verdict = true;
    answer->score = value;
    answer->rationale = cut_text(rationale, JUDGE_RATIONALE_BYTES_MAX);
}

/* {message} and nothing else, with something in it. */
static void check_reply(const json_t *reply, struct judge_answer *answer)
{
    const json_t *message = json_object_get(reply, "message");

    if (!json_is_object(reply) || !json_is_string(message) || json_object_size(reply) != 1)
        fail(answer, "the answer is not one message", NULL);
    else if (json_string_value(message)[strspn(json_string_value(message), " \t\r\n")] == '\0')
        fail(answer, "the message is empty", NULL);
    if (answer->problem != NULL)
        return;
    answer->is_verdict = true;
    answer->rationale = cut_text(message, JUDGE_RATIONALE_BYTES_MAX);
}

static void read_verdict(enum judge_api api, enum judge_shape shape, const struct found *found,
                         struct judge_answer *answer)
{
    void (*check)(const json_t *given, struct judge_answer *answer) =
        shape == JUDGE_REPLY ? check_reply : check_verdict;
    scoped(json_freep) json_t *parsed = NULL;

    if (found->problem != NULL)
        fail(answer, found->problem, found->detail);
    else if (found->count != 1)
        fail(answer,
             found->count == 0 ? "the answer holds no verdict"
                               : "the answer holds more than one verdict",
             NULL);
    else if (api != JUDGE_ANTHROPIC && json_parse("verdict", buf_text(&found->text),
                                                  found->text.size_bytes, &parsed, NULL) < 0)
        fail(answer, "the verdict is not JSON", NULL);
    else
        check(api == JUDGE_ANTHROPIC ? found->object : parsed, answer);
}

struct answer_bytes {
    const char *bytes;
    size_t size;
};

/* It is an answer of that API, as far as its frame goes. */
static bool holds_words(enum judge_api api, const json_t *body)
{
    static const char *const lists[JUDGE_API_COUNT] = {
        [JUDGE_ANTHROPIC] = "content",
        [JUDGE_RESPONSES] = "output",
        [JUDGE_CHAT] = "choices",
        [JUDGE_GEMINI] = "candidates",
    };

    return json_get_array(body, lists[api]) != NULL ||
           (api == JUDGE_GEMINI && json_get_object(body, "promptFeedback") != NULL);
}

static void parse(enum judge_api api, enum judge_shape shape, const struct answer_bytes *given,
                  struct judge_answer *ret)
{
    scoped(json_freep) json_t *body = NULL;
    scoped(found_done) struct found found = {.tool = shape == JUDGE_REPLY ? "reply" : "verdict"};
    static void (*const readers[JUDGE_API_COUNT])(const json_t *body, struct found *found) = {
        [JUDGE_ANTHROPIC] = read_anthropic,
        [JUDGE_RESPONSES] = read_responses,
        [JUDGE_CHAT] = read_chat,
        [JUDGE_GEMINI] = read_gemini,
    };

    ASSERT(api < JUDGE_API_COUNT);
    *ret = (struct judge_answer){0};
    if (given->size > JUDGE_ANSWER_BYTES_MAX) {
        fail(ret, "the answer is too large", NULL);
        return;
    }
    if (json_parse("answer", given->bytes, given->size, &body, NULL) < 0 || !json_is_object(body)) {
        fail(ret, "the answer is no JSON object", NULL);
        return;
    }
    const char *model = json_get_text(body, api == JUDGE_GEMINI ? "modelVersion" : "model");

    ret->model = model == NULL ? NULL : str_ndup(model, strnlen(model, 200));
    ret->has_usage = read_usage(api, body, &ret->usage);
    readers[api](body, &found);
    read_verdict(api, shape, &found, ret);
    ret->is_models_doing = !ret->is_verdict && !found.is_cut && holds_words(api, body);
}

void judge_answer_parse(enum judge_api api, const char *bytes, size_t size,
                        struct judge_answer *ret)
{
    parse(api, JUDGE_VERDICT, &(struct answer_bytes){bytes, size}, ret);
}

void judge_reply_parse(enum judge_api api, const char *bytes, size_t size, struct judge_answer *ret)
{
    parse(api, JUDGE_REPLY, &(struct answer_bytes){bytes, size}, ret);
}

/* --- refusals --------------------------------------------------------------------------------- */

char *judge_refusal_text(const char *bytes, size_t size)
{
    scoped(json_freep) json_t *body = NULL;
    const json_t *error = NULL, *message = NULL;

    if (size <= JUDGE_ANSWER_BYTES_MAX && json_parse("answer", bytes, size, &body, NULL) == 0)
        error = json_object_get(body, "error");
    message = json_is_object(error) ? json_object_get(error, "message") : error;
    if (json_is_string(message))
        return cut_text(message, JUDGE_PROBLEM_BYTES_MAX);

    scoped(json_freep) json_t *whole = json_text(bytes, size_min(size, JUDGE_PROBLEM_BYTES_MAX));

    return cut_text(whole, JUDGE_PROBLEM_BYTES_MAX);
}
