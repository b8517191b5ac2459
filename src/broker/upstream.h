#pragma once
/*
 * upstream: requests to model endpoints, from the broker alone (libcurl behind it).
 *
 * The one place that puts a key into a request. No redirect is followed, no proxy is taken from the
 * environment, certificates are verified, what comes back is counted against a cap. An attempt that
 * failed for a passing reason is repeated as the vendors' clients do (retry.h), as long as nothing
 * of an answer was passed on; every attempt is told. Callbacks come out of upstream_run() only.
 * Not thread-safe. Depends on: base, libcurl, libssl.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "broker/keys.h"
#include "broker/recording.h"
#include "broker/route.h"

#define UPSTREAM_ATTEMPTS_MAX 6
#define UPSTREAM_ERROR_BYTES_MAX ((size_t)64 << 10) /* kept of the body of an error */
#define UPSTREAM_HEADERS_MAX 100
#define UPSTREAM_HEADER_BYTES_MAX ((size_t)64 << 10) /* of an answer, all together */

struct upstream_options {
    const struct keys *keys; /* borrowed for its life */
    const char *ca_file;     /* PEM; NULL: the system's */
    const char *proxy;       /* that the operator named; NULL: none */
    bool needs_tls;          /* some route is https: its certificates are read now */
    uint64_t seed;           /* of the jitter */
};

struct upstream;

/* Before the process is confined. ERROR_SYSTEM when the certificates cannot be read. */
must_check int upstream_new(const struct upstream_options *options, struct upstream **ret,
                            struct error **err) nonnull(1, 2);
/* Ends what is under way without a call. NULL is fine. */
void upstream_free(struct upstream *upstream);
/* Readable when upstream_run() has something to do. */
int upstream_fd(const struct upstream *upstream) nonnull(1);
/* Until upstream_run() is due without that; -1: never. */
int upstream_timeout_ms(const struct upstream *upstream) nonnull(1);
void upstream_run(struct upstream *upstream) nonnull(1);

struct upstream_attempt {
    int status;                    /* 0: no answer */
    uint64_t duration_ms, wait_ms; /* wait: before the next one */
    char error[256];               /* of one without an answer; "" */
};

enum upstream_end {
    UPSTREAM_ANSWERED,  /* whole */
    UPSTREAM_NO_ANSWER, /* the endpoint was not reached, or broke off */
    UPSTREAM_DEADLINE,
    UPSTREAM_TOO_LARGE,
    UPSTREAM_REFUSED, /* by on_head or on_bytes */
};
const char *upstream_end_name(enum upstream_end end); /* "answered" */

struct upstream_answer {
    int status;              /* 0: none; HTTP otherwise */
    struct str_list headers; /* "name: value", names in lower case, of the last attempt */
    struct buf body; /* whole; of a streamed answer what was not streamed: an error's, cut */
    bool streamed;   /* on_head was called */
    enum upstream_end end;
    char error[256]; /* in words, unless answered; never holds a key */
    struct upstream_attempt attempts[UPSTREAM_ATTEMPTS_MAX];
    size_t attempt_count;
};
/* Value of a header, NULL when absent. */
const char *upstream_header(const struct upstream_answer *answer, const char *name) nonnull(1, 2);

struct upstream_request {
    const struct route *route; /* borrowed until the end */
    const char *method;        /* "POST" */
    /* below the route's base URL, beginning with '/', with its query; a /v1 that the base URL ends
       with is not doubled */
    const char *path;
    const struct str_list *headers; /* "Name: value", without key, length and host; NULL: none */
    const void *body;               /* copied */
    size_t body_size;
    uint64_t deadline_ns;    /* clock_ns(), of all attempts together; 0: none */
    size_t answer_max_bytes; /* at least 1 */
    unsigned attempts_max;   /* 1..UPSTREAM_ATTEMPTS_MAX */
    /* Keeps the exchange, or answers in the endpoint's place, without key or network; borrowed
       until the end; NULL: none. */
    struct recording *recording;
    /*
     * NULL: the answer is kept whole in answer.body. Else those answers that are not to be retried
     * are passed on as they come: first on_head (status and headers are known), then on_bytes.
     * on_bytes: false: not now, nothing was taken; upstream_resume() brings them again.
     */
    void (*on_head)(void *context, const struct upstream_answer *answer);
    bool (*on_bytes)(void *context, const char *bytes, size_t size);
    /* The last call; answer and exchange are gone afterwards. */
    void (*on_end)(void *context, const struct upstream_answer *answer);
    void *context;
};

struct upstream_exchange; /* one under way */

/* ERROR_USER when the route's key is not known, ERROR_SYSTEM when the recording has no answer. On
   failure on_end is not called. */
must_check int upstream_start(struct upstream *upstream, const struct upstream_request *request,
                              struct upstream_exchange **ret, struct error **err) nonnull(1, 2, 3);
void upstream_resume(struct upstream_exchange *exchange) nonnull(1);
/* Without a further call. */
void upstream_cancel(struct upstream_exchange *exchange) nonnull(1);

const char *upstream_library_version(void);
