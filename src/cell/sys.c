#include "cell/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CLONE_INTO_CGROUP_FLAG UINT64_C(0x200000000)
#define KEEP_MAX 96
#define DIRENTS_BYTES 1024
#define KEYCTL_JOIN_SESSION_KEYRING_OP 1
#define USEC_PER_SEC 1000000u
#define RULE_PATH_BENEATH 1
#define RULESET_VERSION 1u

struct clone3_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    uint64_t set_tid, set_tid_size, cgroup; /* since Linux 5.5 and 5.7 */
};
#define CLONE3_BYTES_FIRST 64 /* without the last three */

static int result(long r)
{
    return r < 0 ? -errno : (int)r;
}

pid_t sys_fork(uint64_t flags, int *ret_pidfd)
{
    int pidfd = -1;
    struct clone3_args args = {
        .flags = flags | CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    long pid = syscall(SYS_clone3, &args, CLONE3_BYTES_FIRST);

    /* Containers' filters refuse clone3(), as they cannot look into its struct. */
    if (pid < 0 && (errno == ENOSYS || errno == EPERM))
        pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
    if (pid < 0)
        return -errno;
    *ret_pidfd = pidfd;
    return (pid_t)pid;
}

pid_t sys_fork_into(uint64_t flags, int cgroup_fd, int *ret_pidfd)
{
    int pidfd = -1;
    struct clone3_args args = {.flags = flags | CLONE_PIDFD | CLONE_INTO_CGROUP_FLAG,
                               .pidfd = (uint64_t)(uintptr_t)&pidfd,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)cgroup_fd};
    long pid = syscall(SYS_clone3, &args, sizeof(args));

    if (pid < 0)
        return -errno;
    *ret_pidfd = pidfd;
    return (pid_t)pid;
}

int sys_pidfd_kill(int pidfd, int number)
{
    return result(syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0));
}

int sys_reap_used(int pidfd, int *ret_status, uint64_t *ret_cpu_us)
{
    siginfo_t info = {0};
    struct rusage used = {0};

    /* glibc's waitid() has no rusage. */
    while (syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED, &used) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    *ret_status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
    *ret_cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * USEC_PER_SEC +
                  (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return 0;
}

int sys_reap(int pidfd, int *ret_status)
{
    uint64_t cpu_us;

    return sys_reap_used(pidfd, ret_status, &cpu_us);
}

bool sys_uid_is_idle(uid_t uid)
{
    /* Looks at every process that this pid namespace sees, the dead but unreaped, too. */
    return syscall(SYS_getpriority, PRIO_USER, uid) < 0 && errno == ESRCH;
}

static int compare_ints(const void *a, const void *b)
{
    int left, right;

    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left < right ? -1 : left > right;
}

int sys_close_except(const int *keep, size_t count)
{
    int sorted[KEEP_MAX];
    unsigned next = 0;

    ASSERT(count <= KEEP_MAX);
    memcpy(sorted, keep, count * sizeof(sorted[0]));
    qsort(sorted, count, sizeof(sorted[0]), compare_ints);
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] < 0 || (unsigned)sorted[i] < next)
            continue;
        unsigned fd = (unsigned)sorted[i];

        if (fd > next && syscall(SYS_close_range, next, fd - 1, 0) < 0)
            return -errno;
        next = fd + 1;
    }
    return result(syscall(SYS_close_range, next, ~0u, 0));
}

/* "." and ".." are always there. */
bool sys_dir_is_empty(int dir_fd)
{
    _Alignas(struct dirent64) char bytes[DIRENTS_BYTES];
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    size_t count = 0;
    ssize_t size = -1;

    if (fd < 0)
        return false;
    while (count <= 2 && (size = getdents64(fd, bytes, sizeof(bytes))) > 0) {
        for (ssize_t at = 0; at < size; count++)
            at += ((const struct dirent64 *)(const void *)(bytes + at))->d_reclen;
    }
    (void)close(fd); /* only read */
    return size == 0 && count == 2;
}

int sys_join_keyring(void)
{
    long r = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING_OP, NULL, 0, 0, 0);

    /* A kernel without keyrings has nothing to hide. */
    if (r < 0 && errno == ENOSYS)
        return 0;
    return r < 0 ? -errno : 0;
}

int sys_open_tree(int dir_fd, const char *path, unsigned flags)
{
    return result(open_tree(dir_fd, path, flags | OPEN_TREE_CLOEXEC));
}

