/* Class D: permissions and masks. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"
#include "evidence/attack.h"

#define TEXT_BYTES 16384
#define SECUREBITS_ALL 0xefL

/* What the root of a cell may hold: no raw sockets, device nodes, chroot() or more. */
#define ROOT_CAPS UINT64_C(0xa00005fb)
/* Accounts, and what /etc/subuid gives away, lie below. */
#define ACCOUNTS_END (1u << 30)

static char text[TEXT_BYTES];

/* Who is root here must be nobody there: neither the machine's root nor the operator. */
static void look_at_map(struct attack_context *context, uint64_t operator)
{
    char *rest = text;

    if (attack_read("/proc/self/uid_map", text, sizeof(text)) <= 0)
        return attack_failed(context, "no map of ids");
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        unsigned long long inside, outside, count;

        if (sscanf(line, "%llu %llu %llu", &inside, &outside, &count) != 3)
            continue;
        attack_looked(context, 1);
        if (outside < ACCOUNTS_END || (operator>= outside && operator- outside<count))
            attack_found(context, "user %llu here is user %llu outside", inside, outside);
    }
}

static void be_nobody_else(struct attack_context *context)
{
    if (targets_say_root(context->targets))
        return look_at_map(context, targets_number(context->targets, "uid", UINT64_MAX));
    bool is_tier_a = strcmp(context->targets->tier, "A") == 0;
    uint64_t operator= targets_number(context->targets, "uid", UINT64_MAX);
    uid_t ids[3];
    gid_t groups[64];

    attack_looked(context, 3);
    if (getresuid(&ids[0], &ids[1], &ids[2]) < 0)
        return attack_failed(context, "no ids");
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
        if (ids[i] == 0 || (ids[i] == operator&& context->targets->tier[0] != 'B'))
            attack_found(context, "runs as user %u", ids[i]);
    int count = getgroups(ARRAY_SIZE(groups), groups);

    attack_looked(context, count > 0 ? (uint64_t)count : 0);
    if (count > 0 && is_tier_a)
        attack_found(context, "%d supplementary groups", count);
    else if (count > 1)
        attack_posture(context, "%d supplementary groups of the operator's", count);
    if (setuid(0) == 0 || setresuid((uid_t)-1, 0, (uid_t)-1) == 0)
        attack_found(context, "became user 0");
}

static void hold_capabilities(struct attack_context *context)
{
    static const char *const sets[] = {"CapInh:\t", "CapPrm:\t", "CapEff:\t", "CapBnd:\t",
                                       "CapAmb:\t"};

    bool is_root = targets_say_root(context->targets);

    if (attack_read("/proc/self/status", text, sizeof(text)) <= 0)
        return attack_failed(context, "no /proc/self/status");
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
        const char *at = strstr(text, sets[i]);

        if (at == NULL)
            return attack_failed(context, "no line %.6s", sets[i]);
        attack_looked(context, 1);
        uint64_t held = strtoull(at + strlen(sets[i]), NULL, 16);

        if ((held & ~(is_root ? ROOT_CAPS : 0)) != 0)
            attack_found(context, "%.6s %.16s", sets[i], at + strlen(sets[i]));
    }
    attack_looked(context, 1);
    if (!is_root && prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS_ALL)
        attack_found(context, "securebits are %#x", (unsigned)prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
}

static void gain_by_exec(struct attack_context *context)
{
    attack_looked(context, 1);
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        attack_found(context, "set-id programs give their owner's rights");
}

/* A whiteout: only a rule about making nodes stands against it, and it forges a deletion. */
static void forge_whiteout(struct attack_context *context)
{
    attack_looked(context, 1);
    if (mknod(".probe-whiteout", S_IFCHR, 0) == 0)
        attack_found(context, "a whiteout could be made");
    (void)unlink(".probe-whiteout"); /* where it was made */
}

static bool is_own_place(const char *path)
{
    static const char *const own[] = {"/workspace", "/tmp", "/home/agent", "/dev/shm"};

    for (size_t i = 0; i < ARRAY_SIZE(own); i++)
        if (strcmp(path, own[i]) == 0)
            return true;
    return false;
}

