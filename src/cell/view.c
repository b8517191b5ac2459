#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "cell/setup.h"

#define SCRATCH_INODES 4096
#define FILE_COPY_BYTES_MAX ((uint64_t)16 << 20) /* larger single files are bound, not copied */
#define LINK_PATH_BYTES 4096
#define NAME_BYTES 32
#define USER_LINE_BYTES 128

/*
 * One tmpfs, the scratch, holds all that is made for a cell: r is the root that it will see, or
 * lies over that, p0.. and m0.. the directories that lie over its trees with points and masks, e
 * its own part of /etc, d its /dev, l0.. the points where trees are attached while overlays are
 * made of them. Only clones of r and d and overlays are ever seen from inside, read-only.
 */

const char *const root_link_names[ROOT_LINKS] = {"bin",   "sbin",   "lib",    "lib64",
                                                 "lib32", "libx32", "libo32", "libexec"};

static int make_dir(int dir_fd, const char *path, mode_t mode)
{
    return mkdirat(dir_fd, path, mode) < 0 ? -errno : 0;
}

int view_attach(struct setup *setup, int mount_fd, const char *target, bool directory)
{
    int flags = O_PATH | (directory ? O_DIRECTORY : 0);
    int point = sys_open_beneath(setup->root_fd, target + 1, flags, 0);

    if (point < 0)
        return point;
    int r = sys_attach(mount_fd, point, "");

    (void)close(point); /* a path only */
    return r;
}

/* The same file, looked up again in this mount namespace: elsewhere it cannot be cloned. */
static int clone_by_path(int fd, unsigned flags)
{
    char name[NAME_BYTES], path[LINK_PATH_BYTES];
    struct stat wanted, found;

    sys_format(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, sizeof(path));

    if (n < 0)
        return -errno;
    if (n == 0 || (size_t)n >= sizeof(path) || path[0] != '/')
        return -ESTALE;
    path[n] = '\0';
    int tree = sys_open_tree(AT_FDCWD, path, flags | AT_SYMLINK_NOFOLLOW);

    if (tree < 0)
        return tree;
    if (fstat(fd, &wanted) < 0 || fstat(tree, &found) < 0 || wanted.st_dev != found.st_dev ||
        wanted.st_ino != found.st_ino) {
        (void)close(tree); /* a path only */
        return -ESTALE;
    }
    return tree;
}

int view_clone(const struct setup *setup, int fd, int made)
{
    if (setup->machine->tier == TIER_A)
        return made;
    int tree = clone_by_path(fd, OPEN_TREE_CLONE);

    /* Mounts below it that came from the host are locked to it: then all come along. */
    if (tree == -EINVAL)
        tree = clone_by_path(fd, OPEN_TREE_CLONE | AT_RECURSIVE);
    return tree;
}

static int open_scratch(struct setup *setup)
{
    char size[NAME_BYTES], inodes[NAME_BYTES];
    uint64_t bytes = (uint64_t)8 << 20;

    for (uint32_t i = 0; i < setup->request->mount_count; i++)
        bytes += FILE_COPY_BYTES_MAX;
    sys_format(size, sizeof(size), "%llu", (unsigned long long)(bytes + WIRE_TEXTS_BYTES_MAX));
    sys_format(inodes, sizeof(inodes), "%d", SCRATCH_INODES);
    const struct mount_option options[] = {{.key = "size", .value = size},
                                           {.key = "nr_inodes", .value = inodes},
                                           {.key = "mode", .value = "755"}};
    /* No "nodev": it holds the cell's /dev. Its clones that are not /dev get that. */
    int fd = sys_new_mount("tmpfs", options, ARRAY_SIZE(options), MOUNT_ATTR_NOSUID);

    if (fd < 0)
        return fd;
    setup->scratch_fd = fd;
    /* Over the old root: it goes away together with that. */
    int r = sys_attach(fd, AT_FDCWD, "/");

    if (r < 0)
        return r;
    r = make_dir(fd, "r", 0755);
    return r < 0 ? r : make_dir(fd, "void", 0555);
}

