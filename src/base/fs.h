#pragma once
/*
 * fs: files by descriptor, safely. Paths inside a tree we do not trust only through
 * fs_open_beneath().
 *
 * Every descriptor is close-on-exec. Functions that take a dir_fd accept AT_FDCWD.
 */

#include <sys/types.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"

void fd_closep(int *fd) nonnull(1); /* for scoped(); -1 is fine; errno kept */

/*
 * openat2() below dir_fd with RESOLVE_BENEATH|NO_MAGICLINKS|NO_XDEV (and NO_SYMLINKS with
 * FS_NO_LINKS; RESOLVE_IN_ROOT, as if dir_fd were the root, with FS_LINKS_IN_ROOT). Returns a
 * descriptor or -errno; sets no error, so that callers can branch.
 */
enum fs_follow { FS_NO_LINKS, FS_LINKS_BENEATH, FS_LINKS_IN_ROOT };
must_check int fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode,
                               enum fs_follow follow) nonnull(2);

/* Reads a whole descriptor from its offset; more than max_bytes is ERROR_LIMIT. name is for errors.
 */
must_check int fs_read_fd(int fd, const char *name, size_t max_bytes, struct buf *ret,
                          struct error **err) nonnull(2, 4);
/* A regular file for reading, or -errno (-EINVAL: it is something else, and was not waited for). */
must_check int fs_open_regular(int dir_fd, const char *name) nonnull(2);
/* The same for a path (ERROR_SYSTEM with the path when it cannot be opened). Regular files only. */
must_check int fs_read_file(int dir_fd, const char *path, size_t max_bytes, struct buf *ret,
                            struct error **err) nonnull(2, 4);
/* All bytes or an error, EINTR and short writes handled. */
must_check int fs_write_all(int fd, const char *name, const void *bytes, size_t size,
                            struct error **err) nonnull(2);

/*
 * Writes path by way of a temporary neighbour and rename, so that it is whole or absent.
 * With FS_SYNC file and directory are fsynced before return; with FS_SYNC_FILE the file, before it
 * gets its name.
 */
enum fs_sync { FS_NO_SYNC, FS_SYNC, FS_SYNC_FILE };
struct fs_content {
    const void *bytes;
    size_t size;
    mode_t mode;
    enum fs_sync sync;
};
must_check int fs_write_atomic(int dir_fd, const char *path, const struct fs_content *content,
                               struct error **err) nonnull(2, 3);

/* mkdir -p with mode for each new level; existing directories are fine. */
must_check int fs_mkdirs(int dir_fd, const char *path, mode_t mode, struct error **err) nonnull(2);
/* mkdirs, then opens it O_DIRECTORY. */
must_check int fs_open_dir(int dir_fd, const char *path, mode_t mode, int *ret, struct error **err)
    nonnull(2, 4);
/*
 * Removes path and all in it, never following links, never crossing a mount. Absent is fine. Only
 * the last part of path may be somebody else's: the folders before it are trusted.
 */
must_check int fs_remove_tree(int dir_fd, const char *path, struct error **err) nonnull(2);

/*
 * Calls visit for each name in dir_fd but . and .., sorted by bytes. Stops at the first r < 0.
 * More than FS_EACH_NAMES_MAX names are ERROR_LIMIT, before the first call.
 */
#define FS_EACH_NAMES_MAX ((size_t)1 << 22)
typedef int fs_visit(void *context, int dir_fd, const char *name, struct error **err);
must_check int fs_each(int dir_fd, fs_visit *visit, void *context, struct error **err) nonnull(2);

/* A sealed, read-only memfd holding the bytes. name shows in /proc only. */
must_check int fs_memfd(const char *name, const void *bytes, size_t size, int *ret,
                        struct error **err) nonnull(1, 4);

/* "a/b" from parts; owned. path_join("/x", "/y") is "/y". */
char *path_join(const char *base, const char *path) malloc_like nonnull(1, 2);
/* The folder of a path ("." when it has none); owned. */
char *path_dir(const char *path) malloc_like nonnull(1);
const char *path_base(const char *path) nonnull(1); /* points into path */
/* True for a non-empty relative path with no "..", no empty part, no NUL and no leading "/". */
bool path_is_inside(const char *path) nonnull(1);
/* Lexical: "a/./b/../c" -> "a/c", absolute stays absolute; owned. */
char *path_normal(const char *path) malloc_like nonnull(1);
