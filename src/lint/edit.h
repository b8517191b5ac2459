#pragma once
/*
 * edit: changes to a text by its bytes, and a file that gets them whole or not at all.
 *
 * Depends on: base.
 */

#include "base/buf.h"
#include "base/error.h"
#include "lint/lint.h"

/* Owned edits in any order. Two that touch the same bytes are a mistake of ours: the later goes. */
struct edits {
    struct lint_edit *items;
    size_t count;
};
/* Takes text over. */
void edits_add(struct edits *edits, size_t start, size_t end, char *text) nonnull(1, 4);
void edits_done(struct edits *edits) nonnull(1);
/* The text with all edits made; returns how many were left out because they overlap another. */
size_t edits_apply(struct edits *edits, const char *text, size_t size, struct buf *ret)
    nonnull(1, 2, 4);

/* Where a character of a text is in its bytes; a byte order mark is not counted. */
size_t edit_byte_of(const char *text, size_t size, size_t character) nonnull(1);

/*
 * The file becomes these bytes, its mode stays. Not through a symbolic link. ERROR_USER when it
 * cannot be written (the program has no more rights than who started it, and as root less).
 */
must_check int edit_write(const char *path, const struct buf *content, struct error **err)
    nonnull(1, 2);
/* What changes, as a unified diff with three lines around; old and new are the whole texts. */
void edit_diff(const char *path, const char *old, const char *changed, struct buf *ret)
    nonnull(1, 2, 3, 4);
