#include "run/overlap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"

/* What the descriptor's path is without links. NULL: it has none any more. */
static char *true_path(int fd)
{
    scoped(mem_freep) char *name = str_format("/proc/self/fd/%d", fd);
    char path[PATH_MAX];
    ssize_t length = readlink(name, path, sizeof(path) - 1);

    return length > 0 && path[0] == '/' ? str_ndup(path, (size_t)length) : NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is one of path and the directories above it the tree? What cannot be opened is not. */
static bool is_held(const struct task_reader *reader, const char *path, const struct stat *tree)
{
    scoped(mem_freep) char *at = str_dup(path);

    for (;;) {
        scoped(fd_closep) int fd = reader->open(reader->context, at, O_RDONLY | O_CLOEXEC);
        struct stat status;

        if (fd >= 0 && fstat(fd, &status) == 0 && is_same(&status, tree))
            return true;
        if (strcmp(at, "/") == 0)
            return false;
        char *above = path_dir(at);

        free(at);
        at = above;
    }
}

static int check(const struct task_reader *reader, const struct root_tree *tree,
                 const struct overlap_hidden *hidden, struct error **err)
{
    scoped(fd_closep) int fd = reader->open(reader->context, hidden->path, O_RDONLY | O_CLOEXEC);
    scoped(mem_freep) char *real = NULL;
    scoped(mem_freep) char *tree_path = true_path(tree->fd);
    struct stat tree_status, hidden_status;

    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    if (fd < 0)
        return error_errno(err, -fd, "cannot look at %s '%s'", hidden->what, hidden->path);
    real = true_path(fd);
    if (real == NULL || tree_path == NULL)
        return error_set(err, ERROR_SYSTEM, "'%s' or '%s' was removed meanwhile", tree->path,
                         hidden->path);
    if (fstat(tree->fd, &tree_status) < 0 || fstat(fd, &hidden_status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", tree->path);
    if (is_held(reader, real, &tree_status))
        return error_set(err, ERROR_TASK, "'%s' holds %s ('%s'), which the agent must not get",
                         tree->path, hidden->what, hidden->path);
    if (S_ISDIR(hidden_status.st_mode) && is_held(reader, tree_path, &hidden_status))
        return error_set(err, ERROR_TASK, "'%s' lies in %s ('%s'), which the agent must not get",
                         tree->path, hidden->what, hidden->path);
    return 0;
}

int overlap_check(const struct task_reader *reader, const struct root *root,
                  const struct overlap_hidden *hidden, size_t count, struct error **err)
{
    struct root_tree trees[ROOT_EXPOSE_MAX + 1];
    size_t tree_count = root_trees(root, trees);

    for (size_t i = 0; i < tree_count; i++) {
        for (size_t j = 0; j < count; j++) {
            int r = hidden[j].path == NULL ? 0 : check(reader, &trees[i], &hidden[j], err);

            if (r < 0)
                return r;
        }
    }
    return 0;
}
