#pragma once
/*
 * cgroup_find: where on this machine the monitor may make cgroups. The client's part, so that the
 * monitor reads no text but numbers.
 *
 * Version 1: the own cgroup of each hierarchy, so that what limits us limits the cells, too.
 * Version 2, where a cgroup has processes or children that are limited: the nearest one upwards
 * that passes memory on to its children; else the own one, if this process is alone in it (as in a
 * scope with Delegate=yes), from which it then moves into a child. Depends on: base.
 */

#include "cell/cell.h"

#define CGROUP_TEXT_BYTES_MAX ((size_t)1 << 20)

/* Own cgroups as paths of this machine; NULL: the hierarchy is not there. Owned. */
struct cgroup_places {
    char *plain[CELL_CGROUP_KINDS]; /* version 1 */
    char *unified, *unified_top;    /* version 2, and its mount point: at or above it */
};

/* From the texts of /proc/self/mountinfo and /proc/self/cgroup. */
void cgroup_places_parse(const char *mountinfo, const char *membership, struct cgroup_places *ret)
    nonnull(1, 2, 3);
void cgroup_places_done(struct cgroup_places *places) nonnull(1);

struct cgroup_bases {
    int fds[CELL_CGROUP_KINDS];     /* owned; -1: none; version 2: the first alone */
    char reason[CELL_REASON_BYTES]; /* why there are none; "" when there are */
};

/* Opens what this process may use. Never fails: without cgroups there are none. */
void cgroup_find(struct cgroup_bases *ret) nonnull(1);
void cgroup_bases_done(struct cgroup_bases *bases) nonnull(1);
