/* The criteria about files, over a folder as workspace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/test_workspace.h"

/* One criterion of a kind with its parameters as JSON, over the folder's files. */
struct expectation {
    const char *params;
    double score;
    const char *details; /* a part of them; "!" in front: errored; "?": errored by the agent */
};

static void check(enum criterion_kind kind, const struct expectation *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        scoped(judged_done) struct judged judged = {0};
        const char *details = cases[i].details;
        bool errored = details[0] == '!' || details[0] == '?';

        judge(kind, cases[i].params, &judged);
        if (judged.verdict.errored != errored ||
            judged.verdict.caused_by_agent != (details[0] == '?') ||
            (!errored && judged.verdict.score != cases[i].score) ||
            strstr(judged.verdict.details, details + errored) == NULL)
            fail_msg("%s: score %f, %s", cases[i].params, judged.verdict.score,
                     judged.verdict.details);
    }
}

static void file_exists_takes_files_folders_and_globs(void **state)
{
    static const struct expectation cases[] = {
        {"{\"path\":\"text.txt\"}", 1, "'text.txt' exists"},
        {"{\"path\":\"sub/one.py\"}", 1, "'sub/one.py' exists"},
        {"{\"path\":\"none.txt\"}", 0, "'none.txt' does not exist"},
        {"{\"path\":\"sub\"}", 1, "'sub' exists"},
        {"{\"path\":\"*.txt\"}", 1, "'*.txt' exists: 'text.txt'"},
        {"{\"path\":\"*.json\"}", 1, "and more"},
        {"{\"path\":\"*.nope\"}", 0, "does not exist"},
        {"{\"path\":\"link-out\"}", 0, "'link-out' is a link that leads out"},
        {"{\"path\":\"fifo\"}", 0, "neither a file nor a link to one"},
        {"{\"path\":\"huge\"}", 1, "'huge' exists"},
        {"{\"path\":\"[literal].txt\"}", 1, "'[literal].txt' exists"},
    };

    (void)state;
    check(CRITERION_FILE_EXISTS, cases, ARRAY_SIZE(cases));
}

static void file_contains_is_the_mean_of_what_is_asked(void **state)
{
    static const struct expectation cases[] = {
        {"{\"path\":\"text.txt\",\"includes\":[\"alpha\",\"beta\"]}", 1, "includes: 2 of 2 hold"},
        {"{\"path\":\"text.txt\",\"includes\":[\"alpha\",\"zeta\"]}", 0.5,
         "not in the file: 'zeta'\nincludes: 1 of 2 hold"},
        {"{\"path\":\"text.txt\",\"includes\":[\"zeta\"],\"excludes\":[\"eta\",\"omega\"]}", 0.25,
         "in the file, but excluded: 'eta'"},
        {"{\"path\":\"text.txt\",\"excludes\":[\"omega\"]}", 1, "excludes: 1 of 1 hold"},
        {"{\"path\":\"text.txt\",\"includes\":[\"alpha\"],\"excludes\":[\"beta\"]}", 0.5,
         "excludes: 0 of 1"},
        {"{\"path\":\"text.txt\",\"includes\":[],\"excludes\":[]}", 1, ""},
        {"{\"path\":\"text.txt\"}", 1, ""},
        {"{\"path\":\"text.txt\",\"includes\":[\"alpha beta\\ngamma\"]}", 1, "1 of 1"},
        {"{\"path\":\"text.txt\",\"includes\":[\"\\u00e9ta\"]}", 0, "'\xC3\xA9ta'"},
        {"{\"path\":\"binary\",\"includes\":[\"after\"]}", 1, "1 of 1"},
        {"{\"path\":\"none.txt\",\"excludes\":[\"x\"]}", 0, "'none.txt' does not exist"},
        {"{\"path\":\"sub\",\"includes\":[\"x\"]}", 0, "'sub' is a directory, expected a file"},
        {"{\"path\":\"huge\",\"includes\":[\"x\"]}", 0, "'huge' is larger than"},
        {"{\"path\":\"*.txt\",\"includes\":[\"alpha\"]}", 1, "'*.txt' is 'text.txt'"},
        {"{\"path\":\"*.json\",\"includes\":[\"a\"]}", 0,
         "'*.json' matches several files, expected exactly one: 'bad.json', 'data.json'"},
        {"{\"path\":\"link-out\",\"excludes\":[\"x\"]}", 0, "leads out"},
    };

    (void)state;
    check(CRITERION_FILE_CONTAINS, cases, ARRAY_SIZE(cases));
}

