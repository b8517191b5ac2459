#include "report/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "stats/paired.h"

#define LEVEL 0.05
#define POWER 0.8

/* --- which tasks -------------------------------------------------------------------------------
 */

/* Both sides' tasks are sorted by the name of the task, as records are. */
struct shared {
    const struct task_figures **a, **b;
    size_t count;
};

static void shared_done(struct shared *shared)
{
    free(shared->a);
    free(shared->b);
}

static void find_shared(struct comparison *comparison, struct shared *shared)
{
    const struct variant_figures *a = comparison->a.figures;
    const struct variant_figures *b = comparison->b.figures;
    size_t i = 0, j = 0;

    shared->a = mem_new(a->task_count, sizeof(struct task_figures *));
    shared->b = mem_new(b->task_count, sizeof(struct task_figures *));
    comparison->only_in_a = mem_new(a->task_count, sizeof(char *));
    comparison->only_in_b = mem_new(b->task_count, sizeof(char *));
    while (i < a->task_count || j < b->task_count) {
        const struct task_figures *left = i < a->task_count ? &a->tasks[i] : NULL;
        const struct task_figures *right = j < b->task_count ? &b->tasks[j] : NULL;
        int order = left == NULL ? 1 : right == NULL ? -1 : strcmp(left->task_id, right->task_id);
        bool has_left = left != NULL && order <= 0 && left->decided > 0;
        bool has_right = right != NULL && order >= 0 && right->decided > 0;

        if (has_left && has_right) {
            shared->a[shared->count] = left;
            shared->b[shared->count++] = right;
        } else if (has_left) {
            comparison->only_in_a[comparison->only_in_a_count++] = left->task_id;
        } else if (has_right) {
            comparison->only_in_b[comparison->only_in_b_count++] = right->task_id;
        }
        i += order <= 0;
        j += order >= 0;
    }
}

/* A run without an experiment has no variant in the key. */
static const json_t *planned(const struct comparison_side *side, const char *task_id)
{
    scoped(mem_freep) char *key = str_format("%s/%s", side->figures->variant_id, task_id);
    const json_t *tasks = json_get_object(side->plan, "tasks");
    const json_t *task = json_get_object(tasks, key);

    return task != NULL ? task : json_get_object(tasks, task_id);
}

/* What graders read, and how judges were asked, when both are on record. */
static bool graded_otherwise(const struct trial_record *a, const struct trial_record *b)
{
    static const char *const keys[] = {"reference", "suite"};

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *left = json_get_text(a->graded_with, keys[i]);
        const char *right = json_get_text(b->graded_with, keys[i]);

        if (left != NULL && right != NULL && !str_equal(left, right))
            return true;
    }
    for (size_t i = 0; i < a->criterion_count && i < b->criterion_count; i++) {
        const json_t *left = json_object_get(a->criteria[i].judge, "prompt_version");
        const json_t *right = json_object_get(b->criteria[i].judge, "prompt_version");

        if (left != NULL && right != NULL && json_equal(left, right) == 0)
            return true;
    }
    return false;
}

/* Variants of one run may get other prompts: that is what they are for. */
static void find_changed(struct comparison *comparison, const struct shared *shared)
{
    static const char *const keys[] = {"graders", "public"};
    size_t compared = comparison->a.plan == comparison->b.plan ? 1 : ARRAY_SIZE(keys);

    comparison->changed = mem_new(shared->count, sizeof(char *));
    for (size_t i = 0; i < shared->count; i++) {
        const json_t *a = planned(&comparison->a, shared->a[i]->task_id);
        const json_t *b = planned(&comparison->b, shared->b[i]->task_id);
        bool differs = graded_otherwise(shared->a[i]->sample, shared->b[i]->sample);

        for (size_t n = 0; n < compared; n++)
            differs = differs || !str_equal(json_get_text(a, keys[n]), json_get_text(b, keys[n]));
        if (differs)
            comparison->changed[comparison->changed_count++] = shared->a[i]->task_id;
    }
}

/* --- figures -----------------------------------------------------------------------------------
 */

static double share(const struct cluster *cluster)
{
    return cluster->sum / (double)cluster->count;
}

static void take_result(const double *a, const double *b, size_t count,
                        const struct figures_options *options, struct comparison_result *ret)
{
    scoped(mem_freep) double *differences = mem_new(count, sizeof(*differences));
    scoped(mem_freep) struct cluster *clusters = mem_new(count, sizeof(*clusters));
    struct stats_random random = {options->seed};
    double sum_a = 0, sum_b = 0;

    for (size_t i = 0; i < count; i++) {
        differences[i] = b[i] - a[i];
        cluster_add(&clusters[i], differences[i]);
        sum_a += a[i];
        sum_b += b[i];
    }

    struct difference difference = difference_of(differences, count);

    *ret = (struct comparison_result){
        .tasks = count,
        .a = sum_a / (double)count,
        .b = sum_b / (double)count,
        .difference = difference.mean,
        .effect = difference.effect,
        .interval =
            cluster_bootstrap(clusters, count, options->confidence, options->draws, &random),
        .p = sign_flip_p(differences, count, options->draws, &random),
        .needed =
            count < 2 ? 0 : pairs_needed_score(difference.mean, difference.deviation, LEVEL, POWER),
    };
    ret->p_adjusted = ret->p;
}

