/* Whatever comes in, what goes out is valid UTF-8 without a single control or hidden character. */
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The test of its own, not the table of term.c: C0, DEL, C1, direction marks, zero widths. */
static bool is_harmless(uint32_t rune, enum term_flags flags)
{
    if (rune < 0x20)
        return flags == TERM_LINES && (rune == '\n' || rune == '\t');
    if ((rune >= 0x7f && rune <= 0x9f) || rune == 0x61c || rune == 0xfeff)
        return false;
    return !(rune >= 0x200b && rune <= 0x200f) && !(rune >= 0x2028 && rune <= 0x202e) &&
           !(rune >= 0x2060 && rune <= 0x206f);
}

static void check(const uint8_t *data, size_t size, enum term_flags flags)
{
    scoped(buf_done) struct buf shown = {0};
    scoped(buf_done) struct buf again = {0};

    term_quote(&shown, data, size, flags);
    const char *s = buf_text(&shown);

    for (size_t left = shown.size_bytes; left > 0;) {
        uint32_t rune;
        size_t length = utf8_next(s, left, &rune);

        ASSERT(length > 0 && is_harmless(rune, flags));
        s += length;
        left -= length;
    }
    /* What is harmless already stays as it is. */
    term_quote(&again, buf_text(&shown), shown.size_bytes, flags);
    ASSERT(strcmp(buf_text(&again), buf_text(&shown)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, TERM_ONE_LINE);
    check(data, size, TERM_LINES);
    scoped(json_freep) json_t *text = json_text(data, size);

    ASSERT(utf8_valid(json_string_value(text), json_string_length(text)));
    return 0;
}
