#include <sys/wait.h>

#include "base/message.h"
#include "cell/setup.h"

#define USEC_PER_SEC 1000000u

void report_send(int channel, const struct child_report *report, const int *fds, size_t count)
{
    /* Without descriptors a plain write: an init's filter allows no more. */
    if (count == 0)
        (void)!write(channel, report, sizeof(*report));
    else
        (void)!message_send(channel, report, sizeof(*report), fds, count);
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * USEC_PER_SEC + (uint64_t)time.tv_usec;
}

void report_exit(int channel, int status, const struct rusage *usage)
{
    bool exited = WIFEXITED(status);
    struct child_report report = {
        .kind = REPORT_EXIT,
        .exit =
            {
                .exit_code = exited ? WEXITSTATUS(status) : -1,
                .term_signal = exited ? 0 : WTERMSIG(status),
                .user_us = microseconds(usage->ru_utime),
                .system_us = microseconds(usage->ru_stime),
                .max_rss_kib = (uint64_t)usage->ru_maxrss,
            },
    };

    report_send(channel, &report, NULL, 0);
}
