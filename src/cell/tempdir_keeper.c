#include "cell/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/str.h"
#include "cell/walls.h"

#define KEEP_MAX (WIRE_FDS_MAX + 8)
#define CHILDREN_BYTES 65536

/* --- the program */

static bool is_walled(const struct keeper *keeper)
{
    return keeper->program.machine->tier == TIER_C;
}

static int run_child(void *argument)
{
    struct keeper *keeper = argument;
    struct program *program = &keeper->program;
    const char *cwd = program->command->cwd;

    (void)umask(022);
    if (setsid() < 0)
        return program_fail(program, STEP_TTY, -errno);
    int r = is_walled(keeper) ? walls_enter(program) : 0;

    if (r < 0)
        return program_fail(program, STEP_LANDLOCK, r);
    r = program_set_fds(program);
    if (r < 0)
        return program_fail(program, STEP_DESCRIPTORS, r);
    if (program->command->controlling_tty != 0 && ioctl(0, TIOCSCTTY, 0) < 0)
        return program_fail(program, STEP_TTY, -errno);
    if (chdir(cwd) < 0)
        return program_fail(program, STEP_CWD, -errno);
    r = is_walled(keeper) ? walls_confine(program) : 0;
    if (r < 0)
        return program_fail(program, program->step, r);
    program->step = STEP_NONE; /* stays so if the program runs */
    return program_fail(program, STEP_EXEC, program_execute(program));
}

