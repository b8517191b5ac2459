#pragma once
/*
 * tree_internal: what tree.c and tree_add.c share.
 */

#include "collect/tree.h"
#include "collect/walk.h"

bool tree_leaves_out(const struct tree_rules *rules, const struct walk_entry *entry) nonnull(1, 2);
/* A walk's refuse for sealing: everything that cannot be looked at is an error. */
int tree_refuse(void *context, const char *path, int errno_value, const char *reason,
                struct error **err);
