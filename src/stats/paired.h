#pragma once
/*
 * paired: whether B is better than A on the tasks that both did.
 *
 * p-values are two-sided. Depends on: base, stats/random.
 */

#include "stats/random.h"

/*
 * McNemar's test, exact (McNemar 1947; the binomial form): of the pairs that differ, only_a passed
 * in A only. 1 when none differs.
 */
double mcnemar_p(size_t only_a, size_t only_b);

/*
 * Sign-flip permutation test of "the mean of the differences is 0" (Fisher 1935): all sign patterns
 * when there are few differences, else `draws` random ones, with 1 added to both counts (Phipson
 * and Smyth 2010), so that it is never 0. 1 when all are 0.
 */
double sign_flip_p(const double *differences, size_t count, size_t draws,
                   struct stats_random *random) nonnull(4);

/* Holm's correction (Holm 1979) in place: each becomes the p-value that may be held against the
 * level by itself. */
void holm_adjust(double *p_values, size_t count);

struct difference {
    double mean, deviation; /* deviation: of a sample; NAN for fewer than two */
    double effect; /* mean / deviation: Cohen's d for pairs; NAN when there is no deviation */
};
struct difference difference_of(const double *differences, size_t count);

/*
 * How many pairs would be needed to see a difference at `level` (two-sided) with `power`, rounded
 * up; 0: none would do (there is no difference).
 *   pass: the shares of pairs with a pass in B only and in A only (Connor 1987, Biometrics 43:207)
 *   score: mean and deviation of the differences (the normal approximation)
 */
size_t pairs_needed_pass(double share_only_b, double share_only_a, double level, double power);
size_t pairs_needed_score(double mean, double deviation, double level, double power);
