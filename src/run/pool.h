#pragma once
/*
 * pool: N trial processes going until the plan is done.
 *
 * The parent stages, forks, waits on pidfds, and commits journal lines in groups; a trial is a
 * process of its own that runs trial.h's straight line. A trial process that dies without a record
 * is an ERROR of that trial alone. Depends on: run/trial, run/session, run/run_plan, record.
 */

#include "record/run_dir.h"
#include "run/run_plan.h"
#include "run/session.h"
#include "run/trial.h"

#define POOL_PARALLEL_MAX 256

/* What a trial's process tells the parent when it ends. */
struct trial_note {
    uint32_t outcome; /* enum trial_outcome */
    uint32_t status;  /* enum trial_status */
    uint32_t integrity;
    bool has_score, has_verdict, passed;
    double score;
    uint64_t duration_ms;
    char error[256]; /* the beginning of the message, NUL-terminated */
};

/* What the command does with progress. Borrowed; every function may be NULL. */
struct pool_observer {
    void *context;
    void (*trial_started)(void *context, const char *trial_id);
    void (*trial_finished)(void *context, const char *trial_id, const struct trial_note *note);
    void (*tick)(void *context); /* at least every 100 ms while trials run */
};

/* The journal's view of pool work: what to do with each planned trial. */
enum pool_work { POOL_RUN, POOL_GRADE };

struct pool_options {
    struct session *session;
    struct run_plan *plan;
    struct run_dir *run;
    enum pool_work work;
    unsigned parallel;
    bool grading;      /* POOL_RUN: grade, too */
    unsigned gradings; /* POOL_GRADE: of each trial, in cells of their own; 0 is 1 */
    bool asks_anew;    /* POOL_GRADE: judges are asked again */
    const struct str_list *allowed_leaks; /* "ID=REASON"; NULL: none */
    bool trust_host_steps;                /* pre_run and post_run of the host run without a cell */
    bool preflight;                       /* attack a twin of each distinct cell first */
    bool shows_events;                    /* POOL_RUN: what agents do, on standard error */
    bool fail_fast;             /* stop starting trials after the first that did not pass */
    uint64_t stop_after_errors; /* 0: never */
    const volatile int *stop;   /* non-zero: interrupted */
    struct pool_observer observer;
};

/* interrupted is set when *stop ended the pool before the plan was done. */
must_check int pool_run(const struct pool_options *options, bool *ret_interrupted,
                        struct error **err) nonnull(1, 2);
