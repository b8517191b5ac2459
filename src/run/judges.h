#pragma once
/*
 * judges: what a trial's judging criteria act through: the judges' broker, the staged private half,
 * and the judgements that the trial's directory holds.
 *
 * Depends on: base, broker, grade, stage.
 */

#include "grade/judge.h"
#include "run/trial.h"
#include "task/task_private.h"

/* Whether a criterion of the task is judged by a model. */
bool judges_are_needed(const struct task_private *task) nonnull(1);
/*
 * Whether every judge of the task can be asked, by what the broker says of its routes. ERROR_USER
 * names the task and what is missing.
 */
must_check int judges_check(const struct task_private *task, const json_t *facts,
                            struct error **err) nonnull(1, 2);

struct session;
struct task_set;
/* What the operator's configuration says. Borrowed. */
struct judges_setup {
    bool grading, dialogs;   /* what models are wanted for: judges, and users of agents that talk */
    const json_t *routes;    /* of config.yaml, as routes_add(); NULL: none */
    const char *user_config; /* its path; keys.yaml lies beside it; NULL: there is none */
};
/*
 * Starts the session's broker for judges when one of the tasks needs it, and checks that each judge
 * and each user that a model plays can be asked. Spends nothing. Nothing happens for tasks without
 * either.
 */
must_check int judges_prepare(struct session *session, const struct task_set *tasks,
                              const struct judges_setup *setup, struct error **err)
    nonnull(1, 2, 3);

struct judges; /* of one trial */
/* NULL when the task has none. Borrows the job. */
must_check int judges_open(const struct trial_job *job, struct judges **ret, struct error **err)
    nonnull(1, 2);
void judges_free(struct judges *judges);
void judges_freep(struct judges **judges);
/* NULL in, NULL out. */
const struct grade_judges *judges_of(const struct judges *judges);

/* Writes judgements into the directory grade/ (open), and what the record says of them. */
must_check int judges_save(int grade_fd, const struct verdict *verdict, struct error **err)
    nonnull(2);
/* What trial.json says of a judgement; new reference; NULL: it is none. */
json_t *judges_summary(const struct verdict *verdict) nonnull(1);
/* The usage of all judgements of a trial's gradings that were paid for now; new reference. */
json_t *judges_usage(const struct grade_result *results, size_t count) nonnull(1);
