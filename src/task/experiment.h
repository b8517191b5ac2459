#pragma once
/*
 * experiment: a file that runs each task in several variants. Used inside task/ only.
 *
 * Layers, later wins: built-in, config.yaml, closedbook.yaml, the experiment's defaults, the task,
 * the variant, flags. Depends on: base, node, schema, merge.
 */

#include "task/internal.h"

#define EXPERIMENT_VARIANTS_MAX 1000

struct variant {
    const char *id;
    const struct node *fields; /* checked by variant_block */
    const struct node *layer;  /* of the shape of set_block */
    uint64_t repeats;          /* 0: not set */
};

struct experiment {
    struct arena arena;
    char *bytes;               /* of the file; marks point into it */
    const char *path;          /* absolute */
    const char *digest;        /* of the file: SHA-256 in hex */
    const struct node *fields; /* the defaults, checked; NULL: none */
    const struct node *layer;  /* theirs; NULL: none */
    uint64_t repeats;          /* 0: not set */
    struct variant *variants;
    size_t variant_count;
};

/*
 * Reads the experiment of a path, or of a name below folder/experiments. Mistakes become problems;
 * NULL when there is any.
 */
struct experiment *experiment_load(const struct loader *loader, const char *name,
                                   const char *folder, struct problems *problems)
    nonnull(1, 2, 3, 4);
void experiment_free(struct experiment *experiment);