static void take_pass(struct comparison *comparison, const struct shared *shared,
                      const struct figures_options *options)
{
    scoped(mem_freep) double *a = mem_new(shared->count, sizeof(*a));
    scoped(mem_freep) double *b = mem_new(shared->count, sizeof(*b));

    comparison->has_mcnemar = shared->count > 0;
    for (size_t i = 0; i < shared->count; i++) {
        a[i] = share(&shared->a[i]->pass);
        b[i] = share(&shared->b[i]->pass);
        comparison->has_mcnemar =
            comparison->has_mcnemar && shared->a[i]->decided == 1 && shared->b[i]->decided == 1;
        comparison->only_a += a[i] > b[i];
        comparison->only_b += b[i] > a[i];
    }
    take_result(a, b, shared->count, options, &comparison->pass);
    if (!comparison->has_mcnemar)
        return;
    comparison->mcnemar_p = mcnemar_p(comparison->only_a, comparison->only_b);
    comparison->pass.needed =
        pairs_needed_pass((double)comparison->only_b / (double)shared->count,
                          (double)comparison->only_a / (double)shared->count, LEVEL, POWER);
}

static void take_score(struct comparison *comparison, const struct shared *shared,
                       const struct figures_options *options)
{
    scoped(mem_freep) double *a = mem_new(shared->count, sizeof(*a));
    scoped(mem_freep) double *b = mem_new(shared->count, sizeof(*b));
    size_t count = 0;

    for (size_t i = 0; i < shared->count; i++) {
        if (shared->a[i]->score.count == 0 || shared->b[i]->score.count == 0)
            continue;
        a[count] = share(&shared->a[i]->score);
        b[count++] = share(&shared->b[i]->score);
    }
    take_result(a, b, count, options, &comparison->score);
}

static double change(const struct comparison_flip *flip)
{
    return (double)flip->b_passed / (double)flip->b_decided -
           (double)flip->a_passed / (double)flip->a_decided;
}

/* What became worse first, the largest change first. */
static int compare_flips(const void *left, const void *right)
{
    const struct comparison_flip *a = left, *b = right;
    double x = change(a), y = change(b);

    if (x != y)
        return x < y ? -1 : 1;
    return strcmp(a->task_id, b->task_id);
}

static void find_flips(struct comparison *comparison, const struct shared *shared)
{
    comparison->flips = mem_new(shared->count, sizeof(*comparison->flips));
    for (size_t i = 0; i < shared->count; i++) {
        struct comparison_flip flip = {
            .task_id = shared->a[i]->task_id,
            .a_passed = shared->a[i]->passed,
            .a_decided = shared->a[i]->decided,
            .b_passed = shared->b[i]->passed,
            .b_decided = shared->b[i]->decided,
        };
        double by = change(&flip);

        if (by == 0)
            continue;
        comparison->flips[comparison->flip_count++] = flip;
        comparison->worse += by < 0;
        comparison->better += by > 0;
    }
    if (comparison->flip_count > 0)
        qsort(comparison->flips, comparison->flip_count, sizeof(*comparison->flips), compare_flips);
}

static void compare_sides(struct comparison *comparison, const struct figures_options *options)
{
    scoped(shared_done) struct shared shared = {0};

    find_shared(comparison, &shared);
    find_changed(comparison, &shared);
    find_flips(comparison, &shared);
    take_pass(comparison, &shared, options);
    take_score(comparison, &shared, options);
}

static void adjust(struct comparison *comparisons, size_t count)
{
    scoped(mem_freep) double *pass = mem_new(count, sizeof(*pass));
    scoped(mem_freep) double *score = mem_new(count, sizeof(*score));

    for (size_t i = 0; i < count; i++) {
        pass[i] = comparisons[i].pass.p;
        score[i] = comparisons[i].score.p;
    }
    holm_adjust(pass, count);
    holm_adjust(score, count);
    for (size_t i = 0; i < count; i++) {
        comparisons[i].pass.p_adjusted = pass[i];
        comparisons[i].score.p_adjusted = score[i];
    }
}

void comparisons_make(const struct comparison_side (*sides)[2], size_t count,
                      const struct figures_options *options, struct comparison *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct comparison){.a = sides[i][0], .b = sides[i][1]};
        compare_sides(&ret[i], options);
    }
    adjust(ret, count);
}

void comparison_done(struct comparison *comparison)
{
    free(comparison->flips);
    free(comparison->only_in_a);
    free(comparison->only_in_b);
    free(comparison->changed);
    *comparison = (struct comparison){0};
}

