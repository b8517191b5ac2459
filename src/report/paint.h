#pragma once
/*
 * paint: the few means of a terminal: colours, signs, and text cut and padded to columns.
 *
 * Everything here takes raw text and quotes it itself.
 */

#include "base/buf.h"
#include "report/trial_text.h"

enum paint {
    PAINT_PLAIN,
    PAINT_BOLD,
    PAINT_DIM,
    PAINT_GREEN,
    PAINT_RED,
    PAINT_YELLOW,
    PAINT_COUNT
};

struct painter {
    struct buf *buf;
    bool colour, ascii;
};

/* Our own signs; each is one column wide. */
struct signs {
    const char *look[LOOK_COUNT]; /* passed, failed, error, neutral */
    const char *bar, *ellipsis, *none, *dot, *done, *rest;
};
const struct signs *painter_signs(const struct painter *painter) nonnull(1);
enum paint look_paint(enum trial_look look);

/* Text of ours, as it is. */
void paint_text(const struct painter *painter, enum paint paint, const char *text) nonnull(1, 3);
/* Raw text, quoted, cut to columns with an ellipsis (0: never). Returns the columns it took. */
size_t paint_raw(const struct painter *painter, enum paint paint, const char *raw, size_t size,
                 size_t columns) nonnull(1, 3);
/* The same, filled up with spaces after (or, to the right, before) the text. */
enum paint_align { ALIGN_LEFT, ALIGN_RIGHT };
void paint_cell(const struct painter *painter, enum paint paint, const char *raw, size_t columns,
                enum paint_align align) nonnull(1, 3);
void paint_spaces(const struct painter *painter, size_t count) nonnull(1);
/* Columns of raw text once quoted. */
size_t raw_columns(const char *raw) nonnull(1);
