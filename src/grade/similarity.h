#pragma once
/*
 * similarity: how alike two texts are, 0 to 1, in near-linear time, whatever language they are in.
 *
 * A text becomes a row of units; the score of two rows is the Dice coefficient of their n-grams as
 * multisets, 2 * common / (all of the one + all of the other), rows padded with n - 1 blanks at
 * both ends, so that two rows of no units are equal. docs/formats/similarity.md has the formulas.
 * Any bytes are a text. Depends on: base.
 */

#include "base/base.h"
#include "base/buf.h"

enum similarity_method {
    SIMILARITY_TOKEN,      /* words, numbers, strings and marks as they are: 3-grams */
    SIMILARITY_LINE,       /* lines, blanks evened out: mean of 1-grams and 2-grams */
    SIMILARITY_STRUCTURE,  /* tokens by class, keywords and marks as they are: 4-grams */
    SIMILARITY_COMPLEXITY, /* size, branches and definitions: mean of min / max of each */
};

/* Which marks begin a comment, by the end of a file's name; comments are no tokens. */
enum comment_style {
    COMMENT_NONE = 0,
    COMMENT_HASH = 1 << 0,   /* # to the end of the line */
    COMMENT_SLASH = 1 << 1,  /* // to the end of the line, slash-star to star-slash */
    COMMENT_DASHES = 1 << 2, /* -- to the end of the line */
};
unsigned comment_style_of(const char *file_name) nonnull(1);

struct similarity_text {
    const char *bytes;
    size_t size;
    unsigned comments; /* enum comment_style */
};

double similarity(enum similarity_method method, const struct similarity_text *a,
                  const struct similarity_text *b) nonnull(2, 3);
/* The score of two rows of words, one a line (what the Python method prints): 3-grams. */
double similarity_of_words(const struct buf *a, const struct buf *b) nonnull(1, 2);

/* What `complexity` compares. */
struct complexity {
    uint64_t lines;       /* with at least one token */
    uint64_t branches;    /* if, for, while, case, catch and their like, && || and or ? */
    uint64_t definitions; /* def, function, fn, func, class, struct and their like */
};
struct complexity complexity_of(const struct similarity_text *text) nonnull(1);
