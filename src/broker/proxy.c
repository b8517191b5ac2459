#include "broker/proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/proxy_internal.h"

#define IDLE_S 600u

/* --- the guard -------------------------------------------------------------------------------- */

/* What is seen of the headers of one request. */
struct guard {
    unsigned count, hosts, lengths, encodings, keys;
    bool odd, chunked, upgrades;
    const char *key; /* the last one */
    struct str_list *passed_on;
};

static bool is_name(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

/* Names whose value says something to an endpoint, and nothing about where the request goes. */
static bool is_passed_on(const char *name)
{
    return is_name(name, "anthropic-beta") || is_name(name, "anthropic-version");
}

static void see_key(struct guard *guard, const char *name, const char *value)
{
    bool is_bearer = is_name(name, "authorization");

    if (!is_bearer && !is_name(name, "x-api-key") && !is_name(name, "x-goog-api-key"))
        return;
    if (is_bearer && strncasecmp(value, "Bearer ", 7) == 0)
        value += 7;
    guard->keys++;
    guard->key = value;
}

static enum MHD_Result see_header(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    struct guard *guard = context;

    (void)kind;
    value = value == NULL ? "" : value;
    guard->count++;
    guard->hosts += is_name(name, "host");
    guard->lengths += is_name(name, "content-length");
    guard->encodings += is_name(name, "transfer-encoding");
    if (is_name(name, "content-length") &&
        (value[0] == '\0' || value[strspn(value, "0123456789")] != '\0'))
        guard->odd = true;
    if (is_name(name, "transfer-encoding") && !is_name(value, "chunked"))
        guard->odd = true;
    if (is_name(name, "content-encoding") || strpbrk(value, "\r\n") != NULL ||
        strpbrk(name, " \t") != NULL)
        guard->odd = true;
    guard->upgrades = guard->upgrades || is_name(name, "upgrade");
    see_key(guard, name, value);
    if (is_passed_on(name)) {
        scoped(mem_freep) char *line = str_format("%s: %s", name, value);

        str_list_add(guard->passed_on, line);
    }
    return MHD_YES;
}

static bool is_placeholder(const struct proxy *proxy, const char *key)
{
    size_t length = strlen(proxy->placeholder);

    return key != NULL && strlen(key) == length &&
           CRYPTO_memcmp(key, proxy->placeholder, length) == 0;
}

/* NULL: nothing is wrong with it. */
static const char *look_at(struct proxy_request *request, const char *method, struct guard *guard)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/:?&=";

    guard->passed_on = &request->headers;
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, see_header, guard);
    if (request->uri[0] != '/' || request->uri[strspn(request->uri, letters)] != '\0')
        return "a target that is no plain path";
    if (!str_equal(method, "POST") && !str_equal(method, "GET") && !str_equal(method, "HEAD"))
        return "an unknown method";
    if (guard->hosts != 1)
        return "not exactly one Host";
    if (guard->lengths > 1 || (guard->lengths > 0 && guard->encodings > 0) || guard->encodings > 1)
        return "two lengths of one body";
    if (guard->odd)
        return "a header that can be read two ways";
    return guard->count > PROXY_HEADERS_MAX ? "too many headers" : NULL;
}

void proxy_forget_body(struct proxy_request *request)
{
    request->proxy->body_bytes -= request->body.size_bytes;
    buf_done(&request->body);
}

/* What does not fit is read and dropped, as an answer in between would be lost. */
static void take_body(struct proxy_request *request, const char *bytes, size_t size)
{
    struct proxy *proxy = request->proxy;

    request->overflows = request->overflows || proxy->body_bytes + size > PROXY_BODIES_BYTES_MAX ||
                         request->body.size_bytes + size > PROXY_BODY_BYTES_MAX;
    if (request->overflows)
        proxy_forget_body(request);
    else
        buf_append(&request->body, bytes, size);
    proxy->body_bytes += request->overflows ? 0 : size;
}

static void request_free(struct proxy_request *request)
{
    struct proxy_request **place = &request->proxy->first;

    while (*place != request)
        place = &(*place)->next;
    *place = request->next;
    str_list_done(&request->headers);
    usage_reader_done(&request->usage);
    proxy_forget_body(request);
    buf_done(&request->queue);
    buf_done(&request->record);
    free(request->content_type);
    free(request->model);
    free(request->uri);
    free(request);
}

/* --- requests --------------------------------------------------------------------------------- */

static void *on_uri(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct proxy *proxy = context;
    struct proxy_request *request = mem_new(1, sizeof(*request));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    *request = (struct proxy_request){
        .proxy = proxy, .next = proxy->first, .connection = connection, .uri = str_dup(uri)};
    proxy->first = request;
    proxy->totals.requests++;
    if (info != NULL && info->socket_context != NULL)
        *(bool *)info->socket_context = true;
    return request;
}

