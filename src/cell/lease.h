#pragma once
/*
 * lease: user ids that belong to one cell at a time, on one machine.
 *
 * A slot is three ids: init, agent or grader, and candidate. It is held by flock on a file
 * below /run/closedbook/uids for as long as this monitor lives, and given to a cell only while no
 * process runs under any of its ids. Back in the pool it goes after the cell's end, when none can.
 */

#include <sys/types.h>

#include "base/base.h"

#define LEASE_BASE_UID 0x70000000u
#define LEASE_IDS_PER_SLOT 3u
#define LEASE_SLOTS_MAX 4096u

struct lease_pool {
    int dir_fd;
    struct lease_slot *slots;
    size_t count;
};

enum lease_id { LEASE_INIT, LEASE_PROGRAM, LEASE_CANDIDATE };

must_check int lease_open(struct lease_pool *pool) nonnull(1);
/* The slot's number, or -EAGAIN when all are taken. */
must_check int lease_take(struct lease_pool *pool) nonnull(1);
void lease_give(struct lease_pool *pool, int slot) nonnull(1);
uid_t lease_uid(int slot, enum lease_id id);
/*
 * A user namespace, kept with the slot, whose map makes files of owner look like the program's.
 * Borrowed.
 */
must_check int lease_idmap(struct lease_pool *pool, int slot, uid_t owner, gid_t group) nonnull(1);
/*
 * Another, kept and borrowed likewise: what has ids from 0 in it is, outside, the program's id and
 * LEASE_ROOT_IDS - 1 ids that belong to the slot alone. To be mapped by and to live in. -EAGAIN for
 * a slot that has no such ids, -EBUSY when somebody else uses them.
 */
#define LEASE_ROOT_IDS 65536u
#define LEASE_ROOT_BASE_UID 0x70010000u /* below what systemd gives to others again */
#define LEASE_ROOT_SLOTS_MAX 4093
must_check int lease_root_ns(struct lease_pool *pool, int slot) nonnull(1);
/* Another, whose map makes the program's files look like the candidate's. */
must_check int lease_candidate_idmap(struct lease_pool *pool, int slot) nonnull(1);
