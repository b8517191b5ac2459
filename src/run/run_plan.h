#pragma once
/*
 * run_plan: which trials a run consists of, and the plan.json that resume and grade start from.
 *
 * Trials are ordered by task, then replicate, so that a task's staged view is held for as short as
 * possible. Depends on: base, task, record.
 */

#include "record/run_dir.h"
#include "task/task.h"

struct planned_trial {
    size_t task_index; /* into tasks */
    unsigned replicate;
    char *path; /* trial_path() */
    char *id;   /* path without "trials/" */
    bool done;  /* a finished record exists: resume leaves it alone */
};

struct run_plan {
    struct task_set tasks; /* owned */
    struct planned_trial *trials;
    size_t trial_count;
    unsigned repeats; /* --repeats; 0: as each task's experiment says, else 1 */
};

/* What a later command needs to load the same tasks again. Borrowed. */
struct plan_inputs {
    const struct str_list *paths; /* as given; made absolute in the record */
    const struct task_overrides *overrides;
    const struct task_selection *selection;
    bool grading;
};

/* Takes the tasks over; skipped ones get no trial. */
void run_plan_make(struct task_set *tasks, unsigned repeats, struct run_plan *ret) nonnull(1, 3);
/* Trials of one task. */
unsigned run_plan_repeats(const struct run_plan *plan, size_t task_index) nonnull(1);
void run_plan_done(struct run_plan *plan) nonnull(1);
/* closedbook/plan/1; new reference. */
json_t *run_plan_json(const struct run_plan *plan, const struct plan_inputs *inputs) nonnull(1, 2);

/*
 * Compares the plan with a recorded one. ERROR_USER naming the first difference: a task that came
 * or went, or whose public half, graders or configuration changed.
 */
must_check int run_plan_compare(const struct run_plan *plan, const json_t *recorded,
                                struct error **err) nonnull(1, 2);
