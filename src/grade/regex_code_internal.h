#pragma once
/*
 * A compiled pattern, for what searches with it: regex.c and regex_replace.c.
 */

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "grade/regex.h"

/* A search may always take this many steps a byte: what is linear is never refused. */
#define STEPS_PER_BYTE 16

/*
 * PCRE2's own limits count for one starting position and leave plain repeats of a compiled pattern
 * uncounted: ".*.*.*x" on a long line would take hours. So the pattern is compiled with a callout
 * at each item, which counts items and the distance between them against steps_left.
 */
struct regex {
    pcre2_code *code;
    pcre2_match_data *match; /* NULL, as context, until it is prepared */
    pcre2_match_context *context;
    pcre2_jit_stack *stack; /* NULL where no code can be made at run time */
    uint64_t steps_left;
    size_t position; /* of the last callout */
};
/* What a search needs besides the code, made on first use: most patterns are compiled to see that
 * they can be, when a task is checked, and searched for elsewhere. */
void regex_prepare(struct regex *regex) nonnull(1);
