#pragma once
/*
 * sys: system calls that glibc lacks or wraps in a way that does not suit, each returning -errno.
 *
 * Own constants where Debian 12's headers are older than the kernels that we run on. libc only, no
 * state, safe between fork and exec.
 */

#include <sys/types.h>

#include "base/base.h"

/* --- processes */
#define CELL_NAMESPACES                                                                            \
    (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* fork() with clone flags and a pidfd; clone3(), or clone() where that is not to be had. */
must_check pid_t sys_fork(uint64_t flags, int *ret_pidfd) nonnull(2);
/* The same, into the cgroup (version 2) of the descriptor; clone3() alone can. */
must_check pid_t sys_fork_into(uint64_t flags, int cgroup_fd, int *ret_pidfd) nonnull(3);
must_check int sys_pidfd_kill(int pidfd, int number);
/* Reaps what pidfd names; *ret_status is a wait status. */
must_check int sys_reap(int pidfd, int *ret_status) nonnull(2);
/* With the processor time that it and what it waited for took. */
must_check int sys_reap_used(int pidfd, int *ret_status, uint64_t *ret_cpu_us) nonnull(2, 3);
/* True when no process runs under the real user id. */
must_check bool sys_uid_is_idle(uid_t uid);
/* Closes all descriptors but those in keep (any order, -1 ignored). */
must_check int sys_close_except(const int *keep, size_t count);
must_check int sys_join_keyring(void);
/* True when it can be seen that nothing is in the directory. */
must_check bool sys_dir_is_empty(int dir_fd);

/* --- mounts */
must_check int sys_open_tree(int dir_fd, const char *path, unsigned flags);
/* Attaches a detached mount at to_fd/path ("" for to_fd itself). */
must_check int sys_attach(int mount_fd, int to_fd, const char *path);
must_check int sys_set_mount(int mount_fd, uint64_t set, uint64_t clear, bool recursive);
must_check int sys_idmap_mount(int mount_fd, int user_ns_fd);
/* openat2() below dir_fd, no links followed. */
must_check int sys_open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

struct mount_option {
    const char *key;
    const char *value; /* NULL: a flag, or a descriptor */
    int fd;            /* used when value is NULL and is_fd */
    bool is_fd;
};
/* fsopen, options, fsmount: a detached mount with the attributes. */
must_check int sys_new_mount(const char *type, const struct mount_option *options, size_t count,
                             uint64_t attributes);

/* --- landlock */
#define LANDLOCK_RIGHT_EXECUTE (UINT64_C(1) << 0)
#define LANDLOCK_RIGHT_WRITE_FILE (UINT64_C(1) << 1)
#define LANDLOCK_RIGHT_READ_FILE (UINT64_C(1) << 2)
#define LANDLOCK_RIGHT_READ_DIR (UINT64_C(1) << 3)
#define LANDLOCK_RIGHT_MAKE_CHAR (UINT64_C(1) << 6)
#define LANDLOCK_RIGHT_MAKE_BLOCK (UINT64_C(1) << 11)
#define LANDLOCK_RIGHT_REFER (UINT64_C(1) << 13)     /* ABI 2 */
#define LANDLOCK_RIGHT_TRUNCATE (UINT64_C(1) << 14)  /* ABI 3 */
#define LANDLOCK_RIGHT_IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5 */
#define LANDLOCK_RIGHTS_FILE                                                                       \
    (LANDLOCK_RIGHT_EXECUTE | LANDLOCK_RIGHT_WRITE_FILE | LANDLOCK_RIGHT_READ_FILE |               \
     LANDLOCK_RIGHT_TRUNCATE | LANDLOCK_RIGHT_IOCTL_DEV)

/* The kernel's ABI, 0 when it has no landlock. */
int sys_landlock_abi(void);
must_check int sys_landlock_ruleset(int abi);
/* One that keeps signals or abstract sockets (bits of `scope`) inside, and nothing else. ABI 6. */
must_check int sys_landlock_scope(int abi, uint64_t scope);
/* Allows rights (those that the ABI knows) at and below fd. */
must_check int sys_landlock_allow(int ruleset_fd, int abi, int fd, uint64_t rights);
must_check int sys_landlock_enforce(int ruleset_fd);

/* --- small helpers */
must_check int sys_write_file(int dir_fd, const char *path, const char *text);
/* "name" in at most size bytes with the number at its end. */
void sys_format(char *ret, size_t size, const char *fmt, ...) printf_like(3, 4);
uint64_t sys_now_ns(void);
