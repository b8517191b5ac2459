#pragma once
/*
 * steps: pre_run and post_run of a task, each command in a harness cell.
 *
 * pre_run: before the agent, in cells that see the suite, but not the reference. What the commands
 * leave in the workspace, deletions included, is what the agent gets. Those that run in the agent's
 * cell come last, and see what it sees. With job->bare_host those of the host run without walls, in
 * the operator's environment, and the record says so. post_run: after grading,
 * over what the agent left, once for every trial whose pre_run began; it decides nothing.
 * Outputs are kept as steps/PHASE-NN.out. Depends on: grade_cell, trial.
 */

#include "run/trial.h"

/*
 * Runs pre_run and appends to record->steps. *ret_cell: the ended cell whose workspace the agent's
 * takes over, the caller's; NULL when the task has no such steps. ERROR_TASK when a step failed
 * that may not.
 */
must_check int steps_before(const struct trial_job *job, struct trial_record *record,
                            struct cell **ret_cell, struct error **err) nonnull(1, 2, 3);
/* The agent's cell, live, with nothing of the agent in it yet. Borrowed. */
struct steps_place {
    struct cell *cell;
    const char *shell;
    const char *const *envp; /* the agent's */
};
/* Whether there are steps that run there. */
bool steps_are_in_agent(const struct trial_job *job) nonnull(1);
/* Runs them; what they leave counts as the agent's own. ERROR_TASK as above. */
must_check int steps_in_agent(const struct trial_job *job, struct trial_record *record,
                              const struct steps_place *place, struct error **err) nonnull(1, 2, 3);
/*
 * Says in changes.json what of it the steps before the agent did ("pre_run": paths). Nothing to do
 * without such steps.
 */
must_check int steps_attribute(const struct trial_job *job, const struct trial_record *record,
                               struct error **err) nonnull(1, 2);
/* Runs post_run, unless the record says that it ran. What goes wrong is in the record alone. */
void steps_after(const struct trial_job *job, struct trial_record *record) nonnull(1, 2);