int sys_attach(int mount_fd, int to_fd, const char *path)
{
    unsigned flags = MOVE_MOUNT_F_EMPTY_PATH;

    if (path[0] == '\0')
        flags |= MOVE_MOUNT_T_EMPTY_PATH;
    return result(move_mount(mount_fd, "", to_fd, path, flags));
}

int sys_set_mount(int mount_fd, uint64_t set, uint64_t clear, bool recursive)
{
    struct mount_attr attributes = {.attr_set = set, .attr_clr = clear, .propagation = MS_PRIVATE};

    return result(mount_setattr(mount_fd, "",
                                (unsigned)AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0u),
                                &attributes, sizeof(attributes)));
}

int sys_idmap_mount(int mount_fd, int user_ns_fd)
{
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP,
                                    .userns_fd = (unsigned)user_ns_fd};

    return result(
        mount_setattr(mount_fd, "", (unsigned)AT_EMPTY_PATH, &attributes, sizeof(attributes)));
}

int sys_open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (unsigned)(flags | O_CLOEXEC),
        .mode = (flags & O_CREAT) != 0 ? mode : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };

    return result(syscall(SYS_openat2, dir_fd, path, &how, sizeof(how)));
}

static int set_option(int fs_fd, const struct mount_option *option)
{
    if (option->is_fd)
        return result(fsconfig(fs_fd, FSCONFIG_SET_FD, option->key, NULL, option->fd));
    if (option->value == NULL)
        return result(fsconfig(fs_fd, FSCONFIG_SET_FLAG, option->key, NULL, 0));
    return result(fsconfig(fs_fd, FSCONFIG_SET_STRING, option->key, option->value, 0));
}

int sys_new_mount(const char *type, const struct mount_option *options, size_t count,
                  uint64_t attributes)
{
    int fs_fd = fsopen(type, FSOPEN_CLOEXEC);

    if (fs_fd < 0)
        return -errno;
    int r = 0;

    for (size_t i = 0; i < count && r >= 0; i++)
        r = set_option(fs_fd, &options[i]);
    if (r >= 0)
        r = result(fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
    if (r >= 0)
        r = result(fsmount(fs_fd, FSMOUNT_CLOEXEC, (unsigned)attributes));
    (void)close(fs_fd); /* nothing was written */
    return r;
}

int sys_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);

    return abi < 0 ? 0 : (int)abi;
}

/* All file system rights that the ABI can restrict. */
static uint64_t known_rights(int abi)
{
    if (abi >= 5)
        return (UINT64_C(1) << 16) - 1;
    if (abi >= 3)
        return (UINT64_C(1) << 15) - 1;
    return abi >= 2 ? (UINT64_C(1) << 14) - 1 : (UINT64_C(1) << 13) - 1;
}

static int make_ruleset(int abi, uint64_t rights, uint64_t scope)
{
    struct {
        uint64_t handled_access_fs, handled_access_net, scoped;
    } attributes = {.handled_access_fs = rights, .scoped = abi >= 6 ? scope : 0};
    size_t size = abi >= 6   ? sizeof(attributes)
                  : abi >= 4 ? 2 * sizeof(uint64_t)
                             : sizeof(uint64_t);

    return result(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
}

int sys_landlock_ruleset(int abi)
{
    return make_ruleset(abi, known_rights(abi), 3);
}

int sys_landlock_scope(int abi, uint64_t scope)
{
    return make_ruleset(abi, 0, scope);
}

int sys_landlock_allow(int ruleset_fd, int abi, int fd, uint64_t rights)
{
    struct {
        uint64_t allowed_access;
        int32_t parent_fd;
    } __attribute__((packed))
    rule = {.allowed_access = rights & known_rights(abi), .parent_fd = fd};

    return result(syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &rule, 0));
}

int sys_landlock_enforce(int ruleset_fd)
{
    return result(syscall(SYS_landlock_restrict_self, ruleset_fd, 0));
}

int sys_write_file(int dir_fd, const char *path, const char *text)
{
    int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    size_t size = strlen(text);
    ssize_t n = write(fd, text, size);
    int r = n < 0 ? -errno : (size_t)n == size ? 0 : -EIO;

    (void)close(fd); /* a kernel file: write() said it all */
    return r;
}

void sys_format(char *ret, size_t size, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    int n = vsnprintf(ret, size, fmt, args);

    va_end(args);
    ASSERT(n >= 0 && (size_t)n < size);
}

uint64_t sys_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