static void file_matches_regex_searches_the_whole_file(void **state)
{
    static const struct expectation cases[] = {
        {"{\"path\":\"text.txt\",\"pattern\":\"bet.\"}", 1, "/bet./ has a match"},
        {"{\"path\":\"text.txt\",\"pattern\":\"^gamma\"}", 0,
         "/^gamma/ has no match, expected one"},
        {"{\"path\":\"text.txt\",\"pattern\":\"^gamma\",\"flags\":8}", 1, "has a match"},
        {"{\"path\":\"text.txt\",\"pattern\":\"^GAMMA\",\"flags\":\"im\"}", 1, "has a match"},
        {"{\"path\":\"text.txt\",\"pattern\":\"zeta\",\"must_match\":false}", 1, "has no match"},
        {"{\"path\":\"text.txt\",\"pattern\":\"beta\",\"must_match\":false}", 0,
         "has a match, expected none"},
        {"{\"path\":\"binary\",\"pattern\":\"\\\\ufffd{2}.after\"}", 1, "has a match"},
        {"{\"path\":\"none.txt\",\"pattern\":\"x\",\"must_match\":false}", 0, "does not exist"},
        {"{\"path\":\"aaaa\",\"pattern\":\"(a+)+$\"}", 0, "?takes too long on this file"},
    };

    (void)state;
    check(CRITERION_FILE_MATCHES_REGEX, cases, ARRAY_SIZE(cases));
}

static void file_check_is_the_mean_of_its_active_parts(void **state)
{
    static const struct expectation cases[] = {
        {"{\"path\":\"text.txt\"}", 1, ""},
        {"{\"path\":\"none.txt\"}", 0, "does not exist"},
        {"{\"path\":\"text.txt\",\"includes\":[\"alpha\"],\"excludes\":[\"omega\"],"
         "\"patterns\":[{\"pattern\":\"beta\"}]}",
         1, "patterns: 1 of 1 hold"},
        {"{\"path\":\"text.txt\",\"includes\":[\"zeta\"],\"patterns\":[{\"pattern\":\"beta\"}]}",
         0.5, "includes: 0 of 1"},
        {"{\"path\":\"text.txt\",\"patterns\":[{\"pattern\":\"beta\"},{\"pattern\":\"BETA\"},"
         "{\"pattern\":\"BETA\",\"flags\":2},{\"pattern\":\"zeta\",\"must_match\":false}]}",
         0.75, "/BETA/ has no match"},
        {"{\"path\":\"text.txt\",\"excludes\":[\"alpha\"],\"patterns\":[{\"pattern\":\"beta\"},{"
         "\"pattern\":\"zeta\"}]}",
         0.25, "1 of 2"},
        {"{\"path\":\"aaaa\",\"includes\":[\"a\"],\"patterns\":[{\"pattern\":\"(a+)+$\"}]}", 0,
         "?takes too long"},
    };

    (void)state;
    check(CRITERION_FILE_CHECK, cases, ARRAY_SIZE(cases));
}

