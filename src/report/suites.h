#pragma once
/*
 * suites: figures of one criterion over all rows of a dataset, and what was asked of them.
 *
 * A suite is a task of rows (its trials are "TASK/ROW") in one variant; every criterion that has
 * labels or suite_thresholds gets figures over the trials that have a score for it. A threshold
 * that is missed, or whose metric there is not, fails. Pure: from loaded trials. Depends on: base,
 * record.
 */

#include "record/run_dir.h"

#define SUITE_LABELS_MAX 1000 /* distinct ones of a criterion; further ones count as "(other)" */

struct suite_check {
    char *metric;
    double least, value;
    bool has_value, passed;
};

struct suite_figures {
    const char *variant_id, *type, *description; /* borrowed of the trials */
    char *task_id;                               /* of the dataset's task */
    size_t criterion;                            /* from 0 */
    size_t rows, measured;                       /* trials, and those with a score for it */
    json_t *metrics;                             /* {"mean": 0.5, "f1.yes": 1, ...} */
    json_t *confusion; /* {expected: {observed: count}}; NULL: no labels */
    struct suite_check *checks;
    size_t check_count;
};

struct suites {
    struct suite_figures *items; /* in the order of the trials, then of the criteria */
    size_t count;
    size_t missed; /* checks that did not pass */
};
void suites_make(const struct run_trials *trials, struct suites *ret) nonnull(1, 2);
void suites_done(struct suites *suites) nonnull(1);
/* "accuracy 0.417, at least 0.5 expected"; owned. */
char *suite_check_text(const struct suite_check *check) malloc_like nonnull(1);
/* For report.json; new reference. */
json_t *suites_json(const struct suites *suites) nonnull(1);
