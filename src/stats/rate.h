#pragma once
/*
 * rate: how often something passes: intervals, pass@k, pass^k, what is known of one task.
 *
 * Rates are shares (0 to 1), intervals have both ends inside of them. Depends on: base.
 */

#include "base/base.h"

struct interval {
    double low, high;
};

/*
 * Wilson's score interval (Wilson 1927, JASA 22:209) of `passed` of `trials` that do not depend on
 * each other; 0 < confidence < 1. Of no trials: 0 to 1. Shares of a trial are allowed, as an
 * effective number of trials has them.
 */
struct interval wilson_interval(double passed, double trials, double confidence);

/*
 * The chance that at least one of k trials passes, unbiased: 1 - C(n - c, k) / C(n, k) (Chen et
 * al. 2021, arXiv 2107.03374). NAN when k is 0 or above `trials`.
 */
double pass_at_k(size_t passed, size_t trials, size_t k);
/* The chance that all k of them pass, unbiased: C(c, k) / C(n, k) (Yao et al. 2024, arXiv
 * 2406.12045). NAN as above. */
double pass_hat_k(size_t passed, size_t trials, size_t k);

/*
 * What is known of one task's chance to pass, with Jeffreys' prior Beta(1/2, 1/2) (Brown, Cai and
 * DasGupta 2001, Statistical Science 16:101): the interval with equal tails, and the probability
 * that the chance is `rate` or more.
 */
struct interval jeffreys_interval(size_t passed, size_t trials, double confidence);
double jeffreys_at_least(size_t passed, size_t trials, double rate);
