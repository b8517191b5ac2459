#include "report/figures.h"

#include <math.h>

#include "base/mem.h"
#include "report/trial_text.h"

#define MICROUSD 1e6

const struct figures_options figures_defaults = {.confidence = 0.95, .draws = 10000, .seed = 1};

bool trial_is_oracle(const struct trial_record *record)
{
    return str_equal(record->agent.type, "oracle");
}

enum trial_share trial_share(const struct trial_record *record)
{
    if (record->status == STATUS_ERROR || record->status == STATUS_BUILD_FAILED)
        return SHARE_ERROR;
    if (!record->has_verdict)
        return SHARE_NONE;
    return trial_has_passed(record) ? SHARE_PASSED : SHARE_NOT_PASSED;
}

/* --- counting ----------------------------------------------------------------------------------
 */

static void count_money_and_time(struct variant_figures *variant, const struct trial_record *record)
{
    const json_t *cost = json_object_get(record->usage, "cost_microusd");

    variant->agent_seconds += (double)record->agent.duration_ms / 1000;
    if (!json_is_number(cost))
        return;
    variant->priced++;
    variant->cost_usd += json_number_value(cost) / MICROUSD;
}

static void count_trial(struct variant_figures *variant, struct task_figures *task,
                        const struct trial_record *record)
{
    enum trial_share share = trial_share(record);

    variant->trials++;
    variant->compromised += record->integrity == INTEGRITY_COMPROMISED;
    variant->skipped += record->status == STATUS_SKIPPED;
    variant->not_graded += record->status == STATUS_NOT_GRADED;
    task->trials++;
    if (share == SHARE_NONE)
        return;
    count_money_and_time(variant, record);
    cluster_add(&task->with_errors, share == SHARE_PASSED);
    if (share == SHARE_ERROR) {
        task->errors++;
        variant->errors++;
        return;
    }
    if (task->sample == NULL)
        task->sample = record;
    task->decided++;
    variant->decided++;
    task->passed += share == SHARE_PASSED;
    variant->passed += share == SHARE_PASSED;
    cluster_add(&task->pass, share == SHARE_PASSED);
    if (record->has_score)
        cluster_add(&task->score, record->score);
}

/* The trials of one variant, from `first` on; returns the first of the next. */
static size_t count_variant(struct variant_figures *variant, const struct run_trials *trials,
                            size_t first)
{
    size_t end = first;

    variant->variant_id = trials->records[first].variant_id;
    while (end < trials->count && str_equal(trials->records[end].variant_id, variant->variant_id))
        end++;
    variant->tasks = mem_new(end - first, sizeof(*variant->tasks));
    for (size_t i = first; i < end; i++) {
        const struct trial_record *record = &trials->records[i];
        struct task_figures *last =
            variant->task_count == 0 ? NULL : &variant->tasks[variant->task_count - 1];

        if (trial_is_oracle(record)) {
            variant->oracle++;
            continue;
        }
        if (last == NULL || !str_equal(last->task_id, record->task_id)) {
            last = &variant->tasks[variant->task_count++];
            last->task_id = record->task_id;
        }
        count_trial(variant, last, record);
    }
    return end;
}

/* --- what it comes to --------------------------------------------------------------------------
 */

static void take_steadiness(struct variant_figures *variant)
{
    for (size_t i = 0; i < variant->task_count; i++) {
        const struct task_figures *task = &variant->tasks[i];

        if (task->decided == 0)
            continue;
        variant->always += task->passed == task->decided;
        variant->never += task->passed == 0;
        variant->sometimes += task->passed > 0 && task->passed < task->decided;
    }
}

static void take_pass_k(struct variant_figures *variant, size_t k)
{
    double at = 0;
    double hat = 0;
    size_t tasks = 0;

    for (size_t i = 0; i < variant->task_count; i++) {
        const struct task_figures *task = &variant->tasks[i];

        if (task->decided < k)
            continue;
        tasks++;
        at += pass_at_k(task->passed, task->decided, k);
        hat += pass_hat_k(task->passed, task->decided, k);
    }
    if (tasks == 0 || variant->pass_k_count == FIGURES_K_MAX)
        return;
    variant->pass_k[variant->pass_k_count].k = k;
    variant->pass_k[variant->pass_k_count].tasks = tasks;
    variant->pass_k[variant->pass_k_count].at = at / (double)tasks;
    variant->pass_k[variant->pass_k_count].hat = hat / (double)tasks;
    variant->pass_k_count++;
}

/* 1, 2, 4, 8 ... and the most that some task has. */
static void take_all_pass_k(struct variant_figures *variant)
{
    size_t most = 0;

    for (size_t i = 0; i < variant->task_count; i++)
        most = size_max(most, variant->tasks[i].decided);
    for (size_t k = 1; k < most; k *= 2)
        take_pass_k(variant, k);
    take_pass_k(variant, most);
}

static void take_means(struct variant_figures *variant, const struct figures_options *options)
{
    size_t count = variant->task_count;
    scoped(mem_freep) struct cluster *clusters = mem_new(count, sizeof(*clusters));
    struct stats_random random = {options->seed};

    for (size_t i = 0; i < count; i++)
        clusters[i] = variant->tasks[i].pass;
    variant->pass = cluster_mean(clusters, count);
    variant->pass_wilson = cluster_wilson(clusters, count, options->confidence);
    variant->pass_bootstrap =
        cluster_bootstrap(clusters, count, options->confidence, options->draws, &random);
    for (size_t i = 0; i < count; i++)
        clusters[i] = variant->tasks[i].score;
    variant->score = cluster_mean(clusters, count);
    variant->score_bootstrap =
        cluster_bootstrap(clusters, count, options->confidence, options->draws, &random);
    for (size_t i = 0; i < count; i++)
        clusters[i] = variant->tasks[i].with_errors;
    variant->with_errors = cluster_mean(clusters, count);
    variant->with_errors_wilson = cluster_wilson(clusters, count, options->confidence);
}

