#pragma once
/*
 * clock: the two clocks. Durations from the monotonic one, dates from the real one.
 */

#include "base/base.h"

uint64_t clock_ns(void);      /* CLOCK_MONOTONIC */
uint64_t clock_unix_ms(void); /* milliseconds since 1970 */
/* "2026-11-30T16:20:47.123Z"; owned. */
char *clock_format_utc(uint64_t unix_ms) malloc_like;
static inline double ns_to_ms(uint64_t ns)
{
    return (double)ns / 1e6;
}
