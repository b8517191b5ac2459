#include <math.h>

#include "base/mem.h"
#include "report/html_internal.h"

#define BAR_WIDTH 220
#define BAR_HEIGHT 22
#define SQUARE 12
#define SQUARE_GAP 2
#define MAP_TASKS_MAX 2000

/* --- rates -------------------------------------------------------------------------------------
 */

/* A rate and its interval on a line from 0 to 1. */
static void bar(struct buf *buf, double rate, struct interval interval)
{
    double middle = BAR_HEIGHT / 2.0;

    if (isnan(rate) || isnan(interval.low))
        return;
    buf_format(buf,
               "<svg width=\"%d\" height=\"%d\" role=\"img\" aria-label=\"%.1f %%, %.1f to %.1f "
               "%%\"><line class=\"axis\" x1=\"4\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>",
               BAR_WIDTH + 8, BAR_HEIGHT, 100 * rate, 100 * interval.low, 100 * interval.high,
               BAR_WIDTH + 4, middle, middle);
    buf_format(buf,
               "<line class=\"range\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><circle "
               "class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/></svg>",
               4 + BAR_WIDTH * interval.low, 4 + BAR_WIDTH * interval.high, middle, middle,
               4 + BAR_WIDTH * rate, middle);
}

static void number(struct buf *buf, const char *format, double value)
{
    buf_text_append(buf, "<td class=\"n\">");
    if (!isnan(value)) {
        if (str_equal(format, "%"))
            buf_format(buf, "%.1f %%", 100 * value);
        else
            buf_format(buf, "%.3f", value);
    }
    buf_text_append(buf, "</td>");
}

static void variant_row(struct buf *buf, const struct variant_figures *variant)
{
    size_t most = variant->pass_k_count;
    double passed = (double)variant->passed;

    buf_text_append(buf, "<tr><td>");
    html_text(buf, variant->variant_id);
    buf_format(buf, "</td><td class=\"n\">%zu of %zu</td>", variant->passed, variant->decided);
    number(buf, "%", variant->pass.mean);
    buf_text_append(buf, "<td>");
    bar(buf, variant->pass.mean, variant->pass_wilson);
    buf_text_append(buf, "</td>");
    number(buf, "", variant->score.mean);
    if (most < 2) {
        buf_text_append(buf, "<td></td>");
    } else {
        buf_format(buf, "<td class=\"n\">@%zu %.1f %%<br>^%zu %.1f %%</td>",
                   variant->pass_k[most - 1].k, 100 * variant->pass_k[most - 1].at,
                   variant->pass_k[most - 1].k, 100 * variant->pass_k[most - 1].hat);
    }
    buf_format(buf,
               "<td class=\"n\">%zu always<br>%zu never<br>%zu sometimes</td><td "
               "class=\"n\">%zu</td><td class=\"n\">",
               variant->always, variant->never, variant->sometimes, variant->errors);
    if (variant->priced > 0)
        buf_format(buf, "$%.4f", variant->cost_usd);
    if (variant->priced > 0 && variant->passed > 0)
        buf_format(buf, "<br>$%.4f a pass", variant->cost_usd / passed);
    buf_text_append(buf, "</td><td class=\"n\">");
    duration_text(buf, variant->agent_seconds * 1000);
    buf_text_append(buf, "</td></tr>\n");
}

void html_figures(struct buf *buf, const struct run_figures *figures)
{
    if (figures->count == 0)
        return;
    buf_text_append(buf,
                    "<h2>Figures</h2>\n<div class=\"scroll\"><table>\n<tr><th>variant</th><th "
                    "class=\"n\">passed</th><th class=\"n\">rate</th><th>0 % to 100 %, 95 % "
                    "interval</th><th class=\"n\">score</th><th class=\"n\">pass@k, pass^k</th><th "
                    "class=\"n\">tasks</th><th class=\"n\">errors</th><th "
                    "class=\"n\">cost</th><th class=\"n\">agent time</th></tr>\n");
    for (size_t i = 0; i < figures->count; i++)
        variant_row(buf, &figures->variants[i]);
    buf_text_append(buf,
                    "</table></div>\n<p class=\"dim\">Intervals count tasks, not trials; errors "
                    "are left out of rates. docs/statistics.md has the formulas.</p>\n");
}

