#pragma once
/*
 * tiers: what a tier is, and which protections it must have. One table; cell_start(), doctor and
 * SECURITY.md are made from it. libc only: the monitor includes it.
 */

#include "base/base.h"

/* From the strongest to the weakest, but for the first. */
enum cell_tier {
    TIER_NONE,    /* tempdir: no protection at all */
    TIER_A,       /* started by root: leased uid, no user namespace */
    TIER_B,       /* user namespace */
    TIER_B_MINUS, /* user namespace without a fresh /proc */
    TIER_C,       /* landlock and seccomp only */
    TIER_COUNT,
};

/* Bits: each is set by the cell's own set-up code right after the step succeeded. */
enum cell_protection {
    PROTECT_MOUNT_NS = 1 << 0,
    PROTECT_PID_NS = 1 << 1,
    PROTECT_NET_NS = 1 << 2,
    PROTECT_IPC_NS = 1 << 3,
    PROTECT_UTS_NS = 1 << 4,
    PROTECT_CGROUP_NS = 1 << 5,
    PROTECT_USER_NS = 1 << 6,
    PROTECT_ROOT = 1 << 7,       /* root from descriptors, pivot_root, old root detached */
    PROTECT_PROC = 1 << 8,       /* fresh /proc with hidepid and masks */
    PROTECT_LEASED_UID = 1 << 9, /* an id of its own that owns nothing */
    PROTECT_OTHER_INIT_UID = 1 << 10,
    PROTECT_INIT_NOT_DUMPABLE = 1 << 11,
    PROTECT_NO_CAPS = 1 << 12, /* all sets empty, bounding set too, securebits locked */
    PROTECT_NO_NEW_PRIVS = 1 << 13,
    PROTECT_SECCOMP = 1 << 14,
    PROTECT_LANDLOCK = 1 << 15,
    PROTECT_FDS = 1 << 16,      /* every descriptor but the command's closed */
    PROTECT_KEYRING = 1 << 17,  /* fresh session keyring */
    PROTECT_LIVENESS = 1 << 18, /* dies with the monitor */
    PROTECT_DISK = 1 << 19,     /* workspace, HOME, /tmp sized */
    PROTECT_NPROC = 1 << 20,
    PROTECT_STATIC_PROC = 1 << 21, /* /proc is a plain directory that shows no process */
    PROTECT_NO_PTRACE = 1 << 22,
    /* Where the machine's cgroups do that, and the first two where the task asks for it. */
    PROTECT_MEMORY = 1 << 23,
    PROTECT_CPU = 1 << 24,
    PROTECT_PIDS = 1 << 25,
    PROTECT_NO_SOCKETS = 1 << 26,
    PROTECT_SCOPED = 1 << 27, /* landlock: signals stay inside */
};

struct cell_protection_row {
    enum cell_protection bit;
    const char *name;    /* "seccomp" */
    const char *meaning; /* one sentence for SECURITY.md and doctor */
};

struct cell_tier_row {
    enum cell_tier tier;
    const char *name; /* "A", "B", "B-", "C", "none" */
    const char *meaning;
    uint64_t mandatory; /* bits of enum cell_protection; 0: promises nothing or is not built */
};

extern const struct cell_protection_row cell_protection_rows[];
extern const size_t cell_protection_count;
extern const struct cell_tier_row cell_tier_rows[TIER_COUNT];

/* What a cell of this tier must have; a worker's cell needs less (it keeps one capability). */
uint64_t cell_mandatory(enum cell_tier tier, bool worker);
/* The same for one whose programs are root of a user namespace: they have capabilities in that. */
uint64_t cell_mandatory_as_root(enum cell_tier tier);
/* True when a cell of tier `have` is no weaker than one of `wanted`. */
bool cell_tier_is_enough(enum cell_tier have, enum cell_tier wanted);
const char *cell_tier_name(enum cell_tier tier);
must_check bool cell_tier_parse(const char *name, enum cell_tier *ret) nonnull(1, 2);
