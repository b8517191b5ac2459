#pragma once
/*
 * proxy_internal: the inside of struct proxy: requests, exchanges, budgets.
 */

#include <microhttpd.h>

#include "base/buf.h"
#include "base/str.h"
#include "broker/policy.h"
#include "broker/proxy.h"
#include "broker/upstream.h"
#include "broker/usage.h"

/* 0: none. */
struct proxy_limits {
    uint64_t max_turns, max_input_tokens, max_output_tokens, max_total_tokens, max_microusd;
    bool count_cached_input, count_cache_creation;
};

struct proxy_totals {
    uint64_t requests, forwarded, refused, unheard, turns, aside;
    struct usage usage;
    uint64_t microusd, reserved_microusd;
    bool price_missing; /* of some model */
    unsigned in_flight;
};

struct proxy {
    struct models *models;
    struct MHD_Daemon *daemon;
    int epoll_fd; /* the daemon's */
    int log_fd;
    uint64_t log_bytes, log_bytes_max, seq, start_ns;
    size_t body_bytes;           /* that its requests hold */
    bool cannot_record, is_full; /* of wire.jsonl */
    bool ends;                   /* nothing is sent on any more, nor waited for */
    struct str_list routes, models_allowed;
    char *placeholder;
    unsigned in_flight_max;
    struct proxy_limits limits;
    struct proxy_totals totals;
    uint64_t turns_before, aside_before; /* of earlier exchanges of a dialog */
    const char *stopped_by;              /* the budget that is used up; NULL */
    char *expects;  /* what the main thread may end with besides, JSON without quotes; NULL */
    json_t *thread; /* the messages of the main thread, as far as they are known; NULL */
    char *model;    /* as the endpoint called it last; NULL */
    struct recording *recording; /* NULL: none */
    struct proxy_request *first;
};

enum proxy_state {
    PROXY_READING,   /* its body comes */
    PROXY_WAITING,   /* for the endpoint's head */
    PROXY_READY,     /* an answer may begin */
    PROXY_ANSWERING, /* the answer is under way, or over */
};

/* One request of the cell, and the exchange that it led to. */
struct proxy_request {
    struct proxy *proxy;
    struct proxy_request *next;
    struct MHD_Connection *connection;
    char *uri; /* as it came */
    bool heard, suspended;
    enum proxy_state state;
    struct buf body;
    struct str_list headers; /* that are sent on */
    /* the exchange */
    struct policy_path path;
    struct upstream_exchange *exchange;
    const struct route *route;
    char *model;
    uint64_t seq, begin_ns, first_byte_ns, reserved_microusd;
    bool is_main, forwarded, settled, overflows;
    int status;
    char *content_type;
    struct buf queue;  /* what the cell has not taken yet */
    size_t queue_from; /* of that, already taken */
    struct buf record; /* all of it */
    bool ended, cut;
    struct usage_reader usage;
};

/* proxy_record.c. False: it could not be written, and nothing goes out any more. */
bool proxy_write(struct proxy *proxy, json_t *line) nonnull(1, 2);
json_t *proxy_line(struct proxy *proxy, const char *kind) nonnull(1, 2);
/* Written down and counted; then answered. */
enum MHD_Result proxy_refuse(struct proxy_request *request, const char *method, unsigned status,
                             const char *why) nonnull(1, 2, 4);
enum MHD_Result proxy_answer_error(struct proxy_request *request, unsigned status, const char *why)
    nonnull(1, 3);
void proxy_record_end(struct proxy_request *request, const struct upstream_answer *answer)
    nonnull(1);

/* proxy_budget.c. Whether one more call may be made: NULL, or why not. body: the request's. */
const char *proxy_budget_check(struct proxy_request *request, const json_t *body) nonnull(1, 2);
void proxy_budget_begin(struct proxy_request *request, const json_t *body) nonnull(1, 2);
void proxy_budget_settle(struct proxy_request *request) nonnull(1);

/* proxy.c: it has been sent on, or is not going to be. */
void proxy_forget_body(struct proxy_request *request) nonnull(1);
/* proxy_exchange.c: sends it on, or refuses it. */
enum MHD_Result proxy_forward(struct proxy_request *request, const char *method) nonnull(1, 2);
enum MHD_Result proxy_begin_answer(struct proxy_request *request) nonnull(1);
void proxy_exchange_stop(struct proxy_request *request) nonnull(1);
