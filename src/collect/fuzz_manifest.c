/*
 * Property: a manifest is either refused with a reason, or writing what was read gives the same
 * bytes, every entry is found by its path, and its root can be told.
 */

#include "base/mem.h"
#include "collect/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(mem_freep) char *text = mem_dup(size > 0 ? (const void *)data : "", size_max(size, 1));
    scoped(manifest_done) struct manifest manifest = {0};
    scoped(buf_done) struct buf again = {0};
    scoped(error_freep) struct error *err = NULL;
    int r = manifest_read("fuzz", text, size, &manifest, &err);

    ASSERT((r < 0) == (err != NULL));
    if (r < 0)
        return 0;
    manifest_write(&again, &manifest);
    ASSERT(again.size_bytes == size && (size == 0 || memcmp(again.data, text, size) == 0));
    for (size_t i = 0; i < manifest.count; i++)
        ASSERT(manifest_find(&manifest, manifest.entries[i].path) == &manifest.entries[i]);
    (void)manifest_root(&manifest); /* asserts that every parent is there */
    return 0;
}
