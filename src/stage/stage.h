#pragma once
/*
 * stage: from the public half of a task to a sealed View; from the private half to what graders
 * mount.
 *
 * A view is immutable once built. It never includes task_private.h; the private side is staged from
 * plain paths that run/ passes. Depends on: base, cell, collect, task_public.h.
 */

#include "collect/collect.h"
#include "stage/root.h"
#include "stage/store.h"
#include "task/task_public.h"

#define STAGE_COPY_BYTES_MAX ((uint64_t)4 << 20) /* up to here inputs are copied, not layered */
#define STAGE_COPY_ENTRIES_MAX 256
#define STAGE_LAYERS_MAX COLLECT_LAYERS_MAX /* more sources are merged into the last layer */

struct view;    /* opaque */
struct plugins; /* stage/plugins.h */

struct view_source {
    struct store *store;
    struct monitor *monitor;             /* as in store_add() */
    const struct task_reader *reader;    /* NULL when task and grader_root are */
    const char *unpack_program;          /* path of closedbook-unpack; NULL: no images */
    const struct task_public *task;      /* NULL: an empty workspace with the defaults */
    const struct task_root *grader_root; /* of the cells of its graders; NULL: the host's */
    const struct str_list *agent_expose; /* see root_source.expose; NULL: as the task says */
    /* What files hold that stand in for recorded and for sealed programs; NULL: never staged. */
    const char *recorded_line, *sealed_line;
};
/* Stages every source of the task (shared entries are made once) and seals the view. */
must_check int view_build(const struct view_source *source, struct view **ret, struct error **err)
    nonnull(1, 2);
/* A view of an empty workspace with the defaults, for `cell` without a task. */
must_check int view_build_empty(struct store *store, struct view **ret, struct error **err)
    nonnull(1, 2);
void view_free(struct view *view);
void view_freep(struct view **view);

/*
 * Lower part of a cell_spec: /usr and friends, /etc, texts, workspace layers, limits. Borrows from
 * the view. passwd and group name root and nobody: the cell's server adds its user. CELL_GRADER:
 * the worker program and as-candidate, too, when monitor is not NULL. CELL_WORKER cells have no
 * view (ERROR_BUG).
 */
must_check int view_fill_cell(const struct view *view, const struct monitor *monitor,
                              enum cell_role role, struct cell_spec *spec, struct error **err)
    nonnull(1, 4);
/*
 * Leaves out limits that the monitor cannot enforce, where the task wants to run all the same. Done
 * by view_fill_cell() with a monitor; to be called after one without.
 */
void view_fit_limits(const struct view *view, const struct monitor *monitor,
                     struct cell_limits *limits) nonnull(1, 2, 3);
/* The composed manifest of the staged workspace. The view owns it. */
const struct manifest *view_manifest(const struct view *view) nonnull(1);
/* Trees that stand beside the workspace, see stage/mocks.h; -1: none. The view owns them. */
int view_sealed_mocks(const struct view *view) nonnull(1);
int view_mock_tools(const struct view *view) nonnull(1);
/* The agent's plugins. The view owns them. */
const struct plugins *view_plugins(const struct view *view) nonnull(1);
struct sha256 view_root(const struct view *view) nonnull(1);
/* What the root of such a cell is made of. The view owns it. */
const struct root *view_system(const struct view *view, enum cell_role role) nonnull(1);
/* The roots of both kinds of cell, for trial.json; new reference. */
json_t *view_systems_json(const struct view *view) nonnull(1);
/* Digests of the layers, for trial.json and to restage a recorded trial; new reference. */
json_t *view_layers_json(const struct view *view) nonnull(1);
/* From view_layers_json(): the layers must be in the store. */
must_check int view_restore(struct store *store, const json_t *layers,
                            const struct task_limits *limits, struct view **ret, struct error **err)
    nonnull(1, 2, 3, 4);
bool view_is_layered(const struct view *view) nonnull(1);
/* What collect_run() needs of it. Borrows from the view. */
struct collect_source view_collect_source(const struct view *view) nonnull(1);

/*
 * The /etc of every cell as an entry of the public half: an allowlist of the host's, only what
 * everybody may read (docs/formats/store.md). Found by stat key when nothing of it changed.
 */
must_check int etc_tree(struct store *store, struct layer *ret, struct error **err) nonnull(1, 2);

/*
 * The environment of a cell of that role before the task's own: the default one with what an image
 * sets. *ret_cwd (may be NULL) is where its programs start: NULL, the workspace, or a folder in it
 * that the image names and the staged workspace has.
 */
void view_env(const struct view *view, enum cell_role role, struct str_list *ret,
              const char **ret_cwd) nonnull(1, 3);
/* env of a cell made from nothing: PATH, HOME, LANG, TERM, TMPDIR, then items "NAME=value". */
void cell_env_default(struct str_list *ret) nonnull(1);

/* The private side as graders mount it, staged once per run and suite. */
struct private_stage {
    struct layer suite;     /* the suite root, sealed copy, see private_stage_make() */
    struct layer reference; /* the reference tree; fd -1 when the task has none */
    bool has_suite, has_reference;
    char *task_dir_in_suite; /* relative path of the task's folder, "." is the root */
    /*
     * When the suite's copy is hollow where the task's own reference lies: that relative path, and
     * what a grader's cell must mount on it (a directory or a file). NULL and -1: nothing.
     */
    char *reference_in_suite;
    int reference_mount_fd;
};
void private_stage_done(struct private_stage *stage) nonnull(1);

/* Where the private side of a task lies on the host: absolute paths, as in task_private. */
struct private_source {
    const char *suite_root;
    const char *task_dir;       /* lies in suite_root */
    const char *reference_dir;  /* NULL: none */
    const char *reference_file; /* NULL: none; the legacy form, a directory of that one file */
    /*
     * Absolute paths of the references of all tasks of the suite, this one's own among them, the
     * same list for each: they are hollow in the suite's copy, so that one copy serves all. NULL:
     * none.
     */
    const struct str_list *references;
};
/*
 * Stages them in the private half. The suite root's copy has no .git and no run directories, is
 * hollow at references, its links are kept as text; it is made once per run and suite. A declared
 * reference that is absent, unreadable or empty is ERROR_TASK.
 */
must_check int private_stage_make(struct store *store, struct monitor *monitor,
                                  const struct task_reader *reader,
                                  const struct private_source *source, struct private_stage *ret,
                                  struct error **err) nonnull(1, 3, 4, 5);
/* Only the reference that the source names (the rest of it is not looked at), into the same place.
 */
must_check int private_reference_make(struct store *store, struct monitor *monitor,
                                      const struct task_reader *reader,
                                      const struct private_source *source, struct layer *ret,
                                      struct error **err) nonnull(1, 3, 4, 5);
