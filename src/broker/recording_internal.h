#pragma once
/*
 * recording_internal: the inside of struct recording.
 */

#include "base/hash.h"
#include "broker/recording.h"

struct recorded {
    json_t *line;
    int64_t seq;
    bool used;
};

struct recording {
    int fd; /* -1: it answers */
    int64_t seq;
    size_t bytes;
    struct recorded *items;
    size_t count;
    char *problem; /* NULL: none */
};

void recording_digest(const json_t *normal, char ret[static SHA256_HEX_CHARS + 1]) nonnull(1);
