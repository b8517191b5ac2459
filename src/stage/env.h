#pragma once
/*
 * env: the python and node environments that a root's cells have first on PATH.
 *
 * One sealed tree for each distinct list of packages and program, made once, kept in the store's
 * public half, mounted read-only. Without packages it is a few links and texts, and nothing is
 * started to make it; packages are installed by the root's own pip or npm, in a cell of that root,
 * without a network. Depends on: base, cell, collect, task_public.h.
 */

#include "stage/root.h"
#include "stage/store.h"
#include "task/task_public.h"

enum env_kind { ENV_PYTHON, ENV_NODE, ENV_KINDS };

/* Where it stands in a cell; as-candidate knows these paths, too. */
const char *env_path(enum env_kind kind);

struct env_source {
    const struct root_source *from;
    const struct root *root;
    const struct task_env *wanted;
    enum env_kind kind;
};

/*
 * *ret_has is false when there is none, or none is needed. ERROR_TASK when the root lacks a program
 * that the task asks for, or a package cannot be installed.
 */
must_check int env_make(const struct env_source *source, struct layer *ret, bool *ret_has,
                        struct error **err) nonnull(1, 2, 3);
