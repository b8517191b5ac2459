/*
 * prober: tells, from inside, what a program can do: one line "name value" per question.
 *
 * Static and without dependencies, so that it runs in any cell and, as the positive control,
 * outside one. It asks with arguments that change nothing: where a call is allowed, it fails for
 * its arguments (EFAULT, EBADF, EINVAL), where it is forbidden, with EPERM, EACCES or ENOSYS.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/base.h"
#include "tree_prober.h"

#define LINE_BYTES 512
#define FDS_MAX 4096
#define IOCTL_TIOCLINUX 0x541C
#define HIGH_BIT (UINT64_C(1) << 32)
#define NO_RANDOMIZE 0x0040000
#define FAMILY_ALG 38
#define FAMILY_VSOCK 40
#define FAMILY_PACKET 17

static void tell(const char *name, const char *value)
{
    (void)printf("%s %s\n", name, value);
}

/* "ok" or the error's name. Closes a descriptor that a call gave by mistake. */
static void tell_result(const char *name, long r)
{
    const char *error = strerrorname_np(errno);

    tell(name, r >= 0 ? "ok" : error == NULL ? "?" : error);
}

static void tell_socket(const char *name, int family, int type, int protocol)
{
    int fd = socket(family, type, protocol);

    tell_result(name, fd);
    if (fd >= 0)
        (void)close(fd); /* never used */
}

/* A line of /proc/self/status. */
static void tell_status(const char *name, const char *key)
{
    char line[LINE_BYTES];
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) != 0 || line[strlen(key)] != ':')
            continue;
        line[strcspn(line, "\n")] = '\0';
        tell(name, line + strlen(key) + 1 + strspn(line + strlen(key) + 1, "\t "));
    }
    if (file != NULL)
        (void)fclose(file); /* read only */
}

/* How many bytes a file gives, or why none. */
static void tell_readable(const char *name, const char *path)
{
    char bytes[LINE_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

    if (n == 0)
        tell(name, "empty");
    else
        tell_result(name, n);
    if (fd >= 0)
        (void)close(fd); /* read only */
}

static void tell_creatable(const char *dir)
{
    char name[LINE_BYTES], path[LINE_BYTES];

    (void)snprintf(name, sizeof(name), "create:%s", dir);
    (void)snprintf(path, sizeof(path), "%s/.closedbook-probe-%d", dir, getpid());
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    tell_result(name, fd);
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
        (void)unlink(path);
    }
}

/* What happens to a child that runs the function: its status. */
static void tell_child(const char *name, void (*run)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        run();
        _exit(0);
    }
    char text[LINE_BYTES];

    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return tell_result(name, -1);
    if (WIFSIGNALED(status))
        (void)snprintf(text, sizeof(text), "SIG%s", sigabbrev_np(WTERMSIG(status)));
    else
        (void)snprintf(text, sizeof(text), "exit%d", WEXITSTATUS(status));
    tell(name, text);
}

/* --- identity */

