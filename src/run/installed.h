#pragma once
/*
 * installed: the programs of agents that tasks name, on this machine.
 *
 * Depends on: agent, task.
 */

#include "agent/install.h"
#include "run/session.h"
#include "task/task_public.h"

/*
 * *ret stays empty when the task's agent is no program of the host. ERROR_USER says how it is
 * installed and where it was looked for.
 */
must_check int installed_find(const struct session *session, const struct task_public *task,
                              struct agent_install *ret, struct error **err) nonnull(1, 2, 3);
/* Before anything runs: those of all tasks that are not skipped. */
must_check int installed_check(const struct session *session, const struct task_set *tasks,
                               struct error **err) nonnull(1, 2);
