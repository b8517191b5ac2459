#pragma once
/*
 * live: armed criteria while the agent works, and when nothing that it still does can matter.
 *
 * Only what is appended is looked at, so that a verdict once reached stays: skill_triggered and
 * command_executed. Calls that only a CLI's output shows are taken here, too: they can end a run
 * early, and the verdict that counts is made of the whole record afterwards, by the armed ones.
 * Whatever goes wrong here ends the watching, not the run. Depends on: base, task, agent/events.
 * Source of the rules: task-format ("Success criteria").
 */

#include "agent/events.h"
#include "task/task_private.h"

#define LIVE_CALLS_MAX 2000 /* then nobody watches any more */

enum live_reason { LIVE_GOES_ON, LIVE_PASSED, LIVE_FAILED, LIVE_BUDGET };

struct live; /* of one trial */
/*
 * NULL when nothing is armed, run_limits.stop_early is false, or the agent's calls do not count:
 * then none of them may end its run either. is_trusted: task_agent_is_trusted(). Borrows the task.
 */
struct live *live_new(const struct task_private *task, bool is_trusted) nonnull(1);
void live_free(struct live *live);
/* After events were added. What is decided stays decided. */
enum live_reason live_look(struct live *live, const struct event_log *events) nonnull(1, 2);
/* {reason, criterion, type, description, armed, turn, calls, gate_threshold} of the decision, new
 * reference; NULL: none was made. */
json_t *live_json(const struct live *live);
