#pragma once
/*
 * check_run: one task run with one agent, as `check` needs it: the ordinary run, in a folder of its
 * own that goes afterwards.
 *
 * Depends on: run, record.
 */

#include "cli/task_flags.h"
#include "run/run.h"

struct checker {
    struct session session;
    const struct task_inputs
        *inputs; /* the command's own: environment, suite root, configuration */
    const volatile int *stop;
    const char *run_id; /* of the check as a whole */
    char *path;         /* the private folder, absolute; owned */
    int dir_fd;         /* of it */
    unsigned parallel;
    unsigned run_count;
    bool interrupted;
};

/* What came of some trials of one task with one agent. */
struct checked {
    unsigned trials, passed, failed, errors;
    bool agent_errors; /* all errors are the agent's own doing */
    char *reason;      /* of the first trial that did not pass; owned, NULL: none */
};
void checked_done(struct checked *checked) nonnull(1);

struct task;
/* agent: as -T. An error is the machine's or the task's: it could not be run at all. */
must_check int check_run(struct checker *checker, const struct task *task, const char *agent,
                         unsigned repeats, struct checked *ret, struct error **err)
    nonnull(1, 2, 3, 5);
/* The same with a program for the agent. */
must_check int check_run_script(struct checker *checker, const struct task *task,
                                const struct buf *program, struct checked *ret, struct error **err)
    nonnull(1, 2, 3, 4);
