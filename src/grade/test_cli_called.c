/* cli_called, over logs that are given as texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/test_workspace.h"

#define CALLS                                                                                      \
    "{\"ts\":1,\"tool\":\"uip\",\"argv\":[\"list\",\"--output\",\"json\"],\"exit\":0}\n"           \
    "{\"tool\":\"uip\",\"argv\":[\"get\",\"7\"],\"exit\":1,\"rule\":0}\n"                          \
    "{\"tool\":\"other\",\"argv\":[\"list\"],\"exit\":0}\n"

static const struct {
    const char *path, *text;
} logs[] = {
    {"cli_mocks/calls.jsonl", CALLS},
    {"empty.jsonl", ""},
    {"bad.jsonl", CALLS "oops\n"},
    {"list.jsonl", "[1]\n"},
    {"no-argv.jsonl", "{\"tool\":\"uip\"}\n"},
    {"numbers.jsonl", "{\"tool\":\"uip\",\"argv\":[1]}\n"},
    {"cut.jsonl", CALLS "{\"cut\": true}\n"},
    {"names.jsonl", "{\"tool\":\"uip\",\"argv\":[\"/m/uip\",\"list\"]}"},
    {"own.jsonl", "{\"tool\":\"npm\",\"cwd\":\"/workspace\",\"argv\":[\"npm\"],\"exit\":0}\n"},
    {"many.jsonl", CALLS CALLS CALLS CALLS},
    {"slow.jsonl", "{\"tool\":\"uip\",\"argv\":[\"--n\","
                   "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"]}\n"},
};

static int read_log(void *context, const char *path, bool content, struct grade_file *ret,
                    struct error **err)
{
    (void)context;
    if (str_equal(path, "broken"))
        return error_set(err, ERROR_SYSTEM, "cannot read");
    assert_true(content);
    ret->state = GRADE_FILE_ABSENT;
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
        if (!str_equal(logs[i].path, path))
            continue;
        ret->state = GRADE_FILE_OK;
        buf_text_append(&ret->content, logs[i].text);
    }
    return 0;
}

static int try_called(const char *params, struct verdict *ret, struct error **err)
{
    char description[] = "d";
    struct grade_workspace workspace = {.read = read_log};
    struct criterion criterion = {.kind = CRITERION_CLI_CALLED,
                                  .type_name = "cli_called",
                                  .description = description,
                                  .weight = 1,
                                  .pass_threshold = 1,
                                  .params = test_json(params)};
    const struct grade_input input = {.workspace = &workspace};
    int r = criterion_types[CRITERION_CLI_CALLED].evaluate(&criterion, &input, ret, err);

    json_decref(criterion.params);
    return r;
}

static void counts_the_calls_that_are_meant(void **state)
{
    static const struct {
        const char *params;
        double score;
        const char *details;
    } cases[] = {
        {"{}", 1, "3 of 3 calls, expected at least 1"},
        {"{\"tool\":\"uip\"}", 1, "2 of 3 calls, expected at least 1\nfor example: 'uip list"},
        {"{\"tool\":\"uip\",\"verb\":\"list\"}", 1, "1 of 3 calls"},
        {"{\"tool\":\"uip\",\"verb\":\"list\",\"min_count\":2}", 0, "1 of 3 calls"},
        {"{\"verb\":\"list\",\"min_count\":2,\"max_count\":2}", 1, "2 of 3 calls, expected 2"},
        {"{\"verb\":\"list\",\"max_count\":1}", 0, "2 of 3 calls, expected 1"},
        {"{\"verb\":\"get\",\"positional\":[7]}", 1, "1 of 3"},
        {"{\"verb\":\"delete\",\"max_count\":0}", 1, "0 of 3 calls, expected 0"},
        {"{\"verb\":\"get\",\"max_count\":0}", 0, "1 of 3 calls, expected 0"},
        {"{\"verb\":\"list\",\"ignore_flags\":[],"
         "\"flags\":{\"output\":{\"matches_regex\":\"^JS\",\"flags\":\"i\"}}}",
         1, "1 of 3"},
        {"{\"tool\":\"none\"}", 0, "0 of 3"},
        /* Without a log, or with one that is none, nothing is known. */
        {"{\"log\":\"absent.jsonl\",\"max_count\":0}", 0, "does not exist"},
        {"{\"log\":\"empty.jsonl\",\"max_count\":0}", 1, "0 of 0 calls"},
        {"{\"log\":\"empty.jsonl\"}", 0, "0 of 0 calls"},
        {"{\"log\":\"bad.jsonl\",\"verb\":\"list\"}", 0, "line 4 of 'bad.jsonl' is no call"},
        {"{\"log\":\"list.jsonl\",\"max_count\":0}", 0, "line 1"},
        {"{\"log\":\"no-argv.jsonl\",\"max_count\":0}", 0, "line 1"},
        {"{\"log\":\"numbers.jsonl\",\"max_count\":0}", 0, "line 1"},
        {"{\"log\":\"cut.jsonl\",\"verb\":\"delete\",\"max_count\":0}", 0, "line 4"},
        {"{\"log\":\"names.jsonl\",\"verb\":\"list\"}", 1, "1 of 1"},
        /* Our own log has the arguments alone, also where one is the program's name. */
        {"{\"log\":\"own.jsonl\",\"verb\":\"npm\"}", 1, "1 of 1"},
        /* Too few calls: what there was is told, of it so much. */
        {"{\"tool\":\"uip\",\"verb\":\"put\"}", 0,
         "at least 1\nseen: 'uip list --output json'\nseen: 'uip get 7'\nseen: 'other list'"},
        {"{\"log\":\"many.jsonl\",\"verb\":\"put\"}", 0, "seen: 'uip get 7'\nand 4 more"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};

        assert_int_equal(try_called(cases[i].params, &verdict, NULL), 0);
        if (verdict.errored || verdict.score != cases[i].score ||
            strstr(verdict.details, cases[i].details) == NULL)
            fail_msg("%s: score %f, %s", cases[i].params, verdict.score, verdict.details);
    }
}

