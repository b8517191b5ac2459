/* One attempt of an exchange: what is set, what comes back, and whether it is worth another. */
#include <ctype.h>
#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/retry.h"
#include "broker/upstream_internal.h"

#define NS_PER_MS UINT64_C(1000000)
#define CONNECT_TIMEOUT_MS 20000L

const char *upstream_header(const struct upstream_answer *answer, const char *name)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < answer->headers.count; i++) {
        const char *item = answer->headers.items[i];

        if (str_starts(item, name) && str_starts(item + length, ": "))
            return item + length + 2;
    }
    return NULL;
}

/* --- what comes back -------------------------------------------------------------------------- */

static void take_header(struct upstream_exchange *exchange, const char *line, size_t length)
{
    const char *colon = memchr(line, ':', length);
    scoped(buf_done) struct buf text = {0};

    if (colon == NULL || colon == line || exchange->answer.headers.count >= UPSTREAM_HEADERS_MAX)
        return;
    for (const char *s = line; s < colon; s++)
        buf_char(&text, (char)tolower((unsigned char)*s));
    const char *value = colon + 1, *end = line + length;

    while (value < end && isspace((unsigned char)*value) != 0)
        value++;
    while (end > value && isspace((unsigned char)end[-1]) != 0)
        end--;
    buf_text_append(&text, ": ");
    buf_append(&text, value, (size_t)(end - value));
    if (memchr(buf_text(&text), '\0', text.size_bytes) == NULL)
        str_list_add(&exchange->answer.headers, buf_text(&text));
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct upstream_exchange *exchange = context;
    size_t length = size * count;

    exchange->header_bytes += length;
    if (exchange->header_bytes > UPSTREAM_HEADER_BYTES_MAX) {
        exchange->too_large = true;
        return 0;
    }
    if (length >= 5 && memcmp(bytes, "HTTP/", 5) == 0) { /* after a 1xx there is another */
        str_list_done(&exchange->answer.headers);
        exchange->answer.headers = (struct str_list){0};
    } else {
        take_header(exchange, bytes, length);
    }
    return length;
}

static void learn_status(struct upstream_exchange *exchange)
{
    long status = 0;

    (void)curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status); /* a known one */
    exchange->answer.status = (int)status;
}

static bool is_streamed(const struct upstream_exchange *exchange)
{
    return exchange->request.on_bytes != NULL && exchange->answer.status < 400;
}

static void say_head(struct upstream_exchange *exchange)
{
    if (exchange->answer.streamed)
        return;
    exchange->answer.streamed = true;
    if (exchange->request.on_head != NULL)
        exchange->request.on_head(exchange->request.context, &exchange->answer);
}

static size_t on_write(char *bytes, size_t size, size_t count, void *context)
{
    struct upstream_exchange *exchange = context;
    const struct upstream_request *request = &exchange->request;
    size_t length = size * count;

    if (exchange->cancelled)
        return 0;
    if (exchange->answer.status == 0)
        learn_status(exchange);
    if (exchange->received + length > request->answer_max_bytes) {
        exchange->too_large = true;
        return 0;
    }
    if (is_streamed(exchange)) {
        say_head(exchange);
        if (!request->on_bytes(request->context, bytes, length))
            return exchange->cancelled ? 0 : CURL_WRITEFUNC_PAUSE;
        keep_bytes(exchange, bytes, length);
        exchange->received += length;
        return length;
    }
    exchange->received += length;
    size_t room = exchange->answer.status >= 400
                      ? UPSTREAM_ERROR_BYTES_MAX -
                            size_min(exchange->answer.body.size_bytes, UPSTREAM_ERROR_BYTES_MAX)
                      : length;

    buf_append(&exchange->answer.body, bytes, size_min(room, length));
    return length;
}

/* --- what is set ------------------------------------------------------------------------------ */

/* The certificates that were read before this process could read no more. */
static CURLcode use_store(CURL *easy, void *ssl_context, void *store)
{
    (void)easy;
    return SSL_CTX_set1_cert_store(ssl_context, store), CURLE_OK;
}

static CURLcode set_walls(CURL *easy, const struct upstream *upstream)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    /* "" is not NULL: a proxy of the environment does not count. */
    if (code == CURLE_OK)
        code =
            curl_easy_setopt(easy, CURLOPT_PROXY, upstream->proxy == NULL ? "" : upstream->proxy);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (code == CURLE_OK && upstream->store != NULL)
        code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, use_store);
    if (code == CURLE_OK && upstream->store != NULL)
        code = curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, upstream->store);
    return code;
}

static CURLcode set_times(CURL *easy, const struct upstream_exchange *exchange)
{
    uint64_t deadline_ns = exchange->request.deadline_ns, now_ns = clock_ns();
    CURLcode code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);

    if (code == CURLE_OK && deadline_ns != 0)
        code = curl_easy_setopt(
            easy, CURLOPT_TIMEOUT_MS,
            deadline_ns > now_ns ? (long)((deadline_ns - now_ns) / NS_PER_MS) + 1 : 1L);
    return code;
}

static CURLcode set_request(CURL *easy, struct upstream_exchange *exchange)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, exchange->url);

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    if (code == CURLE_OK && str_equal(exchange->request.method, "POST"))
        code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (code == CURLE_OK && str_equal(exchange->request.method, "POST"))
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                (curl_off_t)exchange->body.size_bytes);
    if (code == CURLE_OK && str_equal(exchange->request.method, "POST"))
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, buf_text(&exchange->body));
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
    return code;
}

static CURLcode set_callbacks(CURL *easy, struct upstream_exchange *exchange)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PRIVATE, exchange);

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, exchange);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->curl_error);
    return code;
}

