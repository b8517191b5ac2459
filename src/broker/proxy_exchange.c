/* A request that is let through: sent on, and its answer passed back as it comes. */
#include "base/clock.h"
#include "base/mem.h"
#include "broker/proxy_internal.h"

#define QUEUE_BYTES_MAX ((size_t)1 << 20)
#define BLOCK_BYTES ((size_t)16 << 10)
#define DEADLINE_NS (UINT64_C(3600) * 1000000000) /* the trial's own limits are shorter */
#define ATTEMPTS 4
#define VALUES_MAX 2000000u

/* --- back to the cell ------------------------------------------------------------------------- */

static void wake(struct proxy_request *request)
{
    if (!request->suspended)
        return;
    request->suspended = false;
    MHD_resume_connection(request->connection);
}

static void sleep_until_woken(struct proxy_request *request)
{
    request->suspended = true;
    MHD_suspend_connection(request->connection);
}

static ssize_t read_queue(void *context, uint64_t position, char *bytes, size_t max)
{
    struct proxy_request *request = context;
    size_t left = request->queue.size_bytes - request->queue_from, count = size_min(left, max);

    (void)position;
    if (left == 0 && request->ended)
        return request->cut ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
    if (left == 0) {
        sleep_until_woken(request);
        return 0;
    }
    memcpy(bytes, request->queue.data + request->queue_from, count);
    request->queue_from += count;
    if (request->queue_from == request->queue.size_bytes) {
        buf_clear(&request->queue);
        request->queue_from = 0;
        if (request->exchange != NULL)
            upstream_resume(request->exchange); /* it may have been told to wait */
    }
    return (ssize_t)count;
}

enum MHD_Result proxy_begin_answer(struct proxy_request *request)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_queue, request, NULL);

    if (response == NULL)
        return MHD_NO;
    const char *type = request->content_type == NULL ? "application/json" : request->content_type;

    (void)MHD_add_response_header(response, "Content-Type", type);        /* nor is it less */
    (void)MHD_add_response_header(response, "Cache-Control", "no-store"); /* without them */
    request->state = PROXY_ANSWERING;
    enum MHD_Result result =
        MHD_queue_response(request->connection, (unsigned)request->status, response);

    MHD_destroy_response(response);
    return result;
}

/* --- from the endpoint ------------------------------------------------------------------------ */

static void on_head(void *context, const struct upstream_answer *answer)
{
    struct proxy_request *request = context;
    const char *type = upstream_header(answer, "content-type");

    request->status = answer->status;
    request->first_byte_ns = clock_ns();
    if (type != NULL && request->content_type == NULL)
        request->content_type = str_dup(type);
    request->state = PROXY_READY;
    wake(request);
}

static bool on_bytes(void *context, const char *bytes, size_t size)
{
    struct proxy_request *request = context;

    if (request->queue.size_bytes > QUEUE_BYTES_MAX)
        return false;
    buf_append(&request->queue, bytes, size);
    buf_append(&request->record, bytes, size);
    usage_reader_feed(&request->usage, bytes, size);
    wake(request);
    return true;
}

/* An answer of one piece says what it used in itself. */
static void read_usage(struct proxy_request *request)
{
    scoped(json_freep) json_t *value = NULL;

    if (request->usage.usage.known || request->status >= 400)
        return;
    if (json_parse("answer", buf_text(&request->record), request->record.size_bytes, &value, NULL) <
        0)
        return;
    usage_take(&request->usage.usage, request->path.api, value);
    const char *model = json_get_text(value, "model");

    if (model == NULL)
        model = json_get_text(value, "modelVersion");
    if (model != NULL && request->usage.model == NULL)
        request->usage.model = str_dup(model);
}

static void on_end(void *context, const struct upstream_answer *answer)
{
    struct proxy_request *request = context;

    request->exchange = NULL;
    request->ended = true;
    request->cut = answer->streamed && answer->end != UPSTREAM_ANSWERED;
    if (!answer->streamed) {
        const char *type = upstream_header(answer, "content-type");
        bool answered = answer->end == UPSTREAM_ANSWERED && answer->status > 0;

        request->status = answered ? answer->status : answer->end == UPSTREAM_DEADLINE ? 504 : 502;
        if (answered && type != NULL && request->content_type == NULL)
            request->content_type = str_dup(type);
        const char *body = answered ? buf_text(&answer->body)
                                    : "{\"type\":\"error\",\"error\":{\"type\":\"api_error\","
                                      "\"message\":\"closedbook: the endpoint gave no answer\"}}";

        buf_append(&request->queue, body, strlen(body));
        buf_append(&request->record, body, strlen(body));
        request->state = PROXY_READY;
    }
    read_usage(request);
    proxy_budget_settle(request);
    proxy_record_end(request, answer);
    wake(request);
}

void proxy_exchange_stop(struct proxy_request *request)
{
    if (request->exchange != NULL) {
        upstream_cancel(request->exchange);
        request->exchange = NULL;
        request->ended = request->cut = true;
        proxy_budget_settle(request);
        proxy_record_end(request, NULL);
        if (request->state == PROXY_WAITING) {
            request->status = 503;
            request->state = PROXY_READY;
        }
    }
    wake(request);
}

/* --- to the endpoint -------------------------------------------------------------------------- */

