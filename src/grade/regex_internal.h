#pragma once
/*
 * What regex.c and regex_translate.c share.
 */

#include "base/buf.h"
#include "grade/regex.h"

#define REGEX_NESTING_MAX 250 /* PCRE2's own default */

/* A pattern in PCRE2's spelling; origins holds a uint32_t per byte of text: where it came from. */
struct regex_text {
    struct buf text;
    struct buf origins;
};
void regex_text_done(struct regex_text *text) nonnull(1);
/* The offset in the author's pattern that an offset in the text stands for. */
size_t regex_text_origin(const struct regex_text *text, size_t offset) nonnull(1);

/* The pattern in PCRE2's spelling; *flags gains the global inline flags of the pattern. */
must_check int regex_translate(const char *pattern, unsigned *flags, struct regex_text *ret,
                               struct error **err) nonnull(1, 2, 3);
