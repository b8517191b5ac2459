#pragma once
/*
 * comparison: two sides, A and B, on the tasks that both did.
 *
 * A task counts once, with the mean of its decided trials on each side: so replicates are no tasks.
 * docs/statistics.md has the formulas and their sources.
 */

#include "report/figures.h"

/* A variant of a run. Borrowed. */
struct comparison_side {
    const char *name; /* as the user wrote it, or the variant; raw */
    const struct variant_figures *figures;
    const json_t *plan; /* plan.json, for digests; NULL: nothing is known */
};

/* The mean of B minus A over the shared tasks. */
struct comparison_result {
    size_t tasks;
    double a, b;               /* means over the shared tasks */
    double difference, effect; /* effect: Cohen's d of the differences; NAN: all are alike */
    struct interval interval;  /* of the difference, by bootstrap over tasks */
    double p, p_adjusted;      /* sign flips; adjusted by Holm over all comparisons of one call */
    size_t needed; /* tasks to see a difference of this size, level 0.05, power 0.8; 0: none would
                      do */
};

struct comparison_flip {
    const char *task_id;
    size_t a_passed, a_decided, b_passed, b_decided;
};

struct comparison {
    struct comparison_side a, b;
    struct comparison_result pass, score;
    /* One decided trial a task on both sides: pairs that differ, and McNemar's exact p. */
    bool has_mcnemar;
    size_t only_a, only_b;
    double mcnemar_p;
    struct comparison_flip *flips;    /* tasks whose pass rate differs, the largest change first */
    size_t flip_count, worse, better; /* of the flips */
    const char **only_in_a, **only_in_b; /* tasks without a decided trial on the other side */
    size_t only_in_a_count, only_in_b_count;
    const char **changed; /* shared tasks with other digests of task or graders */
    size_t changed_count;
};

/*
 * Compares each pair; the p-values of all of them are adjusted together. Tasks whose digests differ
 * are listed, and are in the figures all the same: the caller refuses.
 */
void comparisons_make(const struct comparison_side (*sides)[2], size_t count,
                      const struct figures_options *options, struct comparison *ret)
    nonnull(1, 3, 4);
void comparison_done(struct comparison *comparison) nonnull(1);

/* B is worse (better) than A in pass rate, at level 0.05 after adjusting. */
bool comparison_is_worse(const struct comparison *comparison) nonnull(1);
bool comparison_is_better(const struct comparison *comparison) nonnull(1);

/* One plain sentence; raw. */
void comparison_sentence(struct buf *buf, const struct comparison *comparison) nonnull(1, 2);
json_t *comparison_json(const struct comparison *comparison) nonnull(1);
