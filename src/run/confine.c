#include "run/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Rights of ABI 2 to 5 that Debian 12's headers lack or may lack. */
#define ACCESS_REFER (1ull << 13)
#define ACCESS_TRUNCATE (1ull << 14)
#define ACCESS_IOCTL_DEV (1ull << 15)

#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_V1 ((1ull << 13) - 1)

static uint64_t handled_rights(int abi)
{
    uint64_t rights = ACCESS_V1;

    if (abi >= 2)
        rights |= ACCESS_REFER;
    if (abi >= 3)
        rights |= ACCESS_TRUNCATE;
    if (abi >= 5)
        rights |= ACCESS_IOCTL_DEV;
    return rights;
}

static int add_rule(int ruleset, int fd, uint64_t rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};

    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int apply_landlock(const struct confine_options *options, struct error **err)
{
    int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 1)
        return error_errno(err, errno, "landlock is not to be had, so a trial cannot be confined");

    struct landlock_ruleset_attr attr = {.handled_access_fs = handled_rights(abi)};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

    if (ruleset < 0)
        return error_errno(err, errno, "cannot make a landlock ruleset");

    uint64_t write_rights =
        attr.handled_access_fs &
        ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | ACCESS_IOCTL_DEV | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                    LANDLOCK_ACCESS_FS_MAKE_BLOCK);
    int r = 0;

    for (size_t i = 0; r == 0 && i < options->write_count; i++)
        r = add_rule(ruleset, options->write_fds[i], write_rights);
    for (size_t i = 0; r == 0 && i < options->read_count; i++)
        r = add_rule(ruleset, options->read_fds[i], ACCESS_READ);
    if (r == 0)
        r = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);

    int saved = errno;

    (void)close(ruleset);
    return r == 0 ? 0 : error_errno(err, saved, "cannot restrict the trial with landlock");
}

#define CALL_FCHMODAT2 452 /* newer than Debian 12's headers */

/* Calls that a trial never makes; each would be a way out or a way in. */
static const uint32_t denied_calls[] = {
    SYS_execve,
    SYS_execveat,
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kill,
    SYS_tkill,
    SYS_pidfd_send_signal,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_utimensat,
    SYS_setxattr,
    SYS_lsetxattr,
#ifdef SYS_chmod
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
#endif
    CALL_FCHMODAT2,
    SYS_clone3,
    SYS_kcmp,
    SYS_fanotify_init,
    SYS_personality,
};

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define X32_BIT 0x40000000u
#else
#error "the trial filter knows x86_64 and aarch64"
#endif

static int apply_seccomp(struct error **err)
{
    enum { HEAD = 5, CALLS = ARRAY_SIZE(denied_calls) };
    struct sock_filter program[HEAD + CALLS + 2];
    struct sock_fprog filter = {.len = ARRAY_SIZE(program), .filter = program};

    program[0] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    program[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    program[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    program[3] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    program[4] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, CALLS + 1, 0);
    for (size_t i = 0; i < CALLS; i++)
        program[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, denied_calls[i],
                                                         (uint8_t)(CALLS - i), 0);
    program[HEAD + CALLS] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[HEAD + CALLS + 1] =
        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0)
        return error_errno(err, errno, "cannot load the trial's seccomp filter");
    return 0;
}

int confine_self(const struct confine_options *options, struct error **err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return error_errno(err, errno, "cannot set no_new_privs");

    int r = apply_landlock(options, err);

    return r < 0 ? r : apply_seccomp(err);
}
