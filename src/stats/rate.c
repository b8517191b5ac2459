#include "stats/rate.h"

#include <math.h>

#include "stats/distribution.h"

struct interval wilson_interval(double passed, double trials, double confidence)
{
    ASSERT(passed >= 0 && passed <= trials && confidence > 0 && confidence < 1);
    if (trials <= 0)
        return (struct interval){0, 1};

    double z = normal_quantile(1 - (1 - confidence) / 2);
    double share = passed / trials;
    double spread = z * z / trials;
    double middle = (share + spread / 2) / (1 + spread);
    double half = z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials));

    return (struct interval){.low = passed <= 0 ? 0 : fmax(0, middle - half),
                             .high = passed >= trials ? 1 : fmin(1, middle + half)};
}

/* C(part, k) / C(whole, k), as a product so that nothing overflows. */
static double share_of_choices(size_t part, size_t whole, size_t k)
{
    double share = 1;

    if (part < k)
        return 0;
    for (size_t i = 0; i < k; i++)
        share *= (double)(part - i) / (double)(whole - i);
    return share;
}

double pass_at_k(size_t passed, size_t trials, size_t k)
{
    ASSERT(passed <= trials);
    return k == 0 || k > trials ? (double)NAN : 1 - share_of_choices(trials - passed, trials, k);
}

double pass_hat_k(size_t passed, size_t trials, size_t k)
{
    ASSERT(passed <= trials);
    return k == 0 || k > trials ? (double)NAN : share_of_choices(passed, trials, k);
}

struct interval jeffreys_interval(size_t passed, size_t trials, double confidence)
{
    ASSERT(passed <= trials && confidence > 0 && confidence < 1);

    double a = (double)passed + 0.5;
    double b = (double)(trials - passed) + 0.5;
    double tail = (1 - confidence) / 2;

    return (struct interval){.low = passed == 0 ? 0 : beta_quantile(tail, a, b),
                             .high = passed == trials ? 1 : beta_quantile(1 - tail, a, b)};
}

double jeffreys_at_least(size_t passed, size_t trials, double rate)
{
    ASSERT(passed <= trials && rate >= 0 && rate <= 1);
    return 1 - beta_cdf(rate, (double)passed + 0.5, (double)(trials - passed) + 0.5);
}
