#pragma once
/*
 * staged: what one task needs before its trials can start, made once and inherited by fork.
 *
 * Depends on: run/session, run/leak_sight, stage, task.
 */

#include "agent/install.h"
#include "run/leak_sight.h"
#include "run/private_files.h"
#include "run/session.h"
#include "stage/stage.h"
#include "task/task.h"

struct staged {
    const struct task *task; /* NULL: nothing staged */
    struct monitor *control; /* of the driver that the task runs on; borrowed */
    struct view *view;
    struct private_stage private_stage;
    bool has_private;
    struct private_seal seal;     /* of it */
    int script_fd;                /* -1: none */
    struct agent_install install; /* of an agent program; path NULL: the agent is none */
    struct error *error;          /* why staging failed; the trials record it */
    uint64_t stage_ns;
    struct leak_sight sight; /* of the private half; index NULL: nobody looks */
    char *preflight;         /* see run/preflight.h; NULL: none was asked for; owned */
};

struct staged_options {
    struct session *session;
    const struct task *task;
    const struct task_set *all; /* other tasks' references are left out of the suite */
    bool grading;               /* graders will run: the private half is needed */
    bool only_grading;          /* no agent will run: its program need not be here */
    const char *run_path;       /* the run's directory, which no cell may show; NULL: none */
    bool looks_for_leaks;       /* what the agent is given is searched for the private half */
    bool all_roots;             /* as in struct leak_scan */
    bool keeps_texts;           /* of private files, to show what was found */
    const struct str_list *allowed_leaks; /* their ids, "ID=REASON"; NULL: none */
};

/* Whether anything that runs for the task reads the suite or the reference. */
bool staged_needs_private(const struct task *task, bool grading) nonnull(1);
/* Fills *ret; a failure to stage is in ret->error, never returned. */
void staged_make(const struct staged_options *options, struct staged *ret) nonnull(1, 2);
void staged_done(struct staged *staged) nonnull(1);
/*
 * At the end of a run: every byte of what graders read is what was staged. ERROR_SYSTEM,
 * "ReferenceTampered: ...".
 */
must_check int staged_check_all(struct session *session, struct error **err) nonnull(1);
