/*
 * emit_seccomp: writes the cell's seccomp programs as a C file, at build time.
 *
 * Lists of system calls become BPF by libseccomp, sorted as a binary tree. Before each stands a
 * short prologue of our own for what its rules cannot say: deny an ioctl by its low 32 bits while
 * all others pass, and ENOSYS (not EPERM) for calls newer than the list, so that programs fall
 * back.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/base.h"

#define PROGRAM_MAX 4096
#define IOCTL_TIOCSTI 0x5412u
#define IOCTL_TIOCLINUX 0x541Cu
/* Flags and such of a file, which its owner sets through a descriptor that can only read. */
#define IOCTL_SETFLAGS 0x40086602u
#define IOCTL_SETFLAGS_32 0x40046602u
#define IOCTL_SETVERSION 0x40087602u
#define IOCTL_SETVERSION_32 0x40047602u
#define IOCTL_FSSETXATTR 0x401C5820u
#define IOCTL_SET_ENCRYPTION 0x800C6613u
/* NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. */
#define CLONE_NAMESPACE_FLAGS 0x7E020000u
/* What x86-64 and arm64 number alike from here on; the last call that was looked at. */
#define NEWEST_KNOWN 451

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no seccomp program for this architecture yet"
#endif

/* Lists to be read, so in rows. */
/* clang-format off */

/* Ordinary programs need these; none reaches past the cell's namespaces. By purpose. */
static const char *const common_calls[] = {
    /* files */
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock",
    "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd",
    "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init", "inotify_init1",
    "inotify_rm_watch", "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr",
    "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat",
    "newfstatat", "open", "openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2",
    "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
    "removexattr", "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "splice",
    "stat", "statfs", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee",
    "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vmsplice", "write",
    "writev",
    /* memory */
    "brk", "get_mempolicy", "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mlock",
    "mlock2", "mlockall", "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap",
    "pkey_alloc", "pkey_free", "pkey_mprotect", "process_madvise", "process_mrelease",
    "remap_file_pages", "set_mempolicy", "set_mempolicy_home_node",
    /* processes and threads */
    "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_waitv", "get_robust_list", "get_thread_area", "getcpu", "getegid", "geteuid", "getgid",
    "getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid",
    "getrlimit", "getrusage", "getsid", "gettid", "getuid", "kill", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "pidfd_open", "pidfd_send_signal", "prctl",
    "prlimit64", "rseq", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid",
    "setgid", "setgroups", "setpgid", "setpriority", "setregid", "setresgid", "setresuid",
    "setreuid", "setrlimit", "setsid", "setuid", "sysinfo", "tgkill", "times", "tkill", "uname",
    "vfork", "wait4", "waitid", "ioprio_get", "ioprio_set",
    /* signals, timers, waiting */
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getitimer",
    "gettimeofday", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup",
    "io_submit", "nanosleep", "pause", "poll", "ppoll", "pselect6", "restart_syscall",
    "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "select", "setitimer", "sigaltstack",
    "signalfd", "signalfd4", "time", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    /* sockets (which kinds: below) and System V IPC, in namespaces of their own */
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    "socketpair", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
    "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop",
    "shmat", "shmctl", "shmdt", "shmget",
    /* the machine, read only */
    "getrandom",
};

/* Newer than Debian 12's libseccomp: by number, the same on every architecture. */
static const int new_calls[] = {
    452, /* fchmodat2 */
    453, /* map_shadow_stack */
    454, /* futex_wake */
    455, /* futex_wait */
    456, /* futex_requeue */
    462, /* mseal */
    463, /* setxattrat */
    464, /* getxattrat */
    465, /* listxattrat */
    466, /* removexattrat */
};

/* The init of a cell: reaps, reports, kills, ends. */
static const char *const init_calls[] = {
    "read", "write", "recvfrom", "sendto", "poll", "ppoll", "wait4", "kill", "exit", "exit_group",
    "rt_sigreturn", "restart_syscall", "clock_gettime", "close",
};

