#include "run/leak_roots.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/root.h"
#include "task/task_public.h"

/* A walk: first to count, then to look. */
struct walk {
    struct leak_search *search; /* NULL: it only counts */
    struct leaks *leaks;
    const char *path; /* in the cell */
    unsigned depth;
    size_t files;
    uint64_t bytes;
    bool has_limits, is_too_large;
};

static int look_at_file(struct walk *walk, int fd, const char *path, size_t file_size,
                        struct error **err)
{
    size_t size = size_min(file_size, LEAK_FILE_BYTES_MAX);
    scoped(mem_freep) char *place = str_format("exposed: %s", path);
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "cannot read '%s'", path);
    int r = leak_search_text(walk->search, place, bytes, size, walk->leaks, err);

    (void)munmap(bytes, size); /* cannot fail for what was mapped */
    return r;
}

static int visit_open(struct walk *walk, int fd, const char *path, struct error **err);

static int visit(void *context, int dir_fd, const char *name, struct error **err)
{
    struct walk *walk = context;
    scoped(mem_freep) char *path = path_join(walk->path, name);
    struct stat status;

    /* To open a device may do something. */
    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return 0;
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    /* Links lead to what is walked itself, or to nothing; what we may not read the agent may not.
     */
    if (fd < 0)
        return errno == ELOOP || errno == EACCES || errno == ENXIO || errno == ENOENT
                   ? 0
                   : error_errno(err, errno, "cannot open '%s'", path);
    return walk->is_too_large ? 0 : visit_open(walk, fd, path, err);
}

static int visit_open(struct walk *walk, int fd, const char *path, struct error **err)
{
    const char *above = walk->path;
    struct stat status;
    int r;

    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", path);
    if (S_ISREG(status.st_mode) && status.st_size > 0) {
        walk->files++;
        walk->bytes += (uint64_t)status.st_size;
        walk->is_too_large = walk->has_limits && (walk->files > LEAK_ROOT_FILES_MAX ||
                                                  walk->bytes > LEAK_ROOT_BYTES_MAX);
        return walk->search == NULL ? 0 : look_at_file(walk, fd, path, (size_t)status.st_size, err);
    }
    if (!S_ISDIR(status.st_mode) || walk->depth == LEAK_ROOT_DEPTH_MAX)
        return 0;
    walk->path = path;
    walk->depth++;
    r = fs_each(fd, visit, walk, err);
    walk->depth--;
    walk->path = above;
    return r;
}

static int walk_tree(struct walk *walk, const struct root_tree *tree, struct error **err)
{
    scoped(mem_freep) char *again = str_format("/proc/self/fd/%d", tree->fd);
    scoped(fd_closep) int fd = open(again, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0)
        return errno == EACCES ? 0 : error_errno(err, errno, "cannot open '%s'", tree->path);
    walk->path = "";
    return visit_open(walk, fd, tree->path, err);
}

static int search_tree(const struct leak_scan *scan, const struct root_tree *tree,
                       struct walk *looking, struct str_list *left_out, struct error **err)
{
    struct walk counting = {.has_limits = !scan->all_roots};
    int r = scan->all_roots ? 0 : walk_tree(&counting, tree, err);

    if (r < 0)
        return r;
    if (counting.is_too_large) {
        str_list_add(left_out, tree->path);
        return 0;
    }
    return walk_tree(looking, tree, err);
}

int leak_roots_search(const struct leak_scan *scan, struct leak_search *search, struct leaks *leaks,
                      struct str_list *ret_left_out, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    struct root_tree trees[ROOT_EXPOSE_MAX + 1];
    size_t count = root_trees(view_system(scan->view, CELL_AGENT), trees);
    int r = 0;

    task_split(scan->task, &public_half, &private_half);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct walk looking = {.search = search, .leaks = leaks};
        bool is_of_task = str_equal(trees[i].path, public_half->root.rootfs) ||
                          str_list_has(&public_half->root.expose, trees[i].path);

        /* What an agent's program needs is the operator's installation, and large. */
        if (is_of_task || scan->all_roots)
            r = search_tree(scan, &trees[i], &looking, ret_left_out, err);
    }
    return r;
}
