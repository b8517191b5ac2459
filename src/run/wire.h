#pragma once
/*
 * wire: an agent's way to model endpoints: `network: broker`.
 *
 * A listener is made in the agent's cell and served by the broker outside of it, which holds the
 * keys, checks each request and records all in wire.jsonl of the trial's directory. The agent is
 * told where and by which key, a random one of this trial that nobody else takes.
 * Depends on: base, broker, cell, task.
 */

#include "run/trial.h"
#include "task/task.h"

#define WIRE_PORT "4096"
#define WIRE_URL "http://127.0.0.1:" WIRE_PORT
#define WIRE_KEY_BYTES 24 /* of random, twice as many digits */

struct session;
/* What the operator's configuration says. Borrowed. */
struct wire_setup {
    const json_t *routes;    /* of config.yaml, as routes_add(); NULL: none */
    const char *user_config; /* its path; keys.yaml lies beside it; NULL: there is none */
};
/*
 * Starts the session's broker, with keys and endpoints, when one of the tasks needs it, before
 * session_broker() could start one without. ERROR_USER when no endpoint has a key.
 */
must_check int wire_prepare(struct session *session, const struct task_set *tasks,
                            const struct wire_setup *setup, struct error **err) nonnull(1, 2, 3);

bool wire_is_on(const struct trial_job *job) nonnull(1);
/* ERROR_SYSTEM without namespaces. */
must_check int wire_fill_cell(const struct trial_job *job, struct cell_spec *spec,
                              struct error **err) nonnull(1, 2);
/* Where and by which key, in general and for clients of each wire format; key: the placeholder. */
void wire_env(const struct trial_job *job, const char *key, struct str_list *env) nonnull(1, 2, 3);
/* In a live cell that runs nothing yet: from here on requests are answered. */
must_check int wire_open(const struct trial_job *job, struct cell *cell, const char *key,
                         struct error **err) nonnull(1, 2);
/*
 * After an exchange of a dialog. *ret_tokens: what all models of the agent took and gave so far;
 * *ret_stopped: a budget is used up, the dialog is over. Without a broker: 0 and false.
 */
must_check int wire_used(const struct trial_job *job, uint64_t *ret_tokens, bool *ret_stopped,
                         struct error **err) nonnull(1, 2, 3);
/* Before the next, which begins with that prompt. */
must_check int wire_next(const struct trial_job *job, const char *prompt, struct error **err)
    nonnull(1, 2);
/* When the cell has ended: what was asked goes into the record. */
must_check int wire_close(const struct trial_job *job, struct trial_record *record,
                          struct error **err) nonnull(1, 2);
