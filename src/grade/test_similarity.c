/* How alike two texts are, and the criterion that asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/similarity.h"
#include "grade/test_workspace.h"

static double compare(enum similarity_method method, const char *name, const char *a, const char *b)
{
    struct similarity_text left = {a, strlen(a), comment_style_of(name)};
    struct similarity_text right = {b, strlen(b), comment_style_of(name)};

    return similarity(method, &left, &right);
}

static void what_differs_only_in_what_does_not_count_is_the_same(void **state)
{
    static const struct {
        enum similarity_method method;
        const char *name, *a, *b;
    } cases[] = {
        {SIMILARITY_TOKEN, "x.py", "", "  \n\t"},
        {SIMILARITY_TOKEN, "x.py", "x = f(1)\n", "x=f( 1 )  # so\n"},
        {SIMILARITY_TOKEN, "x.c", "int x; /* a\n b */", "int\nx; // c"},
        {SIMILARITY_TOKEN, "x.sql", "select 1 -- one", "select 1"},
        {SIMILARITY_LINE, "x.txt", "a  b\n\n c\n", "a b\nc"},
        {SIMILARITY_STRUCTURE, "x.py", "def f(a):\n  return a + 1\n", "def g(b): return b+22"},
        {SIMILARITY_STRUCTURE, "x.go", "s := \"a\\\"b\"", "t := 'c'"},
        {SIMILARITY_COMPLEXITY, "x.py", "def f(a):\n if a: return 1\n",
         "def g():\n for b in c: d\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double score = compare(cases[i].method, cases[i].name, cases[i].a, cases[i].b);

        if (!(score >= 1))
            fail_msg("'%s' and '%s': %f", cases[i].a, cases[i].b, score);
    }
}