static void write_elsewhere(struct attack_context *context)
{
    static const char *const dirs[] = {"/",        "/usr",        "/usr/bin",
                                       "/etc",     "/etc/cron.d", "/etc/profile.d",
                                       "/dev",     "/run",        "/home",
                                       "/var/tmp", "/run/lock",   "/usr/lib",
                                       "/root",    "/dev/mqueue", "/var/spool/cron/crontabs"};
    static const char *const files[] = {"/etc/passwd", "/etc/ld.so.preload", "/etc/profile",
                                        "/usr/bin/env", "/etc/environment"};

    bool is_root = targets_say_root(context->targets);

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        char path[64];

        if (is_root && attack_is_own_system(dirs[i]))
            continue;

        (void)snprintf(path, sizeof(path), "%s/.probe-%d", dirs[i], getpid());
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

        attack_looked(context, 1);
        if (fd >= 0) {
            attack_found(context, "a file could be made in %s", dirs[i]);
            (void)close(fd); /* nothing was written */
            (void)unlink(path);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(files) && !is_root; i++) {
        attack_looked(context, 1);
        if (access(files[i], W_OK) == 0)
            attack_found(context, "%s can be written", files[i]);
    }
}

/* The mount table says it of every mount: read-only, but for its own places. */
static void find_writable_mount(struct attack_context *context)
{
    char *rest = text;

    if (attack_read("/proc/self/mountinfo", text, sizeof(text)) <= 0)
        return attack_failed(context, "no mount table");
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        char *fields[6];
        size_t count = 0;

        while (count < ARRAY_SIZE(fields) && line != NULL)
            fields[count++] = strsep(&line, " ");
        if (count < ARRAY_SIZE(fields) || line == NULL)
            continue;
        attack_looked(context, 1);
        bool is_kernels = strcmp(fields[4], "/proc") == 0 || strcmp(fields[4], "/dev/pts") == 0;

        if (targets_say_root(context->targets) && attack_is_own_system(fields[4]))
            continue;
        if (!str_starts(fields[5], "ro") && !is_own_place(fields[4]) && !is_kernels)
            attack_found(context, "%.100s is mounted for writing", fields[4]);
    }
}

static void open_by_handle(struct attack_context *context)
{
    struct {
        struct file_handle head;
        unsigned char bytes[128];
    } handle = {.head = {.handle_bytes = 128}};
    int mount_id;

    attack_looked(context, 2);
    long r = syscall(SYS_name_to_handle_at, AT_FDCWD, "/usr", &handle, &mount_id, 0);

    if (r == 0 || errno != EPERM)
        attack_found(context, "handles can be asked for: %s",
                     attack_errno_name(r == 0 ? 0 : errno));
    r = syscall(SYS_open_by_handle_at, AT_FDCWD, &handle, O_RDONLY);
    if (r >= 0)
        attack_found(context, "a file was opened by its handle");
}

static int become_user(void *how)
{
    if (*(const int *)how == 0)
        return unshare(CLONE_NEWUSER) < 0;
    long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        _exit(0);
    if (pid > 0)
        (void)waitpid((pid_t)pid, NULL, 0);
    return pid < 0;
}

static void make_user_namespace(struct attack_context *context)
{
    for (int how = 0; how < 2; how++) {
        attack_looked(context, 1);
        if (attack_child(become_user, &how) == 0)
            attack_found(context, "a user namespace could be made");
    }
}

