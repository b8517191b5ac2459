/* Where the mistakes of a criterion's own parameters are shown. */
#include "task/internal.h"
#include "task/test_support.h"

#define HEAD                                                                                       \
    "task_id: t\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\nsuccess_criteria:\n"

/* What the check under test finds wrong with each criterion. */
static struct criterion_mistake found;

static void check(const struct criterion *criterion, task_complain *complain, void *context)
{
    assert_non_null(criterion->params);
    complain(context, &found);
}

static char *complaints_about(const char *text)
{
    static const struct task_overrides overrides = {.check_criterion = check};
    scoped(problems_done) struct problems problems = {0};
    scoped(task_freep) struct task *task = NULL;
    scoped(error_freep) struct error *err = NULL;
    struct test_reader files = {0};
    struct task_reader reader = {test_open, &files};
    struct task_text bytes = {"t", text, strlen(text)};

    assert_int_equal(task_parse(&bytes, &reader, &overrides, &task, &problems, &err), -ERROR_TASK);
    return test_complaints(&problems);
}

static void a_mistake_is_shown_inside_the_text_that_holds_it(void **state)
{
    (void)state;
    /* The value as it stands in the file from column 12 on, an offset into what it means, and the
     * place that is shown. */
    static const struct {
        const char *value;
        size_t offset;
        unsigned line, column;
    } cases[] = {
        {"ab(c", 0, 6, 12},
        {"ab(c", 2, 6, 14},
        {"ab(c", 4, 6, 16}, /* its end */
        {"ab(c", 5, 6, 12}, /* beyond */
        {"ab(c", ERROR_NO_OFFSET, 6, 12},
        {"äö(c", 4, 6, 14}, /* offsets are bytes, columns characters */
        {"'ab(c'", 2, 6, 15},
        {"'a''b('", 3, 6, 17},
        {"\"ab(c\"", 2, 6, 15},
        {"\"\\t\\\\(c\"", 2, 6, 17},
        {"\"\\u00e4(\"", 2, 6, 19},
        {"\"\\x41\\U0001F600(\"", 5, 6, 27},
        {"\"\\L(\"", 3, 6, 15},
        {"\"ab\\\n  c(\"", 3, 6, 12}, /* goes on in another line */
        {"ab\n      c(", 4, 6, 12},
        {"|\n      ab(c", 2, 6, 12},
        {"&x ab(c", 2, 6, 12},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text = str_format(
            HEAD "  - pattern: %s\n    type: file_matches_regex\n    description: d\n    path: x\n",
            cases[i].value);
        scoped(mem_freep) char *expected =
            str_format("%u:%u success_criteria[0].pattern: wrong\n", cases[i].line,
                       cases[i].column + 2); /* "  - " and the key */

        found = (struct criterion_mistake){"/pattern", cases[i].offset, "wrong"};
        scoped(mem_freep) char *got = complaints_about(text);

        if (strcmp(got, expected) != 0)
            fail_msg("case %zu: %s, expected %s", i, got, expected);
    }
}

static void a_mistake_is_shown_as_deep_as_the_file_goes(void **state)
{
    (void)state;
    static const struct {
        const char *place, *complaint;
    } cases[] = {
        {"", "6:5 success_criteria[0]: wrong\n"},
        {"/path", "6:51 success_criteria[0].path: wrong\n"},
        {"/json_schema/properties/a~1b/type",
         "7:36 success_criteria[0].json_schema.properties.a/b.type: wrong\n"},
        {"/json_schema/required/1", "8:16 success_criteria[0].json_schema.required[1]: wrong\n"},
        {"/json_schema/required/7/x",
         "8:12 success_criteria[0].json_schema.required[7].x: wrong\n"},
        {"/none", "6:5 success_criteria[0].none: wrong\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        found = (struct criterion_mistake){cases[i].place, 1, "wrong"};
        scoped(mem_freep) char *got = complaints_about(
            HEAD "  - {type: json_check, description: d, path:     ./x, json_schema: {\n"
                 "    properties: {\"a/b\": {type:     [x]}},\n"
                 " required: [a, [b]]}}\n");

        assert_string_equal(got, cases[i].complaint);
    }
}

static void what_follows_from_a_mistake_in_the_form_is_not_said(void **state)
{
    (void)state;
    found = (struct criterion_mistake){"/path", 0, "wrong"};
    scoped(mem_freep) char *got =
        complaints_about(HEAD "  - {type: file_exists, description: d, path: x, weight: -1}\n"
                              "  - {type: file_exists, description: d, path: x}\n");

    assert_string_equal(got, "6:58 success_criteria[0].weight: a number from 0 to 1000000000 "
                             "expected, found the number -1\n"
                             "7:47 success_criteria[1].path: wrong\n");
}

/* Texts that the complaints must hold. */
static void a_program_of_ones_own_must_be_a_file_of_the_suite(void **state)
{
    (void)state;
    static const struct {
        const char *criterion, *complaint;
    } cases[] = {
        {"type: 'exec:./x'", "6:12 success_criteria[0].type: '"},
        {"type: 'exec:./x'", "/x' cannot be opened: No such file or directory\n"},
        {"type: 'exec:'", "unknown criterion type 'exec:', did you mean 'exec:PATH'?\n"},
        {"type: 'exec:/bin/sh'",
         "type: a path relative to the task file expected, found '/bin/sh'\n"},
        {"type: 'exec:../../../../../../../../../x'", "'/x' is not in the suite '"},
        {"type: 'exec:x', parms: {}", ".parms: unknown key, did you mean 'params'?\n"},
        {"type: 'exec:x', params: []", ".params: a map expected, found an empty list\n"},
        {"type: 'exec:x', timeout: 0", ".timeout: a number above 0 and up to 604800 expected"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text =
            str_format("%s  - {%s, description: d}\n", HEAD, cases[i].criterion);
        scoped(mem_freep) char *shown = complaints_about(text);

        if (strstr(shown, cases[i].complaint) == NULL)
            fail_msg("'%s' expected in '%s'", cases[i].complaint, shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mistake_is_shown_inside_the_text_that_holds_it),
        cmocka_unit_test(a_mistake_is_shown_as_deep_as_the_file_goes),
        cmocka_unit_test(what_follows_from_a_mistake_in_the_form_is_not_said),
        cmocka_unit_test(a_program_of_ones_own_must_be_a_file_of_the_suite),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
