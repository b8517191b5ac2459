#pragma once
/*
 * figures: what a run's trials come to, per variant: rates with intervals, pass@k and pass^k,
 * scores, cost and time, and which tasks are steady.
 *
 * docs/statistics.md has every formula with its source; the numbers are made by stats/. Rules:
 * a COMPROMISED trial has not passed; trials that ended in ERROR (or BUILD_FAILED) are left out of
 * a rate and counted, and stand in a second rate as not passed; an oracle's trials are left out of
 * all.
 */

#include "record/run_dir.h"
#include "stats/cluster.h"

#define FIGURES_K_MAX 17 /* 1, 2, 4 ... below 65536, and the most */

struct figures_options {
    double confidence; /* of every interval */
    size_t draws;      /* of every bootstrap */
    uint64_t seed;
};
extern const struct figures_options figures_defaults;

/* One task under one variant. */
struct task_figures {
    const char *task_id;               /* of the record */
    const struct trial_record *sample; /* its first decided trial; NULL: there is none */
    size_t trials, decided, passed, errors;
    struct cluster pass, score; /* of decided trials */
    struct cluster with_errors; /* the same as pass, and errors as not passed */
};

struct variant_figures {
    const char *variant_id; /* of the record */
    struct task_figures *tasks;
    size_t task_count;
    size_t trials, decided, passed, errors, not_graded, skipped, compromised, oracle;
    struct cluster_mean pass, with_errors, score;
    struct interval pass_wilson, pass_bootstrap, with_errors_wilson, score_bootstrap;
    size_t always, never, sometimes; /* tasks by what their decided trials came to */
    struct {
        size_t k, tasks; /* tasks with k decided trials or more: the mean is over them */
        double at, hat;
    } pass_k[FIGURES_K_MAX];
    size_t pass_k_count;
    size_t priced;                  /* trials whose cost is known */
    double cost_usd, agent_seconds; /* sums, of everything that ran but the oracle's */
};

struct run_figures {
    struct variant_figures *variants;
    size_t count;
    struct figures_options options;
};

/* The trials are sorted as run_dir_trials() leaves them; they must outlive the figures. */
void figures_make(const struct run_trials *trials, const struct figures_options *options,
                  struct run_figures *ret) nonnull(1, 2, 3);
void figures_done(struct run_figures *figures) nonnull(1);

/* {"schema": "closedbook/statistics/1", ...}, docs/statistics.md; new reference. */
json_t *figures_json(const struct run_figures *figures) nonnull(1);
/* {"low", "high"}, or null when it is NAN; new references. */
json_t *interval_json(struct interval interval);
/* null when it is NAN. */
json_t *number_json(double value);

/*
 * How many tasks would be needed to see a difference in pass rate between two runs on the same
 * tasks: level 0.05, power 0.8, the tasks' spread as this variant's replicates show it.
 */
#define FIGURES_PLAN_ROWS 5
#define FIGURES_PLAN_COLUMNS 4
extern const double figures_plan_differences[FIGURES_PLAN_COLUMNS]; /* shares */
extern const size_t figures_plan_replicates[FIGURES_PLAN_ROWS];
struct figures_plan {
    double spread; /* variance of one trial around its task's chance; NAN: nothing is known */
    bool is_guess; /* no task has two decided trials: as if all tasks were alike, the worst case */
    size_t tasks[FIGURES_PLAN_ROWS][FIGURES_PLAN_COLUMNS];
};
void figures_plan(const struct variant_figures *variant, struct figures_plan *ret) nonnull(1, 2);

/* Whether the trial counts in a rate, and as what. */
enum trial_share { SHARE_PASSED, SHARE_NOT_PASSED, SHARE_ERROR, SHARE_NONE };
enum trial_share trial_share(const struct trial_record *record) nonnull(1);
bool trial_is_oracle(const struct trial_record *record) nonnull(1);
