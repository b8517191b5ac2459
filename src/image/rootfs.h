#pragma once
/*
 * rootfs: a directory that layers are laid into, one after the other.
 *
 * All paths are looked up as if the directory were the root, so that no link of an image leads out
 * of it; the last part of a path is never followed. Owners, set-id bits, devices, FIFOs, sockets
 * and extended attributes are not made. Depends on: base.
 */

#include <sys/types.h>
#include <time.h>

#include "base/error.h"
#include "image/entry.h"

struct rootfs; /* opaque */

/* Where layers may end. */
struct rootfs_limits {
    uint64_t bytes;   /* of regular files, all layers together, overwritten ones too */
    uint64_t entries; /* likewise; and what whiteouts and opaque marks may look at and leave */
};

/* fd, an empty directory, stays the caller's. */
struct rootfs *rootfs_new(int fd, const struct rootfs_limits *limits) nonnull(2);
void rootfs_free(struct rootfs *rootfs);
void rootfs_freep(struct rootfs **rootfs);

/* What whiteouts hide is what lower layers have: a new layer begins. */
void rootfs_next_layer(struct rootfs *rootfs) nonnull(1);

/* Mode and time of an entry. */
struct rootfs_status {
    mode_t mode; /* permissions only; directories get u+rwx, files u+r, no set-id bits */
    struct timespec modified;
};

/* ERROR_TASK for what the layer is to blame for, ERROR_LIMIT past a limit. */
must_check int rootfs_add_dir(struct rootfs *rootfs, const struct entry_name *name,
                              const struct rootfs_status *status, struct error **err)
    nonnull(1, 2, 3);
must_check int rootfs_add_link(struct rootfs *rootfs, const struct entry_name *name,
                               const char *text, const struct rootfs_status *status,
                               struct error **err) nonnull(1, 2, 3, 4);
/* target: a path of the image. */
must_check int rootfs_add_hard_link(struct rootfs *rootfs, const struct entry_name *name,
                                    const struct entry_name *target, struct error **err)
    nonnull(1, 2, 3);
/* *ret_fd is written by the caller, then given to rootfs_end_file(), also after a failure. */
must_check int rootfs_begin_file(struct rootfs *rootfs, const struct entry_name *name, int *ret_fd,
                                 struct error **err) nonnull(1, 2, 3);
/* Counts before it is written. */
must_check int rootfs_count_bytes(struct rootfs *rootfs, uint64_t bytes, struct error **err)
    nonnull(1);
must_check int rootfs_end_file(struct rootfs *rootfs, int fd, const struct rootfs_status *status,
                               struct error **err) nonnull(1, 3);
/* What stands there of lower layers goes; nothing is made. */
must_check int rootfs_drop(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
    nonnull(1, 2);
/* ENTRY_WHITEOUT and ENTRY_OPAQUE. */
must_check int rootfs_hide(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
    nonnull(1, 2);
/* Gives the directories their times. Last. */
must_check int rootfs_finish(struct rootfs *rootfs, struct error **err) nonnull(1);
uint64_t rootfs_bytes(const struct rootfs *rootfs) nonnull(1);
uint64_t rootfs_bytes_max(const struct rootfs *rootfs) nonnull(1);
uint64_t rootfs_entries(const struct rootfs *rootfs) nonnull(1);
