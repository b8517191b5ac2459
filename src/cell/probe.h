#pragma once
/*
 * probe: what this machine offers to cells, each fact tried for real, with the reason when it is
 * missing and how to get it. For `doctor`; nothing else decides by it.
 */

#include "base/base.h"

#define PROBE_REASON_BYTES 160

enum probe_fact_kind {
    PROBE_USER_NAMESPACE, /* all namespaces of a cell, made by an ordinary user */
    PROBE_FRESH_PROC,     /* a /proc of a new pid namespace */
    PROBE_ROOT_MOUNT,     /* root's power to mount: tier A */
    PROBE_OVERLAY,
    PROBE_TMPFS_XATTR, /* user.* attributes on tmpfs, which a user's overlay needs */
    PROBE_IDMAP,
    PROBE_IDMAP_TMPFS, /* of its own kind: the copied workspace that a candidate shares */
    PROBE_LANDLOCK,
    PROBE_SECCOMP,
    PROBE_CGROUP2,
    PROBE_CGROUP1,
    PROBE_NEWUIDMAP,
    PROBE_SUBUID,
    PROBE_APPARMOR, /* no restriction of user namespaces by AppArmor */
    PROBE_COUNT,
};

struct probe_fact {
    const char *name;    /* "landlock" */
    const char *purpose; /* what cells use it for */
    const char *remedy;  /* how to get it; "" when nothing can be done */
    bool available;
    char reason[PROBE_REASON_BYTES]; /* "ABI 7", or why not: "Operation not permitted" */
};

struct cell_probe {
    struct probe_fact facts[PROBE_COUNT];
    int landlock_abi;
};

/* Cannot fail: what cannot be found out is not available, for that reason. Takes some milliseconds.
 */
void cell_probe(struct cell_probe *ret) nonnull(1);
