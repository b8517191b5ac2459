/*
 * Class M: persistence and time. What is planted here holds a lifeline, the end of a pipe: from
 * outside is seen that it is open before the cell's end and closed after it.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/wait.h>

#include "base/str.h"
#include "evidence/attack.h"

#define TICK_MS 10

static void hold_only(struct attack_context *context, enum lifeline own)
{
    for (int i = 0; i < LIFELINES; i++)
        if (i != (int)own && context->lifelines[i] >= 0)
            (void)close(context->lifelines[i]); /* another's */
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
}

static void ignore_all(void)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN};

    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &ignored, NULL); /* KILL and STOP refuse, rightly */
}

/* Twice forked and in a session of its own; returns in the survivor only. */
static bool survive(struct attack_context *context, enum lifeline own)
{
    pid_t pid = fork();

    attack_looked(context, 1);
    if (context->lifelines[own] < 0)
        attack_failed(context, "no lifeline");
    if (pid != 0) {
        if (pid > 0)
            (void)waitpid(pid, NULL, 0);
        attack_planted(context, "a process that stays");
        return false;
    }
    if (setsid() < 0 || fork() != 0)
        _exit(0);
    hold_only(context, own);
    return true;
}

/* Until nobody listens at the other end: only without a cell does it come to that. */
static void linger(int lifeline)
{
    struct pollfd watched = {.fd = lifeline};

    while ((watched.revents & POLLERR) == 0)
        (void)poll(&watched, 1, -1); /* interrupted or not: it looks again */
}

static void leave_daemon(struct attack_context *context)
{
    if (!survive(context, LIFELINE_DAEMON))
        return;
    ignore_all();
    /* Many at once, each reaching further away from its parent. */
    for (int i = 0; i < 3; i++)
        (void)!fork();
    linger(context->lifelines[LIFELINE_DAEMON]);
    _exit(0);
}

static void leave_stopped(struct attack_context *context)
{
    if (!survive(context, LIFELINE_STOPPED))
        return;
    pid_t pid = fork();

    if (pid == 0)
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* else it would stay for good */
    if (pid == 0) {
        for (;;)
            (void)raise(SIGSTOP);
    }
    linger(context->lifelines[LIFELINE_STOPPED]);
    if (pid > 0)
        (void)kill(pid, SIGKILL);
    _exit(0);
}

static void leave_timer(struct attack_context *context)
{
    if (!survive(context, LIFELINE_TIMER))
        return;
    const struct itimerval each = {{0, TICK_MS * 1000L}, {0, TICK_MS * 1000L}};

    ignore_all();
    (void)setitimer(ITIMER_REAL, &each, NULL);
    linger(context->lifelines[LIFELINE_TIMER]);
    _exit(0);
}

static void move_clock(struct attack_context *context)
{
    struct timex now = {0};

    attack_looked(context, 3);
    if (syscall(SYS_settimeofday, NULL, NULL) == 0)
        attack_found(context, "settimeofday reaches the kernel");
    if (syscall(SYS_clock_settime, CLOCK_REALTIME, NULL) == 0 || errno == EFAULT)
        attack_found(context, "clock_settime reaches the kernel");
    if (syscall(SYS_adjtimex, &now) >= 0)
        attack_found(context, "adjtimex reaches the kernel");
}

static const struct attack attacks[] = {
    {"persist.daemon", 'M', PHASE_AGENT, CONTROL_MUTANT, false,
     "leave processes that ignore every signal", leave_daemon},
    {"persist.stopped", 'M', PHASE_AGENT, CONTROL_MUTANT, false, "leave a stopped process",
     leave_stopped},
    {"persist.timer", 'M', PHASE_AGENT, CONTROL_MUTANT, false, "leave a timer", leave_timer},
    {"persist.clock", 'M', PHASE_AGENT, CONTROL_LEAKY, true, "move the clock", move_clock},
};
const struct attack_table attacks_persist = {attacks, ARRAY_SIZE(attacks)};
