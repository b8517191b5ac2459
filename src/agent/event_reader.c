#include "agent/event_json.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/term.h"

/*
 * A reader holds at most one line, at most EVENT_LINE_BYTES_MAX of it; line_bytes counts what came.
 * bytes and nodes count what was taken in all, so that no agent decides how much memory we use.
 */
struct event_reader {
    struct event_log *log;
    enum event_source source;
    uint64_t start_ns;
    struct buf line;
    size_t line_bytes;
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
        .line = {.max_bytes = EVENT_LINE_BYTES_MAX},
    };
    return reader;
}

void event_reader_free(struct event_reader *reader)
{
    if (reader == NULL)
        return;
    buf_done(&reader->line);
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

static void add_invalid(struct event_reader *reader, const char *reason)
{
    struct event *event = add(reader, EVENT_INVALID);
    size_t kept = size_min(reader->line.size_bytes, EVENT_INVALID_BYTES_MAX);

    event->input = json_object();
    json_put_text(event->input, "reason", reason);
    json_put(event->input, "text", json_text(buf_text(&reader->line), kept));
    if (kept < reader->line_bytes) {
        json_put_bool(event->input, "cut", true);
        json_put_int(event->input, "bytes", (int64_t)reader->line_bytes);
    }
}

/* An upper bound of the JSON values in text, without building any. */
static size_t count_nodes(const char *text, size_t size)
{
    size_t nodes = 1;
    bool in_string = false;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '{' || c == '['))
            nodes++;
    }
    return nodes;
}

static bool is_blank(const struct buf *line)
{
    const char *text = buf_text(line);

    return strspn(text, " \t\r") == line->size_bytes;
}

/* The line with every invalid sequence replaced by U+FFFD. */
static void repair(const struct buf *line, struct buf *ret)
{
    for (size_t i = 0; i < line->size_bytes;) {
        uint32_t rune = 0;
        size_t n = utf8_next(line->data + i, line->size_bytes - i, &rune);

        if (n == 0)
            buf_text_append(ret, "\xef\xbf\xbd");
        else
            buf_append(ret, line->data + i, n);
        i += size_max(n, 1);
    }
}

static json_t *parse(const struct buf *line)
{
    scoped(error_freep) struct error *cause = NULL;
    scoped(buf_done) struct buf repaired = {0};
    const struct buf *text = line;
    json_t *object = NULL;

    if (!utf8_valid(line->data, line->size_bytes)) {
        repair(line, &repaired);
        text = &repaired;
    }
    if (json_parse("line", buf_text(text), text->size_bytes, &object, &cause) < 0)
        return NULL;
    return object;
}

static bool is_ours(enum event_kind kind)
{
    return kind == EVENT_AGENT_START || kind == EVENT_AGENT_END || kind == EVENT_INVALID;
}

/* Takes the line as an event. Returns what is wrong with it otherwise. */
static const char *take_event(struct event_reader *reader, bool last)
{
    size_t nodes = count_nodes(buf_text(&reader->line), reader->line.size_bytes);

    if (reader->line_bytes > EVENT_LINE_BYTES_MAX)
        return "too long";
    if (nodes > EVENT_LINE_NODES_MAX)
        return "too many values";

    scoped(json_freep) json_t *object = parse(&reader->line);

    if (object == NULL)
        return last ? "truncated" : "not JSON";

    struct event content = {0};
    const char *reason = event_fill(object, &content);

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

static void end_line(struct event_reader *reader, bool last)
{
    struct event_log *log = reader->log;

    if (reader->bytes > EVENTS_BYTES_MAX || reader->nodes > EVENTS_NODES_MAX ||
        log->count >= EVENTS_MAX)
        log->cut = true;
    if (!log->cut && !is_blank(&reader->line)) {
        const char *reason = take_event(reader, last);

        if (reason != NULL)
            add_invalid(reader, reason);
    }
    buf_clear(&reader->line);
    reader->line_bytes = 0;
}

static void append(struct event_reader *reader, const char *bytes, size_t size)
{
    size_t room = EVENT_LINE_BYTES_MAX - reader->line.size_bytes;

    if (size_min(size, room) > 0)
        buf_append(&reader->line, bytes, size_min(size, room));
    reader->line_bytes += size;
    reader->bytes += size;
}

void event_reader_feed(struct event_reader *reader, const char *bytes, size_t size)
{
    const char *end = bytes + size;

    while (bytes < end && !reader->log->cut) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));

        append(reader, bytes, (size_t)((newline == NULL ? end : newline) - bytes));
        if (newline == NULL)
            return;
        end_line(reader, false);
        bytes = newline + 1;
    }
}

void event_reader_end(struct event_reader *reader)
{
    if (reader->line_bytes > 0)
        end_line(reader, true);
}
