#include "stage/pack_index.h"

#include <arpa/inet.h>

#define HEADER_BYTES 8
#define FANOUT_COUNT 256
#define PREFIX_BYTES (HEADER_BYTES + FANOUT_COUNT * sizeof(uint32_t))
#define CHECKSUMS 2
#define WORDS_EACH 8 /* beside its name an object has a checksum and an offset */
#define FAR_BYTES 8  /* an offset beyond 2 GiB has these further ones */

static const uint8_t magic[HEADER_BYTES] = {0xff, 't', 'O', 'c', 0, 0, 0, 2};

/* How many objects have a name whose first byte is at most that. */
static size_t up_to(const uint8_t *bytes, size_t first)
{
    uint32_t value;

    memcpy(&value, bytes + HEADER_BYTES + first * sizeof(value), sizeof(value));
    return ntohl(value);
}

static bool fits(size_t size, size_t count, size_t name_bytes)
{
    size_t least = PREFIX_BYTES + count * (name_bytes + WORDS_EACH) + CHECKSUMS * name_bytes;

    return size >= least && (size - least) % FAR_BYTES == 0 && (size - least) / FAR_BYTES <= count;
}

int pack_index_parse(const void *bytes, size_t size, struct pack_index *ret, struct error **err)
{
    /* The file does not say which names it has; its size fits one kind alone. */
    static const size_t kinds[] = {GIT_SHA1_BYTES, SHA256_BYTES};
    const uint8_t *at = bytes;

    if (size < PREFIX_BYTES || memcmp(at, magic, sizeof(magic)) != 0)
        return error_set(err, ERROR_TASK, "it is no index of a git pack, version 2");
    size_t count = up_to(at, FANOUT_COUNT - 1);

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (!fits(size, count, kinds[i]))
            continue;
        *ret = (struct pack_index){at + PREFIX_BYTES, count, kinds[i]};
        return 0;
    }
    return error_set(err, ERROR_TASK,
                     "the index of a git pack is damaged: %zu bytes for %zu objects", size, count);
}

bool pack_index_has(const struct pack_index *index, const struct git_blob_names *blob)
{
    const uint8_t *name = index->name_bytes == SHA256_BYTES ? blob->sha256.bytes : blob->sha1;
    size_t low = 0, high = index->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = memcmp(name, index->names + middle * index->name_bytes, index->name_bytes);

        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}
