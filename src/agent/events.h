#pragma once
/*
 * events: one normalised happening of an agent, and the file of them (events.jsonl,
 * docs/formats/events.md).
 *
 * {seq, t_ms, agent, session, turn, kind, parent, tool, call_id, input, output, exit_code,
 * is_error, usage, source, raw} source is "wire", "stream" or "self-reported". For script and exec
 * agents the lines they write to descriptor 3 are parsed here as hostile input: any key order,
 * invalid UTF-8 replaced; a line that is no event, is over a limit or was torn at the end is kept
 * as kind "invalid", cut, with the reason. Depends on: base. Limits: below.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define EVENTS_SCHEMA "closedbook/events/1"
#define EVENT_LINE_BYTES_MAX ((size_t)1 << 20)
#define EVENT_NAME_BYTES_MAX ((size_t)256)     /* tool, call_id, session */
#define EVENT_LINE_NODES_MAX ((size_t)10000)   /* JSON values of one line */
#define EVENT_INVALID_BYTES_MAX ((size_t)4096) /* of the text that "invalid" keeps */
#define EVENTS_MAX ((size_t)200000)            /* that a reader appends */
#define EVENTS_BYTES_MAX ((size_t)64 << 20)    /* of the lines that a reader takes */
#define EVENTS_NODES_MAX ((size_t)2000000)     /* JSON values of all lines */
#define EVENTS_FILE_BYTES_MAX ((size_t)512 << 20)

enum event_kind {
    EVENT_AGENT_START, /* ours alone, as is EVENT_AGENT_END */
    EVENT_AGENT_END,
    EVENT_TURN_START,
    EVENT_TURN_END,
    EVENT_TEXT,        /* output: the text */
    EVENT_TOOL_CALL,   /* tool, call_id, input */
    EVENT_TOOL_RESULT, /* call_id, output, exit_code, is_error */
    EVENT_USAGE,       /* usage */
    EVENT_RETRY,       /* a CLI asks the model again; output: what it says about it. Not for agents
                          to write, as is EVENT_ERROR */
    EVENT_ERROR,       /* a CLI's own failure; output: the message */
    EVENT_USER,        /* ours alone: what the user of a dialog said; output: the text */
    EVENT_INVALID,     /* a line that is no event; input is {reason, text}, text cut */
    EVENT_KIND_COUNT,
};
const char *event_kind_name(enum event_kind kind); /* "tool_call" */
must_check bool event_kind_parse(const char *name, enum event_kind *ret) nonnull(1, 2);

enum event_source { EVENT_WIRE, EVENT_STREAM, EVENT_SELF_REPORTED, EVENT_SOURCE_COUNT };
const char *event_source_name(enum event_source source); /* "self-reported" */
must_check bool event_source_parse(const char *name, enum event_source *ret) nonnull(1, 2);

/* The canonical name of a tool ("bash" is "Bash"), tool itself when it has none. */
const char *event_tool_canonical(const char *tool) nonnull(1);

struct event {
    uint64_t seq, t_ms; /* seq from 1; t_ms since the agent's start */
    unsigned turn;      /* 0 before the first turn_start */
    enum event_kind kind;
    enum event_source source;
    char *agent, *session, *tool, *call_id; /* NULL when absent */
    char *parent;                   /* the call whose sub-agent this is of; NULL: the main thread */
    uint64_t raw_offset;            /* where its line began in what the agent printed; has_raw */
    json_t *input, *output, *usage; /* NULL when absent */
    int exit_code;
    bool has_exit_code, is_error, has_raw;
};

struct event_log {
    struct event *events;
    size_t count, capacity;
    bool cut; /* a limit of the reader was reached: what came later is not here */
};

/*
 * A streaming reader of event lines: feed bytes as they come, then end. Events are appended to log,
 * which must outlive the reader. start_ns: clock_ns() of the agent's start.
 */
struct event_reader; /* opaque */
struct event_reader *event_reader_new(struct event_log *log, enum event_source source,
                                      uint64_t start_ns) nonnull(1);
void event_reader_feed(struct event_reader *reader, const char *bytes, size_t size) nonnull(1, 2);
/* A last line without a newline is taken when it is a whole event, else kept as invalid
 * ("truncated"). */
void event_reader_end(struct event_reader *reader) nonnull(1);
void event_reader_free(struct event_reader *reader);
void event_reader_freep(struct event_reader **reader);

/*
 * Appends an event of our own (agent start and end) with its seq set; the caller fills the rest.
 * The pointer is good until the next event. EVENTS_MAX does not hold for these.
 */
struct event *event_log_add(struct event_log *log, enum event_kind kind, enum event_source source)
    nonnull(1);
/* First a line {"schema", "cut"}, then one line an event. */
void event_log_write(struct buf *buf, const struct event_log *log) nonnull(1, 2);
/* Strict: what event_log_write() makes, or nothing at all. ERROR_SYSTEM with "name:line: ". */
must_check int event_log_read(const char *name, const char *text, size_t size,
                              struct event_log *ret, struct error **err) nonnull(1, 2, 4);
/* How many turn_start events there are. */
unsigned event_log_turns(const struct event_log *log) nonnull(1);
size_t event_log_tool_calls(const struct event_log *log) nonnull(1);
void event_log_done(struct event_log *log) nonnull(1);
