#include "base/clock.h"

#include "base/str.h"

static struct timespec now(clockid_t which)
{
    struct timespec at;

    ASSERT(clock_gettime(which, &at) == 0);
    return at;
}

uint64_t clock_ns(void)
{
    struct timespec at = now(CLOCK_MONOTONIC);

    return (uint64_t)at.tv_sec * UINT64_C(1000000000) + (uint64_t)at.tv_nsec;
}

uint64_t clock_unix_ms(void)
{
    struct timespec at = now(CLOCK_REALTIME);

    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

char *clock_format_utc(uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm date;

    ASSERT(gmtime_r(&seconds, &date) != NULL);
    return str_format("%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", date.tm_year + 1900, date.tm_mon + 1,
                      date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec,
                      (unsigned)(unix_ms % 1000));
}
