#pragma once
/*
 * walk: every entry below a directory, in tree order, as hostile input.
 *
 * Nothing is followed: no links, no mounts, no "..". The walk is iterative and its depth is capped;
 * it holds one descriptor a level. What it cannot look into it tells by `refuse`, then goes on.
 * Used by the worker (static) and by closedbook, so: base only.
 */

#include <sys/stat.h>

#include "base/error.h"
#include "base/str.h"

#define WALK_DEPTH_MAX 64                  /* components of a path */
#define WALK_ENTRIES_MAX ((size_t)2000000) /* names that one walk reads */
#define WALK_PATH_BYTES_MAX 4095

struct walk_entry {
    const char *path; /* relative to the root */
    const char *name; /* its last component */
    int parent_fd;
    unsigned depth; /* 1: directly below the root */
    struct stat status;
};

enum walk_answer { WALK_ENTER, WALK_SKIP };

struct walk {
    void *context;
    /* WALK_ENTER goes into a directory (and means nothing elsewhere), WALK_SKIP does not; < 0
     * stops. */
    int (*visit)(void *context, const struct walk_entry *entry, struct error **err);
    /* A directory is about to be walked, "" is the root; its names are sorted. May be NULL. */
    int (*enter)(void *context, const char *path, const struct str_list *names, struct error **err);
    /* A directory is done, and all below it. May be NULL. Not called for the root. */
    int (*leave)(void *context, const char *path, struct error **err);
    /*
     * Something cannot be looked at: 0 goes on without it, < 0 stops. errno_value is 0 when a limit
     * of the walk is the reason.
     */
    int (*refuse)(void *context, const char *path, int errno_value, const char *reason,
                  struct error **err);
    /*
     * Links in directories below the root are not looked at when the directory's listing says that
     * they are links: the status that visit gets holds S_IFLNK, inode and device, nothing else.
     */
    bool links_by_name;
};

/* root_fd: a directory, O_PATH is enough. */
must_check int walk_tree(int root_fd, const struct walk *walk, struct error **err) nonnull(2);

/* True when an error is the machine's doing, false when a tree can be made to give it. */
bool walk_is_system_error(int errno_value);

/*
 * Opens name below dir_fd for reading when it is the regular file that status describes. Returns a
 * descriptor or -errno: -ESTALE when it is another file by now.
 */
must_check int walk_open_file(int dir_fd, const char *path, const struct stat *status)
    nonnull(2, 3);
