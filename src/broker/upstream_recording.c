/* Exchanges that are kept in a recording, and answers that come from one. */
#include "base/clock.h"
#include "base/mem.h"
#include "broker/upstream_internal.h"

#define PIECE_BYTES ((size_t)16 << 10)

static struct recorded_request asked(const struct upstream_request *request)
{
    return (struct recorded_request){.api = request->route->api,
                                     .method = request->method,
                                     .path = request->path,
                                     .body = request->body,
                                     .body_size = request->body_size};
}

/* --- keeping ---------------------------------------------------------------------------------- */

void keep_begin(struct upstream_exchange *exchange, const struct upstream_request *request)
{
    const struct recorded_request what = asked(request);

    if (request->recording != NULL)
        exchange->line = recording_request(request->recording, &what);
}

void keep_bytes(struct upstream_exchange *exchange, const char *bytes, size_t size)
{
    if (exchange->line != NULL)
        buf_append(&exchange->kept, bytes, size);
}

void keep_end(struct upstream_exchange *exchange, const char *end)
{
    const struct upstream_answer *answer = &exchange->answer;

    if (exchange->line == NULL)
        return;
    upstream_hide_key(exchange, &exchange->kept);
    const struct buf *body = answer->streamed ? &exchange->kept : &answer->body;
    const struct recorded_answer what = {
        .end = end,
        .status = answer->status,
        .content_type = upstream_header(answer, "content-type"),
        .body = buf_text(body),
        .body_size = body->size_bytes,
        .streamed = answer->streamed,
    };

    /* The recording says that it is not whole. */
    (void)recording_end(exchange->request.recording, exchange->line, &what);
    exchange->line = NULL;
}

/* --- answering -------------------------------------------------------------------------------- */

static enum upstream_end end_named(const char *name)
{
    for (int end = UPSTREAM_ANSWERED; end <= UPSTREAM_REFUSED; end++) {
        if (str_equal(upstream_end_name((enum upstream_end)end), name))
            return (enum upstream_end)end;
    }
    return UPSTREAM_NO_ANSWER; /* nobody waited for it then */
}

int replay_begin(struct upstream_exchange *exchange, const struct upstream_request *request,
                 struct error **err)
{
    const struct recorded_request what = asked(request);
    struct upstream_answer *answer = &exchange->answer;
    int r = recording_find(request->recording, &what, &exchange->replay, err);

    if (r < 0)
        return r;
    exchange->is_replay = true;
    exchange->attempt_start_ns = exchange->wake_ns = clock_ns();
    answer->status = exchange->replay.status;
    answer->end = end_named(exchange->replay.end);
    answer->attempt_count = 1;
    answer->attempts[0].status = answer->status;
    if (answer->end != UPSTREAM_ANSWERED)
        (void)snprintf(answer->error, sizeof(answer->error), "as it was recorded: %s",
                       exchange->replay.end);
    if (exchange->replay.content_type != NULL)
        str_list_add_take(&answer->headers,
                          str_format("content-type: %s", exchange->replay.content_type));
    return 0;
}

bool replay_step(struct upstream_exchange *exchange)
{
    const struct upstream_request *request = &exchange->request;
    const struct recorded_answer *replay = &exchange->replay;

    exchange->wake_ns = 0;
    if (!replay->streamed || request->on_bytes == NULL) {
        buf_append(&exchange->answer.body, replay->body, replay->body_size);
        return true;
    }
    if (!exchange->answer.streamed && request->on_head != NULL)
        request->on_head(request->context, &exchange->answer);
    exchange->answer.streamed = true;
    while (exchange->replayed < replay->body_size && !exchange->cancelled) {
        size_t count = size_min(PIECE_BYTES, replay->body_size - exchange->replayed);

        if (!request->on_bytes(request->context, replay->body + exchange->replayed, count))
            return false; /* upstream_resume() brings it on */
        exchange->replayed += count;
    }
    return !exchange->cancelled;
}