static void what_takes_too_long_is_no_guess(void **state)
{
    scoped(verdict_done) struct verdict verdict = {0};

    (void)state;
    assert_int_equal(try_called("{\"log\":\"slow.jsonl\",\"max_count\":0,"
                                "\"flags\":{\"n\":{\"matches_regex\":\"^(a+)+$\"}}}",
                                &verdict, NULL),
                     0);
    assert_true(verdict.errored && verdict.caused_by_agent);
}

static void a_failing_system_is_no_verdict(void **state)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(verdict_done) struct verdict verdict = {0};

    (void)state;
    assert_int_equal(try_called("{\"log\":\"broken\"}", &verdict, &err), -ERROR_SYSTEM);
}

static void mistakes_are_found_at_load(void **state)
{
    static const struct {
        const char *params, *complaint;
    } cases[] = {
        {"{\"max_count\":0}", NULL},
        {"{\"min_count\":3,\"max_count\":2}", "/max_count: 2 is below min_count, 3"},
        {"{\"flags\":{\"a\":{\"matches_regex\":\"(\"}}}", "/flags/a/matches_regex: offset 0"},
        {"{\"flags\":{\"a\":{\"matches_regex\":\"x\",\"flags\":\"q\"}}}", "/flags/a"},
        {"{\"flags\":{\"a\":{\"equal\":1}}}", "/flags/a: unknown condition"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = load_complaint(CRITERION_CLI_CALLED, cases[i].params);

        if (cases[i].complaint == NULL ? got != NULL
                                       : got == NULL || strstr(got, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].params, got == NULL ? "(fine)" : got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_the_calls_that_are_meant),
        cmocka_unit_test(what_takes_too_long_is_no_guess),
        cmocka_unit_test(a_failing_system_is_no_verdict),
        cmocka_unit_test(mistakes_are_found_at_load),
    };

    return cmocka_run_group_tests_name("grade_cli_called", tests, NULL, NULL);
}