/* The path without its query; false: a query that is not known. */
static bool split_path(const struct proxy_request *request, char *ret, size_t size)
{
    static const char *const known[] = {"", "?beta=true", "?alt=sse"};
    size_t length = strcspn(request->uri, "?");

    if (length >= size)
        return false;
    memcpy(ret, request->uri, length);
    ret[length] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (str_equal(request->uri + length, known[i]))
            return true;
    }
    return false;
}

static enum MHD_Result hear(struct proxy_request *request, const char *method)
{
    struct guard guard = {0};
    char path[256];
    const char *wrong = look_at(request, method, &guard);

    request->heard = true;
    if (wrong != NULL)
        return proxy_refuse(request, method, 400, wrong);
    if (!split_path(request, path, sizeof(path)))
        return proxy_refuse(request, method, 403, "a query that is not known");
    policy_path(method, path, &request->path);
    if (request->path.answer == POLICY_REFUSE)
        return proxy_refuse(request, method, 403, "a method and path that are not allowed");
    if (request->path.answer == POLICY_HELLO)
        return proxy_answer_error(request, 200, "");
    if (guard.keys != 1 || !is_placeholder(request->proxy, guard.key))
        return proxy_refuse(request, method, 401, "a key that is not this trial's");
    if (request->path.answer == POLICY_UPGRADE)
        return guard.upgrades
                   ? proxy_answer_error(request, 426, "no WebSocket here: use POST")
                   : proxy_refuse(request, method, 403, "a method and path that are not allowed");
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **con_cls)
{
    struct proxy_request *request = *con_cls;

    (void)context, (void)connection, (void)url, (void)version;
    if (!request->heard)
        return hear(request, method);
    if (*upload_size > 0) {
        take_body(request, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (request->state == PROXY_READING)
        return proxy_forward(request, method);
    return request->state == PROXY_READY ? proxy_begin_answer(request) : MHD_YES;
}

/* Who connects and sends no whole head, 10 MB of one for example, is counted as well. */
static void count_unheard(struct proxy *proxy)
{
    json_t *line = proxy_line(proxy, "unheard");

    proxy->totals.unheard++;
    (void)proxy_write(proxy, line); /* then nothing more is sent on */
}

static void on_completed(void *context, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode code)
{
    struct proxy_request *request = *con_cls;

    (void)connection, (void)code;
    if (request == NULL)
        return;
    if (!request->heard)
        count_unheard(context);
    proxy_exchange_stop(request);
    request_free(request);
    *con_cls = NULL;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = mem_new(1, sizeof(bool)); /* whether a request began */
        return;
    }
    const bool *began = *socket_context;

    if (began != NULL && !*began)
        count_unheard(context);
    mem_freep(socket_context);
    *socket_context = NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

static void take_list(const json_t *list, struct str_list *ret)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        if (json_is_string(item) && ret->count < PROXY_MODELS_MAX)
            str_list_add(ret, json_string_value(item));
    }
}

static uint64_t limit(const json_t *spec, const char *key)
{
    int64_t n = json_get_int(spec, key, 0);

    return n < 0 ? 0 : (uint64_t)n;
}

static int read_spec(struct proxy *proxy, const json_t *spec, struct error **err)
{
    uint64_t in_flight = limit(spec, "max_in_flight"), log_bytes = limit(spec, "max_log_bytes");

    take_list(json_get_array(spec, "routes"), &proxy->routes);
    take_list(json_get_array(spec, "models"), &proxy->models_allowed);
    if (json_get_text(spec, "placeholder") != NULL)
        proxy->placeholder = str_dup(json_get_text(spec, "placeholder"));
    if (proxy->placeholder == NULL || strlen(proxy->placeholder) < 16 || proxy->routes.count == 0)
        return error_set(err, ERROR_BUG, "a trial opens models with routes and a placeholder");
    for (size_t i = 0; i < proxy->routes.count; i++) {
        if (models_route(proxy->models, proxy->routes.items[i]) == NULL)
            return error_set(err, ERROR_USER, "there is no route '%s' (config.yaml, routes)",
                             proxy->routes.items[i]);
    }
    proxy->in_flight_max = in_flight == 0 ? 8 : (unsigned)size_min(in_flight, PROXY_IN_FLIGHT_MAX);
    proxy->log_bytes_max = log_bytes == 0 ? PROXY_LOG_BYTES_MAX : log_bytes;
    proxy->limits = (struct proxy_limits){
        .max_turns = limit(spec, "max_turns"),
        .max_input_tokens = limit(spec, "max_input_tokens"),
        .max_output_tokens = limit(spec, "max_output_tokens"),
        .max_total_tokens = limit(spec, "max_total_tokens"),
        .max_microusd = limit(spec, "max_microusd"),
        .count_cached_input = json_get_bool(spec, "count_cached_input", false),
        .count_cache_creation = json_get_bool(spec, "count_cache_creation", false),
    };
    return 0;
}

