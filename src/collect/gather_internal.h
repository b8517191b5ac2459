#pragma once
/*
 * gather_internal: what the files of gather share: the plan of what will be written.
 */

#include "collect/gather.h"
#include "collect/walk.h"

/* One entry of the archive. */
struct planned {
    struct manifest_entry entry; /* the digest is there once the bytes were written */
    bool modified;               /* else added */
    char *
        lower_path; /* not NULL: the bytes stand there in the staged layers, not in the workspace */
};

struct plan {
    struct planned *items;
    size_t count, capacity;
    uint64_t bytes, name_bytes;
};

struct move {
    const char *from, *to; /* borrowed: of staged, the plan or redirects */
};

struct redirect {
    char *from, *to;
};

struct gather {
    const struct gather_input *input;
    struct plan plan;
    bool *kept; /* per staged entry: it is still there, changed or not */
    struct gather_remarks refused, notes;
    struct redirect *redirects; /* directories that an overlay moved */
    size_t redirect_count;
    /*
     * Overlay: the directory of the staged tree that shows through the workspace's directory at
     * each depth of the walk; NULL: none. lower[0] is the root's.
     */
    char *lower[WALK_DEPTH_MAX + 2];
};

void gather_remark(struct gather_remarks *remarks, const char *path, const char *reason)
    nonnull(1, 2, 3);
/*
 * Compares one entry with what was staged at its path and plans it unless they are equal. The
 * digest must be set when same_size() says that only it can tell. lower_path as in struct planned.
 */
void gather_entry(struct gather *gather, const struct manifest_entry *entry, const char *lower_path)
    nonnull(1, 2);
/* True when path's staged entry is a file of the same mode and size. */
bool gather_needs_digest(const struct gather *gather, const struct manifest_entry *entry)
    nonnull(1, 2);

/* Overlay's marks (gather_overlay.c). */
bool gather_is_whiteout(const struct walk_entry *entry) nonnull(1);
must_check int gather_overlay_dir(struct gather *gather, const struct walk_entry *entry,
                                  struct error **err) nonnull(1, 2);
must_check int gather_overlay_file(const struct gather *gather, const struct walk_entry *entry,
                                   struct error **err) nonnull(1, 2);
/* What shows through the directory at path beside the names of the upper layer. */
void gather_overlay_through(struct gather *gather, const char *path, const struct str_list *names)
    nonnull(1, 2, 3);
/* Fails unless the marks can be read at all. */
must_check int gather_overlay_check(const struct gather *gather, struct error **err) nonnull(1);
