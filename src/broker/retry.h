#pragma once
/*
 * retry: whether a model endpoint's answer is worth another try, and after how long: the rules of
 * the vendors' own clients.
 *
 * Pure. Depends on: base, libcurl (for dates).
 */

#include "base/base.h"

#define RETRY_WAIT_MAX_MS 8000u    /* of our own */
#define RETRY_ASKED_MAX_MS 120000u /* that an endpoint may ask for */

/* What an attempt ended with. */
struct retry_answer {
    int status;               /* 0: there was no answer */
    const char *should_retry; /* x-should-retry; NULL when absent, as the rest */
    const char *retry_after, *retry_after_ms;
    const char *body; /* of an error, as far as it was kept; not NULL */
};

/*
 * x-should-retry has the say; else no answer, 408, 409, 429 and from 500 on are worth it, but not a
 * quota that is used up.
 */
must_check bool retry_is_worth(const struct retry_answer *answer) nonnull(1);
/*
 * How long to wait before try number `tries` + 1 (tries >= 1): what the answer asks for, else half
 * a second, doubled with each try, up to RETRY_WAIT_MAX_MS, less up to a quarter by random.
 */
uint64_t retry_wait_ms(const struct retry_answer *answer, unsigned tries, uint32_t random,
                       uint64_t unix_ms) nonnull(1);
