#pragma once
/*
 * images: unpacked images, by the identity of their layers, shared by all who use them.
 *
 *   STORE/images/<chain id>/{rootfs, facts}  whole or absent; published by rename
 *   STORE/images/<chain id>.lock             held shared by who uses it, exclusively by who unpacks
 *                                            or removes it; its time is that of the last use
 *   STORE/images/keys/<digest>               where a source led: the facts of its image
 *
 * Depends on: base, cell, image, store.
 */

#include "image/image.h"
#include "stage/store.h"
#include "task/task.h"

/* One that is in use: nobody removes it as long as lock_fd (or a fork's copy) is open. */
struct image {
    struct image_facts facts;
    int rootfs_fd, lock_fd;
};
void image_done(struct image *image) nonnull(1);

struct images_source {
    struct store *store;
    struct monitor *monitor;          /* the control connection */
    const struct task_reader *reader; /* opens layouts and archives */
    const char *program;              /* path of closedbook-unpack; NULL: nothing is unpacked */
};

/*
 * The image that a reference names, unpacked if it was not. A source that did not change (a
 * layout's index by its bytes, an archive by size and times, a fetched name as long as it is kept)
 * is not read again.
 */
must_check int images_get(const struct images_source *source, const char *reference,
                          struct image *ret, struct error **err) nonnull(1, 2, 3);

/* What the store keeps. */
struct image_entry {
    char *chain_id; /* 64 hex digits */
    uint64_t bytes, entries;
    uint64_t used_unix_ms; /* the last use */
    bool in_use;
};
struct image_list {
    struct image_entry *items;
    size_t count;
};
must_check int images_list(struct store *store, struct image_list *ret, struct error **err)
    nonnull(1, 2);
void image_list_done(struct image_list *list) nonnull(1);
/* Removes one that nobody uses; *ret_removed says whether. */
must_check int images_remove(struct store *store, const char *chain_id, bool *ret_removed,
                             struct error **err) nonnull(1, 2, 3);
