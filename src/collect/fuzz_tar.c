/*
 * Property: an archive is either refused with a reason, or writing what was read gives the same
 * bytes.
 */

#include <sys/mman.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/collect.h"
#include "collect/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct rewriting {
    const uint8_t *data;
    size_t size;
    struct buf again;
};

static int rewrite(void *context, int tar_fd, const struct artifact *artifact, struct error **err)
{
    struct rewriting *rewriting = context;
    struct tar_entry entry = {.path = artifact->path,
                              .type = artifact->type,
                              .mode = artifact->mode,
                              .size_bytes = artifact->size_bytes,
                              .target = artifact->target};
    static const char zeros[TAR_BLOCK_BYTES];

    (void)tar_fd;
    (void)err;
    tar_write_header(&rewriting->again, &entry);
    if (artifact->type != MANIFEST_FILE)
        return 0;
    ASSERT(artifact->offset <= rewriting->size &&
           artifact->size_bytes <= rewriting->size - artifact->offset);
    buf_append(&rewriting->again, rewriting->data + artifact->offset, artifact->size_bytes);
    buf_append(&rewriting->again, zeros, tar_padding(artifact->size_bytes));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char end[2 * TAR_BLOCK_BYTES];
    scoped(fd_closep) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    scoped(error_freep) struct error *err = NULL;
    struct rewriting rewriting = {.data = data, .size = size};

    ASSERT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    int r = artifacts_each(fd, "fuzz", rewrite, &rewriting, &err);

    ASSERT((r < 0) == (err != NULL));
    buf_append(&rewriting.again, end, sizeof(end));
    if (r == 0)
        ASSERT(rewriting.again.size_bytes == size && memcmp(rewriting.again.data, data, size) == 0);
    buf_done(&rewriting.again);
    return 0;
}
