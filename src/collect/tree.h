#pragma once
/*
 * tree: sealing a source: a digest of what it looks like, and a copy with its manifest.
 *
 * The source may change while it is read and may hold anything; what the rules take is copied, what
 * they leave is not looked into, what cannot be staged is an error that names it. Only descriptors
 * are used. Part of closedbook-worker; tests call it in process. Depends on: base.
 */

#include "base/error.h"
#include "base/str.h"
#include "collect/manifest.h"

/* What of a source is taken. Lists may be NULL; paths are relative to the source. */
struct tree_rules {
    /*
     * As in task files: a pattern without '/' is matched against names at any depth, one with '/'
     * against paths from the source's root; a '/' at the end: directories only; "!pattern" takes
     * back what an earlier one ignored. The last that matches decides.
     */
    const struct str_list *ignore;
    const struct str_list *leave_out; /* these paths and all below */
    const struct str_list *hollow;    /* these directories and files are kept, but empty */
    const struct str_list *only;      /* when not NULL: only what these patterns match, and below */
    /* directories of the copy whose own files everybody may execute */
    const struct str_list *executable;
    bool skip_runs;   /* directories that hold a run.json are left out */
    bool keep_links;  /* links that lead out of the source are kept as text */
    bool public_only; /* what not everybody may read is left out, FIFOs, sockets and devices too */
    uint64_t max_entries, max_bytes; /* 0: no limit but the walk's */
};

struct tree_copy {
    const char *mount_point; /* where the content goes, "." is the copy's root */
    const char *file_name;   /* not NULL: the source is one regular file, open for reading */
    bool sync;               /* syncfs() at the end */
};

/*
 * Digest over (path, type, mode, size, mtime, ctime, inode, device) of all that the rules take. Of
 * links below the root's own directories only path, type, inode and device: their text never
 * changes, and a link that takes another's place shows in the times of its directory. When two
 * digests are equal and *ret_newest_ns, the newest ctime, lay before the first one began, nothing
 * changed.
 */
must_check int tree_stat_key(int source_fd, const struct tree_rules *rules, struct sha256 *ret,
                             uint64_t *ret_newest_ns, struct error **err) nonnull(2, 3, 4);

/*
 * Copies the source into destination_fd/tree and writes destination_fd/manifest.jsonl; both must
 * not exist. Modes are kept without set-id bits, times of files too; the owner is the
 * destination's. *ret is the manifest. ERROR_TASK for what the author can fix, ERROR_LIMIT past a
 * limit. After a failure the destination holds a part: the caller removes it.
 */
must_check int tree_add(int source_fd, int destination_fd, const struct tree_rules *rules,
                        const struct tree_copy *copy, struct manifest *ret, struct error **err)
    nonnull(3, 4, 5);

/* True when the rules leave path out. is_dir: it is a directory. */
bool tree_is_ignored(const struct tree_rules *rules, const char *path, bool is_dir) nonnull(1, 2);
