#pragma once
/*
 * manifest: what is in a tree: one entry a path, sorted by path bytes, with a Merkle root.
 *
 * Text form: JSON lines, docs/formats/manifest.md: {"path","type":"file|dir|link","mode":"0644",
 * "size","sha256"|"target"}. The root is SHA-256 over the canonical lines, directory by directory.
 * Used by the worker (static) and by closedbook, so: base, jansson and SHA-256 only.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

#include <sys/types.h>

#define MANIFEST_ENTRIES_MAX ((size_t)2000000)

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
void manifest_add(struct manifest *manifest, const struct manifest_entry *entry) nonnull(1, 2);
void manifest_sort(struct manifest *manifest) nonnull(1);
struct sha256 manifest_root(const struct manifest *manifest) nonnull(1);
void manifest_write(struct buf *buf, const struct manifest *manifest) nonnull(1, 2);
must_check int manifest_read(const char *name, const char *text, size_t size, struct manifest *ret,
                             struct error **err) nonnull(1, 2, 4);
/* upper on top of lower, as an overlay would show it; *ret is new. */
void manifest_compose(const struct manifest *lower, const struct manifest *upper,
                      struct manifest *ret) nonnull(1, 2, 3);
void manifest_done(struct manifest *manifest) nonnull(1);
