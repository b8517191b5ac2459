#pragma once
/*
 * layer: one layer of an image, from its bytes into a rootfs.
 *
 * The bytes are an archive in the tar format, plain or compressed with gzip or zstd (libarchive
 * reads them). What the layer says is checked only when it was read to its end: until then nothing
 * of the rootfs may be used. Depends on: base, libarchive.
 */

#include "base/hash.h"
#include "image/rootfs.h"

struct archive;

/* Where a layer's bytes come from: the next ones, as long as there are any. */
struct layer_source {
    /* *ret is valid until the next call. Bytes, 0 at the end, -code on failure. */
    ssize_t (*read)(void *context, const void **ret, struct error **err);
    void *context;
};

/* What is wrong with something that libarchive reads, as ERROR_TASK. */
int layer_archive_error(struct archive *archive, const char *name, struct error **err)
    nonnull(1, 2);

/*
 * Lays it into rootfs, as the next layer. name is what errors call it; *ret is the digest of the
 * uncompressed bytes. *dropped counts entries that were not made (devices, FIFOs, sockets).
 */
must_check int layer_apply(const char *name, const struct layer_source *source,
                           struct rootfs *rootfs, struct sha256 *ret, uint64_t *dropped,
                           struct error **err) nonnull(1, 2, 3, 4, 5);
