#include "broker/upstream.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/upstream_internal.h"

#define NS_PER_MS UINT64_C(1000000)
#define EVENTS_AT_ONCE 64

const char *upstream_end_name(enum upstream_end end)
{
    static const char *const names[] = {"answered", "no-answer", "deadline", "too-large",
                                        "refused"};

    return names[end];
}

const char *upstream_library_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}

/* xorshift: nothing that must not be guessed. */
uint32_t upstream_random(struct upstream *upstream)
{
    upstream->random ^= upstream->random << 13;
    upstream->random ^= upstream->random >> 7;
    upstream->random ^= upstream->random << 17;
    return (uint32_t)(upstream->random >> 32);
}

/* --- what curl asks of its loop --------------------------------------------------------------- */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    const struct upstream *upstream = context;
    struct epoll_event event = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return epoll_ctl(upstream->epoll_fd, EPOLL_CTL_DEL, fd, NULL), 0;
    event.events =
        ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0u);
    if (epoll_ctl(upstream->epoll_fd, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) <
        0)
        return -1;
    /* Anything but NULL: it is in there. */
    (void)curl_multi_assign(upstream->multi, fd, context);
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *context)
{
    struct upstream *upstream = context;

    (void)multi;
    upstream->due_ns = timeout_ms < 0 ? 0 : clock_ns() + (uint64_t)timeout_ms * NS_PER_MS + 1;
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

static int read_certificates(struct upstream *upstream, const char *file, struct error **err)
{
    curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);

    if (file == NULL)
        file = info->cainfo;
    upstream->store = X509_STORE_new();
    if (upstream->store == NULL || file == NULL || X509_STORE_load_file(upstream->store, file) != 1)
        return error_set(err, ERROR_SYSTEM,
                         "cannot read certificates from '%s', so no https endpoint can be trusted "
                         "(Debian has them in the package ca-certificates)",
                         file == NULL ? "nowhere" : file);
    return 0;
}

static void upstream_freep(struct upstream **upstream)
{
    upstream_free(*upstream);
}

int upstream_new(const struct upstream_options *options, struct upstream **ret, struct error **err)
{
    if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return error_set(err, ERROR_SYSTEM, "libcurl cannot be set up");
    scoped(upstream_freep) struct upstream *upstream = mem_new(1, sizeof(*upstream));

    *upstream = (struct upstream){.keys = options->keys,
                                  .multi = curl_multi_init(),
                                  .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
                                  .random = options->seed | 1};
    if (upstream->multi == NULL || upstream->epoll_fd < 0)
        return error_errno(err, errno, "cannot set up requests to endpoints");
    if (options->proxy != NULL)
        upstream->proxy = str_dup(options->proxy);
    (void)curl_multi_setopt(upstream->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)curl_multi_setopt(upstream->multi, CURLMOPT_SOCKETDATA, upstream);
    (void)curl_multi_setopt(upstream->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    (void)curl_multi_setopt(upstream->multi, CURLMOPT_TIMERDATA, upstream);
    int r = options->needs_tls ? read_certificates(upstream, options->ca_file, err) : 0;

    if (r < 0)
        return r;
    *ret = take(upstream);
    return 0;
}

static void exchange_free(struct upstream_exchange *exchange)
{
    struct upstream *upstream = exchange->upstream;
    struct upstream_exchange **place = &upstream->first;

    while (*place != exchange)
        place = &(*place)->next;
    *place = exchange->next;
    if (exchange->easy != NULL) {
        (void)curl_multi_remove_handle(upstream->multi, exchange->easy); /* it is in there */
        curl_easy_cleanup(exchange->easy);
    }
    for (struct curl_slist *item = exchange->headers; item != NULL; item = item->next)
        explicit_bzero(item->data, strlen(item->data));
    curl_slist_free_all(exchange->headers);
    str_list_done(&exchange->answer.headers);
    buf_done(&exchange->answer.body);
    buf_done(&exchange->body);
    buf_done(&exchange->kept);
    json_decref(exchange->line);
    free(exchange->url);
    free(exchange);
}

void upstream_free(struct upstream *upstream)
{
    if (upstream == NULL)
        return;
    while (upstream->first != NULL)
        exchange_free(upstream->first);
    if (upstream->multi != NULL)
        (void)curl_multi_cleanup(upstream->multi); /* it is empty */
    X509_STORE_free(upstream->store);
    fd_closep(&upstream->epoll_fd);
    free(upstream->proxy);
    free(upstream);
}

/* --- a request -------------------------------------------------------------------------------- */

/* Base URLs of OpenAI's kind end with the version that the path begins with. */
static char *url_of(const struct route *route, const char *path)
{
    bool is_openai = route->api == MODEL_OPENAI_CHAT || route->api == MODEL_OPENAI_RESPONSES;
    const char *host = strstr(route->base_url, "://") + strlen("://");
    bool has_version = is_openai ? strchr(host, '/') != NULL : str_ends(route->base_url, "/v1");

    if (has_version && str_starts(path, "/v1/"))
        path += strlen("/v1");
    return str_format("%s%s", route->base_url, path);
}

static const char *key_header(enum model_api api)
{
    switch (api) {
    case MODEL_ANTHROPIC:
        return "x-api-key: ";
    case MODEL_GEMINI:
        return "x-goog-api-key: ";
    case MODEL_OPENAI_RESPONSES:
    case MODEL_OPENAI_CHAT:
    case MODEL_BEDROCK:
    case MODEL_API_COUNT:
        break;
    }
    return "Authorization: Bearer ";
}

static void add_header(struct upstream_exchange *exchange, const char *line)
{
    exchange->headers = curl_slist_append(exchange->headers, line);
    ASSERT(exchange->headers != NULL);
}

static bool has_header(const struct str_list *headers, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; headers != NULL && i < headers->count; i++) {
        if (strncasecmp(headers->items[i], name, length) == 0 && headers->items[i][length] == ':')
            return true;
    }
    return false;
}

