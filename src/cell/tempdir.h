#pragma once
/*
 * tempdir: the driver without protection, for comparison and for machines that allow nothing else.
 *
 * A cell is a temporary directory with the workspace, a HOME and links to what would be mounted;
 * its programs run as the user, on the bare host. A keeper process per program sees to it that all
 * which the program started ends with the cell. Paths of the cell in arguments and environment are
 * replaced by the true ones.
 */

#include "cell/server.h"

#define TEMPDIR_HOME "/home"
#define TEMPDIR_ROOT "/root"

/* --- tempdir_paths.c */

/*
 * Which paths of the cell lie elsewhere: a list of NUL-terminated strings, an empty one last;
 * owned. own_tmp: /tmp among them.
 */
char *tempdir_places(const struct request_start *request, const int *fds, bool own_tmp);
/* The text with each such path replaced, where it stands as a whole path or the start of one;
 * owned. */
char *tempdir_rewrite(const char *text, const char *places, const char *directory) nonnull(1, 2, 3);
/* Makes links, texts and the workspace below directory. */
must_check int tempdir_fill(const char *directory, const struct input *input) nonnull(1, 2);

/* --- tempdir_keeper.c */

struct keeper {
    struct program program;
    const struct input *input;
    const char *directory; /* CELL_WORKER: that of the collected workspace, or NULL */
    const char *places;
    bool fills; /* the first of its cell */
    bool has_program;
    int channel;
};
_Noreturn void keeper_run(struct keeper *keeper) nonnull(1);