/* Sanitizers' run time in an init. */
static const char *const sanitizer_calls[] = {
    "mmap", "munmap", "madvise", "mprotect", "futex", "gettid", "getpid", "prctl", "openat",
    "readlink", "rt_sigaction", "fstat", "sigaltstack", "sched_yield", "newfstatat",
    "rt_sigprocmask", "getrlimit", "prlimit64", "getrusage", "brk", "set_robust_list", "rseq",
    "set_tid_address", "arch_prctl", "readlinkat", "pread64", "access", "uname", "clone", "getppid",
    "sched_getaffinity", "personality", "sysinfo",
};

/* closedbook-worker: files by descriptor, memory, no more. */
static const char *const worker_calls[] = {
    "read", "write", "readv", "writev", "pread64", "pwrite64", "lseek", "close", "close_range",
    "openat", "openat2", "fstat", "newfstatat", "statx", "fstatfs", "getdents64", "fcntl",
    "readlinkat", "mkdirat", "unlinkat", "renameat", "renameat2", "symlinkat", "linkat", "fchmod",
    "fchmodat", "fchown", "fchownat", "utimensat", "ftruncate", "fallocate", "fsync", "fdatasync",
    "syncfs", "copy_file_range", "sendfile", "splice", "fadvise64", "dup", "dup2", "dup3", "pipe2",
    "poll", "ppoll", "umask", "fgetxattr", "flistxattr", "lgetxattr", "llistxattr", "getxattr",
    "listxattr", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "memfd_create", "futex",
    "set_robust_list", "set_tid_address", "rseq", "arch_prctl", "prlimit64", "getrandom",
    "clock_gettime", "clock_getres", "gettimeofday", "getpid", "gettid", "getuid", "geteuid",
    "getgid", "getegid", "capget", "exit", "exit_group", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "tgkill", "sched_yield", "restart_syscall", "uname", "getcwd", "chdir",
    "fchdir",
    /* the loader of a dynamically linked one, and isatty() */
    "access", "faccessat", "readlink",
};

/*
 * What reaches past a cell that has no namespaces: landlock does not look at owners, modes, times
 * and attributes, be they named by path or by a descriptor that can only read, nor at priorities.
 */
static const char *const walled_out_calls[] = {
    "chmod", "chown", "fchmod", "fchmodat", "fchown", "fchownat", "fremovexattr", "fsetxattr",
    "futimesat", "lchown", "lremovexattr", "lsetxattr", "removexattr", "setxattr", "utime", "utimes",
    "utimensat", "ioprio_set", "prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam",
    "sched_setscheduler", "setpriority",
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt", "shmget",
};
static const int walled_out_numbers[] = {452, 463, 466};

/* clang-format on */

static const uint32_t denied_ioctls[] = {IOCTL_TIOCSTI, IOCTL_TIOCLINUX};
static const uint32_t walled_out_ioctls[] = {
    IOCTL_TIOCSTI,    IOCTL_TIOCLINUX,     IOCTL_SETFLAGS,   IOCTL_SETFLAGS_32,
    IOCTL_SETVERSION, IOCTL_SETVERSION_32, IOCTL_FSSETXATTR, IOCTL_SET_ENCRYPTION,
};

/* The lists of calls that a program of a cell can have. */
enum kind {
    KIND_CELL,
    KIND_NO_PTRACE,
    KIND_WALLED,
    KIND_WALLED_MODES, /* with modes by descriptor, for a program of ours */
};

static bool is_walled(enum kind kind)
{
    return kind == KIND_WALLED || kind == KIND_WALLED_MODES;
}

static void fail(const char *what, int r)
{
    (void)fprintf(stderr, "emit_seccomp: %s: %s\n", what, strerror(-r));
    exit(1);
}

