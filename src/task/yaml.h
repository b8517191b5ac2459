#pragma once
/*
 * yaml: one YAML document to a tree of nodes with marks (libyaml's events behind it).
 *
 * Refused with a complaint: more than TASK_BYTES_MAX bytes, invalid UTF-8, no document or several,
 * more than TASK_DEPTH_MAX levels, more than TASK_NODES_MAX nodes after alias expansion, tags, keys
 * that are no scalars, a key twice in a map, NUL characters. `<<` merge keys are resolved.
 * Depends on: base, arena, problems, libyaml.
 */

#include "task/node.h"

#define YAML_ANCHORS_MAX 1000

/*
 * Reads origin->text. Returns the root, which lives in the arena and points to *origin, or NULL.
 * Every complaint is an error in *problems; NULL exactly when there was at least one.
 */
struct node *yaml_read(struct arena *arena, const struct origin *origin, struct problems *problems)
    nonnull(1, 2, 3);

/* Version of the linked libyaml. */
const char *yaml_library_version(void);