bool comparison_is_worse(const struct comparison *comparison)
{
    return comparison->pass.difference < 0 && comparison->pass.p_adjusted <= LEVEL;
}

bool comparison_is_better(const struct comparison *comparison)
{
    return comparison->pass.difference > 0 && comparison->pass.p_adjusted <= LEVEL;
}

/* --- in words and as JSON ----------------------------------------------------------------------
 */

static void p_text(struct buf *buf, double p)
{
    if (p < 0.001)
        buf_text_append(buf, "p < 0.001");
    else
        buf_format(buf, "p = %.*f", p < 0.1 ? 3 : 2, p);
}

static void verdict_text(struct buf *buf, const struct comparison *comparison)
{
    if (comparison_is_better(comparison)) {
        buf_text_append(buf, ": B is better");
    } else if (comparison_is_worse(comparison)) {
        buf_text_append(buf, ": B is worse");
    } else {
        buf_text_append(buf, ": no difference can be told");
        if (comparison->pass.needed > comparison->pass.tasks)
            buf_format(buf, "; about %zu tasks would be needed to see one of this size",
                       comparison->pass.needed);
    }
}

void comparison_sentence(struct buf *buf, const struct comparison *comparison)
{
    const struct comparison_result *pass = &comparison->pass;
    double tasks = round(fabs(pass->difference) * (double)pass->tasks * 10) / 10;

    if (pass->tasks == 0) {
        buf_text_append(buf, "the two have no task in common that both decided");
        return;
    }
    if (pass->difference == 0)
        buf_format(buf, "both pass %.4g of %zu tasks", pass->a * (double)pass->tasks, pass->tasks);
    else
        buf_format(buf, "B passes %.4g %s of %zu tasks", tasks,
                   pass->difference > 0 ? "more" : "fewer", pass->tasks);
    buf_format(buf, " (%.1f %% and %.1f %%); ", 100 * pass->a, 100 * pass->b);
    p_text(buf, pass->p_adjusted);
    verdict_text(buf, comparison);
}

static json_t *result_json(const struct comparison_result *result)
{
    json_t *object = json_object();

    json_put_int(object, "tasks", (int64_t)result->tasks);
    json_put(object, "a", number_json(result->a));
    json_put(object, "b", number_json(result->b));
    json_put(object, "difference", number_json(result->difference));
    json_put(object, "interval", interval_json(result->interval));
    json_put(object, "effect", number_json(result->effect));
    json_put(object, "p", number_json(result->p));
    json_put(object, "p_adjusted", number_json(result->p_adjusted));
    json_put(object, "tasks_needed",
             result->needed == 0 ? json_null() : json_integer((json_int_t)result->needed));
    return object;
}

static json_t *names_json(const char *const *names, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_push(list, json_text(names[i], strlen(names[i])));
    return list;
}

static json_t *flips_json(const struct comparison *comparison)
{
    json_t *list = json_array();

    for (size_t i = 0; i < comparison->flip_count; i++) {
        const struct comparison_flip *flip = &comparison->flips[i];
        json_t *object = json_object();

        json_put_text(object, "task_id", flip->task_id);
        json_put_int(object, "a_passed", (int64_t)flip->a_passed);
        json_put_int(object, "a_decided", (int64_t)flip->a_decided);
        json_put_int(object, "b_passed", (int64_t)flip->b_passed);
        json_put_int(object, "b_decided", (int64_t)flip->b_decided);
        json_push(list, object);
    }
    return list;
}

json_t *comparison_json(const struct comparison *comparison)
{
    scoped(buf_done) struct buf sentence = {0};
    json_t *object = json_object();

    comparison_sentence(&sentence, comparison);
    json_put(object, "a", json_text(comparison->a.name, strlen(comparison->a.name)));
    json_put(object, "b", json_text(comparison->b.name, strlen(comparison->b.name)));
    json_put(object, "sentence", json_text(buf_text(&sentence), sentence.size_bytes));
    json_put_text(object, "verdict",
                  comparison_is_better(comparison)  ? "better"
                  : comparison_is_worse(comparison) ? "worse"
                                                    : "undecided");
    json_put(object, "pass", result_json(&comparison->pass));
    json_put(object, "score", result_json(&comparison->score));
    if (comparison->has_mcnemar) {
        json_t *pairs = json_object();

        json_put_int(pairs, "only_a", (int64_t)comparison->only_a);
        json_put_int(pairs, "only_b", (int64_t)comparison->only_b);
        json_put_real(pairs, "p", comparison->mcnemar_p);
        json_put(object, "mcnemar", pairs);
    } else {
        json_put(object, "mcnemar", json_null());
    }
    json_put(object, "flips", flips_json(comparison));
    json_put(object, "only_in_a", names_json(comparison->only_in_a, comparison->only_in_a_count));
    json_put(object, "only_in_b", names_json(comparison->only_in_b, comparison->only_in_b_count));
    json_put(object, "changed", names_json(comparison->changed, comparison->changed_count));
    return object;
}
