#pragma once
/*
 * grade: criteria to verdicts, verdicts to score and gate.
 *
 * One file and one row of criterion_types per criterion. Criteria reach the workspace only through
 * struct grade_workspace, which run/ implements on a live grading cell and tests on a folder.
 * An infrastructure failure is an error of the trial; a misconfigured criterion is found at load by
 * check_config; what the agent did wrong is a score. Depends on: base, task (both halves),
 * agent/events.
 */

#include "agent/events.h"
#include "base/error.h"
#include "base/json.h"
#include "task/task.h"
#include "task/task_private.h"

/* Outcome of one criterion. details is for people, cut at GRADE_DETAILS_BYTES_MAX, any bytes. */
struct verdict {
    double score;         /* 0..1, meaningless when errored */
    bool errored;         /* the criterion could not be evaluated: never a 0 charged to the agent */
    bool caused_by_agent; /* errored by bytes from the agent: counts as not passed, never retried */
    bool informational;   /* does not gate (weight 0, self-reported events) */
    char *details;        /* owned */
    char *observed, *expected; /* labels of a classification, owned; NULL: it is none */
    uint64_t duration_ns;
    struct buf output; /* run_command, exec: what it printed, capped, for grade/ files */
    json_t *metrics;   /* exec: {name: number}, owned; NULL: none */
    json_t *judgement; /* llm_judge: what is kept of it, for grade/ files; owned, NULL: none */
    bool judgement_is_recalled; /* it was made before, and nobody was asked */
};
void verdict_done(struct verdict *verdict) nonnull(1);
#define GRADE_DETAILS_BYTES_MAX ((size_t)64 << 10)
#define GRADE_FILE_BYTES_MAX ((size_t)16 << 20)
#define GRADE_OUTPUT_BYTES_MAX ((size_t)16 << 20)

/* A command as run_command wants it. */
struct grade_command {
    const char *command; /* for /bin/bash -c if the cell has it, else /bin/sh -c */
    uint64_t timeout_ms;
    size_t output_max_bytes; /* per stream; cut beyond */
    bool read_only;          /* what it does to the workspace is undone after it */
    /* It begins with what the agent left, and no other command sees what it makes of that. */
    bool fresh;
    bool as_candidate; /* the whole of it runs in a candidate cell */
    bool looks_only;   /* one of ours, which changes nothing of the workspace */
    const char *input; /* its standard input; NULL: nothing */
    size_t input_bytes;
};
struct grade_command_result {
    bool timed_out;
    bool stopped;  /* ended because the run was interrupted */
    int exit_code; /* -1: signal */
    int term_signal;
    bool missing_tool; /* 126/127 whose cause lies outside the workspace, checked before the run */
    char *missing_name;
    struct buf out, err; /* capped */
    bool out_cut, err_cut;
};
void grade_command_result_done(struct grade_command_result *result) nonnull(1);

enum grade_file_state {
    GRADE_FILE_OK,
    GRADE_FILE_ABSENT,
    GRADE_FILE_NOT_REGULAR, /* a link that leads out, a FIFO...: content says which, when set */
    GRADE_FILE_DIRECTORY,   /* of this literal name: exists, but cannot be read */
    GRADE_FILE_TOO_LARGE,
    GRADE_FILE_AMBIGUOUS, /* a glob with several matches, listed in matches */
};
struct grade_file {
    enum grade_file_state state;
    char *resolved;          /* the path that a glob led to, NULL when equal */
    struct str_list matches; /* of a glob, first 10 */
    struct buf content;      /* empty for exists() */
};
void grade_file_done(struct grade_file *file) nonnull(1);

/* The places of the private half that a criterion may name. */
enum grade_private { GRADE_TASK_DIR, GRADE_REFERENCE_DIR };

/* What criteria may do with the workspace. Errors are of the system; results carry the agent's
 * doing. */
struct grade_workspace {
    void *context;
    /* path: literal wins, else a glob. content false: state and matches only (file_exists). */
    int (*read)(void *context, const char *path, bool content, struct grade_file *ret,
                struct error **err);
    int (*run)(void *context, const struct grade_command *command, struct grade_command_result *ret,
               struct error **err);
    /* A file of the private half, by its path there: no pattern, and no link that leads out. */
    int (*private_file)(void *context, enum grade_private place, const char *path,
                        struct grade_file *ret, struct error **err);
};

struct grade_judges;
struct grade_input {
    const struct task_private *task;
    struct grade_workspace *workspace;
    const struct event_log *events;
    const char *final_message, *dialog; /* dialog as JSON; NULL: none */
    bool events_trusted;                /* as task_agent_is_trusted() */
    bool stopped_early; /* by armed criteria: no other one scores or gates, see sum_up() */
    uint64_t
        command_timeout_ms; /* min(30 s, limits.timeout) when a criterion has none of its own */
    const struct grade_judges *judges; /* judge.h; NULL: no criterion judges */
};

/* Who hears what is wrong with a criterion. */
struct complaints {
    task_complain *say;
    void *context;
};

struct criterion_type {
    enum criterion_kind kind;
    const char *name;
    bool needs_workspace, needs_events;
    /* Regexes compile, expressions parse, paths stay inside: said before the agent spends a token.
     */
    void (*check_config)(const struct criterion *criterion, const struct complaints *complaints);
    int (*evaluate)(const struct criterion *criterion, const struct grade_input *input,
                    struct verdict *ret, struct error **err);
};
extern const struct criterion_type criterion_types[CRITERION_COUNT];

struct grade_result {
    struct verdict *verdicts; /* one per criterion, in order */
    size_t count;
    bool has_score; /* false when errored or nothing gates */
    double score;   /* sum(score * weight) / sum(weight) */
    bool gate;      /* every gating criterion reached its threshold */
    bool nothing_gates;
    char *error; /* first errored gating criterion, for the record; NULL */
};
/* Evaluates all criteria in order. An error here is of the system: the trial is ERROR. */
must_check int grade_run(const struct grade_input *input, struct grade_result *ret,
                         struct error **err) nonnull(1, 2);
/* check_config of its type, as a task_check_criterion: say is called for each mistake. */
void grade_check(const struct criterion *criterion, task_complain *say, void *context)
    nonnull(1, 2);
void grade_result_done(struct grade_result *result) nonnull(1);
