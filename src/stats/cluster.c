#include "stats/cluster.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void cluster_add(struct cluster *cluster, double value)
{
    cluster->sum += value;
    cluster->squares += value * value;
    cluster->count++;
}

struct cluster_mean cluster_mean(const struct cluster *clusters, size_t count)
{
    struct cluster_mean result = {.mean = (double)NAN, .standard_error = (double)NAN};
    double sum = 0;
    double squares = 0;

    for (size_t i = 0; i < count; i++) {
        sum += clusters[i].sum;
        result.trials += clusters[i].count;
        result.clusters += clusters[i].count > 0;
    }
    if (result.trials == 0)
        return result;
    result.mean = sum / (double)result.trials;
    if (result.clusters < 2)
        return result;
    for (size_t i = 0; i < count; i++) {
        double off = clusters[i].sum - result.mean * (double)clusters[i].count;

        squares += off * off;
    }
    result.standard_error =
        sqrt(squares * (double)result.clusters / (double)(result.clusters - 1)) /
        (double)result.trials;
    return result;
}

struct interval cluster_wilson(const struct cluster *clusters, size_t count, double confidence)
{
    struct cluster_mean mean = cluster_mean(clusters, count);
    double trials = (double)mean.trials;

    if (mean.trials == 0)
        return wilson_interval(0, 0, confidence);

    double alone = mean.mean * (1 - mean.mean) / trials;
    double variance = mean.standard_error * mean.standard_error;
    /* One cluster, or no spread at all: what the trials have in common cannot be seen in them. */
    double effect =
        isnan(variance) || alone <= 0 ? trials / (double)mean.clusters : fmax(1, variance / alone);
    double effective = trials / effect;

    return wilson_interval(fmin(mean.mean * effective, effective), effective, confidence);
}

static int compare_values(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

/* Between the two values that lie around it (type 7 of Hyndman and Fan 1996). */
static double quantile_of(const double *sorted, size_t count, double p)
{
    double place = p * (double)(count - 1);
    size_t below = (size_t)place;
    size_t above = below + 1 < count ? below + 1 : below;

    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

struct interval cluster_bootstrap(const struct cluster *clusters, size_t count, double confidence,
                                  size_t draws, struct stats_random *random)
{
    scoped(mem_freep) double *means = NULL;
    scoped(mem_freep) struct cluster *used = mem_new(count, sizeof(*used));
    size_t kept = 0;

    ASSERT(confidence > 0 && confidence < 1 && draws > 0);
    for (size_t i = 0; i < count; i++) {
        if (clusters[i].count > 0)
            used[kept++] = clusters[i];
    }
    if (kept == 0)
        return (struct interval){(double)NAN, (double)NAN};
    means = mem_new(draws, sizeof(*means));
    for (size_t draw = 0; draw < draws; draw++) {
        double sum = 0;
        size_t trials = 0;

        for (size_t i = 0; i < kept; i++) {
            const struct cluster *cluster = &used[stats_random_below(random, kept)];

            sum += cluster->sum;
            trials += cluster->count;
        }
        means[draw] = sum / (double)trials;
    }
    qsort(means, draws, sizeof(*means), compare_values);
    return (struct interval){.low = quantile_of(means, draws, (1 - confidence) / 2),
                             .high = quantile_of(means, draws, 1 - (1 - confidence) / 2)};
}
