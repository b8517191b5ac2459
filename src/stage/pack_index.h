#pragma once
/*
 * pack_index: which objects a git pack holds, by the index beside it (version 2).
 *
 * The bytes are borrowed and may be anybody's: nothing outside of them is read, whatever they say.
 * Depends on: base.
 */

#include "base/hash.h"

struct pack_index {
    const uint8_t *names; /* count of them, sorted */
    size_t count, name_bytes;
};

/* ERROR_TASK for what is no index: with it nobody could say what the pack holds. */
must_check int pack_index_parse(const void *bytes, size_t size, struct pack_index *ret,
                                struct error **err) nonnull(3);
/* Whether a blob of that content is in the pack. */
bool pack_index_has(const struct pack_index *index, const struct git_blob_names *blob)
    nonnull(1, 2);
