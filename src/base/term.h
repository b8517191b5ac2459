#pragma once
/*
 * term: the only way bytes of a task, agent, model or file name reach a terminal.
 */

#include "base/base.h"
#include "base/buf.h"

/*
 * Appends size bytes with everything that could move a cursor, change a colour or reorder text made
 * visible: C0 and C1 controls, DEL, bidi and zero-width characters and invalid UTF-8 as \xNN or
 * \u{NNNN}. '\n' and '\t' pass when TERM_LINES is given, else they are shown as \n and \t.
 */
enum term_flags { TERM_ONE_LINE = 0, TERM_LINES = 1 << 0 };
void term_quote(struct buf *buf, const void *bytes, size_t size, enum term_flags flags) nonnull(1);
/* One line, owned. */
char *term_quoted(const char *s) malloc_like nonnull(1);

/* Shows nothing, or changes how what is around it shows: bidi marks, zero-width characters, C1. */
bool rune_is_hidden(uint32_t rune);
bool utf8_valid(const void *bytes, size_t size);
/* Length of the valid sequence at s (1..4), 0 when invalid; *ret_rune is set when not 0. */
size_t utf8_next(const char *s, size_t size, uint32_t *ret_rune) nonnull(3);
/* Terminal columns of a valid UTF-8 text (utf8proc). */
size_t utf8_columns(const char *s) nonnull(1);