static void forget_answer(struct upstream_exchange *exchange)
{
    str_list_done(&exchange->answer.headers);
    exchange->answer.headers = (struct str_list){0};
    buf_clear(&exchange->answer.body);
    exchange->answer.status = 0;
    exchange->header_bytes = exchange->received = 0;
    exchange->curl_error[0] = '\0';
}

static void say(struct upstream_exchange *exchange, enum upstream_end end, const char *why)
{
    exchange->answer.end = end;
    (void)snprintf(exchange->answer.error, sizeof(exchange->answer.error), "%s", why);
}

bool attempt_begin(struct upstream_exchange *exchange)
{
    struct upstream *upstream = exchange->upstream;
    CURL *easy = curl_easy_init();

    ASSERT(easy != NULL);
    forget_answer(exchange);
    exchange->wake_ns = 0;
    exchange->attempt_start_ns = clock_ns();
    CURLcode code = set_walls(easy, upstream);

    if (code == CURLE_OK)
        code = set_times(easy, exchange);
    if (code == CURLE_OK)
        code = set_request(easy, exchange);
    if (code == CURLE_OK)
        code = set_callbacks(easy, exchange);
    if (code == CURLE_OK && curl_multi_add_handle(upstream->multi, easy) != CURLM_OK)
        code = CURLE_FAILED_INIT;
    if (code != CURLE_OK) {
        curl_easy_cleanup(easy);
        say(exchange, UPSTREAM_NO_ANSWER, curl_easy_strerror(code));
        return false;
    }
    exchange->easy = easy;
    return true;
}

/* --- its end ---------------------------------------------------------------------------------- */

/* Some endpoints quote the key that they refuse. */
void upstream_hide_key(const struct upstream_exchange *exchange, struct buf *body)
{
    const char *name = exchange->request.route->key;
    const char *key = name == NULL ? NULL : keys_get(exchange->upstream->keys, name), *found;
    size_t length = key == NULL ? 0 : strlen(key);

    while (length > 0 && body->size_bytes > 0 &&
           (found = memmem(body->data, body->size_bytes, key, length)) != NULL)
        memset(body->data + (found - body->data), '*', length);
}

static void note_attempt(struct upstream_exchange *exchange, const char *why)
{
    struct upstream_answer *answer = &exchange->answer;
    struct upstream_attempt *attempt = &answer->attempts[answer->attempt_count++];

    *attempt = (struct upstream_attempt){
        .status = answer->status,
        .duration_ms = (clock_ns() - exchange->attempt_start_ns) / NS_PER_MS,
    };
    if (why != NULL)
        (void)snprintf(attempt->error, sizeof(attempt->error), "%s", why);
}

/* True: it waits for another attempt. */
static bool waits_again(struct upstream_exchange *exchange, bool got_answer)
{
    struct upstream_answer *answer = &exchange->answer;
    const struct retry_answer seen = {
        .status = got_answer ? answer->status : 0,
        .should_retry = upstream_header(answer, "x-should-retry"),
        .retry_after = upstream_header(answer, "retry-after"),
        .retry_after_ms = upstream_header(answer, "retry-after-ms"),
        .body = buf_text(&answer->body),
    };
    uint64_t now_ns = clock_ns();

    if (answer->streamed || answer->attempt_count >= exchange->request.attempts_max ||
        !retry_is_worth(&seen))
        return false;
    uint64_t wait_ms = retry_wait_ms(&seen, (unsigned)answer->attempt_count,
                                     upstream_random(exchange->upstream), clock_unix_ms());
    uint64_t deadline_ns = exchange->request.deadline_ns;

    if (deadline_ns != 0 && now_ns + wait_ms * NS_PER_MS >= deadline_ns)
        return false;
    answer->attempts[answer->attempt_count - 1].wait_ms = wait_ms;
    exchange->wake_ns = now_ns + wait_ms * NS_PER_MS + 1;
    return true;
}

static enum upstream_end end_of(const struct upstream_exchange *exchange, CURLcode code)
{
    uint64_t deadline_ns = exchange->request.deadline_ns;

    if (exchange->too_large)
        return UPSTREAM_TOO_LARGE;
    if (code == CURLE_OK)
        return UPSTREAM_ANSWERED;
    return code == CURLE_OPERATION_TIMEDOUT && deadline_ns != 0 && clock_ns() >= deadline_ns
               ? UPSTREAM_DEADLINE
               : UPSTREAM_NO_ANSWER;
}

bool attempt_end(struct upstream_exchange *exchange, CURLcode code)
{
    enum upstream_end end = end_of(exchange, code);
    const char *why =
        exchange->curl_error[0] != '\0' ? exchange->curl_error : curl_easy_strerror(code);

    if (exchange->answer.status == 0)
        learn_status(exchange);
    if (end == UPSTREAM_TOO_LARGE)
        why = "the answer is larger than it may be";
    upstream_hide_key(exchange, &exchange->answer.body);
    note_attempt(exchange, end == UPSTREAM_ANSWERED ? NULL : why);
    (void)curl_multi_remove_handle(exchange->upstream->multi, exchange->easy); /* it is in there */
    curl_easy_cleanup(exchange->easy);
    exchange->easy = NULL;
    bool failed =
        end == UPSTREAM_NO_ANSWER || (end == UPSTREAM_ANSWERED && exchange->answer.status >= 400);

    if (failed && waits_again(exchange, end == UPSTREAM_ANSWERED))
        return true;
    say(exchange, end, end == UPSTREAM_ANSWERED ? "" : why);
    if (end == UPSTREAM_ANSWERED && is_streamed(exchange))
        say_head(exchange); /* there was no byte after it */
    return false;
}
