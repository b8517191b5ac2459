#include <utf8proc.h>

#include "base/term.h"

size_t utf8_columns(const char *s)
{
    size_t columns = 0, size = strlen(s);
    uint32_t rune;

    while (size > 0) {
        size_t length = utf8_next(s, size, &rune);

        if (length == 0)
            return columns; /* the caller promised valid text */
        int width = utf8proc_charwidth((utf8proc_int32_t)rune);

        columns += width > 0 ? (size_t)width : 0;
        s += length;
        size -= length;
    }
    return columns;
}
