/*
 * as_older: runs a test program as an older kernel would have it, for what can be told by the
 * arguments of a call: descriptors as mount options (6.13), user attributes on a tmpfs (6.6), and
 * clone3(), which containers refuse, too. The real older kernel is that of tests/vm.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "base/base.h"

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Skips the next count instructions unless the loaded word is value. */
#define UNLESS(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (count))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define REFUSE(number) ANSWER(SECCOMP_RET_ERRNO | (number))

static int refuse_newer_calls(void)
{
    /* clang-format off */
    struct sock_filter instructions[] = {
        LOAD(nr),
        UNLESS(SYS_clone3, 1),
        REFUSE(ENOSYS),
        UNLESS(SYS_fsetxattr, 1),
        REFUSE(EOPNOTSUPP),
        UNLESS(SYS_fsconfig, 3),
        LOAD(args[1]),
        UNLESS(FSCONFIG_SET_FD, 1),
        REFUSE(EINVAL),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    /* clang-format on */
    struct sock_fprog program = {.len = ARRAY_SIZE(instructions), .filter = instructions};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Without the filter these fail, too, but say that the descriptor is a bad one. */
static bool are_refused(void)
{
    bool refused = fsconfig(-1, FSCONFIG_SET_FD, "upperdir", NULL, 0) < 0 && errno == EINVAL;

    refused &= fsetxattr(-1, "user.x", "y", 1, 0) < 0 && errno == EOPNOTSUPP;
    return refused && syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS;
}

int main(int argc, char **argv)
{
    if (argc < 2 || refuse_newer_calls() < 0 || !are_refused()) {
        (void)fputs("usage: test_as_older PROGRAM [ARGUMENT...]\n", stderr);
        return 2;
    }
    (void)execv(argv[1], argv + 1);
    (void)fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
    return 2;
}
