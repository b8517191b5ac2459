#pragma once
/*
 * events: one normalised happening of an agent, and the file of them (events.jsonl, docs/formats/events.md).
 *
 * {seq, t_ms, agent, session, turn, kind, tool, call_id, input, output, exit_code, is_error, usage, source}
 * source is "wire", "stream" or "self-reported". For script and exec agents the lines they write to
 * descriptor 3 are parsed here: any key order, lines over EVENT_LINE_BYTES_MAX cut with a mark, invalid
 * UTF-8 replaced, a truncated last line kept as kind "truncated". Depends on: base.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define EVENT_LINE_BYTES_MAX ((size_t)1 << 20)
#define EVENTS_MAX ((size_t)200000)

enum event_kind {
    EVENT_AGENT_START,
    EVENT_AGENT_END,
    EVENT_TURN_START,
    EVENT_TURN_END,
    EVENT_TEXT,
    EVENT_TOOL_CALL,   /* tool, call_id, input */
    EVENT_TOOL_RESULT, /* call_id, output, exit_code, is_error */
    EVENT_USAGE,
    EVENT_INVALID,     /* a line that is no event; input holds it, cut */
};

enum event_source { EVENT_WIRE, EVENT_STREAM, EVENT_SELF_REPORTED };

struct event {
    uint64_t seq, t_ms; /* t_ms since the agent's start */
    unsigned turn;
    enum event_kind kind;
    enum event_source source;
    char *agent, *session, *tool, *call_id; /* NULL when absent */
    json_t *input, *output, *usage;         /* NULL when absent */
    int exit_code;
    bool has_exit_code, is_error;
};

struct event_log {
    struct event *events;
    size_t count;
    bool cut; /* EVENTS_MAX reached */
};

/* A streaming reader of event lines: feed bytes as they come, then end. Events are appended to log. */
struct event_reader; /* opaque */
struct event_reader *event_reader_new(struct event_log *log, enum event_source source,
                                      uint64_t start_ns) nonnull(1);
void event_reader_feed(struct event_reader *reader, const char *bytes, size_t size) nonnull(1, 2);
void event_reader_end(struct event_reader *reader) nonnull(1);
void event_reader_free(struct event_reader *reader);

/* Appends an event of our own (agent start and end). Takes nothing; copies. */
struct event *event_log_add(struct event_log *log, enum event_kind kind, enum event_source source)
    nonnull(1);
void event_log_write(struct buf *buf, const struct event_log *log) nonnull(1, 2);
must_check int event_log_read(const char *name, const char *text, size_t size,
                              struct event_log *ret, struct error **err) nonnull(1, 2, 4);
unsigned event_log_turns(const struct event_log *log) nonnull(1);
size_t event_log_tool_calls(const struct event_log *log) nonnull(1);
void event_log_done(struct event_log *log) nonnull(1);
