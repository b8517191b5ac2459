/*
 * Event lines of an agent: how they arrive makes no difference, and what was taken can be written
 * and read back unchanged.
 */
#include "agent/events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_pieces(const char *text, size_t size, size_t piece, struct buf *ret)
{
    scoped(event_log_done) struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, 0);

    for (size_t i = 0; i < size; i += piece)
        event_reader_feed(reader, text + i, size_min(piece, size - i));
    event_reader_end(reader);
    for (size_t i = 0; i < log.count; i++)
        log.events[i].t_ms = 0;
    event_log_write(ret, &log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(event_log_done) struct event_log log = {0};
    scoped(buf_done) struct buf whole = {0};
    scoped(buf_done) struct buf pieces = {0};
    scoped(buf_done) struct buf again = {0};
    const char *text = (const char *)data;

    read_pieces(text, size, size + 1, &whole);
    read_pieces(text, size, size == 0 ? 1 : 1 + data[0] % 7, &pieces);
    ASSERT(strcmp(buf_text(&whole), buf_text(&pieces)) == 0);

    ASSERT(event_log_read("events", buf_text(&whole), whole.size_bytes, &log, NULL) == 0);
    event_log_write(&again, &log);
    ASSERT(strcmp(buf_text(&whole), buf_text(&again)) == 0);

    /* The file's reader, too, meets anything. */
    scoped(event_log_done) struct event_log file = {0};
    scoped(error_freep) struct error *err = NULL;

    if (size > 0 && event_log_read("events", text, size, &file, &err) < 0)
        ASSERT(err != NULL && file.count == 0);
    return 0;
}