static void the_scores_are_those_of_the_formulas(void **state)
{
    static const struct {
        enum similarity_method method;
        const char *a, *b;
        double score;
    } cases[] = {
        {SIMILARITY_TOKEN, "a", "", 0},
        {SIMILARITY_TOKEN, "a", "b", 0},
        /* 3-grams: --a -ab ab- b-- and --a -ac ac- c--: one in common. */
        {SIMILARITY_TOKEN, "a b", "a c", 2.0 / 8},
        /* 1-grams: 2 of 3 and 3; 2-grams: -a ab bc c- and -a ab bd d-: 2 of 4 and 4. */
        {SIMILARITY_LINE, "a\nb\nc", "a\nb\nd", (4.0 / 6 + 4.0 / 8) / 2},
        {SIMILARITY_LINE, "a\na", "a", (2.0 / 3 + 4.0 / 5) / 2},
        {SIMILARITY_STRUCTURE, "if", "x", 0},
        {SIMILARITY_STRUCTURE, "1", "x", 0},
        /* 1 line each, 2 branches against 1, no definitions. */
        {SIMILARITY_COMPLEXITY, "if a && b", "if a", (1 + 0.5 + 1) / 3},
        {SIMILARITY_COMPLEXITY, "def f", "x\ny", (0.5 + 1 + 0) / 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        double score = compare(cases[i].method, "x", cases[i].a, cases[i].b);

        if (score < cases[i].score - 1e-9 || score > cases[i].score + 1e-9)
            fail_msg("'%s' and '%s': %f", cases[i].a, cases[i].b, score);
    }
}

static void order_counts(void **state)
{
    (void)state;
    assert_true(compare(SIMILARITY_TOKEN, "x", "a b c d e", "e d c b a") < 0.2);
    assert_true(compare(SIMILARITY_LINE, "x", "a\nb\nc\nd", "d\nc\nb\na") < 0.6);
    assert_true(compare(SIMILARITY_TOKEN, "x.py", "total += value * rate\nreturn total",
                        "total += value * rates\nreturn total") > 0.5);
}

static void megabytes_of_one_thing_are_compared_in_time(void **state)
{
    size_t size = (size_t)1 << 20;
    char *text = mem_new(size + 1, 1);
    uint64_t start_ns = clock_ns();

    (void)state;
    for (size_t i = 0; i < size; i++)
        text[i] = "a b\n"[i % 4];
    for (int i = SIMILARITY_TOKEN; i <= (int)SIMILARITY_COMPLEXITY; i++)
        assert_true(compare((enum similarity_method)i, "x", text, text) >= 1);
    /* What grows with the square of it would take days. */
    assert_true(clock_ns() - start_ns < (uint64_t)60 * 1000000000u);
    free(text);
}

static void judge_files(const char *params, struct judged *ret)
{
    judge(CRITERION_REFERENCE_COMPARISON, params, ret);
}

static void the_criterion_compares_a_file_with_one_of_the_reference(void **state)
{
    static const struct {
        const char *params;
        double score;
        const char *details; /* "!" in front: errored */
    } cases[] = {
        {"{\"agent_file\":\"text.txt\",\"reference_file\":\"text.txt\",\"comparison_method\":"
         "\"token\"}",
         1, "token similarity 1.0000, at or above similarity_threshold 0.8"},
        {"{\"agent_file\":\"text.txt\",\"reference_file\":\"text.txt\"}", 1,
         "structure similarity"},
        {"{\"agent_file\":\"te*.txt\",\"reference_file\":\"text.txt\",\"comparison_method\":"
         "\"line\"}",
         1, "'te*.txt' is 'text.txt'"},
        {"{\"agent_file\":\"aaaa\",\"reference_file\":\"text.txt\",\"comparison_method\":"
         "\"token\"}",
         0, "below similarity_threshold 0.8"},
        {"{\"agent_file\":\"aaaa\",\"reference_file\":\"sub/x\",\"comparison_method\":"
         "\"complexity\",\"similarity_threshold\":0.5}",
         1, "file: 1 lines, 0 branches, 0 definitions"},
        {"{\"agent_file\":\"absent\",\"reference_file\":\"text.txt\"}", 0,
         "'absent' does not exist"},
        {"{\"agent_file\":\"link-out\",\"reference_file\":\"text.txt\"}", 0,
         "'link-out' is a link"},
        {"{\"agent_file\":\"huge\",\"reference_file\":\"text.txt\"}", 0, "larger than"},
        {"{\"agent_file\":\"text.txt\",\"reference_file\":\"absent\"}", 0,
         "!reference: 'absent' does not exist"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judged_done) struct judged judged = {0};
        bool errored = cases[i].details[0] == '!';

        judge_files(cases[i].params, &judged);
        if (judged.verdict.errored != errored || judged.verdict.caused_by_agent ||
            (!errored && judged.verdict.score != cases[i].score) ||
            strstr(judged.verdict.details, cases[i].details + errored) == NULL)
            fail_msg("%s: %f, %s", cases[i].params, judged.verdict.score, judged.verdict.details);
    }
}

static void mistakes_of_the_author_are_found_at_load(void **state)
{
    static const struct {
        const char *params, *complaint; /* NULL: fine */
    } cases[] = {
        {"{\"agent_file\":\"a\",\"reference_file\":\"b/c\",\"similarity_threshold\":1}", NULL},
        {"{\"agent_file\":\"\",\"reference_file\":\"b\"}", "/agent_file: expected the path"},
        {"{\"agent_file\":\"a\",\"reference_file\":\"../b\"}", "/reference_file: '../b' leads out"},
        {"{\"agent_file\":\"/a\",\"reference_file\":\"b\"}", "/agent_file: '/a' leads out"},
        {"{\"agent_file\":\"a\\u0000b\",\"reference_file\":\"b\"}", "/agent_file: holds a NUL"},
        {"{\"agent_file\":\"a\",\"reference_file\":\"b\",\"similarity_threshold\":80}",
         "/similarity_threshold: expected a number from 0 to 1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got =
            load_complaint(CRITERION_REFERENCE_COMPARISON, cases[i].params);

        if (cases[i].complaint == NULL ? got != NULL
                                       : got == NULL || strstr(got, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].params, got == NULL ? "(fine)" : got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_differs_only_in_what_does_not_count_is_the_same),
        cmocka_unit_test(the_scores_are_those_of_the_formulas),
        cmocka_unit_test(order_counts),
        cmocka_unit_test(megabytes_of_one_thing_are_compared_in_time),
        cmocka_unit_test(the_criterion_compares_a_file_with_one_of_the_reference),
        cmocka_unit_test(mistakes_of_the_author_are_found_at_load),
    };

    return cmocka_run_group_tests(tests, workspace_setup, workspace_teardown);
}
