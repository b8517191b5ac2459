/* Which calls a pattern means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "broker/call_pattern.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(json_parse("t", text, strlen(text), &value, NULL), 0);
    return value;
}

/* A regex here is a text that is found. */
static int search(void *context, const json_t *predicate, const char *text, struct error **err)
{
    (void)context;
    if (str_equal(text, "broken"))
        return error_set(err, ERROR_SYSTEM, "broken");
    return strstr(text, json_get_text(predicate, "matches_regex")) != NULL;
}

/* The arguments are parted by single blanks. */
static int matches(const char *params_text, const char *line, struct error **err)
{
    const struct call_regex regex = {.search = search};
    scoped(json_freep) json_t *params = parse(params_text);
    scoped(mem_freep) char *words = str_dup(line);
    const char *items[32];
    size_t count = 0;

    for (char *save = NULL, *word = strtok_r(words, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save))
        items[count++] = word;
    return call_matches(params, &(struct call_args){items, count}, &regex, err);
}

static void takes_calls_and_leaves_others(void **state)
{
    static const struct {
        const char *params, *line;
        int matches;
    } cases[] = {
        {"{}", "", 1},
        {"{}", "anything --at all", 1},
        {"{\"verb\":\"projects list\"}", "projects list", 1},
        {"{\"verb\":\"projects list\"}", "projects list more", 1},
        {"{\"verb\":\"projects list\"}", "projects", 0},
        {"{\"verb\":\"projects list\"}", "list projects", 0},
        {"{\"verb\":\"projects list\"}", "projects listing", 0},
        {"{\"verb\":\"list\"}", "-v list", 1},
        {"{\"verb_any_of\":[\"get\",\"list all\"]}", "list all", 1},
        {"{\"verb_any_of\":[\"get\",\"list all\"]}", "list", 0},
        /* The longest verb counts: what follows it is positional. */
        {"{\"verb_any_of\":[\"get\",\"get one\"],\"positional\":[\"x\"]}", "get one x", 1},
        {"{\"verb\":\"get\",\"positional\":[\"a\",7]}", "get a 7", 1},
        {"{\"verb\":\"get\",\"positional\":[\"a\",7]}", "get a 8", 0},
        {"{\"verb\":\"get\",\"positional\":[\"a\",\"b\"]}", "get a", 0},
        {"{\"verb\":\"get\",\"positional\":[\"a\"]}", "get a b", 1},
        /* Flags that are left aside take their value with them. */
        {"{\"verb\":\"get\"}", "--output json get", 1},
        {"{\"verb\":\"get\"}", "--output=json get", 1},
        {"{\"verb\":\"get\",\"ignore_flags\":[]}", "--output json get", 0},
        {"{\"verb\":\"get\",\"ignore_flags\":[\"--fmt\"]}", "--fmt x get", 1},
        {"{\"verb\":\"get\"}", "--fmt x get", 0},
        {"{\"verb\":\"get\",\"value_flags\":[\"fmt\"]}", "--fmt x get", 1},
        {"{\"verb\":\"get\"}", "--output --deep get", 1},
        /* What is no flag. */
        {"{\"positional\":[\"-\",\"-5\"]}", "- -5", 1},
        {"{\"positional\":[\"--x\"]}", "-- --x", 1},
        /* Conditions. */
        {"{\"flags\":{\"name\":\"a\"}}", "--name a", 1},
        {"{\"flags\":{\"name\":\"a\"}}", "--name=a", 1},
        {"{\"flags\":{\"name\":\"a\"}}", "--name b", 0},
        {"{\"flags\":{\"name\":\"a\"}}", "--name b --name a", 1},
        {"{\"flags\":{\"name\":\"a\"}}", "", 0},
        {"{\"flags\":{\"name\":\"a\"}}", "--name", 0},
        {"{\"flags\":{\"--name\":{\"equals\":12}}}", "--name 12", 1},
        {"{\"flags\":{\"name\":{\"equals\":true}}}", "--name true", 1},
        {"{\"flags\":{\"name\":{\"contains\":\"bc\"}}}", "--name abcd", 1},
        {"{\"flags\":{\"name\":{\"contains\":\"bc\"}}}", "--name acbd", 0},
        {"{\"flags\":{\"name\":{\"any_of\":[\"a\",\"b\"]}}}", "--name b", 1},
        {"{\"flags\":{\"name\":{\"any_of\":[\"a\",\"b\"]}}}", "--name c", 0},
        {"{\"flags\":{\"name\":{\"matches_regex\":\"b\"}}}", "--name abc", 1},
        {"{\"flags\":{\"name\":{\"matches_regex\":\"z\"}}}", "--name abc", 0},
        {"{\"flags\":{\"name\":{\"contains\":\"a\",\"any_of\":[\"ab\"]}}}", "--name ab", 1},
        {"{\"flags\":{\"name\":{\"equals\":\"a\",\"aliases\":[\"n\"]}}}", "-n a", 1},
        {"{\"flags\":{\"name\":{\"equals\":\"a\",\"aliases\":[\"-n\"]}}}", "-n b --name=a", 1},
        {"{\"flags\":{\"force\":true}}", "--force", 1},
        {"{\"flags\":{\"force\":{\"present\":true}}}", "x --force y", 1},
        {"{\"flags\":{\"force\":{\"present\":true}}}", "x", 0},
        {"{\"flags\":{\"force\":false}}", "x", 1},
        {"{\"flags\":{\"force\":{\"absent\":true}}}", "x --force", 0},
        {"{\"flags\":{\"force\":{\"absent\":true,\"aliases\":[\"f\"]}}}", "x -f", 0},
        {"{\"flags\":{\"force\":{\"present\":false}}}", "x --force=1", 0},
        {"{\"flags\":{\"a\":\"1\",\"b\":\"2\"}}", "--a 1 --b 2", 1},
        {"{\"flags\":{\"a\":\"1\",\"b\":\"2\"}}", "--a 1", 0},
        /* A flag that is only asked to be there takes no value. */
        {"{\"flags\":{\"all\":true},\"positional\":[\"x\"]}", "--all x", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (matches(cases[i].params, cases[i].line, NULL) != cases[i].matches)
            fail_msg("%s: %s", cases[i].params, cases[i].line);
    }
}

static void a_failing_search_is_no_answer(void **state)
{
    scoped(error_freep) struct error *err = NULL;

    (void)state;
    assert_int_equal(matches("{\"flags\":{\"n\":{\"matches_regex\":\"b\"}}}", "--n broken", &err),
                     -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "broken");
}

static void say(void *context, const char *place, const char *message)
{
    buf_format(context, "%s: %s\n", place, message);
}

static void says_what_makes_no_sense(void **state)
{
    static const struct {
        const char *params, *complaint;
        bool no_regex;
    } cases[] = {
        {"{\"flags\":{\"a\":{\"equals\":1},\"b\":true,\"c\":\"x\"}}", "", true},
        {"{\"verb\":\"a\",\"verb_any_of\":[\"b\"]}", "/verb: one of", false},
        {"{\"flags\":[\"a\"]}", "/flags: a map", false},
        {"{\"flags\":{\"a\":{\"equal\":1}}}", "/flags/a: unknown condition", false},
        {"{\"flags\":{\"a\":[1]}}", "/flags/a: a value or a map", false},
        {"{\"flags\":{\"a\":{\"any_of\":\"x\"}}}", "/flags/a: any_of and aliases: a list", false},
        {"{\"flags\":{\"a\":{\"present\":\"x\"}}}", "/flags/a: present and absent", false},
        {"{\"flags\":{\"a\":{\"absent\":true,\"equals\":1}}}", "has no value to look at", false},
        {"{\"flags\":{\"a\":{\"matches_regex\":\"x\"}}}", "", false},
        {"{\"flags\":{\"a\":{\"matches_regex\":\"x\"}}}", "not in this version", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf said = {0};
        scoped(json_freep) json_t *params = parse(cases[i].params);

        call_pattern_check(params, &(struct call_complaints){say, &said, cases[i].no_regex});
        if ((cases[i].complaint[0] == '\0') != (said.size_bytes == 0) ||
            strstr(buf_text(&said), cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].params, buf_text(&said));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_calls_and_leaves_others),
        cmocka_unit_test(a_failing_search_is_no_answer),
        cmocka_unit_test(says_what_makes_no_sense),
    };

    return cmocka_run_group_tests_name("call_pattern", tests, NULL, NULL);
}
