#pragma once
/*
 * wire_calls: the calls of tools that a model asked for, by wire.jsonl: what the broker saw pass.
 *
 * This is what criteria judge on. What a CLI prints can lack calls, and whoever runs in the cell
 * can print some; a call that only the output shows keeps the source "stream" and never counts. The
 * same holds for what was asked for outside of the main thread: an agent can hold a conversation of
 * its own with the broker, and so can a sub-agent.
 *
 * Answers are hostile input: of any of the four wire formats, whole or as a stream of events; what
 * cannot be read makes the calls "cut", so that no absence is concluded from them.
 * Depends on: base, events, stream. Limits: below.
 */

#include "agent/stream.h"

#define WIRE_CALLS_MAX ((size_t)100000)
#define WIRE_NODES_MAX ((size_t)2000000) /* JSON values of one answer */

struct wire_call {
    char *id, *name; /* as the model says; NULL: it says none */
    json_t *input;   /* an object where it is one, else what came, as a text */
    uint64_t t_ms;
    bool is_main;
};

struct wire_calls {
    struct wire_call *calls;
    size_t count, capacity;
    bool cut;           /* something was not readable: there may be more calls */
    size_t exchanges;   /* of the main thread, that ended */
    bool has_failed;    /* the last of them did: refused by the endpoint, torn, or never answered */
    int last_status;    /* of it; 0: no answer came */
    char *last_message; /* what the answer says; NULL: it was none that failed */
};

/* From the file's offset on. What a broker writes is read; anything else is ERROR_SYSTEM. */
must_check int wire_calls_read(int fd, struct wire_calls *ret, struct error **err) nonnull(2);
void wire_calls_done(struct wire_calls *calls) nonnull(1);

/*
 * log, of events with source "stream", becomes one in which each call of the main thread has the
 * source "wire" and the model's own name and input for it, in the order of the wire. Calls are
 * known by their id, where a CLI prints it; Codex and Gemini number theirs themselves, so that
 * there the next one of the same tool is meant. Results keep their source: they add exit codes and
 * output.
 */
void wire_calls_merge(const struct wire_calls *calls, enum stream_kind kind, struct event_log *log)
    nonnull(1, 3);

/* One answer's calls, appended. False: something of it was not readable. For wire_calls_read(). */
struct wire_answer {
    const char *api; /* "anthropic" */
    const char *body;
    size_t size;
    uint64_t t_ms;
    bool is_main;
};
must_check bool wire_answer_read(const struct wire_answer *answer, struct wire_calls *calls)
    nonnull(1, 2);
/* Appended, without what it is: for wire_answer_read(). NULL: there are too many. */
struct wire_call *wire_calls_add(struct wire_calls *calls) nonnull(1);
