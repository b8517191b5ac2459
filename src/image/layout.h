#pragma once
/*
 * layout: the JSON of an image: index, manifest, configuration, as OCI and docker write them.
 *
 * Texts are hostile; nothing is opened here. Errors are ERROR_TASK and begin with the name that the
 * caller gives the text. Depends on: base.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#define LAYOUT_BYTES_MAX ((size_t)4 << 20) /* of one JSON text */
#define LAYOUT_LAYERS_MAX 256
#define LAYOUT_ENV_MAX 256
#define LAYOUT_WORD_BYTES_MAX 32768 /* of one variable or word */

enum descriptor_kind { DESCRIPTOR_INDEX, DESCRIPTOR_MANIFEST, DESCRIPTOR_CONFIG, DESCRIPTOR_LAYER };

/* A blob by its digest, of a media type that is known. */
struct descriptor {
    enum descriptor_kind kind;
    struct sha256 digest;
    uint64_t size_bytes;
};

/* Which image of an index. */
struct layout_want {
    const char *tag;          /* NULL: the only one */
    const char *architecture; /* "amd64" */
};

/* The manifest (or the next index) that an index leads to. */
must_check int layout_choose(const char *name, const struct buf *text,
                             const struct layout_want *want, struct descriptor *ret,
                             struct error **err) nonnull(1, 2, 3, 4);

struct layout_manifest {
    struct descriptor config;
    struct descriptor layers[LAYOUT_LAYERS_MAX];
    size_t layer_count;
};
must_check int layout_manifest_parse(const char *name, const struct buf *text,
                                     struct layout_manifest *ret, struct error **err)
    nonnull(1, 2, 3);

/* manifest.json of a docker archive: paths of members. The tag that is wanted is the image's name
 * there, with or without ":latest"; NULL: the only one. */
struct layout_archive {
    char *config;
    struct str_list layers;
};
must_check int layout_archive_parse(const char *name, const struct buf *text,
                                    const struct layout_want *want, struct layout_archive *ret,
                                    struct error **err) nonnull(1, 2, 3, 4);
void layout_archive_done(struct layout_archive *archive) nonnull(1);

struct layout_config {
    struct sha256 diff_ids[LAYOUT_LAYERS_MAX]; /* of the layers, uncompressed */
    size_t layer_count;
    json_t *settings; /* {env, workdir, user, entrypoint, cmd}: checked, see layout.c */
};
/* ERROR_TASK when it is for another architecture or system than wanted. */
must_check int layout_config_parse(const char *name, const struct buf *text,
                                   const struct layout_want *want, struct layout_config *ret,
                                   struct error **err) nonnull(1, 2, 3, 4);
void layout_config_done(struct layout_config *config) nonnull(1);

/* The identity of the layers on top of each other, as OCI defines it. */
struct sha256 layout_chain_id(const struct sha256 *diff_ids, size_t count) nonnull(1);
/* This machine's architecture as images call it. */
const char *layout_architecture(void);
