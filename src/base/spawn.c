#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/fs.h"

#define SPAWN_FDS_MAX 64
#define CHILD_FAILED_STATUS 127
#define CHILD_STACK_BYTES ((size_t)64 << 10)

/* How far the child got. The parent has the words for it. */
enum step { STEP_FDS, STEP_SESSION, STEP_CWD, STEP_IDENTITY, STEP_PARENT, STEP_EXEC };

/* What the child writes into the pipe when it does not get to run its program. */
struct failure {
    enum step step;
    int errno_value;
};

/* All that the child uses, made before the fork. */
struct plan {
    const struct spawn_options *options;
    int report_fd; /* close-on-exec, so its end of file says that the program runs */
    pid_t parent;
};

static const char *step_name(enum step step)
{
    switch (step) {
    case STEP_FDS:
        return "its descriptors";
    case STEP_SESSION:
        return "a session";
    case STEP_CWD:
        return "its folder";
    case STEP_IDENTITY:
        return "its identity";
    case STEP_PARENT:
        return "its tie to the parent";
    case STEP_EXEC:
        return "the program";
    }
    return "?";
}

/* --- between fork and exec: async-signal-safe calls only
 * ----------------------------------------*/

static int child_fail(int report_fd, enum step step)
{
    struct failure failure = {.step = step, .errno_value = errno};

    /* When even this fails, the parent sees an end of file and a status of 127. */
    (void)!write(report_fd, &failure, sizeof(failure));
    return CHILD_FAILED_STATUS;
}

/*
 * Makes fds[i] descriptor i. All are first moved above count, so that none is overwritten before
 * it was copied. Everything from count on is closed by the exec.
 */
static int child_fds(const struct spawn_options *options, int count)
{
    int moved[SPAWN_FDS_MAX];
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null_fd < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        int fd = (size_t)i < options->fd_count ? options->fds[i] : -1;

        moved[i] = fcntl(fd < 0 ? null_fd : fd, F_DUPFD_CLOEXEC, count);
        if (moved[i] < 0)
            return -1;
    }
    for (int i = 0; i < count; i++) {
        if (dup2(moved[i], i) < 0)
            return -1;
    }
    return (int)syscall(SYS_close_range, (unsigned)count, ~0U, CLOSE_RANGE_CLOEXEC);
}

static int child_identity(const struct spawn_options *options)
{
    if (options->uid == 0 && options->gid == 0)
        return 0;
    /* Raw calls: glibc's would try to tell threads that do not exist here. */
    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, options->gid, options->gid, options->gid) < 0)
        return -1;
    return (int)syscall(SYS_setresuid, options->uid, options->uid, options->uid);
}

/* Handlers of the parent are gone with the exec, but ignored and blocked signals would stay. */
static void child_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &action, NULL); /* KILL and STOP refuse, rightly */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
}

/* What it returns is the child's exit status. */
static int child_run(void *argument)
{
    const struct plan *plan = argument;
    static const char *const nothing[] = {NULL};
    const struct spawn_options *options = plan->options;
    const char *const *envp = options->envp == NULL ? nothing : options->envp;
    int count = options->fd_count > 3 ? (int)options->fd_count : 3;
    int report_fd = fcntl(plan->report_fd, F_DUPFD_CLOEXEC, count);

    if (report_fd < 0)
        return CHILD_FAILED_STATUS;
    child_signals();
    if (options->new_session && setsid() < 0)
        return child_fail(report_fd, STEP_SESSION);
    if (options->cwd_fd >= 0 && fchdir(options->cwd_fd) < 0)
        return child_fail(report_fd, STEP_CWD);
    if (child_fds(options, count) < 0)
        return child_fail(report_fd, STEP_FDS);
    if (child_identity(options) < 0)
        return child_fail(report_fd, STEP_IDENTITY);
    /* After the change of identity, which clears it. */
    if (!options->outlive_parent && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return child_fail(report_fd, STEP_PARENT);
    if (!options->outlive_parent && getppid() != plan->parent)
        return CHILD_FAILED_STATUS;
    /* execve() does not write to them, but its type is older than const. */
    syscall(SYS_execve, options->argv[0], options->argv, envp);
    return child_fail(report_fd, STEP_EXEC);
}

/* --- the parent
 * ---------------------------------------------------------------------------------*/

/*
 * As vfork() does, on a stack of the child's own: our memory need not be copied, but where the
 * child changes its identity, which would make the shared memory undumpable. All signals are
 * blocked: a handler of ours must not run in the child.
 */
static pid_t fork_blocked(struct plan *plan)
{
    static _Alignas(16) char stack[CHILD_STACK_BYTES];
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &before); /* cannot fail with these arguments */
    bool shares = plan->options->uid == 0 && plan->options->gid == 0;
    int flags = shares ? CLONE_VM | CLONE_VFORK | SIGCHLD : SIGCHLD;
    pid_t pid = clone(child_run, stack + sizeof(stack), flags, plan);
    int saved = errno;

    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

/* Waits until the program runs or the child says why it does not. */
static int await_exec(int report_fd, const char *program, struct error **err)
{
    struct failure failure;
    ssize_t n;

    do
        n = read(report_fd, &failure, sizeof(failure));
    while (n < 0 && errno == EINTR);
    if (n == 0)
        return 0;
    if (n < 0)
        return error_errno(err, errno, "cannot start '%s'", program);
    if (n != (ssize_t)sizeof(failure))
        return error_set(err, ERROR_BUG, "cannot start '%s': half a report", program);
    if (failure.step == STEP_EXEC)
        return error_errno(err, failure.errno_value, "cannot run '%s'", program);
    return error_errno(err, failure.errno_value, "cannot start '%s': cannot set up %s", program,
                       step_name(failure.step));
}

int spawn_start(const struct spawn_options *options, int *ret_pidfd, pid_t *ret_pid,
                struct error **err)
{
    int ends[2];

    ASSERT(options->argv != NULL && options->argv[0] != NULL);
    ASSERT(options->fd_count <= SPAWN_FDS_MAX);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int read_end = ends[0];
    scoped(fd_closep) int write_end = ends[1];
    struct plan plan = {.options = options, .report_fd = write_end, .parent = getpid()};
    pid_t pid = fork_blocked(&plan);

    if (pid < 0)
        return error_errno(err, errno, "cannot start '%s'", options->argv[0]);
    scoped(fd_closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    int pidfd_errno = errno;

    fd_closep(&write_end);
    if (pidfd < 0) {
        (void)kill(pid, SIGKILL); /* it is our child and not reaped: the id is still its own */
        reap(pid);
        return error_errno(err, pidfd_errno, "cannot watch '%s'", options->argv[0]);
    }
    int r = await_exec(read_end, options->argv[0], err);

    if (r < 0) {
        (void)kill(pid, SIGKILL);
        reap(pid);
        return r;
    }
    *ret_pidfd = take_fd(&pidfd);
    *ret_pid = pid;
    return 0;
}

int spawn_wait(int pidfd, int *ret_status, struct error **err)
{
    siginfo_t info = {0};

    while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0) {
        if (errno != EINTR)
            return error_errno(err, errno, "cannot wait for a program");
    }
    /* In the shape of waitpid(): the exit code above, or the signal and whether it dumped core. */
    if (info.si_code == CLD_EXITED)
        *ret_status = (info.si_status & 0xff) << 8;
    else
        *ret_status = info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
    return 0;
}
