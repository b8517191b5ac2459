#include "stats/paired.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/distribution.h"

#define EXACT_MAX 16  /* differences: 2^16 sign patterns */
#define SAME_SUM 1e-9 /* relative: a rounding error is no difference */
#define PAIRS_MAX 1e9 /* more than anybody runs */

double mcnemar_p(size_t only_a, size_t only_b)
{
    size_t fewer = only_a < only_b ? only_a : only_b;

    return fmin(1, 2 * binomial_cdf(fewer, only_a + only_b, 0.5));
}

/* Those that are not 0: a sign says nothing of the others. */
static size_t keep_differences(const double *differences, size_t count, double *kept)
{
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        if (differences[i] != 0)
            kept[used++] = differences[i];
    }
    return used;
}

static double exact_p(const double *kept, size_t count, double least)
{
    size_t patterns = (size_t)1 << count;
    size_t as_far = 0;

    for (size_t pattern = 0; pattern < patterns; pattern++) {
        double sum = 0;

        for (size_t i = 0; i < count; i++)
            sum += (pattern >> i & 1) != 0 ? kept[i] : -kept[i];
        as_far += fabs(sum) >= least;
    }
    return (double)as_far / (double)patterns;
}

static double sampled_p(const double *kept, size_t count, double least, size_t draws,
                        struct stats_random *random)
{
    size_t as_far = 0;

    for (size_t draw = 0; draw < draws; draw++) {
        uint64_t signs = 0;
        double sum = 0;

        for (size_t i = 0; i < count; i++, signs >>= 1) {
            if (i % 64 == 0)
                signs = stats_random_bits(random);
            sum += (signs & 1) != 0 ? kept[i] : -kept[i];
        }
        as_far += fabs(sum) >= least;
    }
    return (double)(as_far + 1) / (double)(draws + 1);
}

double sign_flip_p(const double *differences, size_t count, size_t draws,
                   struct stats_random *random)
{
    scoped(mem_freep) double *kept = mem_new(count, sizeof(*kept));
    size_t used = keep_differences(differences, count, kept);
    double sum = 0;

    for (size_t i = 0; i < used; i++)
        sum += kept[i];
    if (used == 0)
        return 1;

    double least = fabs(sum) * (1 - SAME_SUM);

    return used <= EXACT_MAX ? exact_p(kept, used, least)
                             : sampled_p(kept, used, least, draws, random);
}

static int compare_pointed(const void *a, const void *b)
{
    const double *left = *(double *const *)a, *right = *(double *const *)b;

    return (*left > *right) - (*left < *right);
}

void holm_adjust(double *p_values, size_t count)
{
    scoped(mem_freep) double **order = mem_new(count, sizeof(*order));
    double least = 0;

    for (size_t i = 0; i < count; i++)
        order[i] = &p_values[i];
    qsort(order, count, sizeof(*order), compare_pointed);
    for (size_t i = 0; i < count; i++) {
        least = fmax(least, fmin(1, *order[i] * (double)(count - i)));
        *order[i] = least;
    }
}

struct difference difference_of(const double *differences, size_t count)
{
    struct difference result = {
        .mean = (double)NAN, .deviation = (double)NAN, .effect = (double)NAN};
    double sum = 0;
    double squares = 0;

    if (count == 0)
        return result;
    for (size_t i = 0; i < count; i++)
        sum += differences[i];
    result.mean = sum / (double)count;
    if (count < 2)
        return result;
    for (size_t i = 0; i < count; i++)
        squares += (differences[i] - result.mean) * (differences[i] - result.mean);
    result.deviation = sqrt(squares / (double)(count - 1));
    if (result.deviation > 0)
        result.effect = result.mean / result.deviation;
    return result;
}

static size_t rounded_up(double pairs)
{
    return isnan(pairs) || pairs > PAIRS_MAX ? 0 : (size_t)ceil(pairs);
}

size_t pairs_needed_pass(double share_only_b, double share_only_a, double level, double power)
{
    double differing = share_only_a + share_only_b;
    double difference = share_only_b - share_only_a;
    double root = normal_quantile(1 - level / 2) * sqrt(differing) +
                  normal_quantile(power) * sqrt(differing - difference * difference);

    return difference == 0 ? 0 : rounded_up(root * root / (difference * difference));
}

size_t pairs_needed_score(double mean, double deviation, double level, double power)
{
    double root = (normal_quantile(1 - level / 2) + normal_quantile(power)) * deviation / mean;

    return mean == 0 ? 0 : rounded_up(root * root);
}
