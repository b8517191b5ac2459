#pragma once
/*
 * limits: what a task allows its cells, against what this machine can enforce, and what they used.
 *
 * A limit that the task sets and the machine cannot enforce is an error, or, with best_effort,
 * recorded as not enforced. Depends on: base, cell, task.
 */

#include "base/json.h"
#include "base/str.h"
#include "cell/cell.h"
#include "task/task_public.h"

/* facts NULL: a driver that limits nothing. ERROR_SYSTEM says what is missing and what to do. */
must_check int limits_check(const struct monitor_facts *facts, const char *task_id,
                            const struct task_limits *limits, struct error **err) nonnull(2, 3);
/* What trial.json says: each limit, and in "not_enforced" the names of those that are not. */
json_t *limits_json(const struct monitor_facts *facts, const struct task_limits *limits)
    nonnull(1, 2);
/* Variables by which runtimes keep within the memory; for the start of an environment. */
void limits_env(const struct task_limits *limits, struct str_list *env) nonnull(1, 2);
/* Processor time, peaks of memory and ends for want of it; null where the machine does not tell. */
json_t *limits_used_json(const struct cell_receipt *receipt) nonnull(1);
