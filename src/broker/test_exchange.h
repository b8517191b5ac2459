#pragma once
/*
 * test_exchange: an endpoint, its requests and what came of them, for the tests of upstream.
 * Included after cmocka.
 */

#include <poll.h>

#include "base/clock.h"
#include "broker/test_endpoint.h"
#include "broker/upstream.h"

#define KEY "sk-test-0451"
#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRequest-Id: r7\r\n\r\n{}"

/* --- one exchange ----------------------------------------------------------------------------- */

struct fixture {
    struct endpoint endpoint;
    struct keys keys;
    struct upstream *upstream;
    struct route route;
    struct buf streamed;
    unsigned heads, pieces, refusals;
    bool ended;
    struct upstream_answer answer; /* a copy; its lists are ours */
};

static inline void start(struct fixture *fixture, enum model_api api, const char *const *answers)
{
    struct error *err = NULL;

    *fixture =
        (struct fixture){.route = {.name = str_dup("r"), .key = str_dup("T_KEY"), .api = api}};
    endpoint_start(&fixture->endpoint, answers);
    fixture->route.base_url = str_format("http://127.0.0.1:%u", fixture->endpoint.port);
    assert_int_equal(keys_parse(&fixture->keys, KEYS_ENV, "env", "T_KEY=" KEY "\n", NULL), 0);
    const struct upstream_options options = {.keys = &fixture->keys, .seed = 7};

    if (upstream_new(&options, &fixture->upstream, &err) < 0)
        fail_msg("%s", error_message(err));
}

static inline void stop(struct fixture *fixture, struct buf *ret_requests)
{
    endpoint_stop(&fixture->endpoint, ret_requests);
    upstream_free(fixture->upstream);
    keys_done(&fixture->keys);
    buf_done(&fixture->streamed);
    str_list_done(&fixture->answer.headers);
    buf_done(&fixture->answer.body);
    free(fixture->route.name);
    free(fixture->route.base_url);
    free(fixture->route.key);
}

static inline void on_head(void *context, const struct upstream_answer *answer)
{
    struct fixture *fixture = context;

    assert_true(answer->status > 0);
    fixture->heads++;
}

static inline bool on_bytes(void *context, const char *bytes, size_t size)
{
    struct fixture *fixture = context;

    if (fixture->refusals > 0) {
        fixture->refusals--;
        return false;
    }
    fixture->pieces++;
    buf_append(&fixture->streamed, bytes, size);
    return true;
}

static inline void on_end(void *context, const struct upstream_answer *answer)
{
    struct fixture *fixture = context;

    fixture->ended = true;
    fixture->answer = *answer;
    fixture->answer.headers = (struct str_list){0};
    str_list_copy(&fixture->answer.headers, &answer->headers);
    fixture->answer.body = (struct buf){0};
    buf_append(&fixture->answer.body, buf_text(&answer->body), answer->body.size_bytes);
}

static inline void run_some(struct fixture *fixture)
{
    struct pollfd polled = {.fd = upstream_fd(fixture->upstream), .events = POLLIN};

    assert_true(poll(&polled, 1, upstream_timeout_ms(fixture->upstream)) >= 0);
    upstream_run(fixture->upstream);
}

static inline struct upstream_request request_of(struct fixture *fixture)
{
    return (struct upstream_request){.route = &fixture->route,
                                     .method = "POST",
                                     .path = "/v1/messages",
                                     .body = "{\"a\":1}",
                                     .body_size = 7,
                                     .deadline_ns = clock_ns() + UINT64_C(20000000000),
                                     .answer_max_bytes = 1 << 20,
                                     .attempts_max = 3,
                                     .on_end = on_end,
                                     .context = fixture};
}

static inline struct upstream_exchange *ask(struct fixture *fixture,
                                            const struct upstream_request *request)
{
    struct upstream_exchange *exchange = NULL;
    struct error *err = NULL;

    if (upstream_start(fixture->upstream, request, &exchange, &err) < 0)
        fail_msg("%s", error_message(err));
    return exchange;
}
