#pragma once
/*
 * distribution: the few distributions that the statistics of a run lean on.
 *
 * Pure functions; a value outside of the stated range is a mistake of the caller (ASSERT).
 * Checked against scipy 1.10 in test_stats.c. Depends on: base.
 */

#include "base/base.h"

/* Standard normal: P(Z <= z). */
double normal_cdf(double z);
/* Its inverse, 0 < p < 1; to within 1e-12. */
double normal_quantile(double p);

/*
 * Regularised incomplete beta function I_x(a, b) = P(X <= x) for X ~ Beta(a, b); a, b > 0,
 * 0 <= x <= 1. By the continued fraction of NIST DLMF 8.17.22.
 */
double beta_cdf(double x, double a, double b);
/* Its inverse in x, 0 <= p <= 1; to within 1e-12. */
double beta_quantile(double p, double a, double b);

/* P(X <= successes) for X ~ Binomial(trials, p), by way of beta_cdf (DLMF 8.17.5). */
double binomial_cdf(size_t successes, size_t trials, double p);