static void allow(scmp_filter_ctx ctx, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);

        if (number == __NR_SCMP_ERROR)
            fail(names[i], -ENOSYS);
        if (number < 0)
            continue; /* another architecture's */
        int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);

        if (r < 0)
            fail(names[i], r);
    }
}

/* Arguments are compared by their low 32 bits, as the kernel reads them. */
static void allow_if(scmp_filter_ctx ctx, const char *name, unsigned argument, uint64_t mask,
                     uint64_t value)
{
    struct scmp_arg_cmp compare = SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value);
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name), 1,
                                   &compare);

    if (r < 0)
        fail(name, r);
}

static bool is_walled_out(const char *name, int number)
{
    for (size_t i = 0; name != NULL && i < ARRAY_SIZE(walled_out_calls); i++) {
        if (strcmp(walled_out_calls[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(walled_out_numbers); i++) {
        if (walled_out_numbers[i] == number)
            return true;
    }
    return false;
}

static void add_common_calls(scmp_filter_ctx ctx, enum kind kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(common_calls); i++) {
        if (!is_walled(kind) || !is_walled_out(common_calls[i], -1))
            allow(ctx, &common_calls[i], 1);
    }
    for (size_t i = 0; i < ARRAY_SIZE(new_calls); i++) {
        if (is_walled(kind) && is_walled_out(NULL, new_calls[i]))
            continue;
        int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, new_calls[i], 0);

        if (r < 0)
            fail("a new call", r);
    }
}

static void add_sockets(scmp_filter_ctx ctx)
{
    static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6};
    const uint64_t low = 0xffffffff;

    for (size_t i = 0; i < ARRAY_SIZE(families); i++)
        allow_if(ctx, "socket", 0, low, families[i]);
    struct scmp_arg_cmp route[] = {SCMP_CMP(0, SCMP_CMP_MASKED_EQ, low, AF_NETLINK),
                                   SCMP_CMP(2, SCMP_CMP_MASKED_EQ, low, 0)};
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, route);

    /* As where the kernel has no auditing: useradd and its kin then go on, and else stop. */
    route[1].datum_b = NETLINK_AUDIT;
    if (r == 0)
        r = seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(EPROTONOSUPPORT), SCMP_SYS(socket), 2,
                                   route);
    if (r < 0)
        fail("socket", r);
}

/* Limits and priorities of its own. No socket but pairs. */
static void add_walled_rules(scmp_filter_ctx ctx, enum kind kind)
{
    static const char *const own_calls[] = {"prlimit64", "sched_setaffinity", "sched_setattr",
                                            "sched_setparam", "sched_setscheduler"};
    static const char *const mode_calls[] = {"fchmod"};
    const uint64_t low = 0xffffffff;
    /* A process, or its group, and 0: the caller's. Both calls count them alike but for the base.
     */
    static const struct {
        const char *name;
        uint64_t process, group;
    } priorities[] = {{"setpriority", 0, 1}, {"ioprio_set", 1, 2}};

    for (size_t i = 0; i < ARRAY_SIZE(own_calls); i++)
        allow_if(ctx, own_calls[i], 0, low, 0);
    for (size_t i = 0; i < ARRAY_SIZE(priorities); i++) {
        const uint64_t kinds[] = {priorities[i].process, priorities[i].group};

        for (size_t j = 0; j < ARRAY_SIZE(kinds); j++) {
            struct scmp_arg_cmp own[] = {SCMP_CMP(0, SCMP_CMP_MASKED_EQ, low, kinds[j]),
                                         SCMP_CMP(1, SCMP_CMP_MASKED_EQ, low, 0)};
            int r = seccomp_rule_add_array(
                ctx, SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(priorities[i].name), 2, own);

            if (r < 0)
                fail(priorities[i].name, r);
        }
    }
    if (kind == KIND_WALLED_MODES)
        allow(ctx, mode_calls, ARRAY_SIZE(mode_calls));
}

