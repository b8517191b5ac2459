#pragma once
/*
 * run: a whole run, from loaded tasks to finished trials: what `run`, `execute` and `grade` share.
 *
 * Depends on: everything in run/.
 */

#include "run/pool.h"

/* One run. The caller fills it, run_start(), run_resume() or run_grade() does the work. */
struct run {
    struct session *session;
    struct run_plan *plan;
    const struct plan_inputs *inputs;
    int dir_fd;         /* the run's directory, borrowed */
    const char *path;   /* as the user wrote it, for messages */
    const char *run_id; /* run_start() only */
    const char *command_line, *version;
    struct pool_observer observer;
    const volatile int *stop;
    unsigned parallel;
    bool preflight, fail_fast;
    bool shows_events; /* on standard error, as they happen */
    bool trust_host_steps;
    const struct str_list *allowed_leaks; /* "ID=REASON"; NULL: none */
    uint64_t stop_after_errors;
    const char *only;   /* run_grade(): the path of the one trial that is graded; NULL: all */
    unsigned gradings;  /* run_grade(): of each trial; 0 is 1 */
    bool asks_anew;     /* run_grade(): judgements made before are not used */
    bool new_reference; /* run_grade(): another reference than before is meant */
    bool retry_errors, rerun_failed, force; /* run_resume() only */
    bool grading;
    /* what comes out */
    struct run_dir *dir; /* owned: run_done() */
    size_t kept;         /* finished trials that were left alone */
    bool interrupted;
};

/* "20261130-164700-1a2b3c4d"; owned. */
char *run_make_id(void);

/* A new run. ERROR_USER when the directory holds one. */
must_check int run_start(struct run *run, struct error **err) nonnull(1);
/*
 * Goes on with a run: finished trials stay, the rest runs. ERROR_USER naming the difference when a
 * task, its graders or its configuration changed, unless force.
 */
must_check int run_resume(struct run *run, struct error **err) nonnull(1);
/*
 * Grades, or grades again, every recorded trial. Execution facts stay. ERROR_USER, before anything
 * is graded, when a trial was graded with another reference, unless new_reference.
 */
must_check int run_grade(struct run *run, struct error **err) nonnull(1);
/* {tier, driver, protections, landlock_abi, kernel} of the native driver; new reference. */
json_t *run_machine_json(const struct session *session) nonnull(1);
void run_done(struct run *run) nonnull(1);
