#pragma once
/*
 * host: whether a part of the host is as it was: a snapshot before, one after, the differences.
 *
 * A snapshot lists every path below its trees with type, mode, owner, size and times. Contents are
 * read only where the times could lie (changed within the clock's last tick before the snapshot),
 * or of every file when asked to; by several processes at once. It reads through a task_reader what
 * the caller has no right to. A snapshot is immutable. Depends on: base, task. Limits: below.
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "task/task.h"

#define HOST_ENTRIES_MAX ((size_t)2000000)
#define HOST_DEPTH_MAX 200
#define HOST_DIFFERENCES_MAX 1000 /* listed; the rest is counted */

/* What is looked at. Absolute, normal paths. Borrowed. */
struct host_scope {
    const struct str_list *trees;   /* folders or files, with all below them */
    const struct str_list *parents; /* folders: themselves, and the names in the first of them */
    const struct str_list *except;  /* what is not looked at, with all below it */
    const struct task_reader *reader;
    bool all_contents; /* the digest of every file */
};

struct host_snapshot; /* opaque */

/*
 * before: the snapshot that this one will be compared with, whose files with a digest get one
 * again; NULL: none. Run directories (with a run.json) below a tree are not looked at, either.
 * ERROR_SYSTEM when something cannot be looked at, ERROR_LIMIT past a limit.
 */
must_check int host_snapshot_take(const struct host_scope *scope,
                                  const struct host_snapshot *before, struct host_snapshot **ret,
                                  struct error **err) nonnull(1, 3);
void host_snapshot_free(struct host_snapshot *snapshot);
void host_snapshot_freep(struct host_snapshot **snapshot) nonnull(1);
size_t host_snapshot_count(const struct host_snapshot *snapshot) nonnull(1);

struct host_differences {
    struct str_list lines; /* "added: /a/b", "changed (size 3 -> 4, times): /a/c" */
    size_t count;          /* also of those that are not listed */
};
void host_snapshot_compare(const struct host_snapshot *before, const struct host_snapshot *after,
                           struct host_differences *ret) nonnull(1, 2, 3);
void host_differences_done(struct host_differences *differences) nonnull(1);
