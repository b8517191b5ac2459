#include <math.h>

#include "base/mem.h"
#include "report/figures_text.h"

#define FLIPS_SHOWN 20
#define NAMES_SHOWN 5
#define TASK_COLUMNS_MAX 48

/* As a share: in points of a hundred; else as it is. */
static void result_line(const struct painter *painter, const char *name,
                        const struct comparison_result *result, bool is_share)
{
    double scale = is_share ? 100 : 1;
    int digits = is_share ? 1 : 3;
    scoped(buf_done) struct buf text = {0};

    if (result->tasks == 0)
        return;
    buf_format(&text, "%.*f to %.*f", digits, scale * result->a, digits, scale * result->b);
    buf_format(&text, "   %+.*f", digits, scale * result->difference);
    if (!isnan(result->interval.low))
        buf_format(&text, " (%+.*f to %+.*f)", digits, scale * result->interval.low, digits,
                   scale * result->interval.high);
    buf_format(&text, "   p %.3f", result->p);
    if (result->p_adjusted != result->p)
        buf_format(&text, ", %.3f with Holm", result->p_adjusted);
    if (!isnan(result->effect))
        buf_format(&text, "   d %.2f", result->effect);
    figures_line(painter, name, buf_text(&text));
}

static void names_line(const struct painter *painter, const char *name, const char *const *names,
                       size_t count, bool whole)
{
    size_t shown = whole ? count : size_min(count, NAMES_SHOWN);

    if (count == 0)
        return;
    figures_label(painter, name);
    buf_format(painter->buf, "%zu: ", count);
    for (size_t i = 0; i < shown; i++) {
        if (i > 0)
            buf_text_append(painter->buf, ", ");
        (void)paint_raw(painter, PAINT_PLAIN, names[i], strlen(names[i]), 0);
    }
    if (shown < count)
        buf_text_append(painter->buf, ", ...");
    buf_char(painter->buf, '\n');
}

static void flip_lines(const struct painter *painter, const struct comparison *comparison,
                       bool whole)
{
    size_t shown = whole ? comparison->flip_count : size_min(comparison->flip_count, FLIPS_SHOWN);
    scoped(mem_freep) char *counts =
        str_format("%zu worse, %zu better", comparison->worse, comparison->better);

    figures_line(painter, "tasks", counts);
    for (size_t i = 0; i < shown; i++) {
        const struct comparison_flip *flip = &comparison->flips[i];
        bool worse = flip->b_passed * flip->a_decided < flip->a_passed * flip->b_decided;
        scoped(mem_freep) char *text = str_format("%zu of %zu, then %zu of %zu", flip->a_passed,
                                                  flip->a_decided, flip->b_passed, flip->b_decided);

        paint_spaces(painter, 6);
        paint_cell(painter, worse ? PAINT_RED : PAINT_GREEN, flip->task_id, TASK_COLUMNS_MAX,
                   ALIGN_LEFT);
        paint_spaces(painter, 2);
        buf_text_append(painter->buf, text);
        buf_char(painter->buf, '\n');
    }
    if (shown < comparison->flip_count) {
        paint_spaces(painter, 6);
        buf_format(painter->buf, "%zu more (-v shows them)\n", comparison->flip_count - shown);
    }
}

/* The sentence, a line for each of its parts: "; " divides them. */
static void sentence_lines(const struct painter *painter, const struct comparison *comparison)
{
    enum paint paint = comparison_is_worse(comparison)    ? PAINT_RED
                       : comparison_is_better(comparison) ? PAINT_GREEN
                                                          : PAINT_PLAIN;
    scoped(buf_done) struct buf sentence = {0};

    comparison_sentence(&sentence, comparison);
    for (const char *rest = buf_text(&sentence); rest != NULL;) {
        const char *end = strstr(rest, "; ");
        scoped(mem_freep) char *part =
            end == NULL ? str_dup(rest) : str_format("%.*s;", (int)(end - rest), rest);

        paint_spaces(painter, rest == buf_text(&sentence) ? 2 : 4);
        paint_text(painter, paint, part);
        buf_char(painter->buf, '\n');
        rest = end == NULL ? NULL : end + 2;
    }
}

void comparison_text(const struct painter *painter, const struct comparison *comparison, bool whole)
{
    buf_char(painter->buf, '\n');
    paint_text(painter, PAINT_DIM, "  A ");
    (void)paint_raw(painter, PAINT_BOLD, comparison->a.name, strlen(comparison->a.name), 0);
    paint_text(painter, PAINT_DIM, "   B ");
    (void)paint_raw(painter, PAINT_BOLD, comparison->b.name, strlen(comparison->b.name), 0);
    buf_char(painter->buf, '\n');
    sentence_lines(painter, comparison);
    result_line(painter, "pass rate, %", &comparison->pass, true);
    if (comparison->has_mcnemar) {
        scoped(mem_freep) char *pairs =
            str_format("only A passes %zu, only B %zu   p %.3f (McNemar, exact)",
                       comparison->only_a, comparison->only_b, comparison->mcnemar_p);

        figures_line(painter, "pairs that differ", pairs);
    }
    result_line(painter, "score", &comparison->score, false);
    flip_lines(painter, comparison, whole);
    names_line(painter, "only in A", comparison->only_in_a, comparison->only_in_a_count, whole);
    names_line(painter, "only in B", comparison->only_in_b, comparison->only_in_b_count, whole);
    names_line(painter, "graded otherwise", comparison->changed, comparison->changed_count, whole);
}
