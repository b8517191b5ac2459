#pragma once
/*
 * broker: the process that answers, outside of every cell, for what is recorded in a task.
 *
 * One a run, started when the first task needs it, ended with its control connection. Each trial
 * has a connection of its own, over which it hands the table of its mocks, a socket that listens in
 * its agent's cell, and the file that calls are written to; neither table nor log is ever in a
 * cell. What comes from a cell is hostile: frames of one size at most, a number of connections and
 * calls at most, all else refused and counted. Not thread-safe. Depends on: base.
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#define BROKER_TABLE_BYTES_MAX ((size_t)4 << 20)
#define BROKER_LOG_BYTES_MAX ((size_t)8 << 20) /* then a line says so, and calls are refused */
#define BROKER_TRIALS_MAX 512
#define BROKER_CLIENTS_MAX 32     /* of a trial at a time; further ones wait */
#define BROKER_PATIENCE_MS 10000u /* for the call of one that has connected */

struct broker; /* the parent's side: the control connection */

/* Starts the program, which takes nothing of the environment. */
must_check int broker_start(const char *program, struct broker **ret, struct error **err)
    nonnull(1, 2);

/*
 * One that speaks with model endpoints. It alone reads what the key descriptors hold, all borrowed,
 * -1: absent. What is wrong with any of it is said to whoever asks it something first.
 */
struct broker_options {
    const char *program;
    const json_t *setup; /* {routes: as routes_add(), ca_file, proxy, policy, prices}, all but
                             the first optional; the last two from share/models */
    int env_keys_fd;     /* of keys_take_env() */
    int dotenv_fd;       /* .env */
    int keys_yaml_fd;    /* keys.yaml */
};
must_check int broker_start_upstream(const struct broker_options *options, struct broker **ret,
                                     struct error **err) nonnull(1, 2);
/* A further connection, for a trial's process; the caller's. */
must_check int broker_connect(struct broker *broker, int *ret, struct error **err) nonnull(1, 2);
/* After fork: forget the control connection without ending the broker. NULL is fine. */
void broker_forget(struct broker *broker);
/* Ends it and waits for its end. NULL is fine. */
void broker_free(struct broker *broker);

/* --- a trial's side: a connection, which may open and close once ------------------------------ */

struct broker_mocks {
    const json_t *tools; /* as struct mock_table */
    int listener;        /* borrowed */
    int log_fd;          /* for appending; borrowed */
};
/* What happened, once the cell is gone. */
struct broker_result {
    uint64_t calls;   /* in the log */
    uint64_t refused; /* datagrams that are no call, of programs that nobody recorded, too many */
    uint64_t unreported; /* real programs whose end nobody told */
    bool cut;            /* the log is full */
};

/* Returns once calls are answered. */
must_check int broker_open(int connection, const struct broker_mocks *mocks, struct error **err)
    nonnull(2);
must_check int broker_close(int connection, struct broker_result *ret, struct error **err)
    nonnull(2);

/* --- questions to model endpoints, over a connection of their own: one at a time ----------------
 */

#define BROKER_ANSWER_BYTES_MAX ((size_t)64 << 20)
#define BROKER_QUESTION_BYTES_MAX ((size_t)64 << 20)

struct broker_question {
    const char *route;              /* name of one */
    const char *path;               /* as struct upstream_request */
    const struct str_list *headers; /* likewise; NULL: none */
    const json_t *body;
    uint64_t timeout_ms; /* of all attempts; at least 1 */
    size_t answer_max_bytes;
    unsigned attempts_max;
};
/*
 * *ret is {end: upstream_end_name(), status, error, headers: [..], body: text, attempts: [{status,
 * duration_ms, wait_ms, error}]}, whatever the endpoint did. An error is ours: ERROR_USER when
 * there is no such route or no key for it.
 */
must_check int broker_ask(int connection, const struct broker_question *question, json_t **ret,
                          struct error **err) nonnull(2, 3);
/* {routes: [{name, api, base_url, key, has_key}]}. Fails with what is wrong with its setup. */
must_check int broker_facts(int connection, json_t **ret, struct error **err) nonnull(2);

/* --- recordings: what goes over this connection is kept, or answered without any endpoint -------
 */

/* Before any question and before models are opened, once. log_fd: empty, for appending; borrowed.
 */
must_check int broker_record(int connection, int log_fd, struct error **err);
/* log_fd: what broker_record() had; -1: nothing, then each request is a miss. ERROR_USER: it is no
 * recording. */
must_check int broker_replay(int connection, int log_fd, struct error **err);
/* ERROR_SYSTEM when a request had no answer in it, or when it is not whole. Without one: 0. */
must_check int broker_recording_check(int connection, struct error **err);

/* --- model endpoints for an agent: a trial's connection may open them once ----------------------
 */

struct broker_models {
    /*
     * {routes: [name], models: [name], placeholder: the only key that is accepted, max_in_flight,
     * max_turns, max_input_tokens, max_output_tokens, max_total_tokens, max_microusd,
     * max_log_bytes, count_cached_input, count_cache_creation}; what is absent, or 0, is no limit.
     */
    const json_t *spec;
    int listener; /* TCP, made in the cell; borrowed */
    int log_fd;   /* wire.jsonl, for appending; borrowed */
};
/* Returns once requests are answered. */
must_check int broker_models_open(int connection, const struct broker_models *models,
                                  struct error **err) nonnull(2);
/*
 * Another exchange of a dialog begins: max_turns counts anew, and the main thread is, besides what
 * goes on with the one before, the first conversation that ends with this prompt: a client that
 * resumes a session does not repeat it block for block. NULL: only tells the sums so far, as below.
 */
must_check int broker_models_next(int connection, const char *prompt, json_t **ret,
                                  struct error **err) nonnull(3);
/*
 * Once the cell is gone. *ret: {requests, forwarded, refused, unheard (connections without a
 * request), turns, aside (calls of other conversations), usage or null, cost_microusd or null,
 * model or null, stopped_by: a budget or null, recorded: whether wire.jsonl is whole}.
 */
must_check int broker_models_close(int connection, json_t **ret, struct error **err) nonnull(2);
