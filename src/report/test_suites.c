#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "record/testing.h"
#include "report/report.h"
#include "report/samples.h"
#include "report/suites.h"

/* A row of a dataset with one classification. */
static void add_row(struct run_trials *trials, const char *task_id, const char *observed,
                    const char *expected)
{
    struct trial_record *record = samples_add(trials, task_id, STATUS_SUCCESS);
    struct criterion_record *criterion = testing_criterion(record, "skill_triggered", "starts",
                                                           strcmp(observed, expected) == 0 ? 1 : 0);

    criterion->observed = str_dup(observed);
    criterion->expected = str_dup(expected);
    criterion->suite_thresholds = json_object();
    json_put_real(criterion->suite_thresholds, "accuracy", 0.75);
    json_put_real(criterion->suite_thresholds, "recall.yes", 0.6);
    json_put_real(criterion->suite_thresholds, "f1.no", 0.9);
    json_put_real(criterion->suite_thresholds, "f1.maybe", 0.1);
}

static void check_metrics(const struct suite_figures *figures)
{
    static const struct {
        const char *name;
        double value;
    } expected[] = {
        {"mean", 0.75},       {"median", 1},      {"std", 0.5},
        {"accuracy", 0.75},   {"f1.yes", 0.8},    {"recall.yes", 2.0 / 3},
        {"precision.yes", 1}, {"f1.no", 2.0 / 3}, {"macro_f1", (0.8 + 2.0 / 3) / 2},
        {"micro_f1", 0.75},   {"count", 4},       {"weighted_f1", (0.8 * 3 + 2.0 / 3) / 4},
    };

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        double value = json_get_real(figures->metrics, expected[i].name, -1);

        if (value < expected[i].value - 1e-9 || value > expected[i].value + 1e-9)
            fail_msg("%s is %f", expected[i].name, value);
    }
}

static void rows_of_a_dataset_make_figures_that_are_held_against_thresholds(void **state)
{
    struct run_trials trials = {0};
    struct suites suites = {0};
    struct buf page = {0}, junit = {0};

    (void)state;
    add_row(&trials, "t/a", "yes", "yes");
    add_row(&trials, "t/b", "no", "yes");
    add_row(&trials, "t/c", "yes", "yes");
    add_row(&trials, "t/d", "no", "no");
    (void)samples_add(&trials, "t/e", STATUS_ERROR);
    (void)samples_add(&trials, "other", STATUS_SUCCESS);
    suites_make(&trials, &suites);

    /* testing_trial() has a criterion of its own before ours. */
    assert_int_equal(suites.count, 1);
    assert_string_equal(suites.items[0].task_id, "t");
    assert_int_equal(suites.items[0].criterion, 1);
    assert_int_equal(suites.items[0].rows, 5);
    assert_int_equal(suites.items[0].measured, 4);
    check_metrics(&suites.items[0]);
    assert_int_equal(suites.missed, 2);

    struct report_totals totals = report_totals(&trials);
    struct exit_rules rules = {.min_pass_rate = 0, .max_errors = 9};

    assert_int_equal(report_exit_status(&totals, &rules), 1);
    report_terminal(&page, &trials, &(struct report_options){.ascii = true});
    assert_non_null(strstr(buf_text(&page), "default/t criterion 2: starts (4 of 5 rows)"));
    assert_non_null(strstr(buf_text(&page), "f1.no 0.667, at least 0.9 expected"));
    assert_non_null(strstr(buf_text(&page), "f1.maybe: there is none, at least 0.1 expected"));
    assert_null(strstr(buf_text(&page), "recall.yes"));
    report_junit(&junit, &trials, "run");
    assert_non_null(strstr(buf_text(&junit),
                           "<testsuite name=\"suite thresholds\" tests=\"4\" failures=\"2\""));
    suites_done(&suites);
    buf_done(&page);
    buf_done(&junit);
    run_trials_done(&trials);
}

/* Data of figures/make.py, which knows nothing of suites.c. */
static void add_data_row(struct run_trials *trials, size_t number, const json_t *row)
{
    scoped(mem_freep) char *task_id = str_format("t/%04zu", number);
    const json_t *expected = json_array_get(row, 0), *observed = json_array_get(row, 1);
    struct trial_record *record = samples_add(trials, task_id, STATUS_SUCCESS);
    struct criterion_record *criterion = testing_criterion(
        record, "classification_match", "label", json_number_value(json_array_get(row, 2)));

    criterion->suite_thresholds = json_object();
    if (!json_is_string(expected))
        return;
    criterion->expected = str_dup(json_string_value(expected));
    criterion->observed = str_dup(json_string_value(observed));
}

static void check_data(size_t number, const json_t *data)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(suites_done) struct suites suites = {0};
    const json_t *metrics = json_get_object(data, "metrics"), *row;
    const char *name;
    json_t *value;
    size_t i;

    json_array_foreach (json_get_array(data, "rows"), i, row)
        add_data_row(&trials, i, row);
    suites_make(&trials, &suites);
    assert_int_equal(suites.count, 1);
    assert_int_equal(json_object_size(suites.items[0].metrics), json_object_size(metrics));
    json_object_foreach ((json_t *)(uintptr_t)metrics, name, value) {
        double wanted = json_number_value(value);
        double got = json_get_real(suites.items[0].metrics, name, -1);

        if (got < wanted - 1e-9 || got > wanted + 1e-9)
            fail_msg("case %zu: %s is %.12f, not %.12f", number, name, got, wanted);
    }

    const json_t *confusion = json_object_get(data, "confusion");

    if (json_is_null(confusion))
        assert_null(suites.items[0].confusion);
    else
        assert_true(json_equal(suites.items[0].confusion, confusion));
}

static void figures_are_those_that_another_program_reckons(void **state)
{
    scoped(json_freep) json_t *cases = NULL;
    json_t *data;
    size_t i;

    (void)state;
    assert_int_equal(
        json_load(AT_FDCWD, "src/report/figures/figures.json", (size_t)1 << 20, &cases, NULL), 0);
    assert_true(json_array_size(cases) >= 28);
    json_array_foreach (cases, i, data)
        check_data(i, data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_a_dataset_make_figures_that_are_held_against_thresholds),
        cmocka_unit_test(figures_are_those_that_another_program_reckons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
