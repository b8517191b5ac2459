#pragma once
/*
 * random: numbers that look random and are the same for the same seed, for resampling.
 *
 * SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators").
 * Never for a secret. Depends on: base.
 */

#include "base/base.h"

struct stats_random {
    uint64_t state;
};

uint64_t stats_random_bits(struct stats_random *random) nonnull(1);
/* Below `limit`, which is not 0; off from even by less than limit / 2^64. */
size_t stats_random_below(struct stats_random *random, size_t limit) nonnull(1);
/* In [0, 1). */
double stats_random_unit(struct stats_random *random) nonnull(1);