/* What would make it another request than the one that is meant. */
static int check_request(const struct upstream_request *request, struct error **err)
{
    static const char *const ours[] = {"host",          "content-length", "transfer-encoding",
                                       "authorization", "x-api-key",      "x-goog-api-key",
                                       "connection",    "expect",         "cookie"};
    const struct str_list *headers = request->headers;
    bool good = request->path[0] == '/' && strpbrk(request->path, " \r\n\t#") == NULL &&
                request->answer_max_bytes > 0 && request->attempts_max >= 1 &&
                request->attempts_max <= UPSTREAM_ATTEMPTS_MAX &&
                (str_equal(request->method, "POST") || str_equal(request->method, "GET"));

    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        good = good && !has_header(headers, ours[i]);
    for (size_t i = 0; headers != NULL && i < headers->count; i++)
        good = good && strpbrk(headers->items[i], "\r\n") == NULL;
    return good ? 0 : error_set(err, ERROR_BUG, "a request to an endpoint makes no sense");
}

static int fill_headers(struct upstream_exchange *exchange, const struct upstream_request *request,
                        struct error **err)
{
    const struct route *route = request->route;
    const char *key = route->key == NULL ? NULL : keys_get(exchange->upstream->keys, route->key);

    if (route->key != NULL && key == NULL)
        return error_set(err, ERROR_USER,
                         "route '%s' needs the key %s, which is neither in the environment, nor in "
                         ".env, nor in keys.yaml",
                         route->name, route->key);
    add_header(exchange, "Expect:"); /* with a body of a megabyte libcurl would ask first */
    for (size_t i = 0; request->headers != NULL && i < request->headers->count; i++)
        add_header(exchange, request->headers->items[i]);
    if (str_equal(request->method, "POST") && !has_header(request->headers, "content-type"))
        add_header(exchange, "Content-Type: application/json");
    if (route->api == MODEL_ANTHROPIC && !has_header(request->headers, "anthropic-version"))
        add_header(exchange, "anthropic-version: 2023-06-01");
    if (key == NULL)
        return 0;
    char line[KEY_BYTES_MAX + 64];

    (void)snprintf(line, sizeof(line), "%s%s", key_header(route->api), key); /* keys are shorter */
    add_header(exchange, line);
    explicit_bzero(line, sizeof(line));
    return 0;
}

static int begin(struct upstream_exchange *exchange, const struct upstream_request *request,
                 struct error **err)
{
    if (recording_answers(request->recording))
        return replay_begin(exchange, request, err);
    buf_append(&exchange->body, request->body, request->body_size);
    exchange->url = url_of(request->route, request->path);
    int r = fill_headers(exchange, request, err);

