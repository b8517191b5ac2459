#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "record/testing.h"
#include "report/samples.h"
#include "report/suites.h"

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
        cmocka_unit_test(figures_are_those_that_another_program_reckons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
