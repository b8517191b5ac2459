#pragma once
/*
 * lookup: the file that a criterion means: a path in the workspace, or the one match of a pattern.
 *
 * Runs in the grading cell as the grader, over what the agent left: links are followed as long as
 * they stay in the workspace, nothing else than a regular file is opened. Part of
 * closedbook-worker. Depends on: base.
 */

#include "base/error.h"
#include "base/str.h"

#define LOOKUP_MATCHES_MAX 10 /* listed */

enum lookup_state {
    LOOKUP_OK,
    LOOKUP_ABSENT,
    LOOKUP_NOT_REGULAR, /* `what` says what it is instead */
    LOOKUP_TOO_LARGE,
    LOOKUP_AMBIGUOUS, /* several files match where one must */
    LOOKUP_STATE_COUNT,
};
const char *lookup_state_name(enum lookup_state state); /* "ok", "absent", ... */

struct lookup {
    enum lookup_state state;
    char *resolved;          /* the path that a pattern led to, else NULL */
    const char *what;        /* LOOKUP_NOT_REGULAR; static */
    struct str_list matches; /* of a pattern, the first of them in tree order */
    uint64_t match_count;
    int fd; /* LOOKUP_OK and content wanted: open for reading */
    uint64_t size_bytes;
};
void lookup_done(struct lookup *lookup) nonnull(1);

/*
 * A literal path wins over a pattern. content: exactly one regular file may match; else anything
 * that matches will do and nothing is opened. Directories that hold no work (.git, node_modules,
 * .venv,
 * __pycache__, dist, build) are looked into only where the pattern names them.
 * ERROR_TASK for a path that is absolute or leads out by itself.
 */
must_check int lookup_path(int workspace_fd, const char *path, bool content, uint64_t max_bytes,
                           struct lookup *ret, struct error **err) nonnull(2, 5);
/* lookup_path(), then one line of JSON and the bytes to output_fd. */
must_check int lookup_print(int workspace_fd, const char *path, bool content, uint64_t max_bytes,
                            int output_fd, struct error **err) nonnull(2);
