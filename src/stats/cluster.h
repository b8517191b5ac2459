#pragma once
/*
 * cluster: means over trials that come in clusters.
 *
 * Replicates of one task resemble each other: they tell less than as many trials of different
 * tasks. So tasks, not trials, are what is counted and resampled. Depends on: base, stats/rate.
 */

#include "stats/random.h"
#include "stats/rate.h"

/* One task: the sum of its trials' values, and how many there are. */
struct cluster {
    double sum, squares; /* of the values, and of their squares */
    size_t count;
};

void cluster_add(struct cluster *cluster, double value) nonnull(1);

struct cluster_mean {
    double mean;             /* over all trials */
    double standard_error;   /* NAN with fewer than two clusters */
    size_t trials, clusters; /* clusters with a trial */
};

/*
 * The mean and its cluster-robust standard error (Liang and Zeger 1986, Biometrika 73:13; for
 * evaluations: Miller 2024, arXiv 2411.00640), with the correction G / (G - 1).
 * Of no trials: mean and standard error are NAN.
 */
struct cluster_mean cluster_mean(const struct cluster *clusters, size_t count);

/*
 * The share of one that passes, as an interval that knows of the clusters: Wilson's, with the
 * number of trials divided by the design effect (Kish 1965; never below 1), so that many replicates
 * of few tasks are not taken for many tasks.
 */
struct interval cluster_wilson(const struct cluster *clusters, size_t count, double confidence);

/*
 * Percentile bootstrap interval of the mean: clusters are drawn with replacement, `draws` times
 * (Efron 1979; Field and Welsh 2007 for clusters). Of no trials: NAN.
 */
struct interval cluster_bootstrap(const struct cluster *clusters, size_t count, double confidence,
                                  size_t draws, struct stats_random *random) nonnull(5);
