#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "stats/cluster.h"
#include "stats/distribution.h"
#include "stats/paired.h"
#include "stats/reference.h"

#define CLOSE 1e-9

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance * fmax(1, fabs(wanted))))
        fail_msg("%.17g, wanted %.17g", value, wanted);
}

/* --- against another implementation ----------------------------------------------------------- */

static void distributions_are_those_of_scipy(unused_ok void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(reference_normal); i++) {
        const double *row = reference_normal[i];

        assert_near(normal_quantile(row[0]), row[1], CLOSE);
        assert_near(normal_cdf(row[1]), row[0], CLOSE);
    }
    for (size_t i = 0; i < ARRAY_SIZE(reference_beta); i++) {
        const double *row = reference_beta[i];

        assert_near(beta_cdf(row[0], row[1], row[2]), row[3], CLOSE);
        if (row[3] > 1e-6 && row[3] < 1 - 1e-6)
            assert_near(beta_quantile(row[3], row[1], row[2]), row[0], CLOSE);
    }
    for (size_t i = 0; i < ARRAY_SIZE(reference_binomial); i++) {
        const double *row = reference_binomial[i];

        assert_near(binomial_cdf((size_t)row[0], (size_t)row[1], row[2]), row[3], CLOSE);
    }
}

static void intervals_of_rates_are_those_of_statsmodels(unused_ok void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(reference_wilson); i++) {
        const double *row = reference_wilson[i];
        struct interval interval = wilson_interval(row[0], row[1], row[2]);

        assert_near(interval.low, row[3], CLOSE);
        assert_near(interval.high, row[4], CLOSE);
    }
    for (size_t i = 0; i < ARRAY_SIZE(reference_jeffreys); i++) {
        const double *row = reference_jeffreys[i];
        struct interval interval = jeffreys_interval((size_t)row[0], (size_t)row[1], 0.95);

        assert_near(interval.low, row[2], CLOSE);
        assert_near(interval.high, row[3], CLOSE);
    }
}

static void pass_at_k_and_pass_hat_k_count_choices(unused_ok void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(reference_choices); i++) {
        const double *row = reference_choices[i];
        size_t passed = (size_t)row[0], trials = (size_t)row[1], k = (size_t)row[2];

        assert_near(pass_at_k(passed, trials, k), row[3], CLOSE);
        assert_near(pass_hat_k(passed, trials, k), row[4], CLOSE);
    }
    assert_true(isnan(pass_at_k(1, 3, 4)) && isnan(pass_hat_k(1, 3, 0)));
}

static void paired_tests_are_those_of_statsmodels(unused_ok void **state)
{
    double levels[ARRAY_SIZE(reference_holm)];

    for (size_t i = 0; i < ARRAY_SIZE(reference_mcnemar); i++) {
        const double *row = reference_mcnemar[i];

        assert_near(mcnemar_p((size_t)row[0], (size_t)row[1]), row[2], CLOSE);
        assert_near(mcnemar_p((size_t)row[1], (size_t)row[0]), row[2], CLOSE);
    }
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        levels[i] = reference_holm[i][0];
    holm_adjust(levels, ARRAY_SIZE(levels));
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++)
        assert_near(levels[i], reference_holm[i][1], CLOSE);
}

static void a_mean_of_clusters_is_that_of_a_robust_regression(unused_ok void **state)
{
    struct cluster clusters[64] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(reference_clusters); i++)
        cluster_add(&clusters[(size_t)reference_clusters[i][0]], reference_clusters[i][1]);

    /* The empty ones count for nothing. */
    struct cluster_mean mean = cluster_mean(clusters, ARRAY_SIZE(clusters));
    const double *row = reference_cluster_mean[0];

    assert_int_equal(mean.trials, (size_t)row[2]);
    assert_int_equal(mean.clusters, 25);
    assert_near(mean.mean, row[0], CLOSE);
    assert_near(mean.standard_error, row[1], CLOSE);
}

