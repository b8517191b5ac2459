#include "base/term.h"

/* Code points that show nothing, or change how what is around them shows. Sorted. */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0080, 0x009f},   /* C1 controls */
    {0x00ad, 0x00ad},   /* soft hyphen */
    {0x034f, 0x034f},   /* combining grapheme joiner */
    {0x061c, 0x061c},   /* Arabic letter mark */
    {0x115f, 0x1160},   /* Hangul fillers */
    {0x17b4, 0x17b5},   /* Khmer inherent vowels */
    {0x180b, 0x180f},   /* Mongolian selectors and vowel separator */
    {0x200b, 0x200f},   /* zero width space, joiners, direction marks */
    {0x2028, 0x202e},   /* line and paragraph separators, embeddings, overrides */
    {0x2060, 0x206f},   /* word joiner, invisible operators, isolates, deprecated controls */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xfe00, 0xfe0f},   /* variation selectors */
    {0xfeff, 0xfeff},   /* byte order mark, zero width no-break space */
    {0xffa0, 0xffa0},   /* halfwidth Hangul filler */
    {0xfff0, 0xfffb},   /* unassigned ignorables, interlinear annotation */
    {0x1bca0, 0x1bca3}, /* shorthand controls */
    {0x1d173, 0x1d17a}, /* musical controls */
    {0xe0000, 0xe0fff}, /* tags, more variation selectors */
};

bool rune_is_hidden(uint32_t rune)
{
    for (size_t i = 0; i < ARRAY_SIZE(hidden) && hidden[i].first <= rune; i++) {
        if (rune <= hidden[i].last)
            return true;
    }
    return false;
}

static void quote_rune(struct buf *buf, uint32_t rune, const char *bytes, size_t size,
                       enum term_flags flags)
{
    bool lines = (flags & TERM_LINES) != 0;

    if ((rune == '\n' || rune == '\t') && lines)
        buf_char(buf, (char)rune);
    else if (rune == '\n')
        buf_text_append(buf, "\\n");
    else if (rune == '\t')
        buf_text_append(buf, "\\t");
    else if (rune < 0x20 || rune == 0x7f)
        buf_format(buf, "\\x%02x", rune);
    else if (rune_is_hidden(rune))
        buf_format(buf, "\\u{%04x}", rune);
    else
        buf_append(buf, bytes, size);
}

void term_quote(struct buf *buf, const void *bytes, size_t size, enum term_flags flags)
{
    const char *s = bytes;

    while (size > 0) {
        uint32_t rune;
        size_t length = utf8_next(s, size, &rune);

        if (length == 0) {
            buf_format(buf, "\\x%02x", (unsigned)(unsigned char)*s);
            length = 1;
        } else {
            quote_rune(buf, rune, s, length, flags);
        }
        s += length;
        size -= length;
    }
}

char *term_quoted(const char *s)
{
    scoped(buf_done) struct buf quoted = {0};

    term_quote(&quoted, s, strlen(s), TERM_ONE_LINE);
    return buf_take(&quoted);
}
