#include "broker/retry.h"

#include <curl/curl.h>
#include <string.h>

#include "base/str.h"

#define FIRST_WAIT_MS 500u

/* What errors of 429 call an account that has nothing left: no waiting helps. */
static const char *const final_words[] = {
    "insufficient_quota", "credit_balance_exhausted",   "enforced_spend_limit_reached",
    "billing_error",      "billing_hard_limit_reached",
};

bool retry_is_worth(const struct retry_answer *answer)
{
    int status = answer->status;

    if (str_equal(answer->should_retry, "true"))
        return true;
    if (str_equal(answer->should_retry, "false"))
        return false;
    for (size_t i = 0; status == 429 && i < ARRAY_SIZE(final_words); i++) {
        if (strstr(answer->body, final_words[i]) != NULL)
            return false;
    }
    return status == 0 || status == 408 || status == 409 || status == 429 || status >= 500;
}

/* False: nothing was asked for, or nothing that makes sense. */
static bool asked_wait(const struct retry_answer *answer, uint64_t unix_ms, uint64_t *ret)
{
    double number = 0;
    uint64_t ms = 0;

    if (answer->retry_after_ms != NULL && str_to_double(answer->retry_after_ms, &number) &&
        number >= 0 && number <= RETRY_ASKED_MAX_MS) {
        *ret = (uint64_t)number;
        return true;
    }
    if (answer->retry_after == NULL)
        return false;
    if (str_to_double(answer->retry_after, &number)) {
        if (number < 0 || number * 1000 > RETRY_ASKED_MAX_MS)
            return false;
        *ret = (uint64_t)(number * 1000);
        return true;
    }
    time_t date = curl_getdate(answer->retry_after, NULL);

    if (date < 0)
        return false;
    ms = (uint64_t)date * 1000;
    ms = ms > unix_ms ? ms - unix_ms : 0;
    if (ms > RETRY_ASKED_MAX_MS)
        return false;
    *ret = ms;
    return true;
}

uint64_t retry_wait_ms(const struct retry_answer *answer, unsigned tries, uint32_t random,
                       uint64_t unix_ms)
{
    uint64_t wait_ms = FIRST_WAIT_MS;

    if (asked_wait(answer, unix_ms, &wait_ms))
        return wait_ms;
    for (unsigned i = 1; i < tries && wait_ms < RETRY_WAIT_MAX_MS; i++)
        wait_ms *= 2;
    return wait_ms - wait_ms * random / 4 / UINT32_MAX;
}
