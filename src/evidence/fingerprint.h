#pragma once
/*
 * fingerprint: whether text of one side stands in another, in whatever layout.
 *
 * Of a text only letters, digits and bytes beyond ASCII count, letters without case: indentation,
 * line ends, quoting, comment signs, `snake_case` against `camelCase` and interleaved NULs (UTF-16)
 * do not matter. A fingerprint is the hash of FINGERPRINT_GRAM such characters in a row; an index
 * keeps those whose place is chosen by what stands there, one in FINGERPRINT_SPACING on average (as
 * winnowing does, but without a window: the choice is the same on both sides, so every place of the
 * other side is looked at once). Grams of fewer than FINGERPRINT_VARIETY different characters, and
 * stretches of the alphabet, say nothing and are none.
 *
 * An index belongs to one task: its private files in, then fingerprint_index_seal(), then only
 * read, also by forked children. Depends on: base.
 */

#include "base/base.h"
#include "base/buf.h"

#define FINGERPRINT_GRAM 40
#define FINGERPRINT_SPACING 4
#define FINGERPRINT_VARIETY 10
#define FINGERPRINT_ORDERED 13 /* as many characters that follow on the one before: an alphabet */
#define FINGERPRINT_FILES_MAX ((size_t)65536)
#define FINGERPRINT_FILE_BYTES_MAX ((size_t)64 << 20)

struct fingerprint_index; /* opaque */

struct fingerprint_index *fingerprint_index_new(void) malloc_like;
void fingerprint_index_free(struct fingerprint_index *index);
void fingerprint_index_freep(struct fingerprint_index **index);
/* Begins a private file; its number, from 0 in the order of calls. */
size_t fingerprint_file_begin(struct fingerprint_index *index, const char *name) nonnull(1, 2);
/* The first text of each file that is added from now on is kept. */
void fingerprint_index_keep_texts(struct fingerprint_index *index) nonnull(1);
/* What was kept of a file; NULL: nothing. The index owns it. */
const char *fingerprint_file_text(const struct fingerprint_index *index, size_t file) nonnull(1);
/* Text of the file that was begun last; several texts of one file may be added. */
void fingerprint_file_add(struct fingerprint_index *index, const char *text, size_t size)
    nonnull(1);
/* What stands in this text, too, is not private in the file that was begun last. */
void fingerprint_file_subtract(struct fingerprint_index *index, const char *text, size_t size)
    nonnull(1);
/* As above, of every file. */
void fingerprint_index_subtract(struct fingerprint_index *index, const char *text, size_t size)
    nonnull(1);
void fingerprint_index_seal(struct fingerprint_index *index) nonnull(1);

size_t fingerprint_file_count(const struct fingerprint_index *index) nonnull(1);
const char *fingerprint_file_name(const struct fingerprint_index *index, size_t file) nonnull(1);
/* Fingerprints that remain of a file. */
size_t fingerprint_file_size(const struct fingerprint_index *index, size_t file) nonnull(1);

/* What was found so far: one set of marks over an index, which it borrows. */
struct fingerprint_marks; /* opaque */

struct fingerprint_marks *fingerprint_marks_new(const struct fingerprint_index *index) malloc_like
    nonnull(1);
void fingerprint_marks_free(struct fingerprint_marks *marks);
void fingerprint_marks_freep(struct fingerprint_marks **marks);
void fingerprint_marks_clear(struct fingerprint_marks *marks) nonnull(1);
/*
 * Marks what of the index stands in a text; texts of different calls are not joined. Returns how
 * many marks are new. except: marks of these are not set (NULL: none).
 */
size_t fingerprint_marks_add(struct fingerprint_marks *marks, const char *text, size_t size,
                             const struct fingerprint_marks *except) nonnull(1);
/* As above, for a text that comes in pieces: they are joined until the end is said. */
size_t fingerprint_marks_feed(struct fingerprint_marks *marks, const char *piece, size_t size,
                              const struct fingerprint_marks *except) nonnull(1);
void fingerprint_marks_feed_end(struct fingerprint_marks *marks) nonnull(1);

/* Marks all that the other has marked, too; both are over one index. */
void fingerprint_marks_merge(struct fingerprint_marks *marks, const struct fingerprint_marks *other)
    nonnull(1, 2);

/* How much of a private file was found. */
struct fingerprint_overlap {
    size_t file;
    size_t found, all; /* fingerprints */
    /* The longest run of found ones without one between them that was not: in counted characters,
     * and where it lies in the file's text. */
    size_t run_chars;
    size_t run_offset, run_bytes;
};
/* Of one file; found is 0 when there is nothing. */
void fingerprint_overlap_of(const struct fingerprint_marks *marks, size_t file,
                            struct fingerprint_overlap *ret) nonnull(1, 3);
