#pragma once
/*
 * trial: one trial from staged view to trial.json, as straight-line code.
 *
 *   agent cell -> end and receipt -> copy-out -> grading cell -> record
 *
 * Runs in a process of its own that has been confined (confine.h); everything that needs a program
 * or a descriptor outside the trial's directory is asked of the monitor. An error of the machine
 * makes the trial ERROR and is in the record; trial_run() itself fails only when the record cannot
 * be written. Depends on: everything below run/.
 */

#include "agent/install.h"
#include "record/record.h"
#include "run/grade_cell.h"
#include "run/leak_sight.h"
#include "run/private_files.h"
#include "task/task.h"

struct trial_job {
    const struct task *task;
    const struct view *view;
    const struct private_stage *private_stage;
    const struct private_seal *private_seal; /* counts with private_stage */
    const struct leak_sight *sight;          /* its index NULL: nobody looks */
    struct monitor *monitor;                 /* a connection of this trial's own */
    /* Another one, to a server without walls: the steps of the host run there. NULL: in cells. */
    struct monitor *bare_host;
    int broker_fd; /* a connection of this trial's own; -1: nothing is recorded */
    int judges_fd; /* another, to the judges' broker; -1: nothing is judged */
    int mock_fd;   /* the stand-in for recorded programs; counts with broker_fd */
    int script_fd; /* program of a script agent, -1: none */
    const struct agent_install *install; /* of the agent's program; path NULL: it is none */
    int dir_fd;                          /* the trial's directory */
    const char *run_id, *trial_id, *variant_id;
    unsigned replicate;
    bool grading;             /* false: `execute` */
    unsigned gradings;        /* how often it is graded; 0 is 1 */
    bool shows_events;        /* of the agent, as they happen */
    bool asks_anew;           /* judgements made before are not used */
    const volatile int *stop; /* non-zero: end soon, status ERROR "interrupted" is not recorded */
    const char *preflight;    /* digest of its cell's preflight; NULL: none */
    const struct error *setup_error; /* what went wrong before the trial's process existed */
    uint64_t stage_ns;               /* spent on staging before the process existed */
};

enum trial_outcome {
    TRIAL_RECORDED,
    TRIAL_INTERRUPTED, /* nothing was recorded: it runs again on a resume */
    TRIAL_LOST, /* the monitor is gone; so may the parent be, which decides what that means */
};

/* record is filled and saved as trial.json in dir_fd. */
must_check int trial_run(const struct trial_job *job, struct trial_record *record,
                         enum trial_outcome *ret, struct error **err) nonnull(1, 2, 3);

/* Grades what a trial left and sets status, score, criteria of the record. Used by trial_run() and
 * `grade`. */
must_check int trial_grade(const struct trial_job *job, struct trial_record *record,
                           const struct event_log *events, struct error **err) nonnull(1, 2, 3);
/* A record with everything that is known before the agent runs. */
void trial_record_begin(const struct trial_job *job, struct trial_record *record) nonnull(1, 2);
/* $INPUT_DIR of the task in its cells; owned, NULL when it declares no inputs. */
char *trial_input_dir(const struct trial_job *job) nonnull(1);
/* ERROR with message and code; the criteria stay as they are. */
void trial_record_fail(struct trial_record *record, const struct error *error) nonnull(1, 2);
