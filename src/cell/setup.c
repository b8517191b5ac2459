#include "cell/setup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MAP_BYTES 48
#define HOST_NAME_BYTES 8
#define SECOND_ADDRESS 0x0a4d0001u /* 10.77.0.1 */
#define SETUP_KEEP_MAX (WIRE_FDS_MAX + CELL_MOUNTS_MAX + CELL_LAYERS_MAX + 8)

static const char *const namespace_names[NAMESPACE_FDS] = {"user", "mnt", "pid",   "net",
                                                           "ipc",  "uts", "cgroup"};

int liveness_set(int channel)
{
    struct pollfd watched = {.fd = channel};

    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    /* The server may have died before that. */
    if (poll(&watched, 1, 0) < 0)
        return -errno;
    return (watched.revents & (POLLHUP | POLLERR)) != 0 ? -EPIPE : 0;
}

static int write_map(const char *path, uint32_t inside, uint32_t outside)
{
    char text[MAP_BYTES];

    sys_format(text, sizeof(text), "%u %u 1", inside, outside);
    return sys_write_file(AT_FDCWD, path, text);
}

/*
 * One id, the user's own. Files of /proc belong to root while a process is not dumpable, so it is
 * for this moment; nothing else is in the pid namespace yet.
 */
static int map_ids(struct setup *setup)
{
    setup->step = STEP_USER_NAMESPACE;
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
        return -errno;
    int r = sys_write_file(AT_FDCWD, "/proc/self/setgroups", "deny");

    if (r == 0)
        r = write_map("/proc/self/uid_map", CELL_INNER_UID, setup->uid);
    if (r == 0)
        r = write_map("/proc/self/gid_map", CELL_INNER_UID, setup->gid);
    if (r == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        r = -errno;
    if (r < 0)
        return r;
    setup->uid = setup->init_uid = CELL_INNER_UID;
    setup->gid = CELL_INNER_UID;
    setup->protections |= PROTECT_USER_NS;
    return 0;
}

static int close_others(const struct setup *setup)
{
    int keep[SETUP_KEEP_MAX];
    size_t count = 0;

    for (size_t i = 0; i < setup->fd_count; i++)
        keep[count++] = setup->fds[i];
    for (size_t i = 0; i < CELL_MOUNTS_MAX; i++)
        keep[count++] = setup->trees[i];
    for (size_t i = 0; i < CELL_LAYERS_MAX; i++)
        keep[count++] = setup->layers[i];
    keep[count++] = setup->etc_tree;
    keep[count++] = setup->root_tree;
    keep[count++] = setup->workspace_fd;
    keep[count++] = setup->collect_fd;
    keep[count++] = setup->root_ns_fd;
    keep[count++] = setup->channel;
    keep[count++] = setup->machine->null_fd;
    return sys_close_except(keep, count);
}

/* 127.0.0.1 comes with the link; a second address, as some programs ignore loopback-only hosts. */
static int add_address(int fd)
{
    struct {
        struct nlmsghdr header;
        struct ifaddrmsg address;
        struct rtattr attribute;
        uint32_t value;
    } request = {
        .header = {.nlmsg_len = sizeof(request),
                   .nlmsg_type = RTM_NEWADDR,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
        .address = {.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = 1},
        .attribute = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFA_LOCAL},
        .value = htonl(SECOND_ADDRESS),
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[256];
    } answer;

    if (send(fd, &request, sizeof(request), 0) < 0)
        return -errno;
    ssize_t n = recv(fd, &answer, sizeof(answer), 0);

    if (n < (ssize_t)(sizeof(answer.header) + sizeof(answer.error.error)))
        return n < 0 ? -errno : -EPROTO;
    return answer.header.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int raise_network(struct setup *setup)
{
    struct ifreq request = {.ifr_flags = IFF_UP};

    setup->step = STEP_NETWORK;
    memcpy(request.ifr_name, "lo", sizeof("lo"));
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

    if (fd < 0)
        return -errno;
    int r = ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? -errno : 0;

    if (r == 0)
        r = add_address(fd);
    (void)close(fd); /* its work is done */
    return r;
}

static int name_host(struct setup *setup)
{
    uint64_t random;
    char name[2 * HOST_NAME_BYTES + 1];

    setup->step = STEP_HOSTNAME;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    sys_format(name, sizeof(name), "%016llx", (unsigned long long)random);
    if (sethostname(name, strlen(name)) < 0 || setdomainname("", 0) < 0)
        return -errno;
    return 0;
}

/* Each mount of a worker, as a descriptor. */
static int open_worker_fds(struct setup *setup)
{
    struct program *program = &setup->program;
    const struct request_start *request = setup->request;
    const char *targets[CELL_MOUNTS_MAX + 1];
    bool writable[CELL_MOUNTS_MAX + 1] = {false};
    size_t count = 0;

    setup->step = STEP_DESCRIPTORS;
    for (uint32_t i = 0; i < request->mount_count; i++) {
        if ((request->mounts[i].flags & WIRE_MOUNT_NO_DESCRIPTOR) != 0)
            continue;
        writable[count] = (request->mounts[i].flags & WIRE_MOUNT_WRITABLE) != 0;
        targets[count++] = request->mounts[i].target;
    }
    if (setup->collect_fd >= 0)
        targets[count++] = CELL_COLLECT_PATH;
    for (size_t i = 0; i < count; i++) {
        struct stat status;

        if (stat(targets[i], &status) < 0)
            return -errno;
        int flags = writable[i] && !S_ISDIR(status.st_mode) ? O_RDWR : O_RDONLY;

        program->worker_fds[i] = open(targets[i], flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (program->worker_fds[i] < 0)
            return -errno;
    }
    program->worker_fd_count = count;
    program->exec_fd = setup->fds[request->program_fd];
    program->worker_sees_marks = setup->collect_has_marks && setup->machine->tier == TIER_A;
    return 0;
}

static int start_program(struct setup *setup, pid_t *ret)
{
    struct program *program = &setup->program;

    *ret = 0;
    if (setup->request->command.argc == 0)
        return 0;
    program->machine = setup->machine;
    program->role = setup->request->role;
    program->ptrace_denied =
        setup->request->ptrace_denied != 0 || setup->machine->tier == TIER_B_MINUS;
    program->uid = setup->uid;
    program->gid = setup->gid;
    program->limits = setup->request->limits;
    program->exec_fd = -1;
    program->root_ns_fd = setup->root_ns_fd;
    if (program->role == CELL_WORKER) {
        int r = open_worker_fds(setup);

        if (r < 0)
            return r;
    }
    setup->step = STEP_EXEC;
    int r = program_prepare(program, &setup->request->command, setup->fds, setup->strings);

    if (r < 0) {
        setup->step = STEP_REQUEST;
        return r;
    }
    pid_t pid = program_start(program, confined_child);

    setup->protections |= program->protections;
    if (pid < 0) {
        setup->step = program->step;
        return -program->error;
    }
    *ret = pid;
    return 0;
}

/*
 * In a user namespace nobody else can enter a cell whose init is not dumpable, so its namespaces
 * are handed out. They are opened while /proc is still the old one: a cell may get none.
 */
static int open_namespaces(struct setup *setup)
{
    setup->step = STEP_JOIN;
    for (size_t i = 0; i < NAMESPACE_FDS; i++) {
        char path[32];

        sys_format(path, sizeof(path), "/proc/self/ns/%s", namespace_names[i]);
        setup->namespaces[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (setup->namespaces[i] < 0)
            return -errno;
    }
    return 0;
}

static int enter_cgroup(struct setup *setup)
{
    setup->step = STEP_CGROUP;
    int r = cgroup_enter(setup->cgroups, setup->leaf);

    if (r < 0)
        return r;
    if (unshare(CLONE_NEWCGROUP) < 0)
        return -errno;
    setup->protections |= PROTECT_CGROUP_NS;
    return 0;
}

static int build(struct setup *setup)
{
    setup->step = STEP_LIVENESS;
    int r = liveness_set(setup->channel);

    if (r < 0)
        return r;
    setup->protections |= PROTECT_LIVENESS;
    r = enter_cgroup(setup);
    if (r < 0)
        return r;
    if (setup->machine->tier != TIER_A)
        r = map_ids(setup);
    setup->step = r == 0 ? STEP_DESCRIPTORS : setup->step;
    if (r == 0)
        r = close_others(setup);
    if (r == 0 && setup->machine->tier != TIER_A && setup->request->role != CELL_WORKER)
        r = open_namespaces(setup);
    if (r == 0)
        r = view_build(setup);
    if (r == 0 && setup->request->role == CELL_WORKER)
        r = workspace_collect(setup);
    else if (r == 0)
        r = workspace_make(setup);
    if (r == 0)
        r = view_enter(setup);
    if (r == 0)
        r = raise_network(setup);
    if (r == 0)
        r = name_host(setup);
    if (r < 0)
        return r;
    setup->step = STEP_KEYRING;
    r = sys_join_keyring();
    if (r == 0)
        setup->protections |= PROTECT_KEYRING;
    return r;
}

/* Everything that outlives the set-up: the workspace, and in a user namespace the way in. */
static void hand_over(const struct setup *setup)
{
    struct child_report report = {.kind = REPORT_FDS, .workspace_fds = (uint32_t)setup->kept_count};
    int fds[REPORT_FDS_MAX];
    size_t count = setup->kept_count;

    memcpy(fds, setup->kept_fds, count * sizeof(fds[0]));
    if (setup->machine->tier != TIER_A && setup->request->role != CELL_WORKER &&
        setup->request->role != CELL_CANDIDATE) {
        memcpy(fds + count, setup->namespaces, sizeof(setup->namespaces));
        count += NAMESPACE_FDS;
        report.namespace_fds = NAMESPACE_FDS;
    }
    if (setup->listener_fd >= 0) {
        fds[count++] = setup->listener_fd;
        report.listener_fds = 1;
    }
    if (count > 0)
        report_send(setup->channel, &report, fds, count);
}

static int become_init(struct setup *setup, int *ret_signal_fd)
{
    bool is_root = setup->machine->tier == TIER_A;
    sigset_t children;

    setup->step = STEP_INIT;
    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    int signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    const int keep[] = {setup->channel, signal_fd};

    if (signal_fd < 0)
        return -errno;
    int r = sys_close_except(keep, ARRAY_SIZE(keep));

    if (r == 0)
        r = init_lower(setup->machine, setup->init_uid, is_root ? setup->init_uid : setup->gid,
                       true);
    if (r == 0 && is_root)
        setup->protections |= PROTECT_OTHER_INIT_UID;
    *ret_signal_fd = signal_fd;
    return r;
}

static void block_children(void)
{
    sigset_t children;

    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &children, NULL); /* cannot fail with these arguments */
}

_Noreturn void setup_run(struct setup *setup)
{
    int signal_fd = -1;
    pid_t program = 0;

    block_children();
    setup->protections |=
        PROTECT_MOUNT_NS | PROTECT_PID_NS | PROTECT_NET_NS | PROTECT_IPC_NS | PROTECT_UTS_NS;
    int r = build(setup);

    if (r == 0)
        hand_over(setup);
    if (r == 0)
        r = start_program(setup, &program);
    if (r == 0)
        r = become_init(setup, &signal_fd);
    struct child_report report = {
        .kind = r == 0 ? REPORT_READY : REPORT_FAILED,
        .error = -r,
        .step = setup->step,
        .detail = setup->detail,
        .protections = setup->protections,
        .layered = setup->layered,
    };

    report_send(setup->channel, &report, NULL, 0);
    if (r < 0)
        _exit(1);
    init_run(setup->channel, signal_fd, program);
}
