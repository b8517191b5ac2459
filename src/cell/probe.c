#include "cell/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include "cell/sys.h"

#define LINE_BYTES 512
#define CGROUP2_MAGIC 0x63677270
#define PATH_BYTES 64

static const struct probe_fact rows[PROBE_COUNT] = {
    [PROBE_USER_NAMESPACE] =
        {"user-namespaces", "cells without root (tier B)",
         "sysctl user.max_user_namespaces=15000; kernel.unprivileged_userns_clone=1 on Debian",
         false, ""},
    [PROBE_FRESH_PROC] = {"fresh-proc", "a /proc of the cell's own processes (tiers A and B)",
                          "in a container: an unmasked /proc (Kubernetes procMount: Unmasked)",
                          false, ""},
    [PROBE_ROOT_MOUNT] = {"root-mounts", "cells with ids of their own (tier A)",
                          "run as root with CAP_SYS_ADMIN", false, ""},
    [PROBE_OVERLAY] = {"overlay", "workspaces that share their inputs instead of copying them",
                       "modprobe overlay", false, ""},
    [PROBE_TMPFS_XATTR] = {"tmpfs-xattr", "overlay workspaces without root",
                           "Linux 6.6; until then such workspaces are copied", false, ""},
    [PROBE_IDMAP] = {"idmapped-mounts", "overlay workspaces with root",
                     "Linux 5.12 and a file system that allows it; else workspaces are copied",
                     false, ""},
    [PROBE_IDMAP_TMPFS] = {"idmapped-tmpfs", "candidates under an id of their own, with root",
                           "Linux 6.3; until then they run under the grader's", false, ""},
    [PROBE_LANDLOCK] = {"landlock", "writing only where a cell may (every tier)",
                        "Linux 5.13 with landlock in lsm= on the kernel's command line", false, ""},
    [PROBE_SECCOMP] = {"seccomp", "a list of allowed system calls (every tier)",
                       "a kernel with CONFIG_SECCOMP_FILTER", false, ""},
    [PROBE_CGROUP2] = {"cgroup2", "limits of memory and processors", "mount the unified hierarchy",
                       false, ""},
    [PROBE_CGROUP1] = {"cgroup1", "the same on hybrid machines", "", false, ""},
    [PROBE_NEWUIDMAP] = {"newuidmap", "more than one id in a user's cell (not in this version)",
                         "apt install uidmap", false, ""},
    [PROBE_SUBUID] = {"subuid", "the same", "usermod --add-subuids 100000-165535 USER", false, ""},
    [PROBE_APPARMOR] =
        {"apparmor-allows", "cells without root on Ubuntu 24.04 and later",
         "load the profile share/closedbook/apparmor.d/closedbook-cell; its head says how", false,
         ""},
};

/* Errors of the probes in a child, shared with it: 0 is good, negative errno. */
struct findings {
    int namespaces, proc, overlay, tmpfs_xattr;
};

static void settle(struct cell_probe *probe, enum probe_fact_kind kind, int r, const char *good)
{
    struct probe_fact *fact = &probe->facts[kind];

    fact->available = r >= 0;
    if (r >= 0)
        (void)snprintf(fact->reason, sizeof(fact->reason), "%.*s", PROBE_REASON_BYTES - 1, good);
    else
        (void)snprintf(fact->reason, sizeof(fact->reason), "%s", strerrordesc_np(-r));
}

static int try_tmpfs(void)
{
    int fd = sys_new_mount("tmpfs", NULL, 0, MOUNT_ATTR_NODEV);

    if (fd < 0)
        return fd;
    int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* fd is a path only */
    int r = dir < 0 || fsetxattr(dir, "user.closedbook", "y", 1, 0) < 0 ? -errno : 0;

    if (dir >= 0)
        (void)close(dir); /* goes away with it */
    (void)close(fd);      /* likewise */
    return r;
}

static int try_overlay(void)
{
    int fd = fsopen("overlay", FSOPEN_CLOEXEC);

    if (fd < 0)
        return -errno;
    (void)close(fd); /* nothing was made */
    return 0;
}

_Noreturn static void look_from_inside(struct findings *findings)
{
    findings->namespaces = 0;
    int proc = sys_new_mount("proc", NULL, 0, MOUNT_ATTR_NOSUID);

    findings->proc = proc < 0 ? proc : 0;
    findings->overlay = try_overlay();
    findings->tmpfs_xattr = try_tmpfs();
    _exit(0);
}

/* All of a cell's namespaces at once, in a child. */
static void try_namespaces(uint64_t further, struct findings *ret)
{
    struct findings *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int pidfd = -1, status;

    *ret = (struct findings){-ECHILD, -ECHILD, -ECHILD, -ECHILD};
    if (shared == MAP_FAILED)
        return;
    *shared = *ret;
    pid_t pid = sys_fork(CELL_NAMESPACES | further, &pidfd);

    if (pid == 0)
        look_from_inside(shared);
    if (pid > 0 && sys_reap(pidfd, &status) == 0)
        *ret = *shared;
    else if (pid < 0)
        *ret = (struct findings){pid, pid, pid, pid};
    if (pidfd >= 0)
        (void)close(pidfd);                /* reaped */
    (void)munmap(shared, sizeof(*shared)); /* cannot fail for what was mapped */
}