/* /bin and the like, where the host has them as links into /usr. */
static int make_links(struct setup *setup)
{
    for (size_t i = 0; i < ROOT_LINKS; i++) {
        const char *link = setup->machine->links[i];
        char path[NAME_BYTES];

        if (link[0] == '\0')
            continue;
        sys_format(path, sizeof(path), "r/%s", root_link_names[i]);
        if (symlinkat(link, setup->scratch_fd, path) < 0)
            return -errno;
    }
    return 0;
}

/* --- trees */

/* Whiteouts for the masked names in the directory that will lie over a tree. */
static int make_masks(int dir_fd, const struct wire_mount *mount)
{
    for (size_t i = 0; i < CELL_MASKS_MAX; i++) {
        if (mount->masks[i][0] == '\0')
            continue;
        if (mknodat(dir_fd, mount->masks[i], S_IFCHR, 0) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

/* A directory of the scratch as a layer of an overlay. */
static int open_layer(const struct setup *setup, const char *name)
{
    return sys_open_beneath(setup->scratch_fd, name, O_PATH | O_DIRECTORY, 0);
}

/*
 * The tree seen through what is in overlay's lowers, directories of ours: its inodes, and so its
 * locks, are this cell's alone. name: its place in the scratch. With an upper it can be written to.
 */
static int mount_over(struct setup *setup, struct overlay *overlay, const char *name, int tree)
{
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    int r = sys_set_mount(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, true);

    /* Before 6.15 overlay takes only what is attached. */
    if (r == 0)
        r = make_dir(setup->scratch_fd, name, 0755);
    if (r == 0)
        r = sys_attach(tree, setup->scratch_fd, name);
    if (r < 0)
        return r;
    overlay->lowers[overlay->lower_count++] = tree;
    overlay->user_xattr = setup->machine->tier != TIER_A;
    overlay->redirect = overlay->upper >= 0;
    attributes |= overlay->upper >= 0 ? 0 : MOUNT_ATTR_RDONLY;
    return overlay_mount(overlay, attributes);
}

/* Where the host's is hidden, the cell's own is empty; but for a place for programs, by custom. */
static int make_own_names(struct setup *setup, const char *name, const struct wire_mount *mount)
{
    char path[VIEW_PATH_BYTES];
    int r = 0;

    for (size_t i = 0; r == 0 && i < CELL_MASKS_MAX; i++) {
        const char *mask = mount->masks[i];

        sys_format(path, sizeof(path), "%s/%s%s", name, mask,
                   strcmp(mask, "local") == 0 ? "/bin" : "");
        if (mask[0] != '\0')
            r = view_make_dirs(setup->scratch_fd, path, 0755, 0755);
    }
    return r;
}

/* The directory of the scratch as the first of the lowers, if it is there, or as the upper. */
static int lay_over(struct setup *setup, struct overlay *overlay, const char *name,
                    const struct wire_mount *mount)
{
    bool own = setup->own_fd >= 0 && (mount == NULL || (mount->flags & WIRE_MOUNT_OWN) != 0);
    int r = own && mount != NULL ? make_own_names(setup, name, mount) : 0;
    int over = r < 0 ? r : open_layer(setup, name);

    if (over < 0 && over != -ENOENT)
        return over;
    if (own)
        return view_own_layer(setup, overlay, name, over);
    if (over >= 0)
        overlay->lowers[overlay->lower_count++] = over;
    return 0;
}

static int attach_tree(struct setup *setup, uint32_t index, const struct wire_mount *mount,
                       int tree)
{
    struct overlay overlay = {.upper = -1};
    char name[NAME_BYTES];

    /* What is mounted inside shows although the name above it may be masked. */
    sys_format(name, sizeof(name), "p%u", index);
    int r = lay_over(setup, &overlay, name, mount);

    if (r < 0)
        return r;
    sys_format(name, sizeof(name), "m%u", index);
    r = make_dir(setup->scratch_fd, name, 0755);
    if (r < 0)
        return r;
    int over;

    over = open_layer(setup, name);
    if (over < 0)
        return over;
    r = make_masks(over, mount);
    if (r < 0)
        return r;
    overlay.lowers[overlay.lower_count++] = over;
    sys_format(name, sizeof(name), "l%u", index);
    r = mount_over(setup, &overlay, name, tree);
    return r < 0 ? r : view_attach(setup, r, mount->target, true);
}

/*
 * r as it is, or r over the tree that is the root: what is made for the cell hides what that has.
 */
static int open_root(struct setup *setup)
{
    const struct request_start *request = setup->request;
    int root;

    setup->step = STEP_ROOT;
    struct overlay overlay = {.upper = -1};
    int r = request->root_fd < 0 && setup->own_fd < 0 ? 0 : lay_over(setup, &overlay, "r", NULL);

    if (r < 0)
        return r;
    if (request->root_fd < 0) {
        root = overlay.upper < 0
                   ? sys_open_tree(setup->scratch_fd, "r", OPEN_TREE_CLONE)
                   : sys_open_tree(overlay.upper, "", OPEN_TREE_CLONE | (unsigned)AT_EMPTY_PATH);
    } else {
        int tree = view_clone(setup, setup->fds[request->root_fd], setup->root_tree);

        if (tree < 0)
            return tree;
        root = mount_over(setup, &overlay, "lr", tree);
    }
    if (root < 0)
        return root;
    setup->root_fd = root;
    r = sys_set_mount(
        root, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (overlay.upper < 0 ? MOUNT_ATTR_RDONLY : 0u),
        0, false);

    return r < 0 ? r : sys_attach(root, AT_FDCWD, "/");
}

bool view_is_copied(const struct setup *setup, const struct stat *status)
{
    return setup->request->role != CELL_WORKER && !S_ISDIR(status->st_mode) &&
           (uint64_t)status->st_size <= FILE_COPY_BYTES_MAX;
}

static int attach_bound(struct setup *setup, const struct wire_mount *mount, int tree,
                        bool directory)
{
    uint64_t set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

    set |= (mount->flags & WIRE_MOUNT_WRITABLE) != 0 ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_RDONLY;
    int r = sys_set_mount(tree, set, 0, true);

    return r < 0 ? r : view_attach(setup, tree, mount->target, directory);
}

static int attach_mount(struct setup *setup, uint32_t index)
{
    const struct wire_mount *mount = &setup->request->mounts[index];
    int fd = setup->fds[mount->fd];
    bool is_worker = setup->request->role == CELL_WORKER;
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    bool directory = S_ISDIR(status.st_mode);

    if (view_is_copied(setup, &status))
        return 0; /* its point is the copy */
    int tree = view_clone(setup, fd, setup->trees[index]);

    if (tree < 0)
        return tree;
    return is_worker || !directory ? attach_bound(setup, mount, tree, directory)
                                   : attach_tree(setup, index, mount, tree);
}

/* --- synthesised files */

/* The cell's user, whose id nobody knows before it is leased. */
static int add_user_line(const struct setup *setup, const char *target, int fd)
{
    char line[USER_LINE_BYTES] = "";

    if (setup->root_ns_fd >= 0)
        return 0; /* it is root */
    if (strcmp(target, "/etc/passwd") == 0)
        sys_format(line, sizeof(line), "agent:x:%u:%u:agent:" CELL_HOME_PATH ":/bin/sh\n",
                   setup->uid, setup->gid);
    else if (strcmp(target, "/etc/group") == 0)
        sys_format(line, sizeof(line), "agent:x:%u:\n", setup->gid);
    size_t size = strlen(line);

    return size == 0 || write(fd, line, size) == (ssize_t)size ? 0 : -EIO;
}

static bool is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    return strncmp(path, dir, length) == 0 && path[length] == '/';
}

/* Where in the scratch a text is written: e for /etc's own part, t<i> what goes over /proc. */
static void text_path(const struct setup *setup, uint32_t index, char *ret, size_t size)
{
    const char *target = setup->request->texts[index].target;

    if (is_below(target, "/proc") && setup->machine->tier != TIER_B_MINUS)
        sys_format(ret, size, "t%u", index);
    else if (is_below(target, "/etc") && setup->request->etc_fd >= 0)
        sys_format(ret, size, "e%s", target + strlen("/etc"));
    else
        sys_format(ret, size, "r%s", target);
}

static int write_text(struct setup *setup, uint32_t index)
{
    const struct wire_text *text = &setup->request->texts[index];
    char path[VIEW_PATH_BYTES];

    text_path(setup, index, path, sizeof(path));
    char *slash = strrchr(path, '/');

    if (slash != NULL) {
        *slash = '\0';
        int r = view_make_dirs(setup->scratch_fd, path, 0755, 0755);

        if (r < 0)
            return r;
        *slash = '/';
    }
    mode_t mode = text->executable != 0 ? 0755 : 0644;
    int fd = openat(setup->scratch_fd, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);

    if (fd < 0)
        return -errno;
    const char *bytes = setup->blob + text->offset;
    int r = write(fd, bytes, text->size_bytes) == (ssize_t)text->size_bytes ? 0 : -ENOSPC;

    if (r == 0)
        r = add_user_line(setup, text->target, fd);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    (void)close(fd); /* on a tmpfs: nothing is delayed */
    return r;
}

static int write_texts(struct setup *setup)
{
    setup->step = STEP_TEXT;
    /* The directory over /etc, also when no text goes there. */
    int r = setup->request->etc_fd < 0 ? 0 : make_dir(setup->scratch_fd, "e", 0755);

    for (uint32_t i = 0; i < setup->request->text_count && r == 0; i++) {
        setup->detail = i;
        r = write_text(setup, i);
    }
    if (r == 0)
        setup->detail = 0;
    return r;
}

static int attach_etc(struct setup *setup)
{
    struct overlay overlay = {.upper = -1};

    setup->step = STEP_ETC;
    if (setup->request->etc_fd < 0)
        return 0;
    int tree = view_clone(setup, setup->fds[setup->request->etc_fd], setup->etc_tree);

    if (tree < 0)
        return tree;
    int r = lay_over(setup, &overlay, "e", NULL);

    if (r == 0)
        r = mount_over(setup, &overlay, "le", tree);
    return r < 0 ? r : view_attach(setup, r, "/etc", true);
}

/* --- the whole */

static int attach_mounts(struct setup *setup)
{
    setup->step = STEP_MOUNT;
    for (uint32_t i = 0; i < setup->request->mount_count; i++) {
        setup->detail = i;
        int r = attach_mount(setup, i);

        if (r < 0)
            return r;
    }
    setup->detail = 0;
    return 0;
}

/*
 * Where the machine's own /proc is partly covered, as in containers, the kernel mounts no fresh
 * one. That one would show the harness's processes, so what the cell has is the directory with the
 * texts that the client wrote, and nothing else.
 */
static int attach_proc(struct setup *setup)
{
    setup->step = STEP_PROC;
    if (setup->machine->tier != TIER_B_MINUS)
        return view_proc(setup);
    setup->protections |= PROTECT_STATIC_PROC;
    return 0;
}

int view_build(struct setup *setup)
{
    setup->step = STEP_ROOT;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -errno;
    int r = open_scratch(setup);

    if (r == 0 && setup->root_ns_fd >= 0)
        r = view_own_make(setup);
    if (r == 0 && setup->request->root_fd < 0)
        r = make_links(setup);
    if (r == 0)
        r = view_make_points(setup);
    if (r == 0)
        r = write_texts(setup);
    if (r == 0 && setup->request->role == CELL_GRADER)
        r = candidate_listen(setup);
    if (r == 0)
        r = open_root(setup);
    if (r == 0)
        r = attach_mounts(setup);
    if (r == 0)
        r = attach_etc(setup);
    if (r < 0 || setup->request->role == CELL_WORKER)
        return r;
    if (setup->request->role == CELL_GRADER) {
        r = candidate_attach(setup);
        if (r < 0)
            return r;
    }
    r = attach_proc(setup);
    if (r < 0)
        return r;
    setup->step = STEP_DEV;
    return view_dev(setup);
}

/* True when nothing lies over the root any more: "/.." then is the root itself. */
static bool is_alone(int root_fd)
{
    struct stat root, above;

    return fstat(root_fd, &root) == 0 && stat("/..", &above) == 0 && root.st_dev == above.st_dev &&
           root.st_ino == above.st_ino;
}

int view_enter(struct setup *setup)
{
    setup->step = STEP_PIVOT;
    if (fchdir(setup->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
        return -errno;
    /* Over the new root now lies the old one, and over that the scratch: two go, and no third. */
    if (umount2(".", MNT_DETACH) < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return -errno;
    if (!is_alone(setup->root_fd))
        return -EBUSY;
    setup->protections |= PROTECT_ROOT;
    return 0;
}
