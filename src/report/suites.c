#include "report/suites.h"

#include <math.h>

#include "base/mem.h"

#define OTHER_LABEL "(other)"

/* --- scores ------------------------------------------------------------------------------------
 */

/* What one criterion came to in each trial of a suite. */
struct column {
    double *scores;
    size_t count;
    const char **observed, **expected; /* of those with labels */
    size_t label_count;
};

static void column_done(struct column *column)
{
    free(column->scores);
    free(column->observed);
    free(column->expected);
}

static int compare_scores(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

static void score_metrics(struct column *column, json_t *metrics)
{
    size_t n = column->count;
    double sum = 0, squares = 0;

    json_put_int(metrics, "count", (int64_t)n);
    if (n == 0)
        return;
    qsort(column->scores, n, sizeof(double), compare_scores);
    for (size_t i = 0; i < n; i++)
        sum += column->scores[i];
    double mean = sum / (double)n;

    for (size_t i = 0; i < n; i++)
        squares += (column->scores[i] - mean) * (column->scores[i] - mean);
    json_put_real(metrics, "mean", mean);
    json_put_real(metrics, "median", (column->scores[(n - 1) / 2] + column->scores[n / 2]) / 2);
    /* Of a sample; of one row there is none to speak of. */
    json_put_real(metrics, "std", n < 2 ? 0 : sqrt(squares / (double)(n - 1)));
    json_put_real(metrics, "min", column->scores[0]);
    json_put_real(metrics, "max", column->scores[n - 1]);
}

/* --- labels ------------------------------------------------------------------------------------
 */

static json_t *confusion_of(const struct column *column)
{
    json_t *confusion = json_object();
    struct str_list labels = {0};

    for (size_t i = 0; i < column->label_count; i++) {
        const char *pair[] = {column->expected[i], column->observed[i]};

        for (size_t j = 0; j < ARRAY_SIZE(pair); j++) {
            if (str_list_has(&labels, pair[j]))
                continue;
            if (labels.count < SUITE_LABELS_MAX)
                str_list_add(&labels, pair[j]);
            else
                pair[j] = OTHER_LABEL;
        }
        json_t *row = json_object_get(confusion, pair[0]);

        if (row == NULL) {
            row = json_object();
            json_put(confusion, pair[0], row);
        }
        json_put_int(row, pair[1], json_get_int(row, pair[1], 0) + 1);
    }
    str_list_done(&labels);
    return confusion;
}

/* How often a label was expected, observed, and both. */
struct label_counts {
    double expected, observed, both;
};

static struct label_counts count_label(const json_t *confusion, const char *label)
{
    struct label_counts counts = {0};
    const char *expected, *observed;
    json_t *row, *cell;

    json_object_foreach ((json_t *)(uintptr_t)confusion, expected, row) {
        json_object_foreach (row, observed, cell) {
            double n = json_number_value(cell);
            bool is_expected = strcmp(expected, label) == 0;
            bool is_observed = strcmp(observed, label) == 0;

            counts.expected += is_expected ? n : 0;
            counts.observed += is_observed ? n : 0;
            counts.both += is_expected && is_observed ? n : 0;
        }
    }
    return counts;
}

static double ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static void put_label(json_t *metrics, const char *name, const char *label, double value)
{
    scoped(mem_freep) char *key = str_format("%s.%s", name, label);

    json_put_real(metrics, key, value);
}

/* Every label that was expected or observed, once. */
static void list_labels(const json_t *confusion, struct str_list *ret)
{
    const char *expected, *observed;
    json_t *row, *cell;

    json_object_foreach ((json_t *)(uintptr_t)confusion, expected, row) {
        if (!str_list_has(ret, expected))
            str_list_add(ret, expected);
        json_object_foreach (row, observed, cell) {
            if (!str_list_has(ret, observed))
                str_list_add(ret, observed);
        }
    }
    str_list_sort(ret);
}

static void label_metrics(const json_t *confusion, double total, json_t *metrics)
{
    struct str_list labels = {0};
    double right = 0, macro = 0, weighted = 0;

    list_labels(confusion, &labels);
    for (size_t i = 0; i < labels.count; i++) {
        struct label_counts counts = count_label(confusion, labels.items[i]);
        double precision = ratio(counts.both, counts.observed);
        double recall = ratio(counts.both, counts.expected);
        double f1 = ratio(2 * precision * recall, precision + recall);

        put_label(metrics, "precision", labels.items[i], precision);
        put_label(metrics, "recall", labels.items[i], recall);
        put_label(metrics, "f1", labels.items[i], f1);
        right += counts.both;
        macro += f1;
        weighted += f1 * counts.expected;
    }
    json_put_real(metrics, "accuracy", ratio(right, total));
    json_put_real(metrics, "macro_f1", ratio(macro, (double)labels.count));
    json_put_real(metrics, "weighted_f1", ratio(weighted, total));
    /* With one label a row, what is wrongly observed is wrongly missed: this is the accuracy. */
    json_put_real(metrics, "micro_f1", ratio(right, total));
    str_list_done(&labels);
}

/* --- suites ------------------------------------------------------------------------------------
 */

/* The task of a row, "TASK/ROW"; 0: no row of a dataset. */
static size_t base_length(const struct trial_record *record)
{
    const char *slash = strchr(record->task_id, '/');

    return slash == NULL ? 0 : (size_t)(slash - record->task_id);
}

static bool is_of_suite(const struct trial_record *record, const struct trial_record *first)
{
    size_t length = base_length(first);

    return record->status != STATUS_SKIPPED && base_length(record) == length &&
           strncmp(record->task_id, first->task_id, length) == 0 &&
           str_equal(record->variant_id, first->variant_id);
}

static void add_checks(const json_t *thresholds, struct suite_figures *figures)
{
    const char *metric;
    json_t *least;

    figures->checks = mem_new(json_object_size(thresholds) + 1, sizeof(*figures->checks));
    json_object_foreach ((json_t *)(uintptr_t)thresholds, metric, least) {
        const json_t *value = json_object_get(figures->metrics, metric);
        struct suite_check *check = &figures->checks[figures->check_count++];

        *check = (struct suite_check){.metric = str_dup(metric), .least = json_number_value(least)};
        check->has_value = json_is_number(value);
        check->value = json_number_value(value);
        /* A sum of rounded parts may miss what it is by a hair. */
        check->passed = check->has_value && check->value >= check->least - 1e-9;
    }
}

static const struct criterion_record *criterion_at(const struct trial_record *record, size_t index)
{
    return index < record->criterion_count ? &record->criteria[index] : NULL;
}

static void fill_column(const struct run_trials *trials, const struct trial_record *first,
                        struct suite_figures *figures, struct column *column)
{
    column->scores = mem_new(trials->count + 1, sizeof(double));
    column->observed = mem_new(trials->count + 1, sizeof(char *));
    column->expected = mem_new(trials->count + 1, sizeof(char *));
    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];
        const struct criterion_record *criterion = criterion_at(record, figures->criterion);

        if (!is_of_suite(record, first))
            continue;
        figures->rows++;
        if (criterion == NULL || !criterion->has_score)
            continue;
        column->scores[column->count++] = criterion->score;
        if (criterion->observed == NULL || criterion->expected == NULL)
            continue;
        column->observed[column->label_count] = criterion->observed;
        column->expected[column->label_count++] = criterion->expected;
    }
    figures->measured = column->count;
}

