#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

#include "cell/setup.h"

#define JOIN_KEEP_MAX (WIRE_FDS_MAX + NAMESPACE_FDS + 4)

static int close_others(const struct join *join)
{
    int keep[JOIN_KEEP_MAX];
    size_t count = 0;

    for (size_t i = 0; i < join->fd_count; i++)
        keep[count++] = join->fds[i];
    for (size_t i = 0; i < NAMESPACE_FDS; i++)
        keep[count++] = join->namespace_fds[i];
    keep[count++] = join->init_pidfd;
    keep[count++] = join->program.root_ns_fd;
    keep[count++] = join->channel;
    return sys_close_except(keep, count);
}

static int enter(const struct join *join)
{
    if (join->program.machine->tier == TIER_A)
        return setns(join->init_pidfd, CELL_NAMESPACES) < 0 ? -errno : 0;
    for (size_t i = 0; i < NAMESPACE_FDS; i++) {
        if (setns(join->namespace_fds[i], 0) < 0)
            return -errno;
    }
    return 0;
}

static int start(struct join *join, pid_t *ret)
{
    struct program *program = &join->program;

    program->step = STEP_LIVENESS;
    int r = liveness_set(join->channel);

    if (r == 0) {
        program->step = STEP_CGROUP;
        r = cgroup_enter(join->cgroups, join->leaf);
    }
    if (r == 0)
        r = close_others(join);
    if (r < 0)
        return r;
    program->step = STEP_JOIN;
    r = enter(join);
    if (r < 0)
        return r;
    program->step = STEP_KEYRING;
    r = sys_join_keyring();
    if (r < 0)
        return r;
    *ret = program_start(program, confined_child);
    return *ret < 0 ? -program->error : 0;
}

/* Its own part is over when the program runs: what remains is to see it end. */
static int lower(const struct join *join)
{
    int r = sys_close_except(&join->channel, 1);

    return r < 0 ? r : init_lower(join->program.machine, join->init_uid, join->init_gid, false);
}

_Noreturn void join_run(struct join *join)
{
    struct program *program = &join->program;
    struct rusage usage;
    pid_t pid = -1;
    int status, r = start(join, &pid);

    if (r == 0) {
        program->step = STEP_INIT;
        r = lower(join);
    }
    struct child_report report = {
        .kind = r == 0 ? REPORT_READY : REPORT_FAILED,
        .error = -r,
        .step = program->step,
        .protections = program->protections,
    };

    /* With a failure this child ends, and by PDEATHSIG what it may have started. */
    report_send(join->channel, &report, NULL, 0);
    if (r < 0)
        _exit(1);
    while (wait4(pid, &status, 0, &usage) < 0) {
        if (errno != EINTR)
            _exit(1);
    }
    report_exit(join->channel, status, &usage);
    _exit(0);
}
