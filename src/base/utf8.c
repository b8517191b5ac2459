#include "base/term.h"

/* What the first byte says: how long the sequence is, and its smallest code point. */
static size_t sequence_length(unsigned char first, uint32_t *ret_smallest, uint32_t *ret_bits)
{
    if (first >= 0xc2 && first <= 0xdf) {
        *ret_smallest = 0x80;
        *ret_bits = first & 0x1f;
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        *ret_smallest = 0x800;
        *ret_bits = first & 0x0f;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *ret_smallest = 0x10000;
        *ret_bits = first & 0x07;
        return 4;
    }
    return 0;
}

size_t utf8_next(const char *s, size_t size, uint32_t *ret_rune)
{
    uint32_t smallest, rune;

    if (size == 0)
        return 0;
    if ((unsigned char)s[0] < 0x80) {
        *ret_rune = (unsigned char)s[0];
        return 1;
    }
    size_t length = sequence_length((unsigned char)s[0], &smallest, &rune);

    if (length == 0 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        unsigned char next = (unsigned char)s[i];

        if ((next & 0xc0) != 0x80)
            return 0;
        rune = rune << 6 | (next & 0x3fU);
    }
    if (rune < smallest || rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
        return 0;
    *ret_rune = rune;
    return length;
}

bool utf8_valid(const void *bytes, size_t size)
{
    const char *s = bytes;
    uint32_t rune;

    while (size > 0) {
        size_t length = utf8_next(s, size, &rune);

        if (length == 0)
            return false;
        s += length;
        size -= length;
    }
    return true;
}
