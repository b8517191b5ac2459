#pragma once
/*
 * mocks: programs that stand in the way of others in the agent's cell.
 *
 * Depends on: base, task (public half).
 */

#include "task/task_public.h"

/* Puts the folder first on every PATH of env, "NAME=value". */
void mocks_put_first(struct str_list *env, const char *dir) nonnull(1, 2);
/* The task's own, in their order, before everything that is on PATH. */
void mocks_on_path(const struct task_public *task, struct str_list *env) nonnull(1, 2);