static int start_daemon(struct proxy *proxy, int listener, struct error **err)
{
    int flags = fcntl(listener, F_GETFL);

    if (flags < 0 || fcntl(listener, F_SETFL, flags | O_NONBLOCK) < 0)
        return error_errno(err, errno, "cannot listen in the cell");
    proxy->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, proxy,
                         MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)PROXY_CONNECTIONS_MAX,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)PROXY_HEAD_BYTES_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, proxy, MHD_OPTION_URI_LOG_CALLBACK, on_uri, proxy,
                         MHD_OPTION_NOTIFY_CONNECTION, on_connection, proxy, MHD_OPTION_END);
    if (proxy->daemon == NULL)
        return error_set(err, ERROR_SYSTEM, "cannot serve on the listener of the cell");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(proxy->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    ASSERT(info != NULL);
    proxy->epoll_fd = info->epoll_fd;
    return 0;
}

static void proxy_freep(struct proxy **proxy)
{
    proxy_free(*proxy);
}

int proxy_new(struct models *models, const json_t *spec, int listener, int log_fd,
              struct proxy **ret, struct error **err)
{
    scoped(fd_closep) int listener_fd = listener;
    scoped(proxy_freep) struct proxy *proxy = mem_new(1, sizeof(*proxy));

    *proxy =
        (struct proxy){.models = models, .log_fd = log_fd, .epoll_fd = -1, .start_ns = clock_ns()};
    int r = read_spec(proxy, spec, err);

    if (r == 0)
        r = start_daemon(proxy, listener_fd, err);
    if (r < 0)
        return r;
    (void)take_fd(&listener_fd); /* the daemon's */
    *ret = take(proxy);
    return 0;
}

/*
 * Connections that sleep are woken, as the daemon ends the program when one still does; their
 * answers are cut. A request that comes just now must not go to sleep.
 */
static void stop_daemon(struct proxy *proxy)
{
    if (proxy->daemon == NULL)
        return;
    proxy->ends = true;
    for (struct proxy_request *r = proxy->first; r != NULL; r = r->next)
        proxy_exchange_stop(r);
    (void)MHD_run(proxy->daemon); /* wakes them */
    MHD_stop_daemon(proxy->daemon);
    proxy->daemon = NULL;
}

static json_t *totals_json(const struct proxy *proxy)
{
    const struct proxy_totals *totals = &proxy->totals;
    json_t *result = json_object();

    json_put_int(result, "requests", (int64_t)totals->requests);
    json_put_int(result, "forwarded", (int64_t)totals->forwarded);
    json_put_int(result, "refused", (int64_t)totals->refused);
    json_put_int(result, "unheard", (int64_t)totals->unheard);
    json_put_int(result, "turns", (int64_t)totals->turns);
    json_put_int(result, "aside", (int64_t)totals->aside);
    json_put(result, "usage", totals->usage.known ? usage_to_json(&totals->usage) : json_null());
    json_put(result, "cost_microusd",
             totals->price_missing ? json_null() : json_integer((json_int_t)totals->microusd));
    json_put(result, "model", json_text_or_null(proxy->model));
    json_put(result, "stopped_by", json_text_or_null(proxy->stopped_by));
    json_put_bool(result, "recorded", !proxy->cannot_record);
    return result;
}

void proxy_set_recording(struct proxy *proxy, struct recording *recording)
{
    proxy->recording = recording;
}

json_t *proxy_result(struct proxy *proxy)
{
    stop_daemon(proxy);
    return totals_json(proxy);
}

json_t *proxy_next(struct proxy *proxy, const json_t *prompt)
{
    scoped(buf_done) struct buf text = {0};

    if (prompt == NULL)
        return totals_json(proxy);
    json_write_line(&text, prompt);
    free(proxy->expects);
    /* As it stands in a body, without its quotes. */
    proxy->expects = text.size_bytes < 2 ? NULL : str_ndup(text.data + 1, text.size_bytes - 2);
    proxy->turns_before = proxy->totals.turns;
    proxy->aside_before = proxy->totals.aside;
    return totals_json(proxy);
}

void proxy_free(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    stop_daemon(proxy);
    fd_closep(&proxy->log_fd);
    str_list_done(&proxy->routes);
    str_list_done(&proxy->models_allowed);
    json_decref(proxy->thread);
    free(proxy->placeholder);
    free(proxy->expects);
    free(proxy->model);
    free(proxy);
}

size_t proxy_held_bytes(const struct proxy *proxy)
{
    return proxy->body_bytes;
}

int proxy_fd(const struct proxy *proxy)
{
    return proxy->daemon == NULL ? -1 : proxy->epoll_fd;
}

int proxy_timeout_ms(const struct proxy *proxy)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;

    if (proxy->daemon == NULL || MHD_get_timeout(proxy->daemon, &timeout_ms) != MHD_YES)
        return -1;
    return (int)size_min(timeout_ms, 3600000);
}

void proxy_run(struct proxy *proxy)
{
    if (proxy->daemon != NULL)
        (void)MHD_run(proxy->daemon); /* its failure is a connection's */
}
