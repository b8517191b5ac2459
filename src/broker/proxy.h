#pragma once
/*
 * proxy: the broker towards one agent's cell: HTTP on a listener that was made in there
 * (libmicrohttpd behind it), to model endpoints on the other side.
 *
 * What comes from the cell is hostile. A request that two parsers could read two ways is refused;
 * one that is let through is made anew from its parsed parts. Every exchange is written down before
 * it is sent on, and again when it is over; when that cannot be, nothing is sent on any more.
 * What is refused is written down and counted, too. Depends on: base, models, policy, usage.
 * Limits: below.
 */

#include "base/error.h"
#include "base/json.h"
#include "broker/models.h"
#include "broker/recording.h"

#define PROXY_CONNECTIONS_MAX 64
#define PROXY_HEAD_BYTES_MAX ((size_t)64 << 10) /* of a request */
#define PROXY_HEADERS_MAX 100
#define PROXY_BODY_BYTES_MAX ((size_t)32 << 20)
#define PROXY_BODIES_BYTES_MAX ((size_t)128 << 20) /* of all requests of a trial at a time */
#define PROXY_ANSWER_BYTES_MAX ((size_t)64 << 20)
#define PROXY_LOG_BYTES_MAX ((size_t)1 << 30) /* wire.jsonl; then nothing is sent on */
#define PROXY_IN_FLIGHT_MAX 64
#define PROXY_MODELS_MAX 32

struct proxy;

/* Descriptors are taken over, also on failure. spec: as broker.h says, borrowed. */
must_check int proxy_new(struct models *models, const json_t *spec, int listener, int log_fd,
                         struct proxy **ret, struct error **err) nonnull(1, 2, 5);
/* Keeps its exchanges, or answers in the place of endpoints; borrowed for its life. */
void proxy_set_recording(struct proxy *proxy, struct recording *recording) nonnull(1);
/* Ends what is under way, and says what was. NULL is fine. */
json_t *proxy_result(struct proxy *proxy) nonnull(1);
/* Another exchange of a dialog begins, as broker_models_next(); what was so far, as above. */
json_t *proxy_next(struct proxy *proxy, const json_t *prompt) nonnull(1);
void proxy_free(struct proxy *proxy);
/* Of bodies that are being read. */
size_t proxy_held_bytes(const struct proxy *proxy) nonnull(1);
int proxy_fd(const struct proxy *proxy) nonnull(1);
int proxy_timeout_ms(const struct proxy *proxy) nonnull(1); /* -1: none */
void proxy_run(struct proxy *proxy) nonnull(1);
