#include <math.h>

#include "base/mem.h"
#include "report/figures_text.h"
#include "stats/paired.h"

#define LEVEL 0.05
#define POWER 0.8

const double figures_plan_differences[FIGURES_PLAN_COLUMNS] = {0.02, 0.05, 0.10, 0.20};
const size_t figures_plan_replicates[FIGURES_PLAN_ROWS] = {1, 2, 3, 5, 10};

/* The unbiased variance within a task, c (n - c) / (n (n - 1)), averaged over tasks. */
static double spread_of(const struct variant_figures *variant, bool *ret_is_guess)
{
    double sum = 0;
    size_t tasks = 0;

    for (size_t i = 0; i < variant->task_count; i++) {
        double n = (double)variant->tasks[i].decided;
        double c = (double)variant->tasks[i].passed;

        if (n < 2)
            continue;
        sum += c * (n - c) / (n * (n - 1));
        tasks++;
    }
    *ret_is_guess = tasks == 0;
    if (tasks > 0)
        return sum / (double)tasks;
    return variant->pass.mean * (1 - variant->pass.mean);
}

void figures_plan(const struct variant_figures *variant, struct figures_plan *ret)
{
    *ret = (struct figures_plan){0};
    ret->spread = spread_of(variant, &ret->is_guess);
    for (size_t i = 0; i < FIGURES_PLAN_ROWS; i++) {
        /* The difference of two means of r trials each. */
        double deviation = sqrt(2 * ret->spread / (double)figures_plan_replicates[i]);

        for (size_t j = 0; j < FIGURES_PLAN_COLUMNS; j++)
            ret->tasks[i][j] =
                pairs_needed_score(figures_plan_differences[j], deviation, LEVEL, POWER);
    }
}

static void cell(const struct painter *painter, const char *text, enum paint paint)
{
    paint_cell(painter, paint, text, 12, ALIGN_RIGHT);
}

static void plan_table(const struct painter *painter, const struct figures_plan *plan)
{
    paint_spaces(painter, 4);
    paint_cell(painter, PAINT_DIM, "REPLICATES", 12, ALIGN_LEFT);
    for (size_t j = 0; j < FIGURES_PLAN_COLUMNS; j++) {
        scoped(mem_freep) char *text = str_format("%.0f points", 100 * figures_plan_differences[j]);

        cell(painter, text, PAINT_DIM);
    }
    buf_char(painter->buf, '\n');
    for (size_t i = 0; i < FIGURES_PLAN_ROWS; i++) {
        scoped(mem_freep) char *replicates = str_format("%zu", figures_plan_replicates[i]);

        paint_spaces(painter, 4);
        paint_cell(painter, PAINT_PLAIN, replicates, 12, ALIGN_LEFT);
        for (size_t j = 0; j < FIGURES_PLAN_COLUMNS; j++) {
            scoped(mem_freep) char *text = str_format("%zu", size_max(plan->tasks[i][j], 2));

            cell(painter, text, PAINT_PLAIN);
        }
        buf_char(painter->buf, '\n');
    }
}

void figures_plan_text(const struct painter *painter, const struct run_figures *figures)
{
    for (size_t i = 0; i < figures->count; i++) {
        const struct variant_figures *variant = &figures->variants[i];
        struct figures_plan plan;

        figures_plan(variant, &plan);
        buf_char(painter->buf, '\n');
        paint_spaces(painter, 2);
        (void)paint_raw(painter, PAINT_BOLD, variant->variant_id, strlen(variant->variant_id), 0);
        if (variant->decided == 0) {
            buf_text_append(painter->buf, "   nothing was decided: nothing to plan with\n");
            continue;
        }
        buf_text_append(painter->buf, "   tasks needed to see a difference of so many points\n");
        plan_table(painter, &plan);
        paint_spaces(painter, 4);
        paint_text(painter, PAINT_DIM,
                   plan.is_guess ? "no task has two trials: as if all tasks were alike, which is "
                                   "the worst case; run with --repeats 3 to know better\n"
                                 : "level 0.05, power 80 %, two runs on the same tasks\n");
    }
}