/* A file system's willingness, through a user namespace of a child. */
static int try_idmap(int tree)
{
    if (tree < 0)
        return tree;
    int pidfd = -1, status;
    char path[PATH_BYTES];
    pid_t pid = sys_fork(CLONE_NEWUSER, &pidfd);

    if (pid < 0)
        return pid;
    if (pid == 0) {
        for (;;)
            (void)pause(); /* until it is killed */
    }
    sys_format(path, sizeof(path), "/proc/%d/uid_map", pid);
    int r = sys_write_file(AT_FDCWD, path, "0 65534 1");

    sys_format(path, sizeof(path), "/proc/%d/gid_map", pid);
    if (r == 0)
        r = sys_write_file(AT_FDCWD, path, "0 65534 1");
    sys_format(path, sizeof(path), "/proc/%d/ns/user", pid);
    int user_ns = r < 0 ? r : open(path, O_RDONLY | O_CLOEXEC);

    if (r == 0)
        r = user_ns < 0 ? -errno : sys_idmap_mount(tree, user_ns);
    if (user_ns >= 0)
        (void)close(user_ns); /* a name only */
    if (sys_pidfd_kill(pidfd, SIGKILL) == 0)
        (void)!sys_reap(pidfd, &status); /* its end is all that matters */
    (void)close(pidfd);                  /* reaped */
    return r;
}

static void find_idmaps(struct cell_probe *probe)
{
    int root = sys_open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE);
    int tmpfs = sys_new_mount("tmpfs", NULL, 0, MOUNT_ATTR_NODEV);

    settle(probe, PROBE_IDMAP, try_idmap(root), "on the root file system");
    settle(probe, PROBE_IDMAP_TMPFS, try_idmap(tmpfs), "on a tmpfs");
    if (root >= 0)
        (void)close(root); /* goes away with it */
    if (tmpfs >= 0)
        (void)close(tmpfs); /* likewise */
}

/* The first line of a file; -errno when it cannot be read. */
static int read_line(const char *path, char *ret, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, ret, size - 1);
    int r = n < 0 ? -errno : 0;

    (void)close(fd); /* read only */
    ret[n < 0 ? 0 : n] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    return r;
}

static void find_cgroups(struct cell_probe *probe)
{
    static const char *const unified[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char controllers[LINE_BYTES] = "", path[PATH_BYTES];
    int r = -ENOENT;

    for (size_t i = 0; i < ARRAY_SIZE(unified) && r < 0; i++) {
        struct statfs status;

        if (statfs(unified[i], &status) < 0 || status.f_type != CGROUP2_MAGIC)
            continue;
        sys_format(path, sizeof(path), "%s/cgroup.controllers", unified[i]);
        r = read_line(path, controllers, sizeof(controllers));
    }
    settle(probe, PROBE_CGROUP2, r, controllers[0] != '\0' ? controllers : "no controllers");
    settle(probe, PROBE_CGROUP1,
           access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) < 0 ? -errno : 0,
           "a hybrid hierarchy");
}

static void find_subuid(struct cell_probe *probe)
{
    const struct passwd *account = getpwuid(getuid());
    char line[LINE_BYTES];
    int r = -ENOENT;
    FILE *file = account == NULL ? NULL : fopen("/etc/subuid", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        size_t length = strlen(account->pw_name);

        if (strncmp(line, account->pw_name, length) == 0 && line[length] == ':')
            r = 0;
    }
    if (file != NULL)
        (void)fclose(file); /* read only */
    settle(probe, PROBE_SUBUID, r, "a range of this user");
    settle(probe, PROBE_NEWUIDMAP, access("/usr/bin/newuidmap", X_OK) < 0 ? -errno : 0,
           "/usr/bin/newuidmap");
}

static void find_confinement(struct cell_probe *probe)
{
    uint32_t action = SECCOMP_RET_KILL_PROCESS;
    char line[LINE_BYTES];

    probe->landlock_abi = sys_landlock_abi();
    (void)snprintf(line, sizeof(line), "ABI %d", probe->landlock_abi); /* always fits */
    settle(probe, PROBE_LANDLOCK, probe->landlock_abi > 0 ? 0 : -ENOSYS, line);
    settle(probe, PROBE_SECCOMP,
           syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? -errno : 0, "filters");
    int r = read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", line, sizeof(line));

    settle(probe, PROBE_APPARMOR, r == 0 && strcmp(line, "0") != 0 ? -EPERM : 0, "no restriction");
}

void cell_probe(struct cell_probe *ret)
{
    bool is_root = geteuid() == 0;
    struct findings as_user, as_root = {-EPERM, -EPERM, -EPERM, -EPERM};

    *ret = (struct cell_probe){0};
    memcpy(ret->facts, rows, sizeof(rows));
    try_namespaces(CLONE_NEWUSER, &as_user);
    if (is_root)
        try_namespaces(0, &as_root);
    const struct findings *mine = is_root ? &as_root : &as_user;

    settle(ret, PROBE_USER_NAMESPACE, as_user.namespaces, "with all others");
    settle(ret, PROBE_ROOT_MOUNT, as_root.namespaces, "CAP_SYS_ADMIN");
    settle(ret, PROBE_FRESH_PROC, mine->proc, "can be mounted");
    settle(ret, PROBE_OVERLAY, mine->overlay, "can be mounted");
    settle(ret, PROBE_TMPFS_XATTR, mine->tmpfs_xattr, "user attributes");
    find_idmaps(ret);
    find_confinement(ret);
    find_cgroups(ret);
    find_subuid(ret);
}