static void differences_are_described_as_by_numpy(unused_ok void **state)
{
    double values[ARRAY_SIZE(reference_differences)];
    struct stats_random random = {1};

    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        values[i] = reference_differences[i][0];

    struct difference difference = difference_of(values, ARRAY_SIZE(values));
    const double *row = reference_difference[0];

    assert_near(difference.mean, row[0], CLOSE);
    assert_near(difference.deviation, row[1], CLOSE);
    assert_near(difference.effect, row[0] / row[1], CLOSE);
    assert_near(sign_flip_p(values, ARRAY_SIZE(values), 1, &random), row[2], CLOSE);
}

/* --- what resampling comes to ----------------------------------------------------------------- */

static void sampled_sign_flips_are_near_the_exact_ones(unused_ok void **state)
{
    double values[40];
    struct stats_random random = {3};

    /* 28 of 40 up: the signs alone are a binomial test. */
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        values[i] = i < 28 ? 1 : -1;
    assert_near(sign_flip_p(values, ARRAY_SIZE(values), 200000, &random),
                2 * binomial_cdf(12, 40, 0.5), 0.002);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        values[i] = 0;
    assert_near(sign_flip_p(values, ARRAY_SIZE(values), 10, &random), 1, 0);
}

/* One evaluation of `tasks` tasks, whose chances differ, with `replicates` trials each. */
static void play(struct cluster *clusters, size_t tasks, size_t replicates,
                 struct stats_random *random)
{
    for (size_t i = 0; i < tasks; i++) {
        /* Uniform chances: their mean is 0.5. */
        double chance = stats_random_unit(random);

        clusters[i] = (struct cluster){0};
        for (size_t j = 0; j < replicates; j++)
            cluster_add(&clusters[i], stats_random_unit(random) < chance);
    }
}

#define TASKS 80
#define REPLICATES 4
#define EVALUATIONS 4000

/* Intervals hold the truth as often as they say; one that takes trials for tasks does not. */
static void intervals_hold_as_often_as_they_say(unused_ok void **state)
{
    struct cluster clusters[TASKS];
    struct stats_random random = {5};
    size_t wilson = 0, bootstrap = 0, normal = 0, naive = 0;

    for (size_t i = 0; i < EVALUATIONS; i++) {
        play(clusters, TASKS, REPLICATES, &random);

        struct cluster_mean mean = cluster_mean(clusters, TASKS);
        struct interval by_wilson = cluster_wilson(clusters, TASKS, 0.95);
        struct interval by_draws = cluster_bootstrap(clusters, TASKS, 0.95, 400, &random);
        double trials = (double)mean.trials;
        struct interval alone = wilson_interval(mean.mean * trials, trials, 0.95);

        wilson += by_wilson.low <= 0.5 && by_wilson.high >= 0.5;
        bootstrap += by_draws.low <= 0.5 && by_draws.high >= 0.5;
        naive += alone.low <= 0.5 && alone.high >= 0.5;
        normal += fabs(mean.mean - 0.5) <= 1.959964 * mean.standard_error;
    }
    assert_near((double)wilson / EVALUATIONS, 0.95, 0.015);
    assert_near((double)bootstrap / EVALUATIONS, 0.95, 0.015);
    assert_near((double)normal / EVALUATIONS, 0.95, 0.015);
    /* The control: the test sees an interval that is too narrow. */
    assert_true((double)naive / EVALUATIONS < 0.9);
}

/* Nothing differs: at a level of 0.05 at most 5 % may say so. */
static void tests_of_nothing_are_seldom_wrong(unused_ok void **state)
{
    struct stats_random random = {9};
    size_t flips = 0, pairs = 0;

    for (size_t i = 0; i < 2000; i++) {
        double differences[30];
        size_t only_a = 0, only_b = 0;

        for (size_t j = 0; j < ARRAY_SIZE(differences); j++) {
            bool a = stats_random_unit(&random) < 0.6;
            bool b = stats_random_unit(&random) < 0.6;

            differences[j] = stats_random_unit(&random) - stats_random_unit(&random);
            only_a += a && !b;
            only_b += b && !a;
        }
        flips += sign_flip_p(differences, ARRAY_SIZE(differences), 199, &random) <= 0.05;
        pairs += mcnemar_p(only_a, only_b) <= 0.05;
    }
    assert_true((double)flips / 2000 <= 0.065);
    assert_true((double)pairs / 2000 <= 0.05);
    assert_true(flips > 40 && pairs > 10);
}

