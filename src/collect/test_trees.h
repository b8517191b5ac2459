#pragma once
/*
 * test_trees: temporary folders, and trees at random but the same for the same seed. For tests
 * only.
 */

#include "base/base.h"

struct random {
    uint64_t state; /* not 0 */
};
uint64_t random_below(struct random *random, uint64_t limit) nonnull(1);

/* A new folder that only we may enter; its descriptor. */
int temporary_folder(void);
/* Removes it and all in it. */
void remove_temporary_folder(int *fd) nonnull(1);

/* Files, directories, links and an executable or two. */
void random_tree(int dir_fd, struct random *random) nonnull(2);
/* What an agent might do: write, append, delete, move, replace a file by a directory and back. */
void random_changes(int dir_fd, struct random *random, unsigned count) nonnull(2);

/* One file with its folders made. */
void put_file(int dir_fd, const char *path, const char *content) nonnull(2, 3);
