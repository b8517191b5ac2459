#pragma once
/*
 * mocks: what stands in the agent's cell for programs that are answered for from outside, and the
 * folders of mock_path_dirs of a task with `mocks: sealed`, which are nowhere in it.
 *
 * The sealed folders are a tree of the private store with their paths of the workspace. What stands
 * in is a tree of files of one line by which the kernel starts the stand-in. A program of a sealed
 * folder is a file right in it that begins with "#!" or as an ELF file does. Depends on: base,
 * task, collect; part of stage.
 */

#include "stage/stage.h"
#include "stage/store.h"

struct mocks_staged {
    struct layer sealed; /* tree_fd -1: nothing is sealed */
    struct layer tools;  /* tree_fd -1: no program is answered for */
};

/*
 * What of the folders lies in a source that is mounted there: paths of the source are added to
 * *ret. True: all of the source does.
 */
bool mocks_in_source(const struct task_public *task, const char *mount_point, struct str_list *ret)
    nonnull(1, 3);
/* True when the path is one of the folders or lies below one. */
bool mocks_hold(const struct str_list *dirs, const char *path) nonnull(1, 2);
/*
 * visible: the agent's workspace as staged. ERROR_TASK: a folder has no program, is in a kind of
 * source from which it cannot be taken, or a program stands in two places.
 */
must_check int mocks_stage(const struct view_source *source, const struct manifest *visible,
                           struct mocks_staged *ret, struct error **err) nonnull(1, 2, 3);
void mocks_staged_init(struct mocks_staged *mocks) nonnull(1);
void mocks_staged_done(struct mocks_staged *mocks) nonnull(1);
