#include "cell/client.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/spawn.h"
#include "cell/cgroup_find.h"
#include "cell/lease.h"

static const char *const worker_roots[] = {"/usr", "/lib", "/lib64", "/lib32"};

/* --- messages */

int32_t wire_fds_add(struct wire_fds *fds, int fd)
{
    if (fd < 0)
        return -1;
    for (size_t i = 0; i < fds->count; i++) {
        if (fds->fds[i] == fd)
            return (int32_t)i;
    }
    if (fds->count == WIRE_FDS_MAX) {
        fds->overflowed = true;
        return -1;
    }
    fds->fds[fds->count] = fd;
    return (int32_t)fds->count++;
}

struct cell_process *client_find_process(struct cell *cell, uint32_t number)
{
    for (size_t i = 0; i < cell->process_count; i++) {
        if (cell->processes[i].number == number)
            return &cell->processes[i];
    }
    return NULL;
}

static void note_exit(struct monitor *monitor, const struct message *message)
{
    const struct wire_exit *exit = &message->exit;

    for (struct cell *cell = monitor->cells; cell != NULL; cell = cell->next) {
        struct cell_process *process =
            cell->id == message->cell_id ? client_find_process(cell, message->process) : NULL;

        if (process == NULL)
            continue;
        cell->candidate_failures = message->detail;
        process->exited = true;
        process->exit = (struct cell_exit){
            .exit_code = exit->exit_code,
            .term_signal = exit->term_signal,
            .user_us = exit->user_us,
            .system_us = exit->system_us,
            .max_rss_kib = exit->max_rss_kib,
            .end_ns = exit->end_ns,
        };
    }
}

int client_read(struct monitor *monitor, struct message *ret, struct error **err)
{
    int fds[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_receive(monitor->socket, ret, sizeof(*ret), fds, &count);

    for (size_t i = 0; i < count && r == 0; i++)
        (void)close(fds[i]); /* it sends none */
    if (r == -EPIPE)
        return error_errno(err, EPIPE, "the monitor is gone");
    if (r < 0)
        return error_errno(err, -r, "cannot hear from the monitor");
    if (ret->magic != PROTOCOL_MAGIC)
        return error_set(err, ERROR_BUG, "the monitor speaks another protocol");
    if (ret->kind == MESSAGE_EXIT)
        note_exit(monitor, ret);
    return 0;
}

int client_call(struct monitor *monitor, const void *request, size_t size,
                const struct wire_fds *fds, struct message *ret, struct error **err)
{
    if (monitor->socket < 0)
        return error_errno(err, EPIPE, "the monitor is gone");
    int r = message_send(monitor->socket, request, size, fds == NULL ? NULL : fds->fds,
                         fds == NULL ? 0 : fds->count);

    if (r < 0)
        return error_errno(err, -r, "cannot speak to the monitor");
    do {
        r = client_read(monitor, ret, err);
        if (r < 0)
            return r;
    } while (ret->kind != MESSAGE_REPLY);
    return 0;
}

/* --- the worker program */

/* A program with an interpreter is dynamically linked. */
static int is_dynamic(int fd, const char *path, bool *ret, struct error **err)
{
    Elf64_Ehdr header;

    if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(Elf64_Phdr))
        return error_set(err, ERROR_SYSTEM, "'%s' is not a program", path);
    *ret = false;
    for (uint16_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part;
        off_t offset = (off_t)(header.e_phoff + i * sizeof(part));

        if (pread(fd, &part, sizeof(part), offset) != (ssize_t)sizeof(part))
            return error_set(err, ERROR_SYSTEM, "'%s' is cut off", path);
        if (part.p_type == PT_INTERP)
            *ret = true;
    }
    return 0;
}