/*
 * No character devices: one of number 0:0 is overlay's mark of a deletion, and needs no capability.
 * Landlock refuses it, too, but not on Linux 6.1, where a right to make files is taken for enough.
 */
static void add_nodes(scmp_filter_ctx ctx)
{
    static const uint32_t types[] = {0, S_IFREG, S_IFIFO, S_IFSOCK, S_IFBLK};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        allow_if(ctx, "mknod", 1, S_IFMT, types[i]);
        allow_if(ctx, "mknodat", 2, S_IFMT, types[i]);
    }
}

static void add_cell_rules(scmp_filter_ctx ctx, enum kind kind)
{
    static const char *const ptrace_calls[] = {"ptrace"};
    static const uint32_t personas[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};
    const uint64_t low = 0xffffffff;
    bool ptrace = kind == KIND_CELL;

    add_common_calls(ctx, kind);
    if (ptrace)
        allow(ctx, ptrace_calls, ARRAY_SIZE(ptrace_calls));
    for (size_t i = 0; i < ARRAY_SIZE(personas); i++)
        allow_if(ctx, "personality", 0, low, personas[i]);
    if (ptrace)
        allow_if(ctx, "personality", 0, low, 0x0040000); /* debuggers: no address randomisation */
    if (is_walled(kind))
        add_walled_rules(ctx, kind);
    else
        add_sockets(ctx);
    add_nodes(ctx);
    allow_if(ctx, "clone", 0, CLONE_NAMESPACE_FLAGS, 0);
    /* Its flags lie in memory, where a filter cannot look: the C library then uses clone(). */
    int r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    if (r < 0)
        fail("clone3", r);
}

/* The second execve() of a worker's life needs the descriptor that its first one closed. */
static void add_worker_rules(scmp_filter_ctx ctx, int exec_fd)
{
    const uint64_t low = 0xffffffff;
    struct scmp_arg_cmp by_fd[] = {SCMP_CMP(0, SCMP_CMP_MASKED_EQ, low, (uint64_t)exec_fd),
                                   SCMP_CMP(4, SCMP_CMP_MASKED_EQ, low, AT_EMPTY_PATH)};

    allow(ctx, worker_calls, ARRAY_SIZE(worker_calls));
    int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(execveat), 2, by_fd);

    if (r < 0)
        fail("execveat", r);
}

static void print_instruction(struct sock_filter instruction)
{
    (void)printf("    {0x%02x, %u, %u, 0x%08x},\n", instruction.code, instruction.jt,
                 instruction.jf, instruction.k);
}

/* Falls through to what follows unless a foreign ABI, a too new call or a denied ioctl is met. */
static void print_prologue(enum kind kind)
{
    const unsigned last = NEWEST_KNOWN + 15;
    const uint32_t *ioctls = is_walled(kind) ? walled_out_ioctls : denied_ioctls;
    uint8_t count =
        (uint8_t)(is_walled(kind) ? ARRAY_SIZE(walled_out_ioctls) : ARRAY_SIZE(denied_ioctls));
    const struct sock_filter head[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* x32 calls have bit 30 set: libseccomp's part kills them. */
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, (uint8_t)(count + 3), 0),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, (uint8_t)(count + 3), 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, (uint8_t)(count + 1)),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
    };
    const struct sock_filter tail[] = {
        BPF_STMT(BPF_JMP | BPF_JA, 2),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };

    for (size_t i = 0; i < ARRAY_SIZE(head); i++)
        print_instruction(head[i]);
    /* Each: over what is left of these and over the first two of the tail. */
    for (uint8_t i = 0; i < count; i++)
        print_instruction((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ioctls[i],
                                                       (uint8_t)(count - i + 1), 0));
    for (size_t i = 0; i < ARRAY_SIZE(tail); i++)
        print_instruction(tail[i]);
}