static const struct route *route_for(const struct proxy *proxy, enum model_api api)
{
    for (size_t i = 0; i < proxy->routes.count; i++) {
        const struct route *route = models_route(proxy->models, proxy->routes.items[i]);

        if (route != NULL && route->api == api)
            return route;
    }
    return NULL;
}

/*
 * Chat endpoints tell what a stream used only when they are asked to; Responses are kept at the
 * endpoint, where all trials have the same key, unless it is told not to.
 */
static void complete(const struct proxy_request *request, json_t *body)
{
    json_t *options = json_get_object(body, "stream_options");

    if (request->path.api == MODEL_OPENAI_RESPONSES)
        json_put_bool(body, "store", false);
    if (request->path.api != MODEL_OPENAI_CHAT || !json_get_bool(body, "stream", false))
        return;
    if (options == NULL)
        json_put(body, "stream_options", options = json_object());
    json_put_bool(options, "include_usage", true);
}

static bool record_request(struct proxy_request *request, const char *method, json_t *body)
{
    struct proxy *proxy = request->proxy;
    json_t *line = proxy_line(proxy, "request");

    request->seq = proxy->seq;
    json_put_text(line, "method", method);
    json_put_text(line, "path", request->uri);
    json_put_text(line, "api", model_api_name(request->path.api));
    json_put_text(line, "route", request->route->name);
    json_put_text(line, "model", request->model);
    json_put_bool(line, "main", request->is_main);
    json_put(line, "body", json_incref(body));
    return proxy_write(proxy, line);
}

static int send_on(struct proxy_request *request, const json_t *body, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, body);
    const struct upstream_request upstream = {
        .route = request->route,
        .method = "POST",
        .path = request->uri,
        .headers = &request->headers,
        .body = buf_text(&text),
        .body_size = text.size_bytes,
        .deadline_ns = clock_ns() + DEADLINE_NS,
        .answer_max_bytes = PROXY_ANSWER_BYTES_MAX,
        .attempts_max = ATTEMPTS,
        .recording = request->proxy->recording,
        .on_head = on_head,
        .on_bytes = on_bytes,
        .on_end = on_end,
        .context = request,
    };

    request->usage.api = request->path.api;
    request->begin_ns = clock_ns();
    return upstream_start(models_upstream(request->proxy->models), &upstream, &request->exchange,
                          err);
}

/* What becomes a value costs far more memory than its bytes; in strings these marks are fewer. */
static bool has_too_many_values(const struct buf *text)
{
    size_t marks = 0;

    for (size_t i = 0; i < text->size_bytes; i++)
        marks += text->data[i] == ',' || text->data[i] == '[' || text->data[i] == '{';
    return marks > VALUES_MAX;
}

/* *ret_body: what is sent on. */
static int check(struct proxy_request *request, json_t **ret_body, struct error **err)
{
    struct proxy *proxy = request->proxy;
    int r = request->overflows || has_too_many_values(&request->body)
                ? error_set(err, ERROR_AGENT, "a body that is too large")
                : json_parse("request", buf_text(&request->body), request->body.size_bytes,
                             ret_body, err);

    if (r == 0)
        r = policy_check(models_policy(proxy->models), request->path.api, *ret_body, err);
    if (r < 0)
        return r;
    const char *model =
        request->path.model[0] != '\0' ? request->path.model : json_get_text(*ret_body, "model");

    if (model == NULL || !str_list_has(&proxy->models_allowed, model))
        return error_set(err, ERROR_AGENT, "the model '%.64s' is not allowed here",
                         model == NULL ? "" : model);
    request->model = str_dup(model);
    request->route = route_for(proxy, request->path.api);
    return request->route != NULL
               ? 0
               : error_set(err, ERROR_AGENT, "requests of %s are not allowed here",
                           model_api_name(request->path.api));
}

/* A budget that is used up is no attempt of the agent's; it is told, and comes to its end. */
static enum MHD_Result stop_agent(struct proxy_request *request, const char *why)
{
    json_t *line = proxy_line(request->proxy, "stopped");
    scoped(mem_freep) char *text = str_format(
        "the budget of this trial is used up (%s); no further call of a model is made", why);

    json_put_text(line, "reason", why);
    (void)proxy_write(request->proxy, line); /* then nothing is sent on */
    return proxy_answer_error(request, 400, text);
}

enum MHD_Result proxy_forward(struct proxy_request *request, const char *method)
{
    struct proxy *proxy = request->proxy;
    scoped(error_freep) struct error *problem = NULL;
    scoped(json_freep) json_t *body = NULL;

    if (proxy->ends)
        return proxy_answer_error(request, 503, "the trial is over");
    if (check(request, &body, &problem) < 0)
        return proxy_refuse(request, method, 400, error_message(problem));
    if (proxy->totals.in_flight >= proxy->in_flight_max)
        return proxy_answer_error(request, 429, "too many requests at a time");
    const char *stop = proxy_budget_check(request, body);

    if (stop != NULL)
        return stop_agent(request, stop);
    complete(request, body);
    if (!record_request(request, method, body))
        return proxy_answer_error(request, 400, "this exchange cannot be recorded");
    proxy_budget_begin(request, body);
    proxy_forget_body(request);
    if (send_on(request, body, &problem) < 0) {
        proxy_budget_settle(request);
        proxy_record_end(request, NULL);
        return proxy_answer_error(request, 400, error_message(problem));
    }
    request->state = PROXY_WAITING;
    sleep_until_woken(request);
    return MHD_YES;
}
