#include "agent/event_json.h"
#include "agent/lines.h"
#include "base/clock.h"
#include "base/mem.h"

/*
 * A reader holds at most one line. bytes and nodes count what was taken in all, so that no agent
 * decides how much memory we use.
 */
struct event_reader {
    struct event_log *log;
    enum event_source source;
    uint64_t start_ns;
    struct line_cutter lines;
    size_t bytes, nodes;
    unsigned turn;
};

struct event_reader *event_reader_new(struct event_log *log, enum event_source source,
                                      uint64_t start_ns)
{
    struct event_reader *reader = mem_new(1, sizeof(*reader));

    *reader = (struct event_reader){
        .log = log,
        .source = source,
        .start_ns = start_ns,
        .lines.line.max_bytes = EVENT_LINE_BYTES_MAX,
    };
    return reader;
}

void event_reader_free(struct event_reader *reader)
{
    if (reader == NULL)
        return;
    line_cutter_done(&reader->lines);
    free(reader);
}

void event_reader_freep(struct event_reader **reader)
{
    event_reader_free(*reader);
    *reader = NULL;
}

static struct event *add(struct event_reader *reader, enum event_kind kind)
{
    struct event *event = event_log_add(reader->log, kind, reader->source);
    uint64_t now_ns = clock_ns();

    event->t_ms = now_ns > reader->start_ns ? (now_ns - reader->start_ns) / 1000000 : 0;
    event->turn = reader->turn;
    return event;
}

static bool is_ours(enum event_kind kind)
{
    return kind == EVENT_AGENT_START || kind == EVENT_AGENT_END || kind == EVENT_RETRY ||
           kind == EVENT_ERROR || kind == EVENT_USER || kind == EVENT_INVALID;
}

/* Takes the line as an event. Returns what is wrong with it otherwise. */
static const char *take_event(struct event_reader *reader, const struct line *line)
{
    const char *reason = NULL;
    size_t nodes = 0;
    scoped(json_freep) json_t *object = line_parse(line, EVENT_LINE_NODES_MAX, &nodes, &reason);

    if (object == NULL)
        return reason;

    struct event content = {0};

    reason = event_fill(object, &content);
    if (reason == NULL && is_ours(content.kind))
        reason = "kind: not one that an agent may write";
    if (reason != NULL) {
        event_done(&content);
        return reason;
    }
    reader->nodes += nodes;
    reader->turn += content.kind == EVENT_TURN_START;

    struct event *event = add(reader, content.kind);

    content.seq = event->seq;
    content.t_ms = event->t_ms;
    content.turn = event->turn;
    content.source = event->source;
    *event = content;
    return NULL;
}

static bool on_line(void *context, const struct line *line)
{
    struct event_reader *reader = context;
    struct event_log *log = reader->log;

    reader->bytes += line->bytes;
    if (reader->bytes > EVENTS_BYTES_MAX || reader->nodes > EVENTS_NODES_MAX ||
        log->count >= EVENTS_MAX)
        log->cut = true;
    if (!log->cut && !line_is_blank(line)) {
        const char *reason = take_event(reader, line);

        if (reason != NULL)
            add(reader, EVENT_INVALID)->input = line_invalid(line, reason);
    }
    return !log->cut;
}

void event_reader_feed(struct event_reader *reader, const char *bytes, size_t size)
{
    if (!reader->log->cut)
        line_cutter_feed(&reader->lines, bytes, size, on_line, reader);
}

void event_reader_end(struct event_reader *reader)
{
    if (!reader->log->cut)
        line_cutter_end(&reader->lines, on_line, reader);
}
