#pragma once
/*
 * plugin_manifest: what a plugin's manifests say that an agent gets of it.
 *
 * Nothing is taken that neither a manifest nor the documented default places of its kind name.
 * Paths are relative to the root that the task names, clean, never "." and never with "..".
 * Depends on: base, task.
 */

#include "base/error.h"
#include "base/str.h"
#include "task/task.h"

#define PLUGIN_MANIFEST_BYTES_MAX ((size_t)1 << 20)
#define PLUGIN_PATHS_MAX 1000 /* of one plugin */

struct plugin_manifest {
    char *name;            /* that a manifest gives; NULL: none */
    struct str_list paths; /* what is named: files, and directories with all below */
    struct str_list
        families;          /* of manifests that are there: "claude", "codex", "cursor", "gemini" */
    struct str_list roots; /* of the plugins found: "" is the root that the task names */
};

/*
 * Reads the manifests of the plugin at root (absolute). strict: a component that names the whole
 * plugin is an error. ERROR_TASK for what the author can fix.
 */
must_check int plugin_manifest_read(const struct task_reader *reader, const char *root, bool strict,
                                    struct plugin_manifest *ret, struct error **err)
    nonnull(1, 2, 4);
void plugin_manifest_done(struct plugin_manifest *manifest) nonnull(1);
/* Adds a path once. ERROR_LIMIT past PLUGIN_PATHS_MAX. */
must_check int plugin_manifest_add(struct plugin_manifest *manifest, const char *path,
                                   struct error **err) nonnull(1, 2);
