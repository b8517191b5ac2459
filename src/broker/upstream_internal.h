#pragma once
/*
 * upstream_internal: the inside of struct upstream and of one exchange.
 */

#include <curl/curl.h>
#include <openssl/x509_vfy.h>

#include "broker/upstream.h"

struct upstream {
    const struct keys *keys;
    CURLM *multi;
    int epoll_fd;
    uint64_t due_ns;   /* when curl wants to be called; 0: not by time */
    X509_STORE *store; /* NULL: no TLS */
    char *proxy;
    uint64_t random;
    struct upstream_exchange *first;
    bool running; /* inside of upstream_run(): nothing is freed under its feet */
};

struct upstream_exchange {
    struct upstream *upstream;
    struct upstream_exchange *next;
    struct upstream_request request; /* its body and headers are ours, below */
    struct buf body;
    char *url;
    struct curl_slist *headers;
    CURL *easy; /* NULL between attempts */
    struct upstream_answer answer;
    size_t header_bytes, received;
    uint64_t attempt_start_ns;
    uint64_t wake_ns; /* when the next attempt begins; 0: one is under way */
    bool too_large, refused, cancelled, resumes;
    json_t *line;    /* of the recording, until it is written; NULL */
    struct buf kept; /* what was passed on, for that */
    struct recorded_answer replay;
    size_t replayed; /* bytes of it that were passed on */
    bool is_replay;
    char curl_error[CURL_ERROR_SIZE];
};

/* upstream_attempt.c: begins an attempt; false: it could not, which the answer says. */
bool attempt_begin(struct upstream_exchange *exchange) nonnull(1);
/* It ended with this code. False: that is the end of the exchange. */
bool attempt_end(struct upstream_exchange *exchange, CURLcode code) nonnull(1);
/* No key of the route's stands in these bytes any more. */
void upstream_hide_key(const struct upstream_exchange *exchange, struct buf *bytes) nonnull(1, 2);
/* upstream_recording.c: where the request has a recording. */
void keep_begin(struct upstream_exchange *exchange, const struct upstream_request *request)
    nonnull(1, 2);
void keep_bytes(struct upstream_exchange *exchange, const char *bytes, size_t size) nonnull(1);
void keep_end(struct upstream_exchange *exchange, const char *end) nonnull(1, 2);
must_check int replay_begin(struct upstream_exchange *exchange,
                            const struct upstream_request *request, struct error **err)
    nonnull(1, 2);
/* True: the answer is whole. */
bool replay_step(struct upstream_exchange *exchange) nonnull(1);
uint32_t upstream_random(struct upstream *upstream) nonnull(1);
