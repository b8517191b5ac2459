#pragma once
/*
 * cgroup: a cgroup for each cell, where its memory, processes and processor time are limited and
 * counted. Part of the monitor: libc only.
 *
 * The client finds the directories and hands them over (cgroup_open()); in each the monitor makes
 * one of its own, which it holds by flock for as long as it lives, and in that one leaf a cell. A
 * directory of that kind that nobody holds was left by a monitor that crashed, and is removed.
 * Version 2 has one directory for everything. In version 1 each controller has its own, entering
 * one is done by the process itself (moving another waits for an RCU grace period, some 20 ms),
 * and a leaf is used again when what is charged to it is next to nothing. Names are random.
 */

#include "cell/cell.h"

#define CGROUP_NAME_BYTES 32
/* A leaf in which more than this is charged, by pages of files above all, is not used again. */
#define CGROUP_LEFT_BYTES_MAX ((uint64_t)1 << 20)
/* The cell's init and the keepers of its further programs do not count for its own limit. */
#define CGROUP_EXTRA_PIDS 64
#define CGROUP_SWEEP_MAX 65536 /* names looked at when leavings are removed */

struct cgroup_leaf {
    bool is_taken;
    char name[CGROUP_NAME_BYTES];       /* "": none yet */
    int dirs[CELL_CGROUP_KINDS];        /* version 2: the first alone; -1: not made */
    uint64_t limits[CELL_CGROUP_KINDS]; /* as written; UINT64_MAX: none */
    uint64_t oom_kills;                 /* of the cells before */
};

struct cgroups {
    bool is_unified;
    uint32_t kinds; /* bits 1 << enum cell_cgroup: what can be limited */
    char names[CELL_CGROUP_KINDS][CGROUP_NAME_BYTES];
    int bases[CELL_CGROUP_KINDS], dirs[CELL_CGROUP_KINDS]; /* version 2: the first alone */
    struct cgroup_leaf *leaves;
    size_t count;
};

/* What one cell may use. */
struct cgroup_limits {
    uint64_t memory_bytes, pids, cpu_millis; /* 0: no limit */
};

struct cgroup_usage {
    bool has_memory, has_cpu;
    uint64_t memory_peak_bytes, oom_kills, cpu_us;
};

/* Nothing open, nothing limited. */
void cgroup_init(struct cgroups *cgroups) nonnull(1);
/*
 * Takes what the client found: base directories by kind, -1: none. They must be of a cgroup file
 * system and belong to this process's user. Once only.
 */
must_check int cgroup_open(struct cgroups *cgroups, const int bases[static CELL_CGROUP_KINDS])
    nonnull(1);
/* A leaf with these limits; its number, or -errno: a limit that cannot be set is an error. */
must_check int cgroup_take(struct cgroups *cgroups, const struct cgroup_limits *limits)
    nonnull(1, 2);
/* For clone3() (version 2), borrowed; -1: there is none, or it has to be entered. */
int cgroup_clone_fd(const struct cgroups *cgroups, int leaf) nonnull(1);
/* The calling process, of one thread, enters. */
must_check int cgroup_enter(const struct cgroups *cgroups, int leaf) nonnull(1);
/*
 * What is in use now: memory of processes, and of files without a disk, which a cell's places are.
 * False when that is not known.
 */
must_check bool cgroup_look(const struct cgroups *cgroups, int leaf, uint64_t *ret_private,
                            uint64_t *ret_shared) nonnull(1, 3, 4);
/* The limit of memory becomes what is in use now, so that the next page is one too many; or itself.
 */
void cgroup_press(const struct cgroups *cgroups, int leaf, bool press) nonnull(1);
void cgroup_measure(const struct cgroups *cgroups, int leaf, struct cgroup_usage *ret)
    nonnull(1, 3);
/* No process is in it any more. */
void cgroup_give(struct cgroups *cgroups, int leaf) nonnull(1);
/* Removes everything. */
void cgroup_close(struct cgroups *cgroups) nonnull(1);