void figures_make(const struct run_trials *trials, const struct figures_options *options,
                  struct run_figures *ret)
{
    *ret = (struct run_figures){.options = *options};
    for (size_t i = 0; i < trials->count;) {
        ret->variants = mem_resize(ret->variants, ret->count + 1, sizeof(*ret->variants));

        struct variant_figures *variant = &ret->variants[ret->count++];

        *variant = (struct variant_figures){0};
        i = count_variant(variant, trials, i);
        take_steadiness(variant);
        take_all_pass_k(variant);
        take_means(variant, options);
    }
}

void figures_done(struct run_figures *figures)
{
    for (size_t i = 0; i < figures->count; i++)
        free(figures->variants[i].tasks);
    free(figures->variants);
    *figures = (struct run_figures){0};
}

/* --- JSON --------------------------------------------------------------------------------------
 */

json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *interval_json(struct interval interval)
{
    if (!isfinite(interval.low) || !isfinite(interval.high))
        return json_null();

    json_t *object = json_object();

    json_put_real(object, "low", interval.low);
    json_put_real(object, "high", interval.high);
    return object;
}

static json_t *mean_json(const struct cluster_mean *mean)
{
    json_t *object = json_object();

    json_put(object, "value", number_json(mean->mean));
    json_put(object, "standard_error", number_json(mean->standard_error));
    json_put_int(object, "trials", (int64_t)mean->trials);
    json_put_int(object, "tasks", (int64_t)mean->clusters);
    return object;
}

static json_t *tasks_json(const struct variant_figures *variant,
                          const struct figures_options *options)
{
    json_t *list = json_array();

    for (size_t i = 0; i < variant->task_count; i++) {
        const struct task_figures *task = &variant->tasks[i];
        json_t *object = json_object();

        json_put_text(object, "task_id", task->task_id);
        json_put_int(object, "trials", (int64_t)task->trials);
        json_put_int(object, "decided", (int64_t)task->decided);
        json_put_int(object, "passed", (int64_t)task->passed);
        json_put_int(object, "errors", (int64_t)task->errors);
        json_put(object, "chance",
                 task->decided == 0 ? json_null()
                                    : interval_json(jeffreys_interval(task->passed, task->decided,
                                                                      options->confidence)));
        json_push(list, object);
    }
    return list;
}

static json_t *pass_k_json(const struct variant_figures *variant)
{
    json_t *list = json_array();

    for (size_t i = 0; i < variant->pass_k_count; i++) {
        json_t *object = json_object();

        json_put_int(object, "k", (int64_t)variant->pass_k[i].k);
        json_put_int(object, "tasks", (int64_t)variant->pass_k[i].tasks);
        json_put_real(object, "pass_at_k", variant->pass_k[i].at);
        json_put_real(object, "pass_hat_k", variant->pass_k[i].hat);
        json_push(list, object);
    }
    return list;
}

static json_t *variant_json(const struct variant_figures *variant,
                            const struct figures_options *options)
{
    const struct {
        const char *key;
        size_t count;
    } counts[] = {
        {"trials", variant->trials},         {"decided", variant->decided},
        {"passed", variant->passed},         {"errors", variant->errors},
        {"not_graded", variant->not_graded}, {"skipped", variant->skipped},
        {"oracle", variant->oracle},         {"compromised", variant->compromised},
        {"always", variant->always},         {"sometimes", variant->sometimes},
        {"never", variant->never},           {"priced", variant->priced},
    };
    json_t *object = json_object();
    json_t *pass = mean_json(&variant->pass);
    json_t *with_errors = mean_json(&variant->with_errors);
    json_t *score = mean_json(&variant->score);
    double passed = (double)variant->passed;

    json_put_text(object, "variant_id", variant->variant_id);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        json_put_int(object, counts[i].key, (int64_t)counts[i].count);
    json_put(pass, "wilson", interval_json(variant->pass_wilson));
    json_put(pass, "bootstrap", interval_json(variant->pass_bootstrap));
    json_put(object, "pass_rate", pass);
    json_put(with_errors, "wilson", interval_json(variant->with_errors_wilson));
    json_put(object, "pass_rate_with_errors", with_errors);
    json_put(score, "bootstrap", interval_json(variant->score_bootstrap));
    json_put(object, "score", score);
    json_put(object, "pass_k", pass_k_json(variant));
    json_put(object, "cost_usd", variant->priced == 0 ? json_null() : json_real(variant->cost_usd));
    json_put(object, "cost_usd_per_pass",
             variant->priced == 0 || variant->passed == 0 ? json_null()
                                                          : json_real(variant->cost_usd / passed));
    json_put_real(object, "agent_seconds", variant->agent_seconds);
    json_put(object, "agent_seconds_per_pass",
             variant->passed == 0 ? json_null() : json_real(variant->agent_seconds / passed));
    json_put(object, "tasks", tasks_json(variant, options));
    return object;
}

json_t *figures_json(const struct run_figures *figures)
{
    json_t *object = json_object();
    json_t *list = json_array();

    json_put_text(object, "schema", "closedbook/statistics/1");
    json_put_real(object, "confidence", figures->options.confidence);
    json_put_int(object, "draws", (int64_t)figures->options.draws);
    json_put_int(object, "seed", (int64_t)figures->options.seed);
    for (size_t i = 0; i < figures->count; i++)
        json_push(list, variant_json(&figures->variants[i], &figures->options));
    json_put(object, "variants", list);
    return object;
}
