#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "report/figures_text.h"
#include "report/samples.h"

/* A trial of a variant's task; verdict 'p' passed, 'f' failed, 'e' error. */
static struct trial_record *add(struct run_trials *trials, const char *variant, const char *task,
                                char verdict)
{
    enum trial_status status = verdict == 'p'   ? STATUS_SUCCESS
                               : verdict == 'f' ? STATUS_FAILURE
                                                : STATUS_ERROR;
    struct trial_record *record = samples_add(trials, task, status);

    samples_set(&record->variant_id, variant);
    record->has_verdict = verdict != 'e';
    record->passed = verdict == 'p';
    record->has_score = verdict != 'e';
    record->score = verdict == 'p' ? 1 : 0.5;
    record->agent.duration_ms = 2000;
    return record;
}

/* "a=ppf b=f": the trials of each task. */
static void add_all(struct run_trials *trials, const char *variant, const char *const (*tasks)[2],
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (const char *verdict = tasks[i][1]; *verdict != '\0'; verdict++)
            (void)add(trials, variant, tasks[i][0], *verdict);
    }
}

static const char *const before[][2] = {
    {"always", "ppp"}, {"broken", "ffe"}, {"flaky", "pfp"}, {"only", "p"}};
static const char *const after[][2] = {
    {"always", "ppp"}, {"broken", "ppp"}, {"flaky", "fff"}, {"new", "p"}, {"wrong", "ee"}};

static void counts_what_passes_and_keeps_errors_apart(unused_ok void **state)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(figures_done) struct run_figures figures = {0};

    add_all(&trials, "v", before, ARRAY_SIZE(before));
    figures_make(&trials, &figures_defaults, &figures);
    assert_int_equal(figures.count, 1);

    const struct variant_figures *variant = &figures.variants[0];

    assert_int_equal(variant->trials, 10);
    assert_int_equal(variant->decided, 9);
    assert_int_equal(variant->errors, 1);
    assert_int_equal(variant->passed, 6);
    assert_int_equal(variant->always, 2);
    assert_int_equal(variant->never, 1);
    assert_int_equal(variant->sometimes, 1);
    assert_true(fabs(variant->pass.mean - 6.0 / 9) < 1e-12);
    assert_true(fabs(variant->with_errors.mean - 6.0 / 10) < 1e-12);
    assert_true(variant->pass_wilson.low < 6.0 / 9 && variant->pass_wilson.high > 6.0 / 9);
    /* Over the tasks with as many trials: 1, 2 and 3. */
    assert_int_equal(variant->pass_k_count, 3);
    assert_int_equal(variant->pass_k[0].tasks, 4);
    assert_true(fabs(variant->pass_k[0].at - (1 + 0 + 2.0 / 3 + 1) / 4) < 1e-12);
    assert_int_equal(variant->pass_k[1].tasks, 3);
    assert_true(fabs(variant->pass_k[1].hat - (1 + 0 + 1.0 / 3) / 3) < 1e-12);
    assert_int_equal(variant->pass_k[2].tasks, 2);
    assert_true(fabs(variant->pass_k[2].at - 1) < 1e-12);
    assert_true(fabs(variant->agent_seconds - 20) < 1e-9);
    assert_int_equal(variant->priced, 0);
}

static void a_compromised_trial_has_not_passed(unused_ok void **state)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(figures_done) struct run_figures figures = {0};

    (void)add(&trials, "v", "a", 'p');
    add(&trials, "v", "b", 'p')->integrity = INTEGRITY_COMPROMISED;
    samples_set(&add(&trials, "v", "c", 'p')->agent.type, "oracle");
    figures_make(&trials, &figures_defaults, &figures);
    assert_int_equal(figures.variants[0].decided, 2);
    assert_int_equal(figures.variants[0].passed, 1);
    assert_int_equal(figures.variants[0].compromised, 1);
    assert_int_equal(figures.variants[0].oracle, 1);
}

