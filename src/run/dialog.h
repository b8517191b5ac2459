#pragma once
/*
 * dialog: the simulated user of a task, who answers the agent after each of its turns.
 *
 * Plays a script, or is played by a model that the judges' broker asks. The model reads persona,
 * goal, constraints, what was said and, unless the task says otherwise, the description: never the
 * reference, the criteria or the workspace. Depends on: base, agent, broker, grade, run/judges.
 */

#include "agent/events.h"
#include "run/trial.h"
#include "task/task_private.h"
#include "task/task_public.h"

#define DIALOG_PROMPT_VERSION "closedbook/simulated-user/1"
#define DIALOG_REPLY_CHARS_MAX ((size_t)20000) /* of one thing said, as the model reads it */

/* Whether a model has to be asked for a user of the task's: not for agents that do not talk. */
bool dialog_needs_model(const struct task_public *half, const struct task_private *task)
    nonnull(1, 2);
/* Whether it can be, by what the broker says of its routes. ERROR_USER names task and what is
 * missing. */
must_check int dialog_check(const struct task_private *task, const json_t *facts,
                            struct error **err) nonnull(1, 2);
/* The model of its user, NULL: the default of a key. */
const char *dialog_model(const struct task_private *task) nonnull(1);

struct dialog; /* of one trial */
/* NULL when the task has none, or its agent does not talk. Borrows the job. */
must_check int dialog_open(const struct trial_job *job, struct dialog **ret, struct error **err)
    nonnull(1, 2);
void dialog_free(struct dialog *dialog);
void dialog_freep(struct dialog **dialog);

/*
 * What the agent is told first: the task's prompt, or the user's own beginning. Owned. Every later
 * thing is an event of kind "user" of the log, the first only when it is not the prompt.
 */
must_check int dialog_begin(struct dialog *dialog, struct event_log *log, char **ret,
                            struct error **err) nonnull(1, 2, 3);
/*
 * After an exchange. *ret is what the user says next, owned; NULL: the dialog is over. ERROR_SYSTEM
 * when no user answered.
 */
struct dialog_exchange {
    uint64_t agent_tokens; /* so far */
    bool is_stopped;       /* by a limit of the run */
    bool has_failed;       /* the agent's program ended badly */
};
must_check int dialog_next(struct dialog *dialog, const struct dialog_exchange *exchange,
                           struct event_log *log, char **ret, struct error **err)
    nonnull(1, 2, 3, 4);
/* {exchanges, stop_reason, user: "script"|"model", ...} of trial.json; new reference. */
json_t *dialog_json(const struct dialog *dialog) nonnull(1);