/* --- the map -----------------------------------------------------------------------------------
 */

/* A square for each trial of one variant's task; they stand one after the other. */
static void squares(struct buf *buf, const struct run_trials *trials, size_t first,
                    const char *task_id)
{
    size_t end = first;

    while (end < trials->count && str_equal(trials->records[end].task_id, task_id) &&
           str_equal(trials->records[end].variant_id, trials->records[first].variant_id))
        end++;
    buf_format(buf, "<svg width=\"%zu\" height=\"%d\">", (end - first) * (SQUARE + SQUARE_GAP),
               SQUARE);
    for (size_t i = first; i < end; i++) {
        const struct trial_record *record = &trials->records[i];

        buf_format(buf,
                   "<a href=\"#t%zu\"><rect class=\"f-%s\" x=\"%zu\" y=\"0\" width=\"%d\" "
                   "height=\"%d\" rx=\"2\"><title>%s</title></rect></a>",
                   i, html_look(trial_look(record)), (i - first) * (SQUARE + SQUARE_GAP), SQUARE,
                   SQUARE, trial_status_name(record->status));
    }
    buf_text_append(buf, "</svg>");
}

/* The first trial of a task in a variant; trials->count: there is none. */
static size_t find_first(const struct run_trials *trials, const char *variant_id,
                         const char *task_id)
{
    size_t low = 0;
    size_t high = trials->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct trial_record *record = &trials->records[middle];
        int order = strcmp(record->variant_id, variant_id);

        if (order == 0)
            order = strcmp(record->task_id, task_id);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < trials->count && str_equal(trials->records[low].variant_id, variant_id) &&
        str_equal(trials->records[low].task_id, task_id))
        return low;
    return trials->count;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every task of some variant, once; owned list of borrowed names. */
static const char **task_names(const struct run_figures *figures, size_t *ret_count)
{
    size_t total = 0;
    size_t count = 0;

    for (size_t i = 0; i < figures->count; i++)
        total += figures->variants[i].task_count;

    const char **names = mem_new(total, sizeof(*names));

    for (size_t i = 0; i < figures->count; i++) {
        for (size_t j = 0; j < figures->variants[i].task_count; j++)
            names[count++] = figures->variants[i].tasks[j].task_id;
    }
    if (count > 0)
        qsort(names, count, sizeof(*names), compare_names);
    total = count;
    count = 0;
    for (size_t i = 0; i < total; i++) {
        if (count == 0 || !str_equal(names[count - 1], names[i]))
            names[count++] = names[i];
    }
    *ret_count = count;
    return names;
}

void html_map(struct buf *buf, const struct run_trials *trials, const struct run_figures *figures)
{
    size_t count = 0;
    scoped(mem_freep) const char **names = task_names(figures, &count);

    if (count < 2)
        return;
    buf_text_append(buf, "<h2>Tasks</h2>\n<div class=\"scroll\"><table>\n<tr><th>task</th>");
    for (size_t i = 0; i < figures->count; i++) {
        buf_text_append(buf, "<th>");
        html_text(buf, figures->variants[i].variant_id);
        buf_text_append(buf, "</th>");
    }
    buf_text_append(buf, "</tr>\n");
    for (size_t n = 0; n < size_min(count, MAP_TASKS_MAX); n++) {
        buf_text_append(buf, "<tr><td>");
        html_text(buf, names[n]);
        buf_text_append(buf, "</td>");
        for (size_t i = 0; i < figures->count; i++) {
            size_t first = find_first(trials, figures->variants[i].variant_id, names[n]);

            buf_text_append(buf, "<td>");
            if (first < trials->count)
                squares(buf, trials, first, names[n]);
            buf_text_append(buf, "</td>");
        }
        buf_text_append(buf, "</tr>\n");
    }
    buf_text_append(buf, "</table></div>\n");
    if (count > MAP_TASKS_MAX)
        buf_format(buf, "<p class=\"dim\">%zu further tasks are left out here.</p>\n",
                   count - MAP_TASKS_MAX);
}
