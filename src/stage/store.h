#pragma once
/*
 * store: content-addressed trees, sealed once written, in two roots that never mix.
 *
 * Public entries (STORE/public/<root digest>/{tree,manifest.jsonl}) are kept between runs and may
 * be layers of any cell. Private ones (STORE/private/<run id>/<digest>/...) are 0700, belong to one
 * run, are removed at its end or, after a crash, by the next command that finds the run's lock
 * gone. An entry is written by the worker into a temporary directory, synced, then renamed: it is
 * whole or absent. Every file in it is owned by the process's own id; modes are kept without set-id
 * bits. Temporary directories and private parts are held by a lock file beside them: without a
 * holder they are removed by the next store_open(). Depends on: base, cell, collect.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/str.h"
#include "cell/cell.h"
#include "collect/manifest.h"

#define STORE_ENTRIES_MAX ((size_t)200000)   /* paths of one private entry */
#define STORE_BYTES_MAX ((uint64_t)64 << 30) /* of one entry */

struct store; /* opaque */

/*
 * root: the store's directory (made 0700 when absent, the caller's own when not); run_id names the
 * private part, NULL: none. ERROR_USER when another process holds that run.
 */
must_check int store_open(const char *root, const char *run_id, struct store **ret,
                          struct error **err) nonnull(1, 3);
/* Drops the private part of this run (unless forked children still hold the store) and the lock. */
void store_close(struct store *store);
void store_closep(struct store **store);
/* Removes private parts whose lock is gone. Called by store_open(); counted for `doctor`. */
must_check int store_sweep(struct store *store, size_t *ret_removed, struct error **err)
    nonnull(1, 2);
/* The default root: $XDG_CACHE_HOME/closedbook, or /var/cache/closedbook for root; owned. */
char *store_default_root(void);

enum store_half { STORE_PUBLIC, STORE_PRIVATE };

/* Where the bytes of an entry come from. */
struct store_source {
    int fd;                  /* a directory (or a regular file: then name it in file_name) */
    const char *label;       /* for errors: the path as the author wrote it */
    const char *mount_point; /* relative path that the content gets in the entry, "." = its root */
    const char *file_name;   /* NULL: fd is a directory */
    const struct str_list *ignore;    /* patterns as in task-format.md, NULL: none */
    const struct str_list *leave_out; /* exact relative paths (subtrees) to leave out, NULL: none */
    const struct str_list *hollow;    /* exact relative paths that are kept empty, NULL: none */
    const struct str_list *only;      /* patterns of what is taken, NULL: everything */
    const struct str_list
        *executable;    /* directories of the entry whose files get mode x, or NULL */
    bool skip_runs;     /* leave out directories that hold a run.json */
    bool keep_links;    /* keep links that lead out as text instead of refusing them */
    bool public_only;   /* leave out what not everybody may read, and what is no file, directory or
                           link */
    bool tree_only;     /* the layer's manifest is not wanted, so a found one is not read */
    uint64_t max_bytes; /* 0: STORE_BYTES_MAX */
    uint64_t max_entries; /* 0: STORE_ENTRIES_MAX */
};

/* One sealed entry. The descriptors are the layer's. Of a found tree_only one, root and tree alone
 * are set. */
struct layer {
    struct sha256 root;
    uint64_t files, bytes; /* files counts every entry */
    int tree_fd;
    struct manifest manifest;
};

/*
 * Adds the source's content, or finds it: by what this process staged before (one run sees one
 * state of a source), by stat key (nothing of the source changed since), else by digest. Links that
 * lead out of the source are an error that names them; devices, sockets and FIFOs are an error.
 * ERROR_TASK for what the author can fix. monitor NULL: the copy is made in this process, with its
 * rights (our own files).
 */
must_check int store_add(struct store *store, enum store_half half, struct monitor *monitor,
                         const struct store_source *source, struct layer *ret, struct error **err)
    nonnull(1, 4, 5);
/* A tree of small files made by us: paths and contents. */
struct store_file {
    const char *path;
    const char *content;
    const char *target; /* not NULL: a link with this text, in place of a file */
};
struct store_files {
    const struct store_file *items;
    size_t count;
    const char *mount_point;
    const struct str_list *executable; /* as in struct store_source */
};
must_check int store_add_files(struct store *store, enum store_half half,
                               const struct store_files *files, struct layer *ret,
                               struct error **err) nonnull(1, 3, 4);
/* The layers on top of each other as one entry of the half; they must be complete. */
must_check int store_merge(struct store *store, enum store_half half, const struct layer *layers,
                           size_t count, struct layer *ret, struct error **err) nonnull(1, 3, 5);
/* An entry by its digest. ERROR_SYSTEM when it is not there. */
must_check int store_get(struct store *store, enum store_half half, const struct sha256 *root,
                         struct layer *ret, struct error **err) nonnull(1, 3, 4);
void layer_done(struct layer *layer) nonnull(1);
/* How many copies this process made, for tests and records: a found entry is none. */
uint64_t store_copies(const struct store *store) nonnull(1);
