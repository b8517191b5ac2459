#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "cell/setup.h"

#define PATH_BYTES 64

/*
 * Files of /proc that tell of the host's kernel or of other people's keys, shown empty. Last, here
 * and below, is one that every kernel has (cover_names).
 */
static const char *const masked_files[] = {
    "kallsyms",      "keys",        "key-users",  "config.gz",     "kmsg",        "sched_debug",
    "timer_list",    "vmallocinfo", "kcore",      "sysrq-trigger", "slabinfo",    "pagetypeinfo",
    "latency_stats", "kpagecount",  "kpageflags", "kpagecgroup",   "timer_stats", "cmdline",
};

/* Directories of it, shown empty. */
static const char *const masked_dirs[] = {"irq",  "bus",    "fs",     "acpi",
                                          "scsi", "asound", "driver", "tty"};

static const struct {
    const char *name;
    unsigned minor;
    unsigned major;
} devices[DEVICE_COUNT] = {
    [DEVICE_NULL] = {"null", 3, 1},       [DEVICE_ZERO] = {"zero", 5, 1},
    [DEVICE_FULL] = {"full", 7, 1},       [DEVICE_RANDOM] = {"random", 8, 1},
    [DEVICE_URANDOM] = {"urandom", 9, 1}, [DEVICE_TTY] = {"tty", 0, 5},
};

static int clone_cover(const struct setup *setup, const char *name)
{
    int tree = sys_open_tree(setup->scratch_fd, name, OPEN_TREE_CLONE);

    if (tree < 0)
        return tree;
    int r = sys_set_mount(
        tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0,
        false);

    return r < 0 ? r : tree;
}

/*
 * Covers names of the new /proc, which holds no link of anybody's. One that this kernel does not
 * have is fine; its clone serves for the next, as one that goes unused is costly to be rid of.
 * scratch/name lies over itself as a cover, so that its clones are covers without further calls.
 */
static int cover_names(const struct setup *setup, int proc_fd, const char *const *names,
                       size_t count, const char *name)
{
    int tree = clone_cover(setup, name);
    int r = tree < 0 ? tree : sys_attach(tree, setup->scratch_fd, name);

    for (size_t i = 0; i < count && r >= 0; i++) {
        if (tree < 0 || r == 0) {
            if (tree >= 0)
                (void)close(tree); /* attached */
            tree = sys_open_tree(setup->scratch_fd, name, OPEN_TREE_CLONE);
        }
        r = tree < 0 ? tree : sys_attach(tree, proc_fd, names[i]);
        if (r == -ENOENT)
            r = 1;
    }
    if (tree >= 0)
        (void)close(tree); /* attached or failed */
    return r < 0 ? r : 0;
}

/* A text of the client's over a path that it named: nothing outside /proc, and no link. */
static int cover_text(const struct setup *setup, int proc_fd, uint32_t index)
{
    const char *path = setup->request->texts[index].target + strlen("/proc/");
    int point = sys_open_beneath(proc_fd, path, O_PATH, 0);
    char name[PATH_BYTES];

    if (point < 0)
        return point == -ENOENT ? 0 : point;
    sys_format(name, sizeof(name), "t%u", index);
    int tree = clone_cover(setup, name);
    int r = tree < 0 ? tree : sys_attach(tree, point, "");

    if (tree >= 0)
        (void)close(tree); /* attached or failed */
    (void)close(point);    /* a path only */
    return r;
}

static int cover_all(const struct setup *setup, int proc_fd)
{
    int empty = openat(setup->scratch_fd, "empty", O_CREAT | O_WRONLY | O_CLOEXEC, 0444);

    if (empty < 0)
        return -errno;
    (void)close(empty); /* nothing was written */
    int r = cover_names(setup, proc_fd, masked_files, ARRAY_SIZE(masked_files), "empty");

    if (r >= 0)
        r = cover_names(setup, proc_fd, masked_dirs, ARRAY_SIZE(masked_dirs), "void");
    for (uint32_t i = 0; i < setup->request->text_count && r >= 0; i++) {
        if (strncmp(setup->request->texts[i].target, "/proc/", strlen("/proc/")) == 0)
            r = cover_text(setup, proc_fd, i);
    }
    return r;
}

static int freeze_settings(int proc_fd)
{
    int tree = sys_open_tree(proc_fd, "sys", OPEN_TREE_CLONE);

    if (tree < 0)
        return tree;
    int r = sys_set_mount(
        tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0,
        false);

    if (r >= 0)
        r = sys_attach(tree, proc_fd, "sys");
    (void)close(tree); /* attached or failed */
    return r;
}

