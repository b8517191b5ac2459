#pragma once
/*
 * merge: layers of values into one, by the rules of the tables, and where each value came from.
 *
 * Blocks and free maps are merged key by key; everything else is replaced by the later layer; lists
 * with FIELD_APPEND are joined, the task's own items first. Depends on: base, node, schema.
 */

#include "task/schema.h"

/* Values of upper over those of lower. Either may be NULL; a new map, sharing their nodes. */
struct node *merge_layers(struct arena *arena, const struct block *block, const struct node *lower,
                          const struct node *upper) nonnull(1, 2);
/*
 * {"sandbox.driver": {"value":, "source":, "file":, "line":}}; new reference. Files in the folder
 * root are named relative to it, others by their last part, so that no path of the host is told;
 * root NULL: as they are.
 */
json_t *merge_lineage(const struct node *map, const char *root) nonnull(1);
