#include "stats/distribution.h"

#include <math.h>

#define HALVINGS 200 /* of an interval: more than a double has digits */
#define FRACTION_STEPS 100000
#define FRACTION_CLOSE 1e-15
#define NEVER_ZERO 1e-300

double normal_cdf(double z)
{
    return 0.5 * erfc(-z / M_SQRT2);
}

/* Where the function, which increases from `low` to 0 (from 0 to 1), reaches p. */
typedef double increasing(double argument, double a, double b);

static double inverse(increasing *function, double p, double low, double a, double b)
{
    double high = low + fabs(low) + (low == 0);

    for (int i = 0; i < HALVINGS; i++) {
        double middle = low + (high - low) / 2;

        if (function(middle, a, b) < p)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}

static double normal_of(double z, unused_ok double a, unused_ok double b)
{
    return normal_cdf(z);
}

double normal_quantile(double p)
{
    ASSERT(p > 0 && p < 1);
    /* The left half has digits to spare where the right one has only a rounded 1. */
    return p > 0.5 ? -normal_quantile(1 - p) : inverse(normal_of, p, -40, 0, 0);
}

/* Lentz's way of evaluating a continued fraction, in the form of Thompson and Barnett (1986). */
static double fraction(double x, double a, double b)
{
    double c = 1;
    double d = 1 - (a + b) * x / (a + 1);

    d = 1 / (fabs(d) < NEVER_ZERO ? NEVER_ZERO : d);

    double value = d;

    for (int m = 1; m <= FRACTION_STEPS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double change = 1;

        for (int half = 0; half < 2; half++) {
            double term = half == 0 ? even : odd;

            d = 1 + term * d;
            d = 1 / (fabs(d) < NEVER_ZERO ? NEVER_ZERO : d);
            c = 1 + term / c;
            c = fabs(c) < NEVER_ZERO ? NEVER_ZERO : c;
            change = c * d;
            value *= change;
        }
        if (fabs(change - 1) < FRACTION_CLOSE)
            break;
    }
    return value;
}

double beta_cdf(double x, double a, double b)
{
    ASSERT(a > 0 && b > 0 && x >= 0 && x <= 1);
    if (x == 0 || x == 1)
        return x;

    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));

    /* It converges quickly on this side only. */
    if (x < (a + 1) / (a + b + 2))
        return front * fraction(x, a, b) / a;
    return 1 - front * fraction(1 - x, b, a) / b;
}

double beta_quantile(double p, double a, double b)
{
    ASSERT(p >= 0 && p <= 1);
    if (p == 0 || p == 1)
        return p;
    return inverse(beta_cdf, p, 0, a, b);
}

double binomial_cdf(size_t successes, size_t trials, double p)
{
    ASSERT(p >= 0 && p <= 1);
    if (successes >= trials)
        return 1;
    return beta_cdf(1 - p, (double)(trials - successes), (double)successes + 1);
}
