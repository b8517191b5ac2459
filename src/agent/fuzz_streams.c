/*
 * What a CLI prints, read by every format: how it arrives makes no difference, what was taken can
 * be written and read back, and a call always has a tool.
 */
#include "agent/atif.h"
#include "agent/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_pieces(enum stream_kind kind, const char *text, size_t size, size_t piece,
                        struct event_log *log)
{
    scoped(stream_freep) struct stream *stream = stream_new(kind, "fuzz", log, 0);

    for (size_t i = 0; i < size; i += piece)
        stream_feed(stream, text + i, size_min(piece, size - i));
    stream_end(stream);
    ASSERT(!stream_outcome(stream)->is_error || stream_outcome(stream)->has_end || log->count > 0);
    for (size_t i = 0; i < log->count; i++) {
        const struct event *event = &log->events[i];

        ASSERT(event->kind != EVENT_TOOL_CALL || event->tool != NULL);
        ASSERT(event->has_raw && event->raw_offset < size);
        log->events[i].t_ms = 0;
    }
}

static void check(enum stream_kind kind, const char *text, size_t size)
{
    scoped(event_log_done) struct event_log whole = {0};
    scoped(event_log_done) struct event_log pieces = {0};
    scoped(event_log_done) struct event_log again = {0};
    scoped(buf_done) struct buf a = {0};
    scoped(buf_done) struct buf b = {0};
    scoped(buf_done) struct buf c = {0};

    read_pieces(kind, text, size, size + 1, &whole);
    read_pieces(kind, text, size, size == 0 ? 1 : 1 + (size_t)(unsigned char)text[0] % 7, &pieces);
    event_log_write(&a, &whole);
    event_log_write(&b, &pieces);
    ASSERT(strcmp(buf_text(&a), buf_text(&b)) == 0);

    /* Whatever was printed is a trajectory of at least one step. */
    scoped(json_freep) json_t *trajectory = atif_export(
        &whole, &(struct atif_about){.agent = "fuzz", .prompt = "", .trial = "default/t/00"});

    ASSERT(json_array_size(json_get_array(trajectory, "steps")) > 0);
    ASSERT(event_log_read("events", buf_text(&a), a.size_bytes, &again, NULL) == 0);
    event_log_write(&c, &again);
    ASSERT(strcmp(buf_text(&a), buf_text(&c)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < STREAM_KIND_COUNT; kind++)
        check((enum stream_kind)kind, (const char *)data, size);
    return 0;
}