/* Bad pointers: what reaches the kernel says EFAULT or EINVAL before it looks at rights. */
static void change_mounts(struct attack_context *context)
{
    const struct {
        const char *name;
        long result;
        int error;
    } tries[] = {
        {"mount", syscall(SYS_mount, NULL, 1, NULL, 0, NULL), errno},
        {"umount", syscall(SYS_umount2, NULL, 0), errno},
        {"fsopen", syscall(SYS_fsopen, NULL, 0), errno},
        {"open_tree", syscall(SYS_open_tree, -1, "", 0), errno},
        {"move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0), errno},
        {"pivot_root", syscall(SYS_pivot_root, NULL, NULL), errno},
        {"chroot", chroot("/"), errno},
        {"setns", setns(-1, 0), errno},
        {"unshare", unshare(0), errno},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        attack_looked(context, 1);
        if (tries[i].result == 0 || tries[i].error != EPERM)
            attack_found(context, "%s: %s", tries[i].name,
                         attack_errno_name(tries[i].result == 0 ? 0 : tries[i].error));
    }
}

static int call_i386(void *unused)
{
    (void)unused;
#if defined(__x86_64__)
    long r = 20; /* getpid() of the other numbering */

    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return r <= 0;
#else
    return 1;
#endif
}

static int call_x32(void *unused)
{
    (void)unused;
    /* Where the kernel has none of it, ENOSYS; where a filter stands before it, death. */
    return syscall(0x40000000 | SYS_getpid) > 0 || errno == ENOSYS ? 0 : 1;
}

static void call_otherwise(struct attack_context *context)
{
    attack_looked(context, 2);
    if (attack_child(call_i386, NULL) == 0)
        attack_found(context, "calls of the 32-bit numbering run");
    if (attack_child(call_x32, NULL) == 0)
        attack_found(context, "calls of the x32 numbering reach the kernel");
}

static void call_kernel(struct attack_context *context)
{
    const struct {
        const char *name;
        long result;
        int error;
    } tries[] = {
        {"io_uring_setup", syscall(SYS_io_uring_setup, 1, NULL), errno},
        {"userfaultfd", syscall(SYS_userfaultfd, -1), errno},
        {"bpf", syscall(SYS_bpf, -1, NULL, 0), errno},
        {"perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), errno},
        {"kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0), errno},
        {"pidfd_getfd", syscall(SYS_pidfd_getfd, -1, -1, 0), errno},
        {"process_vm_readv", syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0), errno},
        {"cachestat", syscall(451, -1, NULL, NULL, 0), errno},
        {"fanotify_init", syscall(SYS_fanotify_init, -1, 0), errno},
        {"memfd_secret", syscall(SYS_memfd_secret, -1), errno},
        {"lookup_dcookie", syscall(SYS_lookup_dcookie, 0, NULL, 0), errno},
        {"kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, -1), errno},
    };

    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        bool refused = tries[i].error == EPERM || tries[i].error == ENOSYS;

        attack_looked(context, 1);
        if (tries[i].result >= 0 || !refused)
            attack_found(context, "%s: %s", tries[i].name,
                         attack_errno_name(tries[i].result >= 0 ? 0 : tries[i].error));
    }
}

/* Who may ask for the limits of PID 1 has its user id. */
static void equal_init(struct attack_context *context)
{
    struct rlimit limit;

    attack_looked(context, 1);
    if (getpid() == 1 || prlimit(1, RLIMIT_CORE, NULL, &limit) < 0)
        return;
    if (context->targets->tier[0] == 'B')
        attack_posture(context, "PID 1 has the agent's own id, as in this tier it must");
    else
        attack_found(context, "PID 1 has the agent's own id");
}

static const struct attack attacks[] = {
    {"permission.identity", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "be root, the operator, or in its groups", be_nobody_else},
    {"permission.capabilities", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "hold a capability, or get one", hold_capabilities},
    {"permission.exec", 'D', PHASE_AGENT, CONTROL_MUTANT, true, "gain rights by a set-id program",
     gain_by_exec},
    {"permission.nodes", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "make a device node that forges a deletion", forge_whiteout},
    {"permission.write", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "write outside of the own places: system, start-up files, schedules", write_elsewhere},
    {"permission.mounts-writable", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "find a writable mount that is not its own", find_writable_mount},
    {"permission.handles", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "open a file by its handle, past paths and masks", open_by_handle},
    {"permission.namespace", 'D', PHASE_AGENT, CONTROL_LEAKY, true, "become root of a namespace",
     make_user_namespace},
    {"permission.remount", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "change mounts: peel a mask, bind the tree below", change_mounts},
    {"permission.numbering", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "call the kernel by another numbering", call_otherwise},
    {"permission.calls", 'D', PHASE_AGENT, CONTROL_LEAKY, true,
     "call what a monitor of calls overlooks: io_uring, bpf, perf", call_kernel},
    {"permission.init-id", 'D', PHASE_AGENT, CONTROL_MUTANT, true, "be of one id with PID 1",
     equal_init},
};
const struct attack_table attacks_permission = {attacks, ARRAY_SIZE(attacks)};
