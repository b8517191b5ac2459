#pragma once
/*
 * overlap: nothing private in what an agent's cell shows of the host.
 *
 * The loader compares paths as they are written; this compares what they are: links resolved,
 * directories by device and inode, so that another name of the same directory does not help.
 * Depends on: stage, task_private.h.
 */

#include "stage/root.h"
#include "task/task_private.h"

struct overlap_hidden {
    const char *path; /* absolute; NULL: none */
    const char *what; /* for the message: "the reference" */
};

/*
 * ERROR_TASK that names both when an exposed path or the root holds one of the hidden paths, or
 * lies in one of them.
 */
must_check int overlap_check(const struct task_reader *reader, const struct root *root,
                             const struct overlap_hidden *hidden, size_t count, struct error **err)
    nonnull(1, 2, 3);
