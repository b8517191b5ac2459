#pragma once
/*
 * native: the monitor's driver: cells made of namespaces. libc only.
 */

#include "cell/cgroup.h"
#include "cell/lease.h"
#include "cell/server.h"

struct native {
    struct lease_pool pool; /* tier A */
    struct cgroups cgroups; /* of cells; none until the client names directories */
    int proc_fd;            /* the host's /proc */
};

extern const struct server_driver native_driver;

/* machine.c: what this machine has. On failure *step says what it lacks. */
must_check int machine_find(struct machine *machine, enum cell_step *step) nonnull(1, 2);