static void costs_are_those_that_are_known(unused_ok void **state)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(figures_done) struct run_figures figures = {0};

    json_put_int(add(&trials, "v", "a", 'p')->usage, "cost_microusd", 1500000);
    json_put_int(add(&trials, "v", "b", 'f')->usage, "cost_microusd", 500000);
    json_put(add(&trials, "v", "c", 'p')->usage, "cost_microusd", json_null());
    figures_make(&trials, &figures_defaults, &figures);
    assert_int_equal(figures.variants[0].priced, 2);
    assert_true(fabs(figures.variants[0].cost_usd - 2) < 1e-9);

    scoped(json_freep) json_t *json = figures_json(&figures);
    json_t *variant = json_array_get(json_get_array(json, "variants"), 0);

    assert_true(fabs(json_get_real(variant, "cost_usd_per_pass", 0) - 1) < 1e-9);
    assert_int_equal(json_array_size(json_get_array(variant, "tasks")), 3);
}

/* --- comparing ---------------------------------------------------------------------------------
 */

struct two {
    struct run_trials trials[2];
    struct run_figures figures[2];
    struct comparison comparison;
};

static void two_done(struct two *two)
{
    comparison_done(&two->comparison);
    for (size_t i = 0; i < 2; i++) {
        figures_done(&two->figures[i]);
        run_trials_done(&two->trials[i]);
    }
}

static void compare_two(struct two *two, const json_t *a_plan, const json_t *b_plan)
{
    struct comparison_side sides[1][2];

    for (size_t i = 0; i < 2; i++)
        figures_make(&two->trials[i], &figures_defaults, &two->figures[i]);
    sides[0][0] = (struct comparison_side){"one", &two->figures[0].variants[0], a_plan};
    sides[0][1] = (struct comparison_side){"two", &two->figures[1].variants[0], b_plan};
    comparisons_make(sides, 1, &figures_defaults, &two->comparison);
}

static void compares_the_tasks_that_both_decided(unused_ok void **state)
{
    scoped(two_done) struct two two = {0};

    add_all(&two.trials[0], "v", before, ARRAY_SIZE(before));
    add_all(&two.trials[1], "v", after, ARRAY_SIZE(after));
    compare_two(&two, NULL, NULL);

    const struct comparison *comparison = &two.comparison;

    assert_int_equal(comparison->pass.tasks, 3);
    assert_true(fabs(comparison->pass.a - (1 + 0 + 2.0 / 3) / 3) < 1e-12);
    assert_true(fabs(comparison->pass.b - 2.0 / 3) < 1e-12);
    assert_false(comparison->has_mcnemar); /* replicates */
    assert_int_equal(comparison->only_in_a_count, 1);
    assert_string_equal(comparison->only_in_a[0], "only");
    assert_int_equal(comparison->only_in_b_count, 1); /* "wrong" decided nothing */
    assert_string_equal(comparison->only_in_b[0], "new");
    assert_int_equal(comparison->flip_count, 2);
    assert_string_equal(comparison->flips[0].task_id, "flaky"); /* the worse first */
    assert_string_equal(comparison->flips[1].task_id, "broken");
    assert_false(comparison_is_worse(comparison) || comparison_is_better(comparison));

    scoped(buf_done) struct buf text = {0};

    /* ((1.960 + 0.842) * 0.839 / 0.111) squared: few tasks, and far apart. */
    comparison_sentence(&text, comparison);
    assert_string_equal(buf_text(&text),
                        "B passes 0.3 more of 3 tasks (55.6 % and 66.7 %); p = 1.00: "
                        "no difference can be told; about 448 tasks would be "
                        "needed to see one of this size");
}

