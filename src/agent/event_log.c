#include <limits.h>

#include "agent/event_json.h"
#include "base/mem.h"
#include "base/str.h"

struct event *event_log_add(struct event_log *log, enum event_kind kind, enum event_source source)
{
    if (log->count == log->capacity) {
        log->capacity = size_max(16, log->capacity * 2);
        log->events = mem_resize(log->events, log->capacity, sizeof(*log->events));
    }

    struct event *event = &log->events[log->count++];

    *event = (struct event){.seq = log->count, .kind = kind, .source = source};
    return event;
}

void event_log_done(struct event_log *log)
{
    for (size_t i = 0; i < log->count; i++)
        event_done(&log->events[i]);
    free(log->events);
    *log = (struct event_log){0};
}

unsigned event_log_turns(const struct event_log *log)
{
    unsigned turns = 0;

    for (size_t i = 0; i < log->count; i++)
        turns += log->events[i].kind == EVENT_TURN_START;
    return turns;
}

size_t event_log_tool_calls(const struct event_log *log)
{
    size_t calls = 0;

    for (size_t i = 0; i < log->count; i++)
        calls += log->events[i].kind == EVENT_TOOL_CALL;
    return calls;
}

/* --- the file ------------------------------------------------------------------------------- */

void event_log_write(struct buf *buf, const struct event_log *log)
{
    scoped(json_freep) json_t *head = json_object();

    json_put_text(head, "schema", EVENTS_SCHEMA);
    json_put_bool(head, "cut", log->cut);
    json_write_line(buf, head);
    buf_char(buf, '\n');
    for (size_t i = 0; i < log->count; i++) {
        scoped(json_freep) json_t *line = event_json(&log->events[i]);

        json_write_line(buf, line);
        buf_char(buf, '\n');
    }
}

/* What only our own file holds: seq, t_ms, turn, agent and source. */
static const char *fill_ours(const json_t *object, struct event *ret)
{
    const char *source = json_get_text(object, "source");
    int64_t t_ms = json_get_int(object, "t_ms", -1);
    int64_t turn = json_get_int(object, "turn", -1);

    if (json_get_int(object, "seq", -1) != (int64_t)ret->seq)
        return "seq: the number of the line expected";
    if (t_ms < 0)
        return "t_ms: a number from 0 expected";
    if (turn < 0 || turn > UINT_MAX)
        return "turn: a number from 0 expected";
    if (source == NULL || !event_source_parse(source, &ret->source))
        return "source: 'wire', 'stream' or 'self-reported' expected";
    ret->t_ms = (uint64_t)t_ms;
    ret->has_raw = json_get_int(object, "raw", -1) >= 0;
    ret->raw_offset = ret->has_raw ? (uint64_t)json_get_int(object, "raw", 0) : 0;
    if (json_get_text(object, "parent") != NULL)
        ret->parent = str_dup(json_get_text(object, "parent"));
    ret->turn = (unsigned)turn;
    if (json_get_text(object, "agent") != NULL)
        ret->agent = str_dup(json_get_text(object, "agent"));
    return NULL;
}

static const char *fill_line(const json_t *object, size_t number, struct event_log *log)
{
    if (number == 1) {
        log->cut = json_get_bool(object, "cut", false);
        return str_equal(json_get_text(object, "schema"), EVENTS_SCHEMA) ? NULL
                                                                         : "schema: '" EVENTS_SCHEMA
                                                                           "' expected";
    }

    struct event *event = event_log_add(log, EVENT_INVALID, EVENT_SELF_REPORTED);
    const char *reason = event_fill(object, event);

    return reason != NULL ? reason : fill_ours(object, event);
}

static int read_line(const char *name, size_t number, const char *line, size_t size,
                     struct event_log *log, struct error **err)
{
    scoped(error_freep) struct error *cause = NULL;
    scoped(json_freep) json_t *object = NULL;

    if (json_parse(name, line, size, &object, &cause) < 0)
        return error_set(err, ERROR_SYSTEM, "%s:%zu: no JSON object", name, number);
    if (number > 2 * EVENTS_MAX)
        return error_set(err, ERROR_LIMIT, "%s: too many events", name);

    const char *reason = fill_line(object, number, log);

    return reason == NULL ? 0 : error_set(err, ERROR_SYSTEM, "%s:%zu: %s", name, number, reason);
}

int event_log_read(const char *name, const char *text, size_t size, struct event_log *ret,
                   struct error **err)
{
    scoped(event_log_done) struct event_log log = {0};
    const char *end = text + size;
    size_t number = 0;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));

        if (newline == NULL)
            return error_set(err, ERROR_SYSTEM, "%s:%zu: torn line", name, number + 1);

        int r = read_line(name, ++number, text, (size_t)(newline - text), &log, err);

        if (r < 0)
            return r;
        text = newline + 1;
    }
    *ret = log;
    log = (struct event_log){0};
    return 0;
}
