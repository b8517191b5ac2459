#pragma once
/*
 * gather: the difference between what was staged and what an agent left, as an archive and a list.
 *
 * The workspace is hostile input at rest: nothing runs in it any more. It is either the tree itself
 * (WORKSPACE_TREE) or the upper layer of an overlay over the staged layers, whose marks (whiteouts,
 * opaque directories, redirects) are read here. Whatever the agent did is a result; errors are the
 * machine's. Part of closedbook-worker; closedbook itself calls gather_nothing() alone, and tests
 * call all in process. Depends on: base.
 */

#include "base/error.h"
#include "base/hash.h"
#include "collect/manifest.h"

#define GATHER_ENTRIES_MAX ((size_t)400000)        /* added and changed entries */
#define GATHER_NAME_BYTES_MAX ((uint64_t)64 << 20) /* of their paths and link texts together */
#define GATHER_BYTES_MAX ((uint64_t)2 << 30)       /* of them, holes counted */
#define GATHER_LISTED_MAX 1000                     /* refusals, and notes, that are listed */
#define GATHER_LAYERS_MAX 8

enum workspace_kind {
    WORKSPACE_TREE,
    WORKSPACE_UPPER_TRUSTED, /* overlay with marks in trusted.overlay.* */
    WORKSPACE_UPPER_USER,    /* overlay mounted with userxattr */
};

struct gather_input {
    enum workspace_kind kind;
    int workspace_fd; /* a directory, O_PATH is enough */
    const struct manifest *staged;
    int layer_fds[GATHER_LAYERS_MAX]; /* of an upper: the staged layers, first at the bottom */
    size_t layer_count;
    const char *root_path; /* what the workspace is called in the cell, for absolute links */
    uint64_t max_entries, max_bytes; /* 0: GATHER_ENTRIES_MAX, GATHER_BYTES_MAX */
};

/* A thing that was left out, or changed on the way, and why. */
struct gather_remark {
    char *path, *reason;
};

struct gather_remarks {
    struct gather_remark items[GATHER_LISTED_MAX];
    size_t count; /* of items */
    uint64_t total;
};

struct gather_counts {
    uint64_t added, modified, deleted, moved;
    uint64_t files, bytes; /* entries and bytes of files in the archive */
    struct sha256 archive, changes;
};

struct gather; /* opaque: the differences, before they are written */
void gather_freep(struct gather **gather) nonnull(1);

/* Walks and compares. */
must_check int gather_find(const struct gather_input *input, struct gather **ret,
                           struct error **err) nonnull(1, 2);
/* The same for a workspace that is known to be as it was staged: nothing is looked at. */
void gather_nothing(const struct gather_input *input, struct gather **ret) nonnull(1, 2);
/*
 * Writes the archive and changes.json to descriptors that are empty. A file that cannot be read is
 * ERROR_SYSTEM. gather_find()'s input must still be there.
 */
must_check int gather_write(struct gather *gather, int archive_fd, int changes_fd,
                            struct gather_counts *ret, struct error **err) nonnull(1, 4);
/* What was refused. The gather owns it. */
const struct gather_remarks *gather_refused(const struct gather *gather) nonnull(1);
