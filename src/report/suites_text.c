/* Figures of datasets on a terminal. */
#include "report/suites.h"

#include "base/mem.h"
#include "report/suites_text.h"

#define INDENT 4

static void head(const struct painter *painter, const struct suite_figures *figures)
{
    scoped(mem_freep) char *name = str_format(
        "%s/%s criterion %zu: %s", figures->variant_id, figures->task_id, figures->criterion + 1,
        figures->description == NULL ? "" : figures->description);
    scoped(mem_freep) char *rows =
        str_format(" (%zu of %zu rows)", figures->measured, figures->rows);

    paint_spaces(painter, 2);
    (void)paint_raw(painter, PAINT_BOLD, name, strlen(name), 0);
    paint_text(painter, PAINT_DIM, rows);
    buf_char(painter->buf, '\n');
}

static void line(const struct painter *painter, enum trial_look look, const char *text)
{
    paint_spaces(painter, INDENT);
    paint_text(painter, look_paint(look), painter_signs(painter)->look[look]);
    paint_spaces(painter, 1);
    (void)paint_raw(painter, PAINT_PLAIN, text, strlen(text), 0);
    buf_char(painter->buf, '\n');
}

static void metrics(const struct painter *painter, const struct suite_figures *figures)
{
    const char *metric;
    json_t *value;

    json_object_foreach (figures->metrics, metric, value) {
        scoped(mem_freep) char *text = str_format("%s %.4g", metric, json_number_value(value));

        line(painter, LOOK_NEUTRAL, text);
    }
}

static bool has_missed(const struct suite_figures *figures)
{
    for (size_t i = 0; i < figures->check_count; i++) {
        if (!figures->checks[i].passed)
            return true;
    }
    return false;
}

void suites_text(const struct painter *painter, const struct run_trials *trials, bool verbose)
{
    scoped(suites_done) struct suites suites = {0};
    bool begun = false;

    suites_make(trials, &suites);
    for (size_t i = 0; i < suites.count; i++) {
        const struct suite_figures *figures = &suites.items[i];

        if (!verbose && !has_missed(figures))
            continue;
        if (!begun)
            buf_char(painter->buf, '\n');
        begun = true;
        head(painter, figures);
        for (size_t j = 0; j < figures->check_count; j++) {
            scoped(mem_freep) char *text = suite_check_text(&figures->checks[j]);

            if (verbose || !figures->checks[j].passed)
                line(painter, figures->checks[j].passed ? LOOK_PASSED : LOOK_FAILED, text);
        }
        if (verbose)
            metrics(painter, figures);
    }
}