static void as_many_pairs_as_were_said_to_be_needed_are_enough(unused_ok void **state)
{
    struct stats_random random = {13};
    size_t needed = pairs_needed_pass(0.2, 0.08, 0.05, 0.8);
    size_t seen = 0;

    assert_in_range(needed, 120, 180);
    for (size_t i = 0; i < 1000; i++) {
        size_t only_a = 0, only_b = 0;

        for (size_t j = 0; j < needed; j++) {
            double chance = stats_random_unit(&random);

            only_b += chance < 0.2;
            only_a += chance > 0.92;
        }
        seen += mcnemar_p(only_a, only_b) <= 0.05;
    }
    /* The exact test is a little more careful than the approximation behind the number. */
    assert_in_range(seen, 720, 860);
    assert_int_equal(pairs_needed_pass(0.1, 0.1, 0.05, 0.8), 0);
    assert_int_equal(pairs_needed_score(0.5, 1, 0.05, 0.8), 32);
    assert_int_equal(pairs_needed_score(0, 1, 0.05, 0.8), 0);
}

/* --- edges ------------------------------------------------------------------------------------ */

static void of_nothing_nothing_is_known(unused_ok void **state)
{
    struct stats_random random = {1};
    struct cluster one = {0};
    struct interval interval = wilson_interval(0, 0, 0.95);

    assert_true(interval.low == 0 && interval.high == 1);
    assert_true(isnan(cluster_mean(NULL, 0).mean));
    assert_true(isnan(cluster_bootstrap(&one, 1, 0.95, 10, &random).low));
    cluster_add(&one, 1);
    cluster_add(&one, 1);
    assert_true(isnan(cluster_mean(&one, 1).standard_error));
    /* Two replicates of one task are one task. */
    interval = cluster_wilson(&one, 1, 0.95);
    assert_near(interval.low, wilson_interval(1, 1, 0.95).low, CLOSE);
    assert_near(mcnemar_p(0, 0), 1, 0);
    assert_true(isnan(difference_of(NULL, 0).mean));
}

static void a_task_is_known_by_its_trials(unused_ok void **state)
{
    assert_near(jeffreys_at_least(3, 3, 0), 1, 0);
    assert_near(jeffreys_at_least(5, 10, 0.5), 0.5, CLOSE);
    assert_true(jeffreys_at_least(10, 10, 0.5) > 0.99);
    assert_true(jeffreys_at_least(0, 10, 0.5) < 0.01);
}

static void numbers_repeat_and_are_even(unused_ok void **state)
{
    struct stats_random one = {42}, other = {42};
    size_t counts[7] = {0};

    /* The first of seed 0, as the authors' program prints it. */
    assert_true(stats_random_bits(&(struct stats_random){0}) == 0xe220a8397b1dcdafu);
    for (size_t i = 0; i < 70000; i++) {
        size_t value = stats_random_below(&one, 7);

        assert_int_equal(value, stats_random_below(&other, 7));
        counts[value]++;
    }
    for (size_t i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_are_those_of_scipy),
        cmocka_unit_test(intervals_of_rates_are_those_of_statsmodels),
        cmocka_unit_test(pass_at_k_and_pass_hat_k_count_choices),
        cmocka_unit_test(paired_tests_are_those_of_statsmodels),
        cmocka_unit_test(a_mean_of_clusters_is_that_of_a_robust_regression),
        cmocka_unit_test(differences_are_described_as_by_numpy),
        cmocka_unit_test(sampled_sign_flips_are_near_the_exact_ones),
        cmocka_unit_test(intervals_hold_as_often_as_they_say),
        cmocka_unit_test(tests_of_nothing_are_seldom_wrong),
        cmocka_unit_test(as_many_pairs_as_were_said_to_be_needed_are_enough),
        cmocka_unit_test(of_nothing_nothing_is_known),
        cmocka_unit_test(a_task_is_known_by_its_trials),
        cmocka_unit_test(numbers_repeat_and_are_even),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
