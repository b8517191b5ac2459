#pragma once
/*
 * internal: what the files of stage share: the inside of the store.
 */

#include "stage/store.h"

/*
 * A name in a directory that belongs to whoever holds the lock of "<name>.lock" beside it. The
 * holder's death frees it; a forked child that holds the descriptor keeps it.
 */
struct lease {
    int parent_fd; /* borrowed */
    int lock_fd;
    char *name;
};
#define LEASE_NONE ((struct lease){.parent_fd = -1, .lock_fd = -1})

/* Takes the lock and makes the directory 0700, anew when a dead holder left one. ERROR_USER: it is
 * held. */
must_check int lease_take(int parent_fd, const char *name, struct lease *ret, struct error **err)
    nonnull(2, 3);
/* Removes the directory (absent is fine) and the lock, unless another process shares it. */
must_check int lease_drop(struct lease *lease, struct error **err) nonnull(1);
/* Only closes the descriptor: the name stays until the last holder is gone. */
void lease_forget(struct lease *lease) nonnull(1);
/* Removes every name below parent_fd that nobody holds. */
must_check int lease_sweep(int parent_fd, size_t *ret_removed, struct error **err) nonnull(2);

/* What this process staged already: the source's identity and how it is staged, to the entry. */
struct memo {
    struct sha256 key, root;
};

struct store {
    int root_fd, public_fd, keys_fd, tmp_fd, private_fd;
    int run_fd; /* the private part, -1: none */
    struct lease run;
    pid_t owner;        /* the process that opened it; its forked children only use it */
    struct memo *memos; /* sorted by key */
    size_t memo_count;
    uint64_t copies;
};

/* The directory of a half's entries. */
int store_half_fd(const struct store *store, enum store_half half) nonnull(1);
/* Which entry, and how much of it. */
struct lookup {
    enum store_half half;
    const struct sha256 *root;
    bool tree_only; /* as in struct store_source */
};
/* Opens an entry; 0, or 1 when there is none. */
must_check int store_find(struct store *store, const struct lookup *lookup, struct layer *ret,
                          struct error **err) nonnull(1, 2, 3);

/* What was staged under a key by any process: its root. 0: found; 1: not, or it makes no sense. */
must_check int store_key_read(const struct store *store, const char *name, struct sha256 *ret)
    nonnull(1, 2, 3);
must_check int store_key_save(const struct store *store, const char *name,
                              const struct sha256 *root, struct error **err) nonnull(1, 2, 3);

/* What this process staged under a key; NULL: nothing. */
const struct memo *store_memo_find(const struct store *store, const struct sha256 *key)
    nonnull(1, 2);
/* Nothing happens when the key is known. */
void store_memo_add(struct store *store, const struct sha256 *key, const struct sha256 *root)
    nonnull(1, 2, 3);

/* An entry on its way: a directory that holds `tree` and `manifest.jsonl` when it is complete. */
struct draft {
    struct store *store;
    enum store_half half;
    struct lease lease;
    int fd;
};
must_check int draft_start(struct store *store, enum store_half half, struct draft *ret,
                           struct error **err) nonnull(1, 3);
/* Makes it the entry of that digest, or drops it when there is one already; *ret is the entry. */
must_check int draft_publish(struct draft *draft, const struct sha256 *root, struct layer *ret,
                             struct error **err) nonnull(1, 2, 3);
/* The root that a worker says it wrote into a draft. */
#define DRAFT_ANSWER_BYTES_MAX ((size_t)64 << 10)
must_check int draft_answer(const struct buf *answer, struct sha256 *ret, struct error **err)
    nonnull(1, 2);
/* Removes what was not published. */
void draft_done(struct draft *draft) nonnull(1);
/* Writes manifest.jsonl of a draft made by us and syncs it (public half). */
must_check int draft_seal(struct draft *draft, const struct manifest *manifest, struct error **err)
    nonnull(1, 2);

/* An ended cell whose workspace becomes an entry of the public half. */
struct collected {
    struct store *store;
    struct monitor *monitor;
    const struct cell *cell;
    const char *const *args; /* of the worker: "add", "--collected", ..., NULL */
};
must_check int store_add_collected(const struct collected *from, struct layer *ret,
                                   struct error **err) nonnull(1, 2);
