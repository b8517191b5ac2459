#pragma once
/*
 * manifest: what is in a tree: one entry a path, sorted, with a Merkle root.
 *
 * Entries stand in tree order: paths compare byte by byte with '/' below every other byte, so a
 * directory comes before its content and its content is one run. Every parent is an entry.
 * Text form: JSON lines, docs/formats/manifest.md: {"path","type":"file|dir|link","mode":"0644",
 * "size","sha256"|"target"}. The root is SHA-256 over such lines, directory by directory.
 * Used by the worker (static) and by closedbook, so: base only.
 */

#include <sys/types.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

#define MANIFEST_ENTRIES_MAX ((size_t)2000000)
#define MANIFEST_PATH_BYTES_MAX 4095
/* Permission bits that a manifest keeps: set-id bits are never staged. */
#define MANIFEST_MODE_BITS ((mode_t)01777)

enum manifest_type { MANIFEST_FILE, MANIFEST_DIR, MANIFEST_LINK };

struct manifest_entry {
    char *path; /* relative to the tree, no leading "./"; any bytes but NUL, kept escaped in JSON */
    enum manifest_type type;
    mode_t mode; /* permission bits only */
    uint64_t size_bytes;
    struct sha256 digest; /* of the bytes, or of the link's text */
    char *target;         /* MANIFEST_LINK: its text */
};

struct manifest {
    struct manifest_entry *entries;
    size_t count;
    uint64_t bytes; /* sum of file sizes */
};

/* Entry of a path (binary search), NULL when absent. */
const struct manifest_entry *manifest_find(const struct manifest *manifest, const char *path)
    nonnull(1, 2);
/* Appends a copy of the entry; manifest_sort() must follow before anything else reads it. */
void manifest_add(struct manifest *manifest, const struct manifest_entry *entry) nonnull(1, 2);
/* Tree order; of equal paths the last added stays; missing parents become directories of 0755. */
void manifest_sort(struct manifest *manifest) nonnull(1);
/* The order of paths: < 0, 0 or > 0. */
int manifest_path_compare(const char *a, const char *b) nonnull(1, 2);
/* True when path is ancestor itself or lies below it. */
bool manifest_path_below(const char *path, const char *ancestor) nonnull(1, 2);
/* Index of the first entry at or after path (manifest->count when there is none). */
size_t manifest_lower_bound(const struct manifest *manifest, const char *path) nonnull(1, 2);

struct sha256 manifest_root(const struct manifest *manifest) nonnull(1);
void manifest_write(struct buf *buf, const struct manifest *manifest) nonnull(1, 2);
/* One line with its newline. */
void manifest_write_entry(struct buf *buf, const struct manifest_entry *entry) nonnull(1, 2);
/*
 * Appends the inside of a JSON string: '%', control characters, characters that term_quote() would
 * show (bidi marks and the like) and bytes that are not UTF-8 as %XX, then '"' and '\\' escaped.
 * The one way paths and link texts stand in our JSON files.
 */
void manifest_escape(struct buf *buf, const char *text) nonnull(1, 2);
/* Undoes the %XX of manifest_escape() on a text whose JSON escapes are already gone; owned; NULL
 * when text is nothing that manifest_escape() writes. */
char *manifest_unescape(const char *text) nonnull(1);
/* Strict: exactly what manifest_write() emits. ERROR_SYSTEM with "name:line: " on anything else. */
must_check int manifest_read(const char *name, const char *text, size_t size, struct manifest *ret,
                             struct error **err) nonnull(1, 2, 4);
/* upper on top of lower, as an overlay of the two trees would show it; *ret is new. */
void manifest_compose(const struct manifest *lower, const struct manifest *upper,
                      struct manifest *ret) nonnull(1, 2, 3);
void manifest_done(struct manifest *manifest) nonnull(1);