static void ask_identity(void)
{
    char text[LINE_BYTES];

    tell_status("uid", "Uid");
    tell_status("gid", "Gid");
    tell_status("caps_effective", "CapEff");
    tell_status("caps_permitted", "CapPrm");
    tell_status("caps_inheritable", "CapInh");
    tell_status("caps_bounding", "CapBnd");
    tell_status("caps_ambient", "CapAmb");
    tell_status("no_new_privs", "NoNewPrivs");
    tell_status("seccomp", "Seccomp");
    (void)snprintf(text, sizeof(text), "%#x", (unsigned)prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    tell("securebits", text);
    (void)snprintf(text, sizeof(text), "%d", getpid());
    tell("pid", text);
    (void)snprintf(text, sizeof(text), "%s", getsid(0) == getpid() ? "own" : "other");
    tell("session", text);
    tell_result("setuid_0", setuid(0));
    struct rlimit limit;

    (void)getrlimit(RLIMIT_CORE, &limit);
    tell("core_limit", limit.rlim_max == 0 ? "0" : "more");
    (void)getrlimit(RLIMIT_NPROC, &limit);
    tell("nproc_limit", limit.rlim_max == RLIM_INFINITY ? "none" : "some");
}

/* --- system calls */

static void ask_sockets(void)
{
    tell_socket("socket_unix", AF_UNIX, SOCK_STREAM, 0);
    tell_socket("socket_inet", AF_INET, SOCK_STREAM, 0);
    tell_socket("socket_inet6", AF_INET6, SOCK_DGRAM, 0);
    tell_socket("socket_netlink_route", AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    tell_socket("socket_netlink_audit", AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK);
    tell_socket("socket_vsock", FAMILY_VSOCK, SOCK_STREAM, 0);
    tell_socket("socket_alg", FAMILY_ALG, SOCK_SEQPACKET, 0);
    tell_socket("socket_packet", FAMILY_PACKET, SOCK_RAW, 0);
    tell_socket("socket_raw", AF_INET, SOCK_RAW, 1);
    /* The kernel reads the low half only; a filter that compares all of it is passed by. */
    tell_result("socket_vsock_high_bit",
                syscall(SYS_socket, HIGH_BIT | FAMILY_VSOCK, SOCK_STREAM, 0));
}

static void ask_kernel(void)
{
    tell_result("keyctl", syscall(SYS_keyctl, 0, -3, 0, 0, 0));
    tell_result("add_key", syscall(SYS_add_key, NULL, NULL, NULL, 0, 0));
    tell_result("io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL));
    tell_result("userfaultfd", syscall(SYS_userfaultfd, 1));
    tell_result("bpf", syscall(SYS_bpf, -1, NULL, 0));
    tell_result("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    tell_result("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
    tell_result("pidfd_getfd", syscall(SYS_pidfd_getfd, -1, -1, 0));
    tell_result("process_vm_readv", syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0));
    tell_result("open_by_handle", syscall(SYS_open_by_handle_at, -1, NULL, 0));
    tell_result("name_to_handle", syscall(SYS_name_to_handle_at, -1, NULL, NULL, NULL, 0));
    tell_result("cachestat", syscall(451, -1, NULL, NULL, 0));
    tell_result("fanotify_init", syscall(SYS_fanotify_init, -1, 0));
    tell_result("quotactl", syscall(SYS_quotactl, -1, NULL, 0, NULL));
    tell_result("syslog", syscall(SYS_syslog, 10, NULL, 0));
    tell_result("memfd_secret", syscall(SYS_memfd_secret, -1));
    tell_result("too_new", syscall(999));
    tell_result("fchmodat2", syscall(452, -1, "x", 0, 0));
}

static void ask_namespaces(void)
{
    tell_result("clone3", syscall(SYS_clone3, NULL, 0));
    tell_result("setns", setns(-1, 0));
    tell_result("mount", mount(NULL, NULL, NULL, 0, NULL));
    tell_result("umount", umount2(NULL, 0));
    tell_result("fsopen", fsopen(NULL, 0));
    tell_result("open_tree", open_tree(-1, "", 0));
    tell_result("move_mount", move_mount(-1, "", -1, "", 0));
    tell_result("pivot_root", syscall(SYS_pivot_root, NULL, NULL));
    tell_result("chroot", chroot("/"));
    tell_result("unshare_nothing", unshare(0));
}

static void become_user_by_unshare(void)
{
    if (unshare(CLONE_NEWUSER) < 0)
        _exit(errno);
}

static void become_user_by_clone(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid < 0)
        _exit(errno);
    if (pid == 0)
        _exit(0);
}

static void call_i386(void)
{
#if defined(__x86_64__)
    long r = 20; /* getpid() of the other numbering */

    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
#endif
}

static void call_x32(void)
{
    (void)syscall(0x40000000 | SYS_getpid);
}

/* --- terminals: its own, so that the question changes nothing */

static void ask_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[LINE_BYTES], c = 'x';

    tell_result("openpt", master);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0 ||
        ptsname_r(master, name, sizeof(name)) != 0)
        return;
    int slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);

    tell_result("open_pts", slave);
    tell_result("tiocsti", ioctl(slave, TIOCSTI, &c));
    tell_result("tiocsti_high_bit", syscall(SYS_ioctl, slave, HIGH_BIT | TIOCSTI, &c));
    tell_result("tioclinux", ioctl(slave, IOCTL_TIOCLINUX, &c));
    struct winsize size;

    tell_result("tiocgwinsz", ioctl(slave, TIOCGWINSZ, &size));
}

/* --- other processes */

static void trace_child(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(1);
        (void)raise(SIGSTOP);
        _exit(0);
    }
    if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
        _exit(1);
    if (ptrace(PTRACE_CONT, pid, NULL, NULL) < 0)
        _exit(errno);
    (void)waitpid(pid, &status, 0);
}

static void kill_child(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        for (;;)
            (void)pause();
    }
    if (kill(pid, SIGTERM) < 0)
        _exit(errno);
    (void)waitpid(pid, &status, 0);
}

