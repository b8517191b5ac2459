#pragma once
/*
 * host_internal: the entries of a snapshot. For the files host*.c only.
 */

#include <sys/stat.h>

#include "base/hash.h"
#include "evidence/host.h"

struct host_entry {
    char *path; /* absolute */
    mode_t mode;
    uid_t uid;
    gid_t gid;
    uint64_t size_bytes, inode, device;
    int64_t modified_ns, changed_ns;
    bool loose; /* only type, mode and owner count: something in it is not looked at */
    bool wants_digest, has_digest;
    struct sha256 digest;
};

/* Entries are sorted by path once it is taken. */
struct host_snapshot {
    struct host_entry *entries;
    size_t count;
};

const struct host_entry *host_find(const struct host_snapshot *snapshot, const char *path)
    nonnull(1, 2);
/* host_digest.c: the digests of all entries that want one. */
must_check int host_digest(struct host_snapshot *snapshot, const struct task_reader *reader,
                           struct error **err) nonnull(1, 2);