/* Exports through a memfd, as libseccomp writes to descriptors only. */
static void print_program(const char *name, scmp_filter_ctx ctx)
{
    static struct sock_filter program[PROGRAM_MAX];
    int fd = memfd_create("bpf", MFD_CLOEXEC);
    int r = seccomp_export_bpf(ctx, fd);

    if (r < 0)
        fail(name, r);
    ssize_t size = pread(fd, program, sizeof(program), 0);

    if (size <= 0 || (size_t)size == sizeof(program))
        fail(name, -EFBIG);
    (void)close(fd); /* read only */
    for (size_t i = 0; i < (size_t)size / sizeof(program[0]); i++)
        print_instruction(program[i]);
    (void)printf("};\n\n");
}

static void print_start(const char *name)
{
    (void)printf("static const struct sock_filter %s[] = {\n", name);
}

static scmp_filter_ctx new_filter(uint32_t otherwise)
{
    scmp_filter_ctx ctx = seccomp_init(otherwise);

    if (ctx == NULL)
        fail("seccomp_init", -ENOMEM);
    int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

    if (r == 0)
        r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r < 0)
        fail("seccomp_attr_set", r);
    return ctx;
}

static void print_table(void)
{
    static const char *const rows[][2] = {
        {"FILTER_CELL", "cell"},     {"FILTER_CELL_NO_PTRACE", "cell_no_ptrace"},
        {"FILTER_WALLED", "walled"}, {"FILTER_WALLED_MODES", "walled_modes"},
        {"FILTER_INIT", "init"},     {"FILTER_WORKER", "worker"}};

    (void)printf("const struct seccomp_program seccomp_programs[] = {\n");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        (void)printf("    [%s] = {seccomp_%s, sizeof(seccomp_%s) / sizeof(seccomp_%s[0])},\n",
                     rows[i][0], rows[i][1], rows[i][1], rows[i][1]);
    (void)printf("};\n");
}

static void print_cell_programs(void)
{
    static const char *const names[] = {[KIND_CELL] = "seccomp_cell",
                                        [KIND_NO_PTRACE] = "seccomp_cell_no_ptrace",
                                        [KIND_WALLED] = "seccomp_walled",
                                        [KIND_WALLED_MODES] = "seccomp_walled_modes"};

    for (enum kind kind = KIND_CELL; kind <= KIND_WALLED_MODES; kind++) {
        scmp_filter_ctx ctx = new_filter(SCMP_ACT_ERRNO(EPERM));

        add_cell_rules(ctx, kind);
        print_start(names[kind]);
        print_prologue(kind);
        print_program(names[kind], ctx);
        seccomp_release(ctx);
    }
}

int main(int argc, char **argv)
{
    bool sanitized = argc > 2 && strcmp(argv[2], "sanitized") == 0;

    if (argc < 2 || freopen(argv[1], "w", stdout) == NULL)
        fail("output", -EINVAL);
    (void)printf("/* Made by emit_seccomp.c: change that. */\n"
                 "#include \"cell/seccomp_programs.h\"\n\n");
    print_cell_programs();
    scmp_filter_ctx ctx = new_filter(SCMP_ACT_KILL_PROCESS);

    allow(ctx, init_calls, ARRAY_SIZE(init_calls));
    if (sanitized)
        allow(ctx, sanitizer_calls, ARRAY_SIZE(sanitizer_calls));
    print_start("seccomp_init");
    print_program("seccomp_init", ctx);
    seccomp_release(ctx);
    ctx = new_filter(SCMP_ACT_ERRNO(EPERM));
    add_worker_rules(ctx, 1000);
    if (sanitized)
        allow(ctx, sanitizer_calls, ARRAY_SIZE(sanitizer_calls));
    print_start("seccomp_worker");
    print_program("seccomp_worker", ctx);
    seccomp_release(ctx);
    print_table();
    if (fflush(stdout) != 0 || ferror(stdout))
        fail("output", -EIO);
    return 0;
}
