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
    uint64_t look_ns;       /* when memory is looked at next */
};

extern const struct server_driver native_driver;

/*
 * candidate.c: the ids of a candidate's cell and the detached clone of its grading cell's workspace
 * that it gets. Where that can be mapped the candidate has a user id that the grading cell has not.
 * The same for a cell that only looks on at a live one of its connection, looked_at_id.
 */
must_check int candidate_prepare(struct server *server, struct server_cell *cell,
                                 uint32_t looked_at_id, int *ret_shared) nonnull(1, 2, 4);

/* machine.c: what this machine has. On failure *step says what it lacks. */
must_check int machine_find(struct machine *machine, enum cell_step *step) nonnull(1, 2);
