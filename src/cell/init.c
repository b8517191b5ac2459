#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cell/setup.h"

int init_lower(const struct machine *machine, uid_t uid, gid_t gid, bool may_kill)
{
    const struct identity identity = {
        .uid = uid,
        .gid = gid,
        .keep_caps = may_kill ? UINT64_C(1) << CAP_KILL : 0,
        .keep_groups = machine->tier != TIER_A,
    };
    int r = identity_take(&identity);

    if (r < 0)
        return r;
    /* A change of identity clears both. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return filter_load(FILTER_INIT);
}

/* Returns how many were reaped. */
static uint64_t reap(int channel, pid_t program, int flags)
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
            report_exit(channel, status, &usage);
    }
}

_Noreturn static void end(int channel, pid_t program)
{
    struct child_report report = {.kind = REPORT_COUNT};

    (void)reap(channel, program, WNOHANG);
    /* All at once: what forks meanwhile has the signal pending and does not get to fork. */
    (void)kill(-1, SIGKILL);
    report.count = reap(channel, program, 0);
    report_send(channel, &report, NULL, 0);
    _exit(0);
}

_Noreturn void init_run(int channel, int signal_fd, pid_t program)
{
    struct pollfd watched[2] = {{.fd = channel, .events = POLLIN},
                                {.fd = signal_fd, .events = POLLIN}};

    for (;;) {
        char buffer[256];

        if (poll(watched, ARRAY_SIZE(watched), -1) < 0 && errno != EINTR)
            _exit(1);
        if (watched[1].revents != 0) {
            (void)!read(signal_fd, buffer, sizeof(buffer)); /* which signal, we know */
            (void)reap(channel, program, WNOHANG);
        }
        if (watched[0].revents == 0)
            continue;
        /* A word on the channel, whatever it is, asks for the end. None: the server is gone. */
        if (read(channel, buffer, sizeof(buffer)) > 0)
            end(channel, program);
        _exit(0);
    }
}