/* The first trial of the suite that has the criterion tells what it is and what is asked of it. */
static const struct criterion_record *find_criterion(const struct run_trials *trials,
                                                     const struct trial_record *first, size_t index)
{
    for (size_t i = 0; i < trials->count; i++) {
        const struct criterion_record *criterion = criterion_at(&trials->records[i], index);

        if (criterion != NULL && is_of_suite(&trials->records[i], first))
            return criterion;
    }
    return NULL;
}

static void add_figures(const struct run_trials *trials, const struct trial_record *first,
                        size_t index, struct suites *suites)
{
    const struct criterion_record *criterion = find_criterion(trials, first, index);
    scoped(column_done) struct column column = {0};

    ASSERT(criterion != NULL); /* a trial has as many */
    if (criterion->suite_thresholds == NULL && criterion->observed == NULL)
        return;
    suites->items = mem_resize(suites->items, suites->count + 1, sizeof(*suites->items));
    struct suite_figures *figures = &suites->items[suites->count++];

    *figures = (struct suite_figures){
        .variant_id = first->variant_id,
        .type = criterion->type,
        .description = criterion->description,
        .task_id = str_ndup(first->task_id, base_length(first)),
        .criterion = index,
        .metrics = json_object(),
    };
    fill_column(trials, first, figures, &column);
    score_metrics(&column, figures->metrics);
    if (column.label_count > 0) {
        figures->confusion = confusion_of(&column);
        label_metrics(figures->confusion, (double)column.label_count, figures->metrics);
    }
    add_checks(criterion->suite_thresholds, figures);
    for (size_t i = 0; i < figures->check_count; i++)
        suites->missed += !figures->checks[i].passed;
}

