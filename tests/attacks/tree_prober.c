#include "tree_prober.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/base.h"

#define FIRST_TREE 10
#define LAST_TREE 30
#define VALUE_BYTES 64
#define LOST_FD 1000

static const char *result(long r)
{
    const char *error = strerrorname_np(errno);

    return r >= 0 ? "ok" : error == NULL ? "?" : error;
}

static void tell_mark(int dir_fd, const char *name, const char *kind)
{
    char value[VALUE_BYTES] = "", key[VALUE_BYTES];
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    (void)snprintf(key, sizeof(key), "%s.overlay.opaque", kind);
    if (fd < 0)
        return;
    if (fgetxattr(fd, key, value, sizeof(value) - 1) > 0)
        (void)printf("%s_opaque:%d/%s %s\n", kind, dir_fd, name, value);
    (void)close(fd); /* read only */
}

static void tell_entry(int dir_fd, const char *name)
{
    struct stat status;

    (void)printf("list:%d %s\n", dir_fd, name);
    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0))
        (void)printf("whiteout:%d/%s yes\n", dir_fd, name);
    if (S_ISREG(status.st_mode)) {
        int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        (void)printf("read:%d/%s %s\n", dir_fd, name, result(fd));
        if (fd >= 0)
            (void)close(fd); /* read only */
    }
    tell_mark(dir_fd, name, "trusted");
    tell_mark(dir_fd, name, "user");
}

static void tell_tree(int dir_fd)
{
    int fd = openat(dir_fd, "made", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

    (void)printf("create_in:%d %s\n", dir_fd, result(fd));
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            tell_entry(dir_fd, entry->d_name);
    }
    if (dir != NULL)
        (void)closedir(dir); /* read only */
}

void probe_trees(void)
{
    char byte;

    (void)printf("read:3 %s\n", result(read(3, &byte, 1)));
    for (int fd = FIRST_TREE; fd < LAST_TREE; fd++) {
        struct stat status;

        if (fstat(fd, &status) < 0)
            continue;
        if (S_ISDIR(status.st_mode))
            tell_tree(fd);
        else
            (void)printf("write:%d %s\n", fd, result(write(fd, "x", 1)));
    }
}

void probe_worker(void)
{
    static char *const argv[] = {NULL};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    struct rlimit limit = {0};

    (void)syscall(SYS_capget, &header, data);
    (void)printf("caps_get %08x%08x\n", data[1].effective, data[0].effective);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    (void)printf("open_files_at_most %llu\n", (unsigned long long)limit.rlim_max);
    (void)printf("fork %s\n", result(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL)));
    (void)printf("exec_self %s\n", result(execve("/proc/self/exe", argv, argv)));
    (void)printf("exec_by_fd %s\n", result(execveat(FIRST_TREE, "", argv, argv, AT_EMPTY_PATH)));
    /* The one that its filter lets through: the descriptor is gone and cannot come back. */
    (void)printf("exec_by_lost_fd %s\n", result(execveat(LOST_FD, "", argv, argv, AT_EMPTY_PATH)));
    (void)printf("setxattr %s\n", result(fsetxattr(1, "user.x", "y", 1, 0)));
    (void)printf("dup_to_lost_fd %s\n", result(dup3(1, LOST_FD, O_CLOEXEC)));
}
