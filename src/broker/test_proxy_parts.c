/* What the broker reads of requests and answers: usage, prices, paths, what policy allows. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/policy.h"
#include "broker/usage.h"

static json_t *load(const char *path)
{
    json_t *value = NULL;
    struct error *err = NULL;

    if (json_load(AT_FDCWD, path, 1 << 20, &value, &err) < 0)
        fail_msg("%s", error_message(err));
    return value;
}

static void usage_is_read_in_four_formats(void **state)
{
    static const struct {
        enum model_api api;
        const char *text;
        uint64_t input, cache_read, cache_write, output;
    } cases[] = {
        {MODEL_ANTHROPIC,
         "{\"usage\":{\"input_tokens\":1,\"cache_read_input_tokens\":2,"
         "\"cache_creation_input_tokens\":3,\"output_tokens\":4}}",
         1, 2, 3, 4},
        {MODEL_OPENAI_RESPONSES,
         "{\"response\":{\"usage\":{\"input_tokens\":9,\"input_tokens_details\":"
         "{\"cached_tokens\":4},\"output_tokens\":7}}}",
         5, 4, 0, 7},
        {MODEL_OPENAI_CHAT,
         "{\"usage\":{\"prompt_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":99},"
         "\"completion_tokens\":-7}}",
         0, 9, 0, 0},
        {MODEL_GEMINI,
         "{\"usageMetadata\":{\"promptTokenCount\":9,\"cachedContentTokenCount\":1,"
         "\"candidatesTokenCount\":2,\"thoughtsTokenCount\":3}}",
         8, 1, 0, 5},
        {MODEL_GEMINI, "{\"usageMetadata\":7}", 0, 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *value = NULL;
        struct usage usage = {0};

        assert_int_equal(json_parse("t", cases[i].text, strlen(cases[i].text), &value, NULL), 0);
        usage_take(&usage, cases[i].api, value);
        assert_int_equal(usage.input, cases[i].input);
        assert_int_equal(usage.cache_read, cases[i].cache_read);
        assert_int_equal(usage.cache_write, cases[i].cache_write);
        assert_int_equal(usage.output, cases[i].output);
    }
}

static void a_price_is_that_of_the_longest_name(void **state)
{
    scoped(json_freep) json_t *prices = load("share/models/prices.json");
    struct price price;

    (void)state;
    assert_true(price_find(prices, "claude-opus-5-5-20260923", &price));
    assert_int_equal(price.output, 20000000);
    assert_true(price_find(prices, "claude-opus-5", &price));
    assert_int_equal(price.output, 25000000);
    assert_false(price_find(prices, "nobody-1", &price));
    assert_false(price_find(NULL, "claude-opus-5", &price));
}

static void paths_say_format_and_model(void **state)
{
    struct policy_path path;

    (void)state;
    policy_path("POST", "/v1beta/models/gemini-3.8-flash:streamGenerateContent", &path);
    assert_int_equal(path.answer, POLICY_FORWARD);
    assert_string_equal(path.model, "gemini-3.8-flash");
    policy_path("POST", "/v1beta/models/x/../y:generateContent", &path);
    assert_int_equal(path.answer, POLICY_REFUSE);
    policy_path("POST", "/v1beta/models/x:batchGenerateContent", &path);
    assert_int_equal(path.answer, POLICY_REFUSE);
    policy_path("GET", "/v1/messages", &path);
    assert_int_equal(path.answer, POLICY_REFUSE);
}

static void bodies_of_the_other_formats_are_checked(void **state)
{
    static const struct {
        enum model_api api;
        const char *text, *complaint;
    } cases[] = {
        {MODEL_OPENAI_CHAT, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", ""},
        {MODEL_OPENAI_CHAT, "{\"messages\":[],\"web_search_options\":{}}", "web_search_options"},
        {MODEL_OPENAI_CHAT, "{\"messages\":[],\"store\":true}", "stored"},
        {MODEL_OPENAI_CHAT,
         "{\"messages\":[{\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"http://"
         "h\"}}]}]}",
         "an image by URL"},
        {MODEL_OPENAI_RESPONSES, "{\"input\":\"x\",\"tools\":[{\"type\":\"mcp\"}]}", "'mcp'"},
        {MODEL_OPENAI_RESPONSES, "{\"input\":\"x\",\"previous_response_id\":\"r\"}",
         "previous_response_id"},
        {MODEL_OPENAI_RESPONSES, "{\"input\":[{\"type\":\"item_reference\",\"id\":\"i\"}]}",
         "item_reference"},
        {MODEL_OPENAI_RESPONSES,
         "{\"input\":[{\"type\":\"message\",\"content\":[{\"type\":\"input_image\",\"image_url\":"
         "\"data:image/png;base64,AA\"}]}],\"store\":false}",
         ""},
        {MODEL_GEMINI, "{\"contents\":[{\"parts\":[{\"text\":\"x\"}]}]}", ""},
        {MODEL_GEMINI, "{\"contents\":[{\"parts\":[{\"fileData\":{}}]}]}", "fileData"},
        {MODEL_OPENAI_RESPONSES, "{\"input\":[{\"id\":\"rs_1\"}]}", "an item of type"},
        {MODEL_OPENAI_RESPONSES, "{\"input\":[{\"role\":\"user\",\"content\":\"x\"}]}", ""},
        {MODEL_OPENAI_RESPONSES,
         "{\"input\":\"x\",\"tools\":[{\"type\":\"shell\",\"environment\":{\"type\":"
         "\"container_auto\"}}]}",
         "container_auto"},
        {MODEL_OPENAI_RESPONSES,
         "{\"input\":\"x\",\"tools\":[{\"type\":\"shell\",\"environment\":{\"type\":"
         "\"local\"}}]}",
         ""},
        {MODEL_OPENAI_RESPONSES,
         "{\"input\":[{\"role\":\"user\",\"content\":{\"type\":\"input_file\"}}]}",
         "neither a text nor a list"},
        {MODEL_GEMINI, "{\"contents\":[{\"parts\":{\"fileData\":{}}}]}", "neither a text"},
        {MODEL_GEMINI, "{\"contents\":[{\"parts\":[[{\"fileData\":{}}]]}]}", "no object"},
        {MODEL_GEMINI, "{\"contents\":[],\"systemInstruction\":{\"parts\":[{\"fileData\":{}}]}}",
         "fileData"},
        {MODEL_GEMINI,
         "{\"contents\":[{\"parts\":[{\"functionResponse\":{\"parts\":[{\"fileData\":{}}]}}]}]}",
         "fileData"},
        {MODEL_GEMINI, "{\"contents\":[],\"systemInstruction\":{\"parts\":[{\"text\":\"x\"}]}}",
         ""},
        {MODEL_GEMINI, "{\"contents\":[],\"tools\":[[{\"googleSearch\":{}}]]}", "no object"},
        {MODEL_GEMINI, "{\"contents\":[],\"tools\":[{\"googleSearch\":{}}]}", "googleSearch"},
        {MODEL_GEMINI, "{\"contents\":[],\"cachedContent\":\"c\"}", "cachedContent"},
        {MODEL_BEDROCK, "{}", "bedrock"},
    };
    scoped(json_freep) json_t *policy = load("share/models/policy.json");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *body = NULL;
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(json_parse("t", cases[i].text, strlen(cases[i].text), &body, NULL), 0);
        int r = policy_check(policy, cases[i].api, body, &err);

        if ((r < 0) != (cases[i].complaint[0] != '\0') ||
            (r < 0 && strstr(error_message(err), cases[i].complaint) == NULL))
            fail_msg("case %zu: %s", i, r < 0 ? error_message(err) : "let through");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_is_read_in_four_formats),
        cmocka_unit_test(a_price_is_that_of_the_longest_name),
        cmocka_unit_test(paths_say_format_and_model),
        cmocka_unit_test(bodies_of_the_other_formats_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
