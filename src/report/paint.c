#include "report/paint.h"

#include "base/mem.h"
#include "base/term.h"

static const char *const codes[PAINT_COUNT] = {
    [PAINT_PLAIN] = "",         [PAINT_BOLD] = "\033[1m", [PAINT_DIM] = "\033[2m",
    [PAINT_GREEN] = "\033[32m", [PAINT_RED] = "\033[31m", [PAINT_YELLOW] = "\033[33m",
};

static const struct signs pretty = {
    .look = {"✓", "✗", "!", "○"},
    .bar = "│",
    .ellipsis = "…",
    .none = "–",
    .dot = "·",
    .done = "━",
    .rest = "╌",
};

static const struct signs plain = {
    .look = {"+", "x", "!", "o"},
    .bar = "|",
    .ellipsis = "~",
    .none = "-",
    .dot = "-",
    .done = "#",
    .rest = ".",
};

const struct signs *painter_signs(const struct painter *painter)
{
    return painter->ascii ? &plain : &pretty;
}

enum paint look_paint(enum trial_look look)
{
    switch (look) {
    case LOOK_PASSED:
        return PAINT_GREEN;
    case LOOK_FAILED:
        return PAINT_RED;
    case LOOK_ERROR:
        return PAINT_YELLOW;
    case LOOK_NEUTRAL:
    case LOOK_COUNT:
        return PAINT_DIM;
    }
    return PAINT_DIM;
}

void paint_text(const struct painter *painter, enum paint paint, const char *text)
{
    bool coloured = painter->colour && paint != PAINT_PLAIN && text[0] != '\0';

    if (coloured)
        buf_text_append(painter->buf, codes[paint]);
    buf_text_append(painter->buf, text);
    if (coloured)
        buf_text_append(painter->buf, "\033[0m");
}

/* Bytes of the longest start of valid text that takes at most columns; *ret gets what it takes. */
static size_t fitting(const char *text, size_t columns, size_t *ret)
{
    size_t size = strlen(text);
    size_t at = 0;
    size_t taken = 0;

    while (at < size) {
        char rune_text[8] = "";
        uint32_t rune = 0;
        size_t n = utf8_next(text + at, size - at, &rune);

        ASSERT(n > 0 && n < sizeof(rune_text));
        memcpy(rune_text, text + at, n);

        size_t width = utf8_columns(rune_text);

        if (taken + width > columns)
            break;
        taken += width;
        at += n;
    }
    *ret = taken;
    return at;
}

/* Cuts quoted text; returns its columns. */
static size_t cut(const struct painter *painter, struct buf *quoted, size_t columns)
{
    size_t taken = utf8_columns(buf_text(quoted));

    if (columns == 0 || taken <= columns)
        return taken;

    size_t bytes = fitting(buf_text(quoted), columns - 1, &taken);

    ASSERT(quoted->data != NULL && bytes <= quoted->size_bytes);
    quoted->size_bytes = bytes;
    quoted->data[bytes] = '\0';
    buf_text_append(quoted, painter_signs(painter)->ellipsis);
    return taken + 1;
}

static void quote_tabs(struct buf *quoted, const char *raw, size_t size)
{
    for (const char *end = raw + size; raw < end;) {
        const char *tab = memchr(raw, '\t', (size_t)(end - raw));
        const char *stop = tab == NULL ? end : tab;

        term_quote(quoted, raw, (size_t)(stop - raw), TERM_ONE_LINE);
        if (tab != NULL)
            buf_text_append(quoted, "    ");
        raw = stop + (tab != NULL);
    }
}

size_t paint_raw(const struct painter *painter, enum paint paint, const char *raw, size_t size,
                 size_t columns)
{
    scoped(buf_done) struct buf quoted = {0};

    quote_tabs(&quoted, raw, size);

    size_t taken = cut(painter, &quoted, columns);

    paint_text(painter, paint, buf_text(&quoted));
    return taken;
}

void paint_spaces(const struct painter *painter, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_char(painter->buf, ' ');
}

void paint_cell(const struct painter *painter, enum paint paint, const char *raw, size_t columns,
                enum paint_align align)
{
    size_t width = size_min(raw_columns(raw), columns);

    if (align == ALIGN_RIGHT)
        paint_spaces(painter, columns - width);

    size_t taken = paint_raw(painter, paint, raw, strlen(raw), columns);

    if (align == ALIGN_LEFT && taken < columns)
        paint_spaces(painter, columns - taken);
}

size_t raw_columns(const char *raw)
{
    scoped(buf_done) struct buf quoted = {0};

    quote_tabs(&quoted, raw, strlen(raw));
    return utf8_columns(buf_text(&quoted));
}
