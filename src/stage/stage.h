#pragma once
/*
 * stage: from the public half of a task to a sealed View; from the private half to what graders mount.
 *
 * A view is immutable once built. It never includes task_private.h; the private side is staged from
 * plain paths that run/ passes. Depends on: base, cell, collect, task_public.h.
 */

#include "stage/store.h"
#include "task/task.h"
#include "task/task_public.h"

#define STAGE_COPY_BYTES_MAX ((uint64_t)4 << 20) /* up to here inputs are copied, not layered */
#define STAGE_COPY_ENTRIES_MAX 256

struct view; /* opaque */

/* Stages every source of the task (shared entries are made once) and seals the view. */
must_check int view_build(struct store *store, struct monitor *monitor,
                          const struct task_reader *reader, const struct task_public *task,
                          struct view **ret, struct error **err) nonnull(1, 2, 3, 4, 5);
/* A view of an empty workspace with the defaults, for `cell` without a task. */
must_check int view_build_empty(struct view **ret, struct error **err) nonnull(1);
void view_free(struct view *view);
void view_freep(struct view **view);

/* Lower part of a cell_spec: /usr and friends, /etc, texts, workspace layers, limits. Borrows from the view. */
must_check int view_fill_cell(const struct view *view, const struct monitor *monitor,
                              enum cell_role role, struct cell_spec *spec, struct error **err)
    nonnull(1, 2, 4);
/* The composed manifest of the staged workspace. The view owns it. */
const struct manifest *view_manifest(const struct view *view) nonnull(1);
struct sha256 view_root(const struct view *view) nonnull(1);
/* Digests of the layers, for trial.json and to restage a recorded trial; new reference. */
json_t *view_layers_json(const struct view *view) nonnull(1);
/* From view_layers_json(): the layers must be in the store. */
must_check int view_restore(struct store *store, const json_t *layers,
                            const struct task_limits *limits, struct view **ret,
                            struct error **err) nonnull(1, 2, 3, 4);
bool view_is_layered(const struct view *view) nonnull(1);

/* env of a cell made from nothing: PATH, HOME, LANG, TERM, TMPDIR, then items "NAME=value". */
void cell_env_default(struct str_list *ret) nonnull(1);

/* The private side as graders mount it, staged once per run and suite. */
struct private_stage {
    struct layer suite;         /* the suite root, sealed copy without .git and left-out paths */
    struct layer reference;     /* the reference tree; fd -1 when the task has none */
    bool has_suite, has_reference;
    char *task_dir_in_suite;    /* relative path of the task's folder */
};
void private_stage_done(struct private_stage *stage) nonnull(1);
