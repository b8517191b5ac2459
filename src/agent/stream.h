#pragma once
/*
 * stream: what a CLI prints on its standard output, read as events with source "stream".
 *
 * One format, one file (stream_*.c). Lines of any length up to STREAM_LINE_BYTES_MAX, keys in any
 * order, kinds and keys that we do not know skipped; a line that is no JSON is kept as "invalid".
 * All of it is a claim: an agent's shell can write to the same descriptor, and some CLIs leave
 * events out. Figures that a CLI adds up over a resumed session are given as what was new.
 *
 * Lifetime: a stream serves all processes of one session, one after the other; the log outlives it.
 * Depends on: base, events.
 */

#include "agent/events.h"

#define STREAM_LINE_BYTES_MAX ((size_t)16 << 20)
#define STREAM_LINE_NODES_MAX ((size_t)200000)
#define STREAM_BYTES_MAX ((size_t)1 << 30)      /* of the lines that are looked at */
#define STREAM_MESSAGE_BYTES_MAX ((size_t)4096) /* of the message of the end */

enum stream_kind {
    STREAM_CLAUDE,
    STREAM_CODEX,
    STREAM_GEMINI,
    STREAM_OPENCODE,
    STREAM_PI,
    STREAM_KIND_COUNT,
};
const char *stream_kind_name(enum stream_kind kind); /* "claude" */

/*
 * How the last process ended by its own account. An exit status of 0 says little: some CLIs exit
 * with 0 when the model refused them.
 */
struct stream_outcome {
    bool has_end;  /* the event that the CLI writes last was there */
    bool is_error; /* it, or the last answer before it, says that something failed */
    char *message; /* of the failure; NULL: none was given */
};

struct stream; /* opaque */
/* start_ns: clock_ns() of the agent's start. agent: the name that events get, may be NULL. */
struct stream *stream_new(enum stream_kind kind, const char *agent, struct event_log *log,
                          uint64_t start_ns) malloc_like nonnull(3);
void stream_feed(struct stream *stream, const char *bytes, size_t size) nonnull(1, 2);
/* The process ended. The next stream_feed() is of the next one, with offsets from 0. */
void stream_end(struct stream *stream) nonnull(1);
/* Of the last process; the stream owns it, good until the next stream_feed(). */
const struct stream_outcome *stream_outcome(const struct stream *stream) nonnull(1);
/* What the CLI calls its session, for the argument that resumes it; NULL: it did not say. */
const char *stream_session(const struct stream *stream) nonnull(1);
void stream_free(struct stream *stream);
void stream_freep(struct stream **stream);