    if (r == 0 && !attempt_begin(exchange))
        r = error_set(err, ERROR_SYSTEM, "cannot make a request to '%s': %s", exchange->url,
                      exchange->answer.error);
    if (r == 0)
        keep_begin(exchange, request);
    return r;
}

int upstream_start(struct upstream *upstream, const struct upstream_request *request,
                   struct upstream_exchange **ret, struct error **err)
{
    int r = check_request(request, err);

    if (r < 0)
        return r;
    struct upstream_exchange *exchange = mem_new(1, sizeof(*exchange));

    *exchange = (struct upstream_exchange){
        .upstream = upstream, .next = upstream->first, .request = *request};
    exchange->request.headers = NULL;
    exchange->request.body = NULL;
    exchange->request.path = NULL;
    exchange->request.method = str_equal(request->method, "GET") ? "GET" : "POST";
    upstream->first = exchange;
    r = begin(exchange, request, err);
    if (r < 0) {
        exchange_free(exchange);
        return r;
    }
    *ret = exchange;
    return 0;
}

void upstream_resume(struct upstream_exchange *exchange)
{
    exchange->resumes = true;
}

void upstream_cancel(struct upstream_exchange *exchange)
{
    keep_end(exchange, "cancelled");
    exchange->cancelled = true;
    if (!exchange->upstream->running)
        exchange_free(exchange);
}

/* --- the loop --------------------------------------------------------------------------------- */

int upstream_fd(const struct upstream *upstream)
{
    return upstream->epoll_fd;
}

int upstream_timeout_ms(const struct upstream *upstream)
{
    uint64_t due_ns = upstream->due_ns, now_ns = clock_ns();

    for (const struct upstream_exchange *e = upstream->first; e != NULL; e = e->next) {
        if (e->resumes || e->cancelled)
            return 0;
        if (e->wake_ns != 0 && (due_ns == 0 || e->wake_ns < due_ns))
            due_ns = e->wake_ns;
    }
    if (due_ns == 0)
        return -1;
    return due_ns <= now_ns ? 0
                            : (int)size_min((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS, 3600000);
}

static void end_exchange(struct upstream_exchange *exchange)
{
    keep_end(exchange, upstream_end_name(exchange->answer.end));
    if (!exchange->cancelled)
        exchange->request.on_end(exchange->request.context, &exchange->answer);
    exchange->cancelled = true; /* freed by sweep() */
}

static void take_ends(struct upstream *upstream)
{
    CURLMsg *message;
    int left = 0;

    while ((message = curl_multi_info_read(upstream->multi, &left)) != NULL) {
        struct upstream_exchange *exchange = NULL;

        if (message->msg != CURLMSG_DONE)
            continue;
        CURLcode code = message->data.result;

        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&exchange);
        if (!attempt_end(exchange, code))
            end_exchange(exchange);
    }
}

static void wake(struct upstream *upstream)
{
    uint64_t now_ns = clock_ns();

    for (struct upstream_exchange *e = upstream->first; e != NULL; e = e->next) {
        if (e->resumes && e->easy != NULL && !e->cancelled) {
            e->resumes = false;
            (void)curl_easy_pause(e->easy, CURLPAUSE_CONT); /* its failure is its end */
        }
        if (e->is_replay && !e->cancelled && (e->resumes || e->wake_ns != 0) && replay_step(e))
            end_exchange(e);
        e->resumes = false;
        if (e->is_replay)
            continue;
        if (e->wake_ns != 0 && e->wake_ns <= now_ns && !e->cancelled && !attempt_begin(e))
            end_exchange(e);
    }
}

static void sweep(struct upstream *upstream)
{
    for (struct upstream_exchange *e = upstream->first, *next; e != NULL; e = next) {
        next = e->next;
        if (e->cancelled)
            exchange_free(e);
    }
}

void upstream_run(struct upstream *upstream)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int running = 0;

    upstream->running = true;
    int count = epoll_wait(upstream->epoll_fd, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < count; i++) {
        int what = ((events[i].events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                   ((events[i].events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                   ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0);

        (void)curl_multi_socket_action(upstream->multi, events[i].data.fd, what, &running);
    }
    if (upstream->due_ns != 0 && upstream->due_ns <= clock_ns()) {
        upstream->due_ns = 0;
        (void)curl_multi_socket_action(upstream->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    take_ends(upstream);
    wake(upstream);
    take_ends(upstream);
    upstream->running = false;
    sweep(upstream);
}
