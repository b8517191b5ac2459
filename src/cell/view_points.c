#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cell/setup.h"

#define NAME_BYTES 32

/*
 * Everything that something will be attached to is made before the root and the trees are mounted:
 * what lies below an overlay must not change once that is there.
 *
 * A point lies in r, the cell's own part of the root. One inside a tree that is mounted before it
 * lies in p<i>, the topmost directory over that tree, unless the tree has it.
 */

static int make_dir(int dir_fd, const char *path, mode_t mode)
{
    if (mkdirat(dir_fd, path, mode) < 0)
        return errno == EEXIST ? 0 : -errno;
    /* Whatever the umask is. */
    return fchmodat(dir_fd, path, mode, 0) < 0 ? -errno : 0;
}

int view_make_dirs(int dir_fd, const char *path, mode_t mode, mode_t parent_mode)
{
    char part[VIEW_PATH_BYTES];
    size_t length = strlen(path);

    ASSERT(length < sizeof(part));
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        bool is_last = path[i] == '\0';
        bool is_parent = !is_last && strchr(path + i + 1, '/') == NULL;

        memcpy(part, path, i);
        part[i] = '\0';
        int r = make_dir(dir_fd, part, is_last ? mode : is_parent ? parent_mode : 0755);

        if (r < 0)
            return r;
    }
    return 0;
}

/* path lies in the scratch. */
static int make_point(const struct setup *setup, char *path, bool directory, mode_t parent_mode)
{
    if (directory)
        return view_make_dirs(setup->scratch_fd, path, 0755, parent_mode);
    char *slash = strrchr(path, '/');

    *slash = '\0';
    int r = view_make_dirs(setup->scratch_fd, path, parent_mode, 0755);

    *slash = '/';
    if (r < 0)
        return r;
    int fd = openat(setup->scratch_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444);

    if (fd < 0)
        return -errno;
    (void)close(fd); /* nothing was written */
    return 0;
}

static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    return strncmp(path, dir, length) == 0 && path[length] == '/';
}

static bool is_directory(const struct setup *setup, uint32_t index)
{
    struct stat status;

    return fstat(setup->fds[setup->request->mounts[index].fd], &status) == 0 &&
           S_ISDIR(status.st_mode);
}

/* The innermost tree that is mounted before this one and holds its target; -1: none does. */
static int find_outer(const struct setup *setup, uint32_t index)
{
    const struct wire_mount *mounts = setup->request->mounts;
    int found = -1;

    for (uint32_t i = 0; i < index && setup->request->role != CELL_WORKER; i++) {
        bool is_deeper =
            found < 0 || strlen(mounts[i].target) >= strlen(mounts[(uint32_t)found].target);

        if (is_deeper && is_below(mounts[index].target, mounts[i].target) && is_directory(setup, i))
            found = (int)i;
    }
    return found;
}

/* Where the point of a mount is made; false: the tree that it lies in has it. */
static bool find_place(const struct setup *setup, uint32_t index, bool directory,
                       char ret[static VIEW_PATH_BYTES])
{
    const struct wire_mount *mounts = setup->request->mounts;
    int outer = find_outer(setup, index);

    if (outer < 0) {
        sys_format(ret, VIEW_PATH_BYTES, "r%s", mounts[index].target);
        return true;
    }
    const struct wire_mount *tree = &mounts[(uint32_t)outer];
    const char *rest = mounts[index].target + strlen(tree->target);
    int fd = tree->masks[0][0] != '\0'
                 ? -ENOENT
                 : sys_open_beneath(setup->fds[tree->fd], rest + 1, O_PATH | O_NOFOLLOW, 0);
    struct stat status;
    bool is_there = fd >= 0 && fstat(fd, &status) == 0 &&
                    (directory ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));

    if (fd >= 0)
        (void)close(fd); /* a path only */
    sys_format(ret, VIEW_PATH_BYTES, "p%d%s", outer, rest);
    return !is_there;
}

/* A copy has neither the host's path nor an inode to lock that others see. */
static int copy_in(const struct setup *setup, int fd, const char *path, mode_t mode)
{
    char name[NAME_BYTES];

    sys_format(name, sizeof(name), "/proc/self/fd/%d", fd);
    int from = open(name, O_RDONLY | O_CLOEXEC);

    if (from < 0)
        return -errno;
    int to = openat(setup->scratch_fd, path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

    if (to < 0)
        return -errno;
    int r = copy_file(from, to);

    if (r == 0 && fchmod(to, (mode & 0111) != 0 ? 0755 : 0644) < 0)
        r = -errno;
    (void)close(to);   /* on a tmpfs: nothing is delayed */
    (void)close(from); /* read only */
    return r;
}

static int make_mount_point(const struct setup *setup, uint32_t index)
{
    const struct wire_mount *mount = &setup->request->mounts[index];
    int fd = setup->fds[mount->fd];
    char path[VIEW_PATH_BYTES];
    struct stat status;
    mode_t hidden = setup->machine->tier == TIER_A ? 0711 : 0111;
    mode_t parent_mode = (mount->flags & WIRE_MOUNT_HIDDEN_PARENT) != 0 ? hidden : 0755;

    if (fstat(fd, &status) < 0)
        return -errno;
    bool directory = S_ISDIR(status.st_mode);
    bool copied = view_is_copied(setup, &status);

    if (!find_place(setup, index, directory, path) && !copied)
        return 0;
    int r = make_point(setup, path, directory, parent_mode);

    return r < 0 || !copied ? r : copy_in(setup, fd, path, status.st_mode);
}

static int make_places(const struct setup *setup)
{
    static const char *const places[] = {"r" CELL_WORKSPACE_PATH, "r" CELL_HOME_PATH, "r/tmp",
                                         "r/proc", "r/dev"};
    const struct request_start *request = setup->request;
    int r = 0;

    if (request->role == CELL_WORKER)
        return view_make_dirs(setup->scratch_fd, "r" CELL_COLLECT_PATH, 0755, 0755);
    for (size_t i = 0; i < ARRAY_SIZE(places) && r == 0; i++)
        r = view_make_dirs(setup->scratch_fd, places[i], 0755, 0755);
    if (r == 0 && request->etc_fd >= 0)
        r = view_make_dirs(setup->scratch_fd, "r/etc", 0755, 0755);
    return r;
}

int view_make_points(struct setup *setup)
{
    setup->step = STEP_MOUNT;
    for (uint32_t i = 0; i < setup->request->mount_count; i++) {
        setup->detail = i;
        int r = make_mount_point(setup, i);

        if (r < 0)
            return r;
    }
    setup->detail = 0;
    return make_places(setup);
}