/* The worker's trees, opened anew: what was given may be no more than a path. */
static int open_worker_fds(struct keeper *keeper)
{
    const struct request_start *request = &keeper->input->request->start;
    struct program *program = &keeper->program;
    size_t count = 0;

    for (uint32_t i = 0; i < request->mount_count; i++) {
        const struct wire_mount *mount = &request->mounts[i];
        scoped(mem_freep) char *name =
            str_format("/proc/self/fd/%d", keeper->input->fds[mount->fd]);
        struct stat status;

        if ((mount->flags & WIRE_MOUNT_NO_DESCRIPTOR) != 0)
            continue;
        if (stat(name, &status) < 0)
            return -errno;
        bool writable = (mount->flags & WIRE_MOUNT_WRITABLE) != 0 && !S_ISDIR(status.st_mode);

        program->worker_fds[count] = open(name, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
        if (program->worker_fds[count++] < 0)
            return -errno;
    }
    if (keeper->directory != NULL) {
        scoped(mem_freep) char *workspace = str_format("%s" CELL_WORKSPACE_PATH, keeper->directory);

        program->worker_fds[count] = open(workspace, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (program->worker_fds[count++] < 0)
            return -errno;
    }
    program->worker_fd_count = count;
    program->exec_fd = keeper->input->fds[request->program_fd];
    return 0;
}

/* Arguments, environment and working directory with true paths. */
static void rewrite(struct keeper *keeper, struct wire_command *command)
{
    char **pointers = keeper->program.pointers;
    size_t count = command->argc + 1 + command->envc;

    for (size_t i = 0; i < count; i++) {
        if (pointers[i] != NULL)
            pointers[i] = tempdir_rewrite(pointers[i], keeper->places, keeper->directory);
    }
    scoped(mem_freep) char *cwd =
        tempdir_rewrite(command->cwd[0] != '\0' ? command->cwd : CELL_WORKSPACE_PATH,
                        keeper->places, keeper->directory);

    if (strlen(cwd) < sizeof(command->cwd))
        memcpy(command->cwd, cwd, strlen(cwd) + 1);
}

static int start_program(struct keeper *keeper, pid_t *ret)
{
    struct program *program = &keeper->program;
    struct wire_command command = *program->command;

    if (program->role == CELL_WORKER) {
        int r = open_worker_fds(keeper);

        if (r < 0)
            return r;
        memcpy(command.cwd, "/", sizeof("/"));
    } else {
        rewrite(keeper, &command);
    }
    program->command = &command;
    *ret = program_start(program, run_child);
    return *ret < 0 ? -program->error : 0;
}

/* --- its end */

static uint64_t reap(const struct keeper *keeper, pid_t program, int flags)
{
    struct rusage usage;
    uint64_t count = 0;
    int status;

    for (;;) {
        pid_t pid = wait4(-1, &status, flags, &usage);

        if (pid < 0 && errno == EINTR)
            continue;
        if (pid <= 0)
            return count;
        count++;
        if (pid == program)
            report_exit(keeper->channel, status, &usage);
    }
}

/* SIGKILL to all direct children, each with its session's group. False when there are none. */
static bool kill_children(void)
{
    static char list[CHILDREN_BYTES];
    scoped(mem_freep) char *path = str_format("/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, list, sizeof(list) - 1);

    if (fd >= 0)
        (void)close(fd); /* read only */
    if (n <= 0)
        return false;
    list[n] = '\0';
    for (const char *next = list; *next != '\0';) {
        char *end;
        long pid = strtol(next, &end, 10);

        if (end == next)
            break;
        next = end;
        if (pid > 1) {
            (void)kill((pid_t)pid, SIGKILL);
            (void)kill(-(pid_t)pid, SIGKILL);
        }
        while (*next == ' ')
            next++;
    }
    return true;
}

/* Orphans become this process's children, so that each round reaches one level further down. */
_Noreturn static void end(const struct keeper *keeper, pid_t program)
{
    struct child_report report = {.kind = REPORT_COUNT};

    (void)reap(keeper, program, WNOHANG);
    if (is_walled(keeper)) {
        /* All of our domain at once: what forks meanwhile has the signal pending, and does not. */
        (void)kill(-1, SIGKILL);
        report.count = reap(keeper, program, 0);
    }
    while (kill_children())
        report.count += reap(keeper, program, 0);
    report_send(keeper->channel, &report, NULL, 0);
    _exit(0);
}

static int watch_children(void)
{
    sigset_t children;

    (void)sigemptyset(&children);
    (void)sigaddset(&children, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &children, NULL); /* cannot fail with these arguments */
    int fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

_Noreturn static void keep(const struct keeper *keeper, int signal_fd, pid_t program)
{
    struct pollfd watched[2] = {{.fd = keeper->channel, .events = POLLIN},
                                {.fd = signal_fd, .events = POLLIN}};

    for (;;) {
        char buffer[256];

        if (poll(watched, ARRAY_SIZE(watched), -1) < 0 && errno != EINTR)
            _exit(1);
        if (watched[1].revents != 0) {
            (void)!read(signal_fd, buffer, sizeof(buffer)); /* which signal, we know */
            (void)reap(keeper, program, WNOHANG);
        }
        if (watched[0].revents == 0)
            continue;
        /* Asked to end, or the server is gone. The word is read: else the channel is reset. */
        (void)!read(keeper->channel, buffer, sizeof(buffer));
        end(keeper, program);
    }
}

static int close_others(const struct keeper *keeper, int signal_fd)
{
    int keep_fds[KEEP_MAX] = {0, 1, 2};
    size_t count = 0;

    for (size_t i = 0; i < keeper->input->fd_count; i++)
        keep_fds[count++] = keeper->input->fds[i];
    keep_fds[count++] = keeper->channel;
    keep_fds[count++] = keeper->program.machine->null_fd;
    keep_fds[count++] = signal_fd;
    if (is_walled(keeper))
        keep_fds[count++] = keeper->program.ruleset_fd;
    return sys_close_except(keep_fds, count);
}

static int prepare(struct keeper *keeper, int signal_fd, pid_t *ret)
{
    keeper->program.step = STEP_LIVENESS;
    if (signal_fd < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return -errno;
    int r = close_others(keeper, signal_fd);

    if (r < 0)
        return r;
    if (is_walled(keeper)) {
        keeper->program.step = STEP_LANDLOCK;
        r = walls_enclose(keeper->program.machine);
        if (r < 0)
            return r;
        keeper->program.protections |= PROTECT_LIVENESS;
    }
    keeper->program.step = STEP_WORKSPACE;
    if (keeper->fills)
        r = tempdir_fill(keeper->directory, keeper->input);
    *ret = 0;
    return r < 0 || !keeper->has_program ? r : start_program(keeper, ret);
}

_Noreturn void keeper_run(struct keeper *keeper)
{
    int signal_fd = watch_children();
    pid_t program = 0;
    int r = prepare(keeper, signal_fd, &program);
    struct child_report report = {
        .kind = r == 0 ? REPORT_READY : REPORT_FAILED,
        .error = -r,
        .step = keeper->program.step,
        .protections = keeper->program.protections,
    };

    report_send(keeper->channel, &report, NULL, 0);
    if (r < 0)
        _exit(1);
    keep(keeper, signal_fd, program);
}
