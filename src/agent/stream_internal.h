#pragma once
/*
 * stream_internal: what the readers of formats share. A reader gets one JSON object a line and says
 * what it means by the calls below.
 */

#include "agent/lines.h"
#include "agent/stream.h"

/* Tokens of model calls: input without what came from or went to a cache, output with reasoning. */
struct stream_tokens {
    int64_t input, cache_read, cache_write, output, reasoning;
};

struct stream {
    enum stream_kind kind;
    struct event_log *log;
    uint64_t start_ns;
    struct line_cutter lines;
    uint64_t bytes;       /* looked at */
    uint64_t taken_bytes; /* of lines that became events */
    uint64_t offset;      /* of the line at hand */
    char *agent, *session, *model;
    unsigned turn;
    bool answering;             /* the model's answer of this turn is being read */
    char *message_id;           /* of the answer at hand, where the format has one */
    struct buf text;            /* pieces that are no event yet */
    uint64_t text_offset;       /* of the first one's line */
    struct stream_tokens total; /* what a session added up so far, where the CLI adds up */
    bool fresh;                 /* nothing of this process was read */
    const char *complaint;      /* about the line at hand; NULL: none */
    struct stream_outcome outcome;
};

struct stream_format {
    const char *name;
    void (*read)(struct stream *stream, const json_t *object);
    /* Beginnings of lines that say nothing new, NULL-terminated; NULL: none. Only to save time. */
    const char *const *skipped;
};
extern const struct stream_format stream_claude, stream_codex, stream_gemini, stream_opencode,
    stream_pi;

#define STREAM_TOKENS_MAX ((int64_t)1 << 40) /* of one figure: no sum of them leaves its type */
/* A figure out of a line, 0 when there is none. */
int64_t stream_count(const json_t *object, const char *key) nonnull(2);
/* A short text out of a line, borrowed. NULL when there is none; a long one is complained about. */
const char *stream_name(struct stream *stream, const json_t *value) nonnull(1);
void stream_keep(char **place, const char *text) nonnull(1);

/* An event of the main thread; parent: the call whose sub-agent it belongs to, may be NULL. */
struct event *stream_add(struct stream *stream, enum event_kind kind, const char *parent)
    nonnull(1);
/* The main thread's model answers: another turn begins. */
void stream_turn(struct stream *stream) nonnull(1);
/* As stream_turn(), unless an answer is being read. */
void stream_answer(struct stream *stream) nonnull(1);
void stream_say(struct stream *stream, const char *parent, const char *text) nonnull(1);
/* A piece of a text, which becomes one event with its neighbours. */
void stream_say_more(struct stream *stream, const char *text) nonnull(1);
void stream_call(struct stream *stream, const char *parent, const char *tool, const char *call_id,
                 json_t *input) nonnull(1);
struct event *stream_result(struct stream *stream, const char *parent, const char *call_id,
                            json_t *output) nonnull(1);
void stream_exit_code(struct event *event, int64_t code) nonnull(1);
void stream_use(struct stream *stream, const struct stream_tokens *tokens) nonnull(1, 2);
/* tokens are of the whole session: what is new since the last time is used. */
void stream_use_total(struct stream *stream, const struct stream_tokens *tokens) nonnull(1, 2);
void stream_retry(struct stream *stream, const json_t *details) nonnull(1, 2);
void stream_fail(struct stream *stream, const char *message) nonnull(1);
/* The event that ends the CLI's work. message: NULL unless is_error. */
void stream_finish(struct stream *stream, bool is_error, const char *message) nonnull(1);