int view_proc(struct setup *setup)
{
    const struct mount_option options[] = {{.key = "hidepid", .value = "invisible"}};
    int fd = sys_new_mount("proc", options, ARRAY_SIZE(options),
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

    if (fd < 0)
        return fd;
    int r = view_attach(setup, fd, "/proc", true);

    if (r >= 0)
        r = cover_all(setup, fd);
    if (r >= 0)
        r = freeze_settings(fd);
    if (r < 0)
        return r;
    setup->protections |= PROTECT_PROC;
    return 0;
}

/* --- /dev */

/* The host's node, which must be what its name says, where we may not make one. */
static int bind_device(struct setup *setup, enum device device)
{
    char path[PATH_BYTES];
    struct stat status;

    sys_format(path, sizeof(path), "/dev/%s", devices[device].name);
    int tree = sys_open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);

    if (tree < 0)
        return tree;
    if (fstat(tree, &status) < 0 || !S_ISCHR(status.st_mode) ||
        status.st_rdev != makedev(devices[device].major, devices[device].minor))
        return -ENODEV;
    sys_format(path, sizeof(path), "d/%s", devices[device].name);
    int fd = openat(setup->scratch_fd, path, O_CREAT | O_WRONLY | O_CLOEXEC, 0444);

    if (fd < 0)
        return -errno;
    (void)close(fd); /* nothing was written */
    sys_format(path, sizeof(path), "/dev/%s", devices[device].name);
    /* Read-only: devices work all the same, and the host's node stays as it is. */
    int r =
        sys_set_mount(tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, false);

    return r < 0 ? r : view_attach(setup, tree, path, false);
}

static int make_device(const struct setup *setup, enum device device)
{
    char path[PATH_BYTES];

    sys_format(path, sizeof(path), "d/%s", devices[device].name);
    if (mknodat(setup->scratch_fd, path, S_IFCHR | 0666,
                makedev(devices[device].major, devices[device].minor)) < 0)
        return -errno;
    return fchmodat(setup->scratch_fd, path, 0666, 0) < 0 ? -errno : 0;
}

static int make_dev_links(int scratch_fd)
{
    static const char *const links[][2] = {
        {"pts/ptmx", "d/ptmx"},          {"/proc/self/fd", "d/fd"},
        {"/proc/self/fd/0", "d/stdin"},  {"/proc/self/fd/1", "d/stdout"},
        {"/proc/self/fd/2", "d/stderr"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
        if (symlinkat(links[i][0], scratch_fd, links[i][1]) < 0)
            return -errno;
    }
    if (mkdirat(scratch_fd, "d/pts", 0755) < 0 || mkdirat(scratch_fd, "d/shm", 0755) < 0)
        return -errno;
    return 0;
}

static int attach_dev(struct setup *setup)
{
    int dev = sys_open_tree(setup->scratch_fd, "d", OPEN_TREE_CLONE);

    if (dev < 0)
        return dev;
    int r = sys_set_mount(dev, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, false);

    return r < 0 ? r : view_attach(setup, dev, "/dev", true);
}

static int attach_pts(struct setup *setup)
{
    const struct mount_option options[] = {{.key = "ptmxmode", .value = "0666"},
                                           {.key = "mode", .value = "0620"}};
    int pts = sys_new_mount("devpts", options, ARRAY_SIZE(options),
                            MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);

    return pts < 0 ? pts : view_attach(setup, pts, "/dev/pts", true);
}

int view_dev(struct setup *setup)
{
    /* Nodes of its own have inodes, and so locks, of its own. A user namespace may not make any. */
    bool make = setup->machine->tier == TIER_A;

    if (mkdirat(setup->scratch_fd, "d", 0755) < 0)
        return -errno;
    int r = make_dev_links(setup->scratch_fd);

    for (enum device i = 0; i < DEVICE_COUNT && r >= 0 && make; i++) {
        setup->detail = i;
        r = make_device(setup, i);
    }
    if (r == -EPERM)
        make = false;
    else if (r < 0)
        return r;
    r = attach_dev(setup);
    for (enum device i = 0; i < DEVICE_COUNT && r >= 0 && !make; i++) {
        setup->detail = i;
        r = bind_device(setup, i);
    }
    return r < 0 ? r : attach_pts(setup);
}
