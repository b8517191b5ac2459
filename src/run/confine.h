#pragma once
/*
 * confine: the walls around a trial process: landlock, no_new_privs and a seccomp filter.
 *
 * Afterwards the process can neither execute a program nor make a socket, and sees of the file
 * system its trial's directory (read and write) and the given trees (read). What it has open stays
 * open. Depends on: base.
 */

#include "base/error.h"

#define CONFINE_TREES_MAX 8

struct confine_options {
    int write_fds[CONFINE_TREES_MAX]; /* directories, borrowed */
    size_t write_count;
    int read_fds[CONFINE_TREES_MAX];
    size_t read_count;
};

/* ERROR_SYSTEM when a wall cannot be put up: never a warning. */
must_check int confine_self(const struct confine_options *options, struct error **err) nonnull(1);
