#pragma once
/*
 * collect: what the agent left, taken out of an ended cell as hostile input.
 *
 * The walk happens in the worker, in a cell of its own. Results are artifacts.tar (added and
 * changed entries only, deterministic pax) and changes.json (docs/formats/changes.md). Nothing is
 * ever materialised on the host but by extract. Depends on: base, cell.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "cell/cell.h"
#include "collect/manifest.h"

#define COLLECT_ENTRIES_MAX ((uint64_t)400000)
#define COLLECT_DEPTH_MAX 64
#define COLLECT_BYTES_MAX ((uint64_t)2 << 30)
#define COLLECT_LAYERS_MAX 4 /* staged layers that a workspace can be collected over */

/* What the workspace was made from. Borrowed. */
struct collect_source {
    const struct manifest *staged;     /* the composed manifest */
    int layer_fds[COLLECT_LAYERS_MAX]; /* of a layered workspace: its layers, first at the bottom */
    size_t layer_count;
    uint64_t max_entries, max_bytes; /* 0: the limits above */
};

struct collect_result {
    uint64_t added, modified, deleted, moved, refused;
    uint64_t files, bytes; /* in artifacts.tar */
    struct sha256 digest;  /* of artifacts.tar */
    struct sha256 changes_digest;
    json_t *refused_list; /* [{path, reason}], at most 1000; paths escaped as in changes.json */
};
void collect_result_done(struct collect_result *result) nonnull(1);

/*
 * Collects the workspace of an ended cell into dir_fd/artifacts.tar and dir_fd/changes.json,
 * comparing with what was staged. An agent's excess (entries, bytes) is listed as refused, never an
 * error.
 */
must_check int collect_run(struct monitor *monitor, const struct cell *cell,
                           const struct collect_source *source, int dir_fd,
                           struct collect_result *ret, struct error **err) nonnull(1, 2, 3, 5);
/*
 * The command that makes a grading cell's workspace what the agent left: runs the worker in the
 * cell as the grader, before anything else. tar_fd and changes_fd are the recorded files.
 */
must_check int collect_apply(struct cell *grading_cell, int tar_fd, int changes_fd,
                             struct error **err) nonnull(1);

/* What a criterion's path means in the workspace of a grading cell. */
enum collect_file_state {
    COLLECT_FILE_OK,
    COLLECT_FILE_ABSENT,
    COLLECT_FILE_NOT_REGULAR, /* `what` says what it is instead */
    COLLECT_FILE_TOO_LARGE,
    COLLECT_FILE_AMBIGUOUS, /* content wanted, and several files match the pattern */
};
struct collect_file {
    enum collect_file_state state;
    char *resolved; /* the path that a pattern led to, NULL when it was literal */
    char *what;     /* "a directory", "a link that leads out of the workspace", ... or NULL */
    struct str_list matches; /* of a pattern, the first 10, as plain bytes */
    uint64_t match_count;
    uint64_t size_bytes; /* of the file */
    struct buf content;  /* when wanted */
};
void collect_file_done(struct collect_file *file) nonnull(1);
/*
 * Reads path (a literal wins, else a pattern) as the grader, links followed inside the workspace
 * only. max_bytes 0: no content, state and matches only. ERROR_TASK for a path that is none inside.
 */
must_check int collect_read(struct cell *grading_cell, const char *path, size_t max_bytes,
                            struct collect_file *ret, struct error **err) nonnull(1, 2, 4);
/* The worker's answer, for tests: a line of JSON, then the bytes. */
must_check int collect_file_parse(const char *text, size_t size, struct collect_file *ret,
                                  struct error **err) nonnull(1, 3);

/* Reading a recorded artifacts.tar (strict: only what our writer emits). */
struct artifact {
    const char *path;
    enum manifest_type type;
    mode_t mode; /* permission bits */
    uint64_t size_bytes;
    const char *target; /* links */
    uint64_t offset;    /* of the bytes in the file */
};
/* Calls visit for each entry in order; stops at the first r < 0. ERROR_SYSTEM when the file is not
 * ours. */
typedef int artifacts_visit(void *context, int tar_fd, const struct artifact *artifact,
                            struct error **err);
must_check int artifacts_each(int tar_fd, const char *name, artifacts_visit *visit, void *context,
                              struct error **err) nonnull(2, 3);
/* Bytes of one path (ERROR_USER when there is none), at most max_bytes. */
must_check int artifacts_read(int tar_fd, const char *name, const char *path, size_t max_bytes,
                              struct buf *ret, struct error **err) nonnull(2, 3, 5);
/* Writes regular files and directories below to_fd, no links; ".git" becomes "dot-git" unless
 * keep_git. */
must_check int artifacts_extract(int tar_fd, const char *name, int to_fd, bool keep_git,
                                 uint64_t *ret_files, struct error **err) nonnull(2, 5);
