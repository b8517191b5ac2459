#include "report/variants.h"

#include "base/mem.h"
#include "report/trial_text.h"

#define NAME_COLUMNS_MAX 40
#define NUMBER_COLUMNS 8
#define GAP 2

struct variant_totals {
    const char *name;
    size_t trials, decided, passed, errors, scored;
    double score_sum;
    size_t next; /* the first trial of the next variant */
};

static struct variant_totals add_up(const struct run_trials *trials, size_t first)
{
    struct variant_totals totals = {.name = trials->records[first].variant_id};
    size_t i = first;

    for (; i < trials->count && str_equal(trials->records[i].variant_id, totals.name); i++) {
        const struct trial_record *record = &trials->records[i];

        totals.trials++;
        totals.decided += record->has_verdict;
        totals.passed += trial_has_passed(record);
        totals.errors += record->status == STATUS_ERROR || record->status == STATUS_BUILD_FAILED;
        totals.scored += record->has_score;
        totals.score_sum += record->has_score ? record->score : 0;
    }
    totals.next = i;
    return totals;
}

static void number(const struct painter *painter, const char *text)
{
    paint_cell(painter, PAINT_PLAIN, text, NUMBER_COLUMNS, ALIGN_RIGHT);
}

static void head(const struct painter *painter, size_t columns)
{
    static const char *const names[] = {"TRIALS", "PASSED", "RATE", "SCORE", "ERRORS"};

    buf_char(painter->buf, '\n');
    paint_spaces(painter, 4);
    paint_cell(painter, PAINT_DIM, "VARIANT", columns, ALIGN_LEFT);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        paint_cell(painter, PAINT_DIM, names[i], NUMBER_COLUMNS, ALIGN_RIGHT);
    buf_char(painter->buf, '\n');
}

static void row(const struct painter *painter, const struct variant_totals *totals, size_t columns)
{
    const char *none = painter_signs(painter)->none;
    scoped(mem_freep) char *trials = str_format("%zu", totals->trials);
    scoped(mem_freep) char *passed = str_format("%zu", totals->passed);
    scoped(mem_freep) char *errors = str_format("%zu", totals->errors);
    scoped(mem_freep) char *rate =
        totals->decided == 0
            ? str_dup(none)
            : str_format("%.0f %%", 100.0 * (double)totals->passed / (double)totals->decided);
    scoped(mem_freep) char *score =
        totals->scored == 0 ? str_dup(none)
                            : str_format("%.2f", totals->score_sum / (double)totals->scored);

    paint_spaces(painter, 4);
    paint_cell(painter, PAINT_PLAIN, totals->name, columns, ALIGN_LEFT);
    number(painter, trials);
    number(painter, passed);
    number(painter, rate);
    number(painter, score);
    number(painter, errors);
    buf_char(painter->buf, '\n');
}

void variants_table(const struct painter *painter, const struct run_trials *trials)
{
    size_t columns = strlen("VARIANT");
    size_t variants = 0;

    for (size_t i = 0; i < trials->count; variants++) {
        struct variant_totals totals = add_up(trials, i);

        columns = size_max(columns, raw_columns(totals.name));
        i = totals.next;
    }
    if (variants < 2)
        return;
    columns = size_min(columns, NAME_COLUMNS_MAX);
    head(painter, columns);
    for (size_t i = 0; i < trials->count;) {
        struct variant_totals totals = add_up(trials, i);

        row(painter, &totals, columns);
        i = totals.next;
    }
}
