#pragma once
/*
 * cell_target: which cell `closedbook cell` means, and its command.
 */

#include "cli/options.h"
#include "cli/task_flags.h"
#include "run/grade_cell.h"
#include "run/run_open.h"
#include "run/staged.h"

struct cell_values {
    struct task_flags tasks;
    const char *allow_tier;
    bool grader;
    uint64_t criterion;
};

struct cell_target {
    const struct cell_values *values;
    struct session session;
    struct task_inputs inputs;
    struct task_set tasks;
    struct staged staged;
    struct view *view; /* an empty one, without a task; borrowed from staged otherwise */
    struct monitor *monitor;
    struct run_dir *recorded;
    struct trial_operand operand;
    int tar_fd, changes_fd, events_fd;
    char *events;
    struct grade_cell *grade_cell; /* NULL: an agent's cell */
    struct cell *cell;             /* of an agent's cell */
    struct str_list argv, env;
};

must_check int cell_target_open(const struct arguments *arguments, struct cell_target *ret,
                                struct error **err) nonnull(1, 2);
/* argv and env of the command: what follows "--", the criterion's command, or a shell. */
must_check int cell_target_command(struct cell_target *target, const struct arguments *arguments,
                                   struct cell_command *command, struct error **err)
    nonnull(1, 2, 3);
/* Starts the cell and the command in it. The target keeps the cell. */
must_check int cell_target_start(struct cell_target *target, const struct cell_command *command,
                                 struct cell **ret, uint32_t *ret_process, struct error **err)
    nonnull(1, 2, 3, 4);
void cell_target_done(struct cell_target *target) nonnull(1);
