#pragma once
/*
 * tokens: $REFERENCE_DIR, $INPUT_DIR and $TASK_DIR in a text. The one rule that loader, runner and
 * lint share: `$X` and `${X}`, quoted or not, are tokens; `$X_Y`, `\$X` and `$$X` are not.
 *
 * Depends on: base.
 */

#include "base/base.h"

enum token_kind { TOKEN_REFERENCE_DIR, TOKEN_INPUT_DIR, TOKEN_TASK_DIR, TOKEN_COUNT };

struct token {
    enum token_kind kind;
    size_t start, length; /* bytes in the text, the '$' included */
};

/* "REFERENCE_DIR" ... */
const char *token_name(enum token_kind kind);
/* The next token at or after *position, which then stands behind it. False: no more. */
bool token_next(const char *text, size_t *position, struct token *ret) nonnull(1, 2, 3);
bool token_is_in(const char *text, enum token_kind kind) nonnull(1);
/* The text with every token of that kind replaced; owned. */
char *token_replace(const char *text, enum token_kind kind, const char *by) malloc_like
    nonnull(1, 3);

/*
 * Any variable, by the same rule: `$NAME` or `${NAME}`. *ret_start and *ret_length are those of
 * NAME. False: no more.
 */
bool variable_next(const char *text, size_t *position, size_t *ret_start, size_t *ret_length)
    nonnull(1, 2, 3, 4);