static bool is_first(const struct run_trials *trials, size_t index)
{
    const struct trial_record *record = &trials->records[index];

    /* Trials of a suite stand side by side, so the one before is enough in nearly every case. */
    for (size_t i = index; i-- > 0;) {
        if (is_of_suite(&trials->records[i], record))
            return false;
    }
    return true;
}

void suites_make(const struct run_trials *trials, struct suites *ret)
{
    *ret = (struct suites){0};
    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];
        size_t criteria = 0;

        if (base_length(record) == 0 || record->status == STATUS_SKIPPED || !is_first(trials, i))
            continue;
        for (size_t j = i; j < trials->count; j++) {
            if (is_of_suite(&trials->records[j], record))
                criteria = size_max(criteria, trials->records[j].criterion_count);
        }
        for (size_t j = 0; j < criteria; j++)
            add_figures(trials, record, j, ret);
    }
}

void suites_done(struct suites *suites)
{
    for (size_t i = 0; i < suites->count; i++) {
        struct suite_figures *figures = &suites->items[i];

        for (size_t j = 0; j < figures->check_count; j++)
            free(figures->checks[j].metric);
        free(figures->checks);
        free(figures->task_id);
        json_decref(figures->metrics);
        json_decref(figures->confusion);
    }
    free(suites->items);
    *suites = (struct suites){0};
}

char *suite_check_text(const struct suite_check *check)
{
    if (!check->has_value)
        return str_format("%s: there is none, at least %.4g expected", check->metric, check->least);
    return str_format("%s %.3g, at least %.4g expected", check->metric, check->value, check->least);
}

static json_t *check_json(const struct suite_check *check)
{
    json_t *object = json_object();

    json_put(object, "metric", json_text(check->metric, strlen(check->metric)));
    json_put_real(object, "least", check->least);
    json_put(object, "value", check->has_value ? json_real(check->value) : json_null());
    json_put_bool(object, "passed", check->passed);
    return object;
}

json_t *suites_json(const struct suites *suites)
{
    json_t *array = json_array();

    for (size_t i = 0; i < suites->count; i++) {
        const struct suite_figures *figures = &suites->items[i];
        json_t *object = json_object(), *checks = json_array();

        json_put(object, "task_id", json_text_or_null(figures->task_id));
        json_put(object, "variant_id", json_text_or_null(figures->variant_id));
        json_put_int(object, "criterion", (int64_t)figures->criterion + 1);
        json_put(object, "type", json_text_or_null(figures->type));
        json_put(object, "description", json_text_or_null(figures->description));
        json_put_int(object, "rows", (int64_t)figures->rows);
        json_put_int(object, "measured", (int64_t)figures->measured);
        json_put(object, "metrics", json_incref(figures->metrics));
        json_put(object, "confusion",
                 figures->confusion == NULL ? json_null() : json_incref(figures->confusion));
        for (size_t j = 0; j < figures->check_count; j++)
            json_push(checks, check_json(&figures->checks[j]));
        json_put(object, "checks", checks);
        json_push(array, object);
    }
    return array;
}