static void json_check_asks_for_json_a_schema_and_assertions(void **state)
{
    static const struct expectation cases[] = {
        {"{\"path\":\"data.json\"}", 1, "the file is valid JSON"},
        {"{\"path\":\"bad.json\"}", 0, "'bad.json' is not valid JSON: line 1, column"},
        {"{\"path\":\"none.json\"}", 0, "does not exist"},
        {"{\"path\":\"text.txt\"}", 0, "not valid JSON"},
        {"{\"path\":\"data.json\",\"json_schema\":{\"type\":\"object\",\"required\":[\"n\"]}}", 1,
         "schema: valid"},
        {"{\"path\":\"data.json\",\"json_schema\":{\"required\":[\"zz\"]}}", 0,
         "schema: not valid\nat '': found {"},
        {"{\"path\":\"data.json\",\"json_schema\":\"schema.json\"}", 1, "schema: valid"},
        {"{\"path\":\"data.json\",\"json_schema\":\"none.json\"}", 0,
         "json_schema: 'none.json' does not exist"},
        {"{\"path\":\"data.json\",\"json_schema\":\"bad.json\"}", 0,
         "json_schema: 'bad.json': line 1"},
        {"{\"path\":\"data.json\",\"json_schema\":\"data.json\"}", 0,
         "keyword 'n' is not in the supported"},
        {"{\"path\":\"data.json\",\"json_schema\":{\"required\":[\"zz\"]},\"assertions\":[{"
         "\"expression\":\"n\",\"operator\":\"equals\",\"expected\":3}]}",
         0.5, "assertions: 1 of 1 hold"},
        {"{\"path\":\"data.json\",\"json_schema\":{\"properties\":{\"s\":{\"pattern\":\"(a+)+$\"}}}"
         "}",
         0, "?takes too long"},
        {"{\"path\":\"data.json\",\"assertions\":[{\"expression\":\"n\",\"expected\":3.0},{"
         "\"expression\":\"n\",\"expected\":4}]}",
         0.5, "n: found 3, expected it to be equals 4\nassertions: 1 of 2 hold"},
        {"{\"path\":\"data.json\",\"assertions\":[{\"expression\":\"length(n)\",\"operator\":"
         "\"gt\",\"expected\":1}]}",
         0, "length(n): length(): argument 1 is 3"},
    };

    (void)state;
    check(CRITERION_JSON_CHECK, cases, ARRAY_SIZE(cases));
}

