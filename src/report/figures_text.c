#include "report/figures_text.h"

#include <math.h>

#include "base/mem.h"

#define LABEL_COLUMNS 18
#define VALUE_COLUMNS 9
#define RANGE_COLUMNS 20
#define TASK_COLUMNS_MAX 48

void figures_label(const struct painter *painter, const char *name)
{
    paint_spaces(painter, 4);
    paint_cell(painter, PAINT_DIM, name, LABEL_COLUMNS, ALIGN_LEFT);
}

void figures_line(const struct painter *painter, const char *name, const char *text)
{
    figures_label(painter, name);
    buf_text_append(painter->buf, text);
    buf_char(painter->buf, '\n');
}

/* "  61.0 to 79.5 %", filled up. */
static void percent_range(struct buf *buf, struct interval interval)
{
    scoped(mem_freep) char *text =
        isnan(interval.low)
            ? str_dup("")
            : str_format("%.1f to %.1f %%", 100 * interval.low, 100 * interval.high);

    buf_format(buf, "%-*s", RANGE_COLUMNS, text);
}

static void rate_line(const struct painter *painter, const char *name,
                      const struct cluster_mean *mean, struct interval interval)
{
    scoped(mem_freep) char *share =
        isnan(mean->mean) ? str_dup("none") : str_format("%.1f %%", 100 * mean->mean);
    scoped(buf_done) struct buf text = {0};

    buf_format(&text, "%-*s", VALUE_COLUMNS, share);
    percent_range(&text, interval);
    buf_format(&text, "%zu trials of %zu task%s", mean->trials, mean->clusters,
               mean->clusters == 1 ? "" : "s");
    figures_line(painter, name, buf_text(&text));
}

static void score_line(const struct painter *painter, const struct variant_figures *variant)
{
    scoped(buf_done) struct buf text = {0};

    if (isnan(variant->score.mean))
        return;
    scoped(mem_freep) char *range =
        str_format("%.3f to %.3f", variant->score_bootstrap.low, variant->score_bootstrap.high);

    buf_format(&text, "%-*.3f%-*s", VALUE_COLUMNS, variant->score.mean, RANGE_COLUMNS, range);
    if (!isnan(variant->score.standard_error))
        buf_format(&text, "standard error %.3f", variant->score.standard_error);
    figures_line(painter, "score", buf_text(&text));
}

static void pass_k_lines(const struct painter *painter, const struct variant_figures *variant)
{
    scoped(buf_done) struct buf at = {0};
    scoped(buf_done) struct buf hat = {0};

    if (variant->pass_k_count < 2)
        return;
    for (size_t i = 0; i < variant->pass_k_count; i++) {
        buf_format(&at, "%s%zu: %.1f %%", i == 0 ? "" : "   ", variant->pass_k[i].k,
                   100 * variant->pass_k[i].at);
        buf_format(&hat, "%s%zu: %.1f %%", i == 0 ? "" : "   ", variant->pass_k[i].k,
                   100 * variant->pass_k[i].hat);
    }
    figures_line(painter, "pass@k", buf_text(&at));
    figures_line(painter, "pass^k", buf_text(&hat));
}

static void cost_lines(const struct painter *painter, const struct variant_figures *variant)
{
    scoped(buf_done) struct buf cost = {0};
    scoped(buf_done) struct buf time = {0};
    double passed = (double)variant->passed;

    if (variant->priced > 0) {
        buf_format(&cost, "$%.4f", variant->cost_usd);
        if (variant->passed > 0)
            buf_format(&cost, ", $%.4f a pass", variant->cost_usd / passed);
        if (variant->priced < variant->decided + variant->errors)
            buf_format(&cost, " (known of %zu of %zu trials)", variant->priced,
                       variant->decided + variant->errors);
        figures_line(painter, "cost", buf_text(&cost));
    }
    duration_text(&time, variant->agent_seconds * 1000);
    if (variant->passed > 0) {
        buf_text_append(&time, ", ");
        duration_text(&time, variant->agent_seconds * 1000 / passed);
        buf_text_append(&time, " a pass");
    }
    figures_line(painter, "agent time", buf_text(&time));
}