static void tells_a_difference_that_is_there(unused_ok void **state)
{
    scoped(two_done) struct two two = {0};

    for (int i = 0; i < 20; i++) {
        scoped(mem_freep) char *task = str_format("t%02d", i);

        (void)add(&two.trials[0], "v", task, i < 14 ? 'p' : 'f');
        (void)add(&two.trials[1], "v", task, i < 3 ? 'p' : 'f');
    }
    compare_two(&two, NULL, NULL);
    assert_true(comparison_is_worse(&two.comparison));
    assert_true(two.comparison.has_mcnemar);
    assert_int_equal(two.comparison.only_a, 11);
    assert_int_equal(two.comparison.only_b, 0);
    /* With one trial a task the two tests are the same one. */
    assert_true(fabs(two.comparison.mcnemar_p - two.comparison.pass.p) < 1e-9);

    scoped(json_freep) json_t *json = comparison_json(&two.comparison);

    assert_string_equal(json_get_text(json, "verdict"), "worse");
}

static void sees_that_tasks_were_graded_otherwise(unused_ok void **state)
{
    scoped(two_done) struct two two = {0};
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *one = NULL;
    scoped(json_freep) json_t *other = NULL;
    static const char first[] = "{\"tasks\":{\"a\":{\"public\":\"1\",\"graders\":\"1\"},"
                                "\"v/b\":{\"public\":\"1\",\"graders\":\"1\"}}}";
    static const char second[] = "{\"tasks\":{\"a\":{\"public\":\"1\",\"graders\":\"1\"},"
                                 "\"v/b\":{\"public\":\"2\",\"graders\":\"1\"}}}";

    assert_int_equal(json_parse("a", first, strlen(first), &one, &err), 0);
    assert_int_equal(json_parse("b", second, strlen(second), &other, &err), 0);
    for (size_t i = 0; i < 2; i++) {
        (void)add(&two.trials[i], "v", "a", 'p');
        (void)add(&two.trials[i], "v", "b", 'p');
    }
    compare_two(&two, one, other);
    assert_int_equal(two.comparison.changed_count, 1);
    assert_string_equal(two.comparison.changed[0], "b");
    comparison_done(&two.comparison);
    for (size_t i = 0; i < 2; i++)
        figures_done(&two.figures[i]);

    /* Variants of one run get what they are given. */
    compare_two(&two, one, one);
    assert_int_equal(two.comparison.changed_count, 0);
    comparison_done(&two.comparison);
    for (size_t i = 0; i < 2; i++) {
        struct trial_record *record = &two.trials[i].records[0];

        figures_done(&two.figures[i]);
        json_decref(record->graded_with);
        record->graded_with = json_object();
        json_put_text(record->graded_with, "reference", i == 0 ? "sha256:0" : "sha256:1");
    }
    compare_two(&two, one, one);
    assert_int_equal(two.comparison.changed_count, 1);
    assert_string_equal(two.comparison.changed[0], "a");
}

static void shows_no_byte_of_a_name_raw(unused_ok void **state)
{
    scoped(two_done) struct two two = {0};
    scoped(buf_done) struct buf text = {0};
    struct painter painter = {.buf = &text, .ascii = true};
    static const char name[] = "t\033]52;c;eA==\a\u202ex";

    (void)add(&two.trials[0], name, name, 'p');
    (void)add(&two.trials[0], name, name, 'f');
    (void)add(&two.trials[1], name, name, 'f');
    compare_two(&two, NULL, NULL);
    figures_text(&painter, &two.figures[0], true);
    comparison_text(&painter, &two.comparison, true);
    assert_non_null(strstr(buf_text(&text), "1 of 2, then 0 of 1"));
    assert_null(strchr(buf_text(&text), '\033'));
    assert_null(strstr(buf_text(&text), "\u202e"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_passes_and_keeps_errors_apart),
        cmocka_unit_test(a_compromised_trial_has_not_passed),
        cmocka_unit_test(costs_are_those_that_are_known),
        cmocka_unit_test(compares_the_tasks_that_both_decided),
        cmocka_unit_test(tells_a_difference_that_is_there),
        cmocka_unit_test(sees_that_tasks_were_graded_otherwise),
        cmocka_unit_test(shows_no_byte_of_a_name_raw),
    };

    return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
