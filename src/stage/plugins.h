#pragma once
/*
 * plugins: the projections of an agent's plugins, as one sealed tree that its cell mounts.
 *
 * Of a plugin only that is staged which its manifests, the documented default places of its kind,
 * or the task's own `include` name, and the files that those name as ${CLAUDE_PLUGIN_ROOT}/x.
 * Links are kept as what they say and never followed. Immutable once made.
 * Depends on: base, cell, collect, task_public.h.
 */

#include "base/json.h"
#include "stage/store.h"
#include "task/task.h"
#include "task/task_public.h"

#define PLUGINS_PATH "/run/plugins" /* in the cell: a folder for each, by its name */

struct plugins {
    struct layer layer;             /* of all of them; tree_fd -1: there are none */
    struct str_list names, sources; /* of each: its folder there, and its root on the host */
    json_t *links;                  /* [{"path", "target", "why"}] that lead to nothing there */
};

struct plugins_source {
    struct store *store;
    struct monitor *monitor; /* as in store_add() */
    const struct task_reader *reader;
    const struct task_agent *agent;
};

/* ERROR_TASK for what the author can fix, a plugin of which nothing would be taken among it. */
must_check int plugins_make(const struct plugins_source *source, struct plugins *ret,
                            struct error **err) nonnull(1, 2);
void plugins_done(struct plugins *plugins) nonnull(1);
/* The path on the host of what stands at path in the layer; owned. */
char *plugins_source_of(const struct plugins *plugins, const char *path) nonnull(1, 2);
/* "AGENT_PLUGINS=/run/plugins/a:..."; owned; NULL: there are none. */
char *plugins_variable(const struct plugins *plugins) nonnull(1);
/* For trial.json; a new reference. */
json_t *plugins_to_json(const struct plugins *plugins) nonnull(1);
