#pragma once
/*
 * internal: what the adapters share. Each adapter is one file with one row in agent.c.
 */

#include "agent/agent.h"

int script_plan_turn(const struct task_public *task, int script_fd, struct agent_turn *ret,
                     struct error **err);
int exec_plan_turn(const struct task_public *task, int script_fd, struct agent_turn *ret,
                   struct error **err);
int nop_plan_turn(const struct task_public *task, int script_fd, struct agent_turn *ret,
                  struct error **err);
int none_plan_turn(const struct task_public *task, int script_fd, struct agent_turn *ret,
                   struct error **err);

/* The task's own env, then descriptor 3 offered for event lines (ours wins). */
void turn_offer_events(const struct task_public *task, struct agent_turn *turn) nonnull(1, 2);
