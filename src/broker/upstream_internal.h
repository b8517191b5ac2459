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
    char curl_error[CURL_ERROR_SIZE];
};

/* upstream_attempt.c: begins an attempt; false: it could not, which the answer says. */
bool attempt_begin(struct upstream_exchange *exchange) nonnull(1);
/* It ended with this code. False: that is the end of the exchange. */
bool attempt_end(struct upstream_exchange *exchange, CURLcode code) nonnull(1);
uint32_t upstream_random(struct upstream *upstream) nonnull(1);
