#pragma once
/*
 * repo: the files of one commit of a git repository, and a repository made anew for them, as a
 * layer.
 *
 * git runs in a cell of its own (role CELL_AGENT, the host's /usr, no network) that sees nothing of
 * the repository but its objects, and is found again by the commit, whose hash names its content.
 * Depends on: base, cell, store, task_public.h.
 */

#include "stage/store.h"
#include "task/task.h"
#include "task/task_public.h"

#define REPO_BYTES_MAX ((uint64_t)4 << 30) /* files and objects together */
#define REPO_ENTRIES_MAX ((uint64_t)1000000)
#define REPO_TIMEOUT_MS ((uint64_t)600000)

struct repo_source {
    struct store *store;
    struct monitor *monitor;          /* NULL: only what is in the store already */
    const struct task_reader *reader; /* opens the repository */
    const struct task_source *source; /* of kind SOURCE_REPO */
};

/*
 * ERROR_TASK for what is wrong with the repository: none is there, it lacks the commit or objects
 * of it, or one of the commits that the agent gets has a task file (*.yaml or *.yml with a
 * task_id). ERROR_SYSTEM when this machine has no cell to run git in, or no git.
 */
must_check int repo_add(const struct repo_source *source, struct layer *ret, struct error **err)
    nonnull(1, 2);
