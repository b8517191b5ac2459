#pragma once
/*
 * image: references to images, and laying one out by closedbook-unpack in a cell of its own.
 *
 * Depends on: base, cell.
 */

#include "base/hash.h"
#include "base/str.h"
#include "cell/cell.h"

#define IMAGE_TIMEOUT_MS ((uint64_t)1800000) /* of looking at one, and of unpacking it */

enum image_kind {
    IMAGE_OCI,            /* a folder in the OCI image layout */
    IMAGE_DOCKER_ARCHIVE, /* a file as `docker save` writes it */
    IMAGE_FETCHED,        /* docker-daemon:, docker://: skopeo makes an OCI layout of it */
};

struct image_reference {
    enum image_kind kind;
    char *path; /* IMAGE_FETCHED: the whole reference */
    char *tag;  /* NULL: none */
};

/*
 * "oci:PATH[:tag]", "docker-archive:FILE", "docker-daemon:NAME", "docker://NAME". What follows the
 * last ':' of an OCI path is a tag when there is no '/' in it.
 */
must_check int image_reference_parse(const char *text, struct image_reference *ret,
                                     struct error **err) nonnull(1, 2);
void image_reference_done(struct image_reference *reference) nonnull(1);

/* What an image says about itself, as far as it is used; checked by image_facts_parse(). */
struct image_facts {
    struct sha256 chain_id;
    struct str_list env; /* NAME=value */
    struct str_list entrypoint, cmd;
    char *workdir, *user; /* "": not said */
    uint64_t layers, bytes, entries, dropped;
};
void image_facts_done(struct image_facts *facts) nonnull(1);
/* From the line that closedbook-unpack prints. */
must_check int image_facts_parse(const char *text, size_t size, struct image_facts *ret,
                                 struct error **err) nonnull(1, 3);
/* The same line, for keeping. */
void image_facts_write(struct buf *buf, const struct image_facts *facts) nonnull(1, 2);

struct image_source {
    struct monitor *monitor; /* a control connection */
    const char *program;     /* path of closedbook-unpack */
    enum image_kind kind;    /* IMAGE_OCI: fd is a folder; IMAGE_DOCKER_ARCHIVE: a file */
    int fd;
    const char *tag;
    uint64_t max_bytes, max_entries; /* 0: the program's own */
    uint64_t timeout_ms;             /* 0: IMAGE_TIMEOUT_MS */
};

/*
 * What the image says, without unpacking it (into_fd -1), or unpacked and checked as "rootfs" in
 * the folder into_fd. ERROR_TASK for what is wrong with the image.
 */
must_check int image_unpack(const struct image_source *source, int into_fd, struct image_facts *ret,
                            struct error **err) nonnull(1, 3);
