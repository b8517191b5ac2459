#pragma once
/*
 * spawn: the one place that forks and executes a program on the host.
 *
 * Between fork and exec only async-signal-safe calls. The child gets exactly the descriptors asked
 * for; everything else is closed. It dies with its parent (PDEATHSIG).
 */

#include <sys/types.h>

#include "base/base.h"
#include "base/error.h"

struct spawn_options {
    const char *const *argv; /* NULL-terminated; argv[0] is the path to execute, no PATH search */
    const char *const *envp; /* NULL-terminated; NULL means an empty environment */
    int cwd_fd;              /* -1: inherit */
    /* fds[i] becomes descriptor i in the child; -1 is /dev/null */
    const int *fds;
    size_t fd_count; /* at least 3 entries are set up: missing ones are /dev/null */
    bool new_session;
    bool outlive_parent; /* no PDEATHSIG */
    uid_t uid; /* 0 with gid 0: unchanged; else the child becomes this id, groups cleared */
    gid_t gid;
};

/* On success *ret_pidfd is the caller's and *ret_pid its id. exec failures are reported here. */
must_check int spawn_start(const struct spawn_options *options, int *ret_pidfd, pid_t *ret_pid,
                           struct error **err) nonnull(1, 2, 3);
/* Waits for the end; *ret_status is a wait status. */
must_check int spawn_wait(int pidfd, int *ret_status, struct error **err) nonnull(2);
