/* wire.jsonl, and answers of our own. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/proxy_internal.h"

#define NS_PER_MS UINT64_C(1000000)

json_t *proxy_line(struct proxy *proxy, const char *kind)
{
    json_t *line = json_object();

    json_put_int(line, "seq", (int64_t)++proxy->seq);
    json_put_int(line, "t_ms", (int64_t)((clock_ns() - proxy->start_ns) / NS_PER_MS));
    json_put_text(line, "kind", kind);
    return line;
}

bool proxy_write(struct proxy *proxy, json_t *line)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, line);
    json_decref(line);
    if (text.size_bytes == 0 || buf_text(&text)[text.size_bytes - 1] != '\n')
        buf_char(&text, '\n');
    if (!proxy->is_full && proxy->log_bytes + text.size_bytes > proxy->log_bytes_max) {
        /* The doing of who asked so much, and an end as any other budget's. */
        proxy->is_full = true;
        proxy->stopped_by = proxy->stopped_by == NULL ? "record_full" : proxy->stopped_by;
    }
    if (!proxy->is_full && !proxy->cannot_record &&
        fs_write_all(proxy->log_fd, "wire.jsonl", buf_text(&text), text.size_bytes, NULL) < 0)
        proxy->cannot_record = true;
    proxy->log_bytes += text.size_bytes;
    return !proxy->is_full && !proxy->cannot_record;
}

static const char *error_type(unsigned status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 429 ? "rate_limit_error"
           : status >= 500 ? "api_error"
                           : "invalid_request_error";
}

/* In words that clients of all four formats find. */
static json_t *error_body(unsigned status, const char *why)
{
    json_t *body = json_object(), *error = json_object();
    scoped(mem_freep) char *text = str_format("closedbook: %s", why);

    json_put_text(error, "type", error_type(status));
    json_put(error, "message", json_text(text, strlen(text)));
    json_put_int(error, "code", status);
    json_put_text(body, "type", "error");
    json_put(body, "error", error);
    return body;
}

static enum MHD_Result answer_bytes(struct proxy_request *request, unsigned status,
                                    const char *bytes, size_t size)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY);

    if (response == NULL)
        return MHD_NO;
    const char *type = request->content_type == NULL ? "application/json" : request->content_type;

    (void)MHD_add_response_header(response, "Content-Type", type); /* without it, too, it is one */
    if (status == 429)
        (void)MHD_add_response_header(response, "Retry-After", "1"); /* likewise */
    request->state = PROXY_ANSWERING;
    enum MHD_Result result = MHD_queue_response(request->connection, status, response);

    MHD_destroy_response(response);
    return result;
}

enum MHD_Result proxy_answer_error(struct proxy_request *request, unsigned status, const char *why)
{
    scoped(json_freep) json_t *body = status == 200 ? json_object() : error_body(status, why);
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, body);
    return answer_bytes(request, status, buf_text(&text), text.size_bytes);
}

enum MHD_Result proxy_refuse(struct proxy_request *request, const char *method, unsigned status,
                             const char *why)
{
    struct proxy *proxy = request->proxy;
    json_t *line = proxy_line(proxy, "refused");

    proxy->totals.refused++;
    json_put(line, "method", json_text(method, size_min(strlen(method), 32)));
    json_put(line, "path", json_text(request->uri, size_min(strlen(request->uri), 512)));
    json_put(line, "reason", json_text(why, strlen(why)));
    json_put_int(line, "status", status);
    (void)proxy_write(proxy, line); /* then nothing more is sent on */
    return proxy_answer_error(request, status, why);
}

void proxy_record_end(struct proxy_request *request, const struct upstream_answer *answer)
{
    struct proxy *proxy = request->proxy;
    json_t *line = proxy_line(proxy, "response"), *attempts = json_array();

    for (size_t i = 0; answer != NULL && i < answer->attempt_count; i++)
        json_push(attempts, json_pack("{s:i, s:I, s:I, s:s}", "status", answer->attempts[i].status,
                                      "duration_ms", (json_int_t)answer->attempts[i].duration_ms,
                                      "wait_ms", (json_int_t)answer->attempts[i].wait_ms, "error",
                                      answer->attempts[i].error));
    json_put_int(line, "of", (int64_t)request->seq);
    json_put_text(line, "api", model_api_name(request->path.api));
    json_put_bool(line, "main", request->is_main);
    json_put_int(line, "status", request->status);
    json_put(line, "content_type", json_text_or_null(request->content_type));
    json_put_bool(line, "whole", answer != NULL && answer->end == UPSTREAM_ANSWERED);
    json_put(line, "body", json_text(buf_text(&request->record), request->record.size_bytes));
    json_put(line, "attempts", attempts);
    json_put(line, "usage",
             request->usage.usage.known ? usage_to_json(&request->usage.usage) : json_null());
    json_put(line, "model", json_text_or_null(request->usage.model));
    json_put_int(line, "first_byte_ms",
                 request->first_byte_ns == 0
                     ? -1
                     : (int64_t)((request->first_byte_ns - request->begin_ns) / NS_PER_MS));
    json_put_int(line, "duration_ms", (int64_t)((clock_ns() - request->begin_ns) / NS_PER_MS));
    (void)proxy_write(proxy, line); /* then nothing more is sent on */
}