static int open_worker(struct monitor *monitor, const char *path, struct error **err)
{
    if (path == NULL)
        return 0;
    monitor->worker_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (monitor->worker_fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    int r = is_dynamic(monitor->worker_fd, path, &monitor->worker_is_dynamic, err);

    for (size_t i = 0; i < ARRAY_SIZE(worker_roots); i++) {
        /* Links into /usr are made in the cell as they are here. */
        monitor->root_fds[i] =
            open(worker_roots[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    return r;
}

static int open_candidate(struct monitor *monitor, const char *path, struct error **err)
{
    if (path == NULL)
        return 0;
    monitor->candidate_fd = open(path, O_RDONLY | O_CLOEXEC);
    return monitor->candidate_fd < 0 ? error_errno(err, errno, "cannot open '%s'", path) : 0;
}

/* --- starting the server */

/* No account may have an id that cells run under. */
static int check_accounts(struct error **err)
{
    const uint64_t end = (uint64_t)LEASE_BASE_UID + (uint64_t)LEASE_SLOTS_MAX * LEASE_IDS_PER_SLOT;
    const struct passwd *account;
    int r = 0;

    setpwent();
    while (r == 0 && (account = getpwent()) != NULL) {
        if (account->pw_uid >= LEASE_BASE_UID && account->pw_uid < end)
            r = error_set(err, ERROR_SYSTEM, "the account '%s' has an id that cells need: %u",
                          account->pw_name, account->pw_uid);
    }
    endpwent();
    return r;
}

static int start_native(const struct monitor_options *options, struct monitor *monitor,
                        int server_end, struct error **err)
{
    const int fds[SERVER_CONTROL_FD + 1] = {-1, -1, -1, server_end};
    const char *const argv[] = {options->cell_program, options->worker_program,
                                options->unpack_program, NULL};
    const struct spawn_options spawn = {.argv = argv,
                                        .cwd_fd = -1,
                                        .fds = fds,
                                        .fd_count = ARRAY_SIZE(fds),
                                        .new_session = true,
                                        .uid = options->uid,
                                        .gid = options->gid};

    return spawn_start(&spawn, &monitor->pidfd, &monitor->pid, err);
}

static int start_tempdir(const struct monitor_options *options, struct monitor *monitor,
                         int server_end, struct error **err)
{
    int r = tempdir_check(err);

    if (r < 0)
        return r;
    pid_t parent = getpid(), pid = fork();

    if (pid < 0)
        return error_errno(err, errno, "cannot start the tempdir server");
    if (pid == 0) {
        (void)close(monitor->socket); /* the client's end */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
            _exit(1);
        tempdir_serve(server_end, options);
    }
    monitor->pid = pid;
    monitor->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (monitor->pidfd < 0)
        return error_errno(err, errno, "cannot watch the tempdir server");
    return 0;
}

static const char *lacking(uint32_t step)
{
    switch (step) {
    case STEP_LANDLOCK:
        return "the kernel has no landlock, or too old a one (Linux 5.13, enabled by lsm=; without "
               "namespaces 6.12)";
    case STEP_IDENTITY:
        return "root has no cell without namespaces; as an ordinary user there is one";
    case STEP_NAMESPACES:
        return "namespaces are not allowed (as root: CAP_SYS_ADMIN; else: user namespaces)";
    case STEP_PROC:
        return "a fresh /proc cannot be mounted (is the host's /proc partly covered?)";
    case STEP_LEASE:
        return "/run/closedbook/uids cannot be used";
    default:
        return cell_step_name(step);
    }
}

/* What a better tier would have needed. */
static void tell_lacking(const struct wire_facts *facts, const char *known,
                         char ret[static MONITOR_LACKING_BYTES])
{
    ret[0] = '\0';
    if (known != NULL)
        (void)snprintf(ret, MONITOR_LACKING_BYTES, "%s", known); /* cut where it does not fit */
    else if (facts->tier > TIER_A && facts->lacking == STEP_NONE)
        (void)snprintf(ret, MONITOR_LACKING_BYTES, "root did not start it"); /* always fits */
    else if (facts->tier > TIER_A)
        (void)snprintf(ret, MONITOR_LACKING_BYTES, "%s: %s", lacking(facts->lacking),
                       strerror(facts->lacking_error)); /* likewise */
}

static int await_ready(struct monitor *monitor, const struct monitor_options *options,
                       struct error **err)
{
    struct message ready;
    int r = client_read(monitor, &ready, err);

    if (r < 0)
        return r;
    if (ready.kind != MESSAGE_READY)
        return error_set(err, ERROR_BUG, "the monitor did not say that it is ready");
    if (ready.error != 0)
        return error_errno(err, ready.error, "%s", lacking(ready.step));
    monitor->facts = (struct monitor_facts){
        .driver = options->driver,
        .tier = (enum cell_tier)ready.facts.tier,
        .landlock_abi = ready.facts.landlock_abi,
        .overlay = ready.facts.overlay != 0,
        .idmap = ready.facts.idmap != 0,
        .tmpfs_xattr = ready.facts.tmpfs_xattr != 0,
        .subuid = ready.facts.subuid != 0,
        .protections = ready.facts.protections,
    };
    tell_lacking(&ready.facts, options->lacking, monitor->facts.lacking);
    return 0;
}

static struct monitor *new_monitor(void)
{
    struct monitor *monitor = mem_new(1, sizeof(*monitor));

    *monitor = (struct monitor){.socket = -1, .pidfd = -1, .worker_fd = -1, .candidate_fd = -1};
    for (size_t i = 0; i < ARRAY_SIZE(monitor->root_fds); i++)
        monitor->root_fds[i] = -1;
    return monitor;
}

/* Without cgroups there are cells all the same; who needs a limit asks the facts. */
static int offer_cgroups(struct monitor *monitor, struct error **err)
{
    scoped(cgroup_bases_done) struct cgroup_bases bases;
    struct request_cgroups request = {.header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_CGROUPS}};
    struct wire_fds fds = {0};
    struct message reply = {0};
    bool has_any = false;

    cgroup_find(&bases);
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        request.fds[i] = wire_fds_add(&fds, bases.fds[i]);
        has_any = has_any || bases.fds[i] >= 0;
    }
    int r = has_any ? client_call(monitor, &request, sizeof(request), &fds, &reply, err) : 0;

    if (r < 0)
        return r;
    monitor->facts.limits = (uint32_t)reply.facts.limits;
    memcpy(monitor->facts.limits_reason, bases.reason, sizeof(bases.reason));
    if (reply.error != 0)
        (void)snprintf(monitor->facts.limits_reason, sizeof(monitor->facts.limits_reason),
                       "no cgroup can be made: %s", strerrordesc_np(reply.error));
    return 0;
}

int monitor_start(const struct monitor_options *options, struct monitor **ret, struct error **err)
{
    scoped(monitor_freep) struct monitor *monitor = new_monitor();
    int ends[2];
    int r = open_worker(monitor, options->worker_program, err);

    if (r < 0)
        return r;
    r = open_candidate(monitor, options->candidate_program, err);
    if (r < 0)
        return r;
    r = message_pair(ends);
    if (r < 0)
        return error_errno(err, -r, "cannot make a socket for the monitor");
    monitor->socket = ends[0];
    scoped(fd_closep) int server_end = ends[1];

    if (options->driver != CELL_NATIVE)
        r = start_tempdir(options, monitor, server_end, err);
    else
        r = start_native(options, monitor, server_end, err);
    if (r < 0)
        return r;
    fd_closep(&server_end);
    if (options->meanwhile != NULL)
        options->meanwhile(options->meanwhile_context);
    bool leases = options->driver == CELL_NATIVE && geteuid() == 0 && options->uid == 0;

    r = leases ? check_accounts(err) : 0;
    if (r < 0)
        return r;
    r = await_ready(monitor, options, err);
    if (r == 0 && options->driver == CELL_NATIVE)
        r = offer_cgroups(monitor, err);
    if (r < 0)
        return r;
    *ret = take(monitor);
    return 0;
}

/* --- further connections, and the end */

int monitor_connect(struct monitor *control, struct monitor **ret, struct error **err)
{
    scoped(monitor_freep) struct monitor *monitor = new_monitor();
    const struct request_plain request = {
        .header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_CONNECT}};
    struct message reply;
    int ends[2];
    int r = message_pair(ends);

    if (r < 0)
        return error_errno(err, -r, "cannot make a socket for the monitor");
    monitor->socket = ends[0];
    scoped(fd_closep) int server_end = ends[1];
    struct wire_fds fds = {.fds = {server_end}, .count = 1};

    r = client_call(control, &request, sizeof(request), &fds, &reply, err);
    if (r < 0)
        return r;
    if (reply.error != 0)
        return error_errno(err, reply.error, "the monitor takes no further connection");
    monitor->facts = control->facts;
    monitor->worker_is_dynamic = control->worker_is_dynamic;
    if (control->worker_fd >= 0)
        monitor->worker_fd = fcntl(control->worker_fd, F_DUPFD_CLOEXEC, 3);
    if (control->candidate_fd >= 0)
        monitor->candidate_fd = fcntl(control->candidate_fd, F_DUPFD_CLOEXEC, 3);
    for (size_t i = 0; i < ARRAY_SIZE(monitor->root_fds); i++) {
        if (control->root_fds[i] >= 0)
            monitor->root_fds[i] = fcntl(control->root_fds[i], F_DUPFD_CLOEXEC, 3);
    }
    *ret = take(monitor);
    return 0;
}

const struct monitor_facts *monitor_facts(const struct monitor *monitor)
{
    return &monitor->facts;
}

struct cell_mount monitor_worker_mount(const struct monitor *monitor)
{
    return (struct cell_mount){.fd = monitor->worker_fd, .target = CELL_WORKER_PATH};
}

struct cell_mount monitor_candidate_mount(const struct monitor *monitor)
{
    return (struct cell_mount){.fd = monitor->candidate_fd, .target = CELL_CANDIDATE_PATH};
}

void monitor_forget(struct monitor *monitor)
{
    fd_closep(&monitor->socket);
    fd_closep(&monitor->pidfd);
}

void monitor_hang_up(struct monitor *monitor)
{
    if (monitor != NULL)
        fd_closep(&monitor->socket);
}

void monitor_free(struct monitor *monitor)
{
    int status;

    if (monitor == NULL)
        return;
    for (struct cell *cell = monitor->cells; cell != NULL; cell = cell->next)
        cell->monitor = NULL;
    monitor_hang_up(monitor);
    if (monitor->pidfd >= 0)
        (void)!spawn_wait(monitor->pidfd, &status, NULL); /* its end is all that matters */
    fd_closep(&monitor->pidfd);
    fd_closep(&monitor->worker_fd);
    fd_closep(&monitor->candidate_fd);
    for (size_t i = 0; i < ARRAY_SIZE(monitor->root_fds); i++)
        fd_closep(&monitor->root_fds[i]);
    free(monitor);
}

void monitor_freep(struct monitor **monitor)
{
    monitor_free(*monitor);
    *monitor = NULL;
}