static void ask_init(void)
{
    struct stat status;

    tell_result("stat_proc_1", stat("/proc/1", &status));
    tell_readable("proc_1_environ", "/proc/1/environ");
    tell_readable("proc_1_mem", "/proc/1/mem");
    tell_result("ptrace_1", ptrace(PTRACE_SEIZE, 1, NULL, NULL));
    tell_result("kill_1", kill(1, 0));
    tell_child("ptrace_child", trace_child);
    tell_child("kill_child", kill_child);
}

/* --- files */

static void ask_files(void)
{
    static const char *const dirs[] = {"/",     "/usr",     "/etc",        "/dev",
                                       "/proc", "/run",     "/home",       "/workspace",
                                       "/tmp",  "/dev/shm", "/home/agent", "/usr/bin"};
    static const char *const files[] = {"/proc/kallsyms",    "/proc/keys",
                                        "/proc/key-users",   "/proc/config.gz",
                                        "/proc/cmdline",     "/proc/timer_list",
                                        "/proc/vmallocinfo", "/proc/kcore",
                                        "/proc/slabinfo",    "/sys",
                                        "/sys/kernel",       "/proc/sched_debug",
                                        "/etc/shadow",       "/proc/bus/pci",
                                        "/proc/irq/0"};
    struct stat status;

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
        tell_creatable(dirs[i]);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        tell_readable(files[i], files[i]);
    int fd = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);

    tell_result("write_core_pattern", fd);
    fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
    tell_result("write_sysrq", fd);
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    tell_result("write_dev_null", fd);
    tell_result("flock_usr", flock(open("/usr", O_RDONLY | O_CLOEXEC), LOCK_SH));
    tell_result("mknod_device", mknod("/tmp/.closedbook-probe-node", S_IFCHR | 0600, 0x103));
    (void)unlink("/tmp/.closedbook-probe-node"); /* where it could be made */
    tell_result("mknod_whiteout", mknod("/tmp/.closedbook-probe-node", S_IFCHR, 0));
    (void)unlink("/tmp/.closedbook-probe-node"); /* where it could be made */
    tell_result("mknod_block", mknod("/tmp/.closedbook-probe-node", S_IFBLK, 0));
    (void)unlink("/tmp/.closedbook-probe-node"); /* likewise */
    tell("sys_present", stat("/sys", &status) == 0 ? "yes" : "no");
}

static void ask_descriptors(void)
{
    char text[LINE_BYTES] = "";
    size_t used = 0;

    for (int fd = 0; fd < FDS_MAX && used < sizeof(text) - 16; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            used +=
                (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", used > 0 ? "," : "", fd);
    }
    tell("descriptors", text);
}

static void ask_abstract_socket(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0closedbook-probe"};
    socklen_t size = offsetof(struct sockaddr_un, sun_path) + sizeof("\0closedbook-probe") - 1;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(server, (const struct sockaddr *)(const void *)&address, size) < 0 ||
        listen(server, 1) < 0)
        return tell_result("abstract_own", -1);
    tell_result("abstract_own",
                connect(client, (const struct sockaddr *)(const void *)&address, size));
}

/* As a worker: "trees" looks at its descriptors, "complain TEXT" and "die" end badly. */
static bool act_as_worker(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "complain") == 0) {
        (void)fputs(argv[2], stderr);
        exit(1);
    }
    if (argc > 1 && strcmp(argv[1], "die") == 0)
        (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGKILL);
    while (argc > 1 && strcmp(argv[1], "spin") == 0)
        (void)getpid(); /* until it is ended */
    if (argc > 1 && strcmp(argv[1], "trees") == 0) {
        ask_descriptors();
        probe_trees();
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (act_as_worker(argc, argv))
        return 0;
    ask_descriptors();
    ask_identity();
    ask_sockets();
    ask_kernel();
    ask_namespaces();
    tell_child("userns_unshare", become_user_by_unshare);
    tell_child("userns_clone", become_user_by_clone);
    tell_child("abi_i386", call_i386);
    tell_child("abi_x32", call_x32);
    ask_terminal();
    ask_init();
    ask_files();
    ask_abstract_socket();
    tell_result("personality", personality(NO_RANDOMIZE));
    tell_result("ioperm", syscall(SYS_ioperm, 0, 1, 0));
    /* Not on the host, where one of the questions would run the prober again. */
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        probe_worker();
    return 0;
}
