#pragma once
/*
 * collect: what the agent left, taken out of an ended cell as hostile input.
 *
 * The walk happens in the worker, in a cell of its own. Results are artifacts.tar (added and changed
 * entries only, deterministic pax) and changes.json (docs/formats/changes.md). Nothing is ever
 * materialised on the host but by extract. Depends on: base, cell.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "cell/cell.h"
#include "collect/manifest.h"

#define COLLECT_ENTRIES_MAX ((uint64_t)400000)
#define COLLECT_DEPTH_MAX 64
#define COLLECT_NAME_BYTES_MAX 255
#define COLLECT_BYTES_MAX ((uint64_t)2 << 30)

struct collect_result {
    uint64_t added, modified, deleted, moved, refused;
    uint64_t files, bytes;   /* in artifacts.tar */
    struct sha256 digest;    /* of artifacts.tar */
    struct sha256 changes_digest;
    json_t *refused_list;    /* [{path, reason}], at most 1000 */
};
void collect_result_done(struct collect_result *result) nonnull(1);

/*
 * Collects the workspace of an ended cell into dir_fd/artifacts.tar and dir_fd/changes.json, comparing
 * with the staged manifest. An agent's excess (entries, bytes) is listed as refused, never an error.
 */
must_check int collect_run(struct monitor *monitor, const struct cell *cell,
                           const struct manifest *staged, int dir_fd, struct collect_result *ret,
                           struct error **err) nonnull(1, 2, 3, 5);
/*
 * The command that makes a grading cell's workspace what the agent left: runs the worker in the cell
 * as the grader, before anything else. tar_fd and changes_fd are the recorded files.
 */
must_check int collect_apply(struct cell *grading_cell, int tar_fd, int changes_fd,
                             struct error **err) nonnull(1);

/* Reading a recorded artifacts.tar (strict: only what our writer emits). */
struct artifact {
    const char *path;
    enum manifest_type type;
    mode_t mode;
    uint64_t size_bytes;
    const char *target; /* links */
    uint64_t offset;    /* of the bytes in the file */
};
/* Calls visit for each entry in order; stops at the first r < 0. ERROR_SYSTEM when the file is not ours. */
typedef int artifacts_visit(void *context, int tar_fd, const struct artifact *artifact,
                            struct error **err);
must_check int artifacts_each(int tar_fd, const char *name, artifacts_visit *visit, void *context,
                              struct error **err) nonnull(2, 3);
/* Bytes of one path (ERROR_USER when there is none), at most max_bytes. */
must_check int artifacts_read(int tar_fd, const char *name, const char *path, size_t max_bytes,
                              struct buf *ret, struct error **err) nonnull(2, 3, 5);
/* Writes regular files and directories below to_fd, no links; ".git" becomes "dot-git" unless keep_git. */
must_check int artifacts_extract(int tar_fd, const char *name, int to_fd, bool keep_git,
                                 uint64_t *ret_files, struct error **err) nonnull(2, 5);