static void apart_line(const struct painter *painter, const struct variant_figures *variant)
{
    const struct {
        size_t count;
        const char *what;
    } kinds[] = {
        {variant->compromised, "COMPROMISED, counted as not passed"},
        {variant->not_graded, "not graded, left out"},
        {variant->skipped, "skipped, left out"},
        {variant->oracle, "of an oracle, left out"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        scoped(buf_done) struct buf text = {0};

        if (kinds[i].count == 0)
            continue;
        buf_format(&text, "%zu %s", kinds[i].count, kinds[i].what);
        figures_line(painter, "apart", buf_text(&text));
    }
}

static void task_lines(const struct painter *painter, const struct variant_figures *variant,
                       bool whole, double confidence)
{
    for (size_t i = 0; i < variant->task_count; i++) {
        const struct task_figures *task = &variant->tasks[i];
        bool sometimes = task->passed > 0 && task->passed < task->decided;
        scoped(buf_done) struct buf text = {0};

        if ((!whole && !sometimes) || task->decided == 0)
            continue;
        paint_spaces(painter, 6);
        paint_cell(painter, sometimes ? PAINT_YELLOW : PAINT_PLAIN, task->task_id, TASK_COLUMNS_MAX,
                   ALIGN_LEFT);
        buf_format(&text, "%zu of %zu", task->passed, task->decided);
        paint_cell(painter, PAINT_PLAIN, buf_text(&text), 12, ALIGN_RIGHT);
        buf_clear(&text);
        buf_text_append(&text, "   ");
        percent_range(&text, jeffreys_interval(task->passed, task->decided, confidence));
        while (text.size_bytes > 0 && text.data[text.size_bytes - 1] == ' ')
            text.data[--text.size_bytes] = '\0';
        buf_text_append(painter->buf, buf_text(&text));
        buf_char(painter->buf, '\n');
    }
}

static void variant_text(const struct painter *painter, const struct variant_figures *variant,
                         const struct figures_options *options, bool whole)
{
    scoped(buf_done) struct buf steady = {0};

    buf_char(painter->buf, '\n');
    paint_spaces(painter, 2);
    (void)paint_raw(painter, PAINT_BOLD, variant->variant_id, strlen(variant->variant_id), 0);
    buf_char(painter->buf, '\n');
    rate_line(painter, "pass rate", &variant->pass, variant->pass_wilson);
    if (variant->errors > 0) {
        scoped(mem_freep) char *name =
            str_format("with %zu error%s", variant->errors, variant->errors == 1 ? "" : "s");

        rate_line(painter, name, &variant->with_errors, variant->with_errors_wilson);
    }
    score_line(painter, variant);
    pass_k_lines(painter, variant);
    cost_lines(painter, variant);
    apart_line(painter, variant);
    buf_format(&steady, "%zu always pass, %zu never, %zu sometimes", variant->always,
               variant->never, variant->sometimes);
    figures_line(painter, "tasks", buf_text(&steady));
    task_lines(painter, variant, whole, options->confidence);
}

void figures_text(const struct painter *painter, const struct run_figures *figures, bool whole)
{
    scoped(mem_freep) char *note = str_format(
        "intervals: %.4g %%, tasks as clusters; a task's own: its chance to pass (Jeffreys)",
        100 * figures->options.confidence);

    for (size_t i = 0; i < figures->count; i++)
        variant_text(painter, &figures->variants[i], &figures->options, whole);
    buf_char(painter->buf, '\n');
    paint_spaces(painter, 2);
    paint_text(painter, PAINT_DIM, note);
    buf_char(painter->buf, '\n');
}