static void each_operator_of_json_check_holds_for_what_it_says(void **state)
{
    static const struct {
        const char *expression, *operator, * expected;
        bool holds;
    } cases[] = {
        {"n", "equals", "3", true},
        {"n", "equals", "3.0", true},
        {"n", "equals", "\"3\"", false},
        {"list", "equals", "[1,2.0,\"x\"]", true},
        {"zz", "equals", "null", true},
        {"t", "equals", "1", false},
        {"n", "not_equals", "4", true},
        {"n", "not_equals", "3.0", false},
        {"zz", "not_equals", "null", false},
        {"list", "contains", "1.0", true},
        {"list", "contains", "9", false},
        {"s", "contains", "\"aab\"", true},
        {"s", "contains", "\"zz\"", false},
        {"s", "contains", "1", false},
        {"o", "contains", "\"k\"", true},
        {"o", "contains", "\"z\"", false},
        {"o", "contains", "1", false},
        {"n", "contains", "3", false},
        {"zz", "contains", "null", false},
        {"n", "gt", "2", true},
        {"n", "gt", "3", false},
        {"n", "gte", "3.0", true},
        {"n", "lt", "3.5", true},
        {"n", "lt", "3", false},
        {"n", "lte", "3", true},
        {"n", "lte", "2", false},
        {"date", "gt", "\"2024-01-01\"", true},
        {"date", "lt", "\"2024-01-01\"", false},
        {"n", "gt", "\"2\"", false},
        {"s", "gt", "2", false},
        {"zz", "lt", "5", false},
        {"t", "gte", "0", false},
        {"n", "type", "\"number\"", true},
        {"s", "type", "\"string\"", true},
        {"t", "type", "\"boolean\"", true},
        {"t", "type", "\"number\"", false},
        {"list", "type", "\"array\"", true},
        {"o", "type", "\"object\"", true},
        {"zz", "type", "\"null\"", true},
        {"date", "regex", "\"^\\\\d{4}-\"", true},
        {"date", "regex", "\"^x\"", false},
        {"n", "regex", "\"3\"", false},
        {"n", "exists", "null", true},
        {"zz", "exists", "null", false},
        {"z", "exists", "true", false},
        {"e", "exists", "null", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *params =
            str_format("{\"path\":\"data.json\",\"assertions\":[{\"expression\":\"%s\","
                       "\"operator\":\"%s\",\"expected\":%s}]}",
                       cases[i].expression, cases[i].operator, cases[i].expected);
        scoped(judged_done) struct judged judged = {0};

        judge(CRITERION_JSON_CHECK, params, &judged);
        if (judged.verdict.score != (cases[i].holds ? 1 : 0) || judged.verdict.errored)
            fail_msg("%s: %s", params, judged.verdict.details);
    }
}

static void what_cannot_be_checked_is_found_at_load(void **state)
{
    static const struct {
        enum criterion_kind kind;
        const char *params, *complaint; /* NULL: fine */
    } cases[] = {
        {CRITERION_FILE_EXISTS, "{\"path\":\"a/b*.c\"}", NULL},
        {CRITERION_FILE_EXISTS, "{\"path\":\"..a/b..\"}", NULL},
        {CRITERION_FILE_EXISTS, "{}", "path: expected the path"},
        {CRITERION_FILE_EXISTS, "{\"path\":\"\"}", "path: expected the path"},
        {CRITERION_FILE_EXISTS, "{\"path\":\"/etc/passwd\"}", "path: '/etc/passwd' leads out"},
        {CRITERION_FILE_CONTAINS, "{\"path\":\"a/../../b\"}", "leads out of the workspace"},
        {CRITERION_FILE_CONTAINS, "{\"path\":\"..\"}", "leads out of the workspace"},
        {CRITERION_FILE_EXISTS, "{\"path\":\"a\\u0000b\"}", "NUL"},
        {CRITERION_FILE_MATCHES_REGEX, "{\"path\":\"a\"}",
         "pattern: expected a regular expression"},
        {CRITERION_FILE_MATCHES_REGEX, "{\"path\":\"a\",\"pattern\":\"(\"}",
         "pattern: offset 0: missing closing"},
        {CRITERION_FILE_MATCHES_REGEX, "{\"path\":\"a\",\"pattern\":\"a\",\"flags\":4}",
         "flags: expected letters"},
        {CRITERION_FILE_MATCHES_REGEX, "{\"path\":\"a\",\"pattern\":\"a\",\"flags\":\"im\"}", NULL},
        {CRITERION_FILE_CHECK,
         "{\"path\":\"a\",\"patterns\":[{\"pattern\":\"a\"},{\"pattern\":\"[\"}]}",
         "/patterns/1/pattern: offset 0"},
        {CRITERION_JSON_CHECK, "{\"path\":\"a\",\"json_schema\":{\"typ\":1}}", "keyword 'typ'"},
        {CRITERION_JSON_CHECK, "{\"path\":\"a\",\"json_schema\":\"s.json\"}", NULL},
        {CRITERION_JSON_CHECK, "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a[\"}]}",
         "/assertions/0/expression: offset 2"},
        {CRITERION_JSON_CHECK, "{\"path\":\"a\",\"assertions\":[{\"expected\":1}]}",
         "/assertions/0: expression: expected"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"is\"}]}",
         "operator: 'is' is unknown"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"gt\"}]}",
         "wants a number or a string"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"type\",\"expected\":"
         "\"int\"}]}",
         "wants string, number"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"regex\","
         "\"expected\":\"(\"}]}",
         "expected: offset 0"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"regex\","
         "\"expected\":1}]}",
         "wants a regular expression"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"exists\","
         "\"expected\":false}]}",
         "exists takes none"},
        {CRITERION_JSON_CHECK,
         "{\"path\":\"a\",\"assertions\":[{\"expression\":\"a\",\"operator\":\"exists\"}]}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = load_complaint(cases[i].kind, cases[i].params);

        if (cases[i].complaint == NULL ? got != NULL
                                       : got == NULL || strstr(got, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].params, got == NULL ? "(fine)" : got);
    }
}

static void classification_match_compares_one_label(void **state)
{
#define LABELS "\"allowed_labels\":[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaB\",\"X\"],"
    static const struct expectation cases[] = {
        {"{\"path\":\"sub/x\"," LABELS "\"expected_label\":\"x\"}", 1, "label 'X', expected 'X'"},
        {"{\"path\":\"sub/x\"," LABELS "\"expected_label\":\"X\",\"case_sensitive\":true}", 0,
         "the file holds 'x', which is none of the allowed labels\nlabel '(other)', expected 'X'"},
        {"{\"path\":\"aaaa\"," LABELS "\"expected_label\":\"X\"}", 0, "expected 'X'"},
        {"{\"path\":\"none\"," LABELS "\"expected_label\":\"X\"}", 0,
         "'none' does not exist\nlabel '(none)', expected 'X'"},
        {"{\"path\":\"none\"," LABELS "\"expected_label\":\"(none)\"}", 1, "label '(none)'"},
        {"{\"path\":\"text.txt\"," LABELS "\"expected_label\":\"(other)\"}", 1,
         "label '(other)', expected '(other)'"},
        {"{\"path\":\"*.json\"," LABELS "\"expected_label\":\"X\"}", 0, "matches several files"},
    };
    scoped(judged_done) struct judged judged = {0};

    (void)state;
    check(CRITERION_CLASSIFICATION_MATCH, cases, ARRAY_SIZE(cases));
    judge(CRITERION_CLASSIFICATION_MATCH, cases[0].params, &judged);
    assert_string_equal(judged.verdict.observed, "X");
    assert_string_equal(judged.verdict.expected, "X");
    scoped(mem_freep) char *unknown = load_complaint(
        CRITERION_CLASSIFICATION_MATCH, "{\"path\":\"x\"," LABELS "\"expected_label\":\"Y\"}");

    assert_string_equal(unknown, "/expected_label: 'Y' is none of the allowed_labels\n");
#undef LABELS
}

static void long_details_are_cut_with_a_mark(void **state)
{
    scoped(buf_done) struct buf params = {0};
    scoped(judged_done) struct judged judged = {0};

    (void)state;
    buf_text_append(&params, "{\"path\":\"text.txt\",\"includes\":[\"x\"");
    for (int i = 0; i < 5000; i++)
        buf_format(&params, ",\"missing text number %d\"", i);
    buf_text_append(&params, "]}");
    judge(CRITERION_FILE_CONTAINS, buf_text(&params), &judged);
    assert_true(strlen(judged.verdict.details) <= GRADE_DETAILS_BYTES_MAX);
    assert_true(str_ends(judged.verdict.details, "[cut: details end here]"));
    assert_true(judged.verdict.score == 0);
}

static void an_error_of_the_system_is_never_a_score(void **state)
{
    static const enum criterion_kind kinds[] = {
        CRITERION_FILE_EXISTS, CRITERION_FILE_CONTAINS, CRITERION_FILE_MATCHES_REGEX,
        CRITERION_FILE_CHECK,  CRITERION_JSON_CHECK,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        scoped(judged_done) struct judged judged = {0};

        assert_int_equal(try_judge(kinds[i], "{\"path\":\"broken\",\"pattern\":\"x\"}", &judged),
                         -ERROR_SYSTEM);
        assert_non_null(strstr(error_message(judged.err), "cannot read 'broken'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_exists_takes_files_folders_and_globs),
        cmocka_unit_test(file_contains_is_the_mean_of_what_is_asked),
        cmocka_unit_test(file_matches_regex_searches_the_whole_file),
        cmocka_unit_test(file_check_is_the_mean_of_its_active_parts),
        cmocka_unit_test(json_check_asks_for_json_a_schema_and_assertions),
        cmocka_unit_test(each_operator_of_json_check_holds_for_what_it_says),
        cmocka_unit_test(what_cannot_be_checked_is_found_at_load),
        cmocka_unit_test(classification_match_compares_one_label),
        cmocka_unit_test(long_details_are_cut_with_a_mark),
        cmocka_unit_test(an_error_of_the_system_is_never_a_score),
    };

    return cmocka_run_group_tests_name("grade_criteria", tests, workspace_setup,
                                       workspace_teardown);
}
