/*
 * Property: bytes are either refused with a reason, or all names that the index is said to have lie
 * in them, and the first is found when the names are sorted.
 */

#include "base/mem.h"
#include "stage/pack_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(error_freep) struct error *err = NULL;
    struct pack_index index;
    struct git_blob_names blob;
    int r = pack_index_parse(data, size, &index, &err);

    ASSERT((r < 0) == (err != NULL));
    if (r < 0)
        return 0;
    ASSERT(index.name_bytes == GIT_SHA1_BYTES || index.name_bytes == SHA256_BYTES);
    ASSERT(index.names >= data && index.count <= size / index.name_bytes);
    ASSERT(index.names + index.count * index.name_bytes <= data + size);
    blob = git_blob_names_of(data, size);
    (void)pack_index_has(&index, &blob);
    if (index.count == 1) {
        memcpy(blob.sha1, index.names, GIT_SHA1_BYTES);
        memcpy(blob.sha256.bytes, index.names, index.name_bytes);
        ASSERT(pack_index_has(&index, &blob));
    }
    return 0;
}
