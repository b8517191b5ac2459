#pragma once
/*
 * root: what a cell's root is made of: the host's system, a directory or an image, and paths of the
 * host.
 *
 * Immutable once built; one serves many cells. Depends on: base, cell, task_public.h.
 */

#include <sys/stat.h>

#include "base/json.h"
#include "cell/cell.h"
#include "stage/store.h"
#include "task/task.h"
#include "task/task_public.h"

struct root; /* opaque */

/* What building one needs beside what the task says. */
struct root_source {
    struct store *store;
    struct monitor *monitor;          /* NULL: no image can be unpacked */
    const struct task_reader *reader; /* opens exposed paths and directories */
    const char *unpack_program;       /* closedbook-unpack; NULL: no image can be unpacked */
    /* Paths to expose in place of the task's, what holds another before it; NULL: the task's. */
    const struct str_list *expose;
};

#define ROOT_EXPOSE_MAX (TASK_EXPOSE_MAX + 2) /* with what an agent program needs */

/* task NULL: the host's system alone. ERROR_TASK for what the task names and cannot be had. */
must_check int root_build(const struct root_source *source, const struct task_root *task,
                          struct root **ret, struct error **err) nonnull(1, 3);
void root_free(struct root *root);
void root_freep(struct root **root);

/* Trees and /etc of a spec that has none yet, by its identity. Borrows from the root. */
void root_fill_cell(const struct root *root, struct cell_spec *spec) nonnull(1, 2);
/* The shell of commands in such a cell: "/bin/bash" or "/bin/sh"; NULL: it has none. */
const char *root_shell(const struct root *root) nonnull(1);
/* Where the root has a program of that name on its PATH; owned; NULL: nowhere. */
char *root_program(const struct root *root, const char *name) nonnull(1, 2);
/* What stands at an absolute path in it, links followed as in the cell. */
must_check int root_stat(const struct root *root, const char *path, struct stat *ret,
                         struct error **err) nonnull(1, 2, 3);
/* Adds what its image sets, but for what the cell itself says of its user: HOME, TMPDIR and so on.
 */
void root_add_env(const struct root *root, struct str_list *env) nonnull(1, 2);
/* Where the image wants its programs to start; "" when it does not say. */
const char *root_workdir(const struct root *root) nonnull(1);
/* For trial.json: {"kind", "source", "expose", "image"}; a new reference. */
json_t *root_to_json(const struct root *root) nonnull(1);
/*
 * Exposed paths and a directory that is the root, with what they really are on the host: for
 * whoever must not find something in them. The descriptors are the root's.
 */
struct root_tree {
    const char *path;
    int fd;
};
size_t root_trees(const struct root *root, struct root_tree ret[static ROOT_EXPOSE_MAX + 1])
    nonnull(1);
