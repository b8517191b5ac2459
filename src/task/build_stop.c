/* Which criteria end a run early, and when that may not be. */
#include "task/internal.h"

/* What is watched is appended only; a file or a judge would look at work that is half done. */
static bool is_watchable(enum criterion_kind kind)
{
    return kind == CRITERION_SKILL_TRIGGERED || kind == CRITERION_COMMAND_EXECUTED;
}

static void check_kind(const struct build *build, const struct criterion *criterion,
                       const struct node *stop, const char *path)
{
    if (criterion->kind == CRITERION_CLI_CALLED)
        build_later(build, stop->mark, path,
                    "stop_early of 'cli_called' is not in this version: its log is read when the "
                    "agent has ended");
    else if (!is_watchable(criterion->kind))
        build_error(build, stop->mark, path,
                    "'%s' cannot end a run early: it would look at work that is half done; "
                    "skill_triggered, command_executed and command_not_executed can",
                    criterion->type_name);
}

void build_stop_early(const struct build *build, struct criterion *criterion,
                      const struct node *item, size_t index)
{
    const struct node *stop = node_get(item, "stop_early");
    const char *on_pass = node_get_text(stop, "on_pass");
    scoped(mem_freep) char *path = str_format("success_criteria[%zu].stop_early", index);

    if (stop == NULL)
        return;
    check_kind(build, criterion, stop, path);
    criterion->armed = true;
    criterion->stops_on_pass = on_pass != NULL && strcmp(on_pass, "stop") == 0;
    criterion->decide_within = (uint64_t)node_get_real(stop, "decide_within", 0);
    if (build->task->private_half->simulation != NULL)
        build_error(build, stop->mark, path, "a dialog has ends of its own: simulation.max_turns");
}

void build_stop_limits(const struct build *build)
{
    struct task_private *half = build->task->private_half;
    const struct node *limits = node_get(build->root, "run_limits");
    const struct node *on = node_get(limits, "stop_early");
    const struct node *gate = node_get(limits, "stop_early_gate_threshold");
    bool is_armed = false;

    for (size_t i = 0; i < half->criterion_count; i++)
        is_armed = is_armed || half->criteria[i].armed;
    half->stop_early_off = on != NULL && !on->truth;
    half->stop_early_gate = node_get_real(limits, "stop_early_gate_threshold", 1);
    if (on != NULL && on->truth)
        build_error(build, on->mark, "run_limits.stop_early",
                    "false, or nothing, expected: criteria are armed one by one, by stop_early of "
                    "their own");
    if (is_armed && gate != NULL && half->stop_early_gate <= 0)
        build_error(build, gate->mark, "run_limits.stop_early_gate_threshold",
                    "above 0 expected, found %s: everything would pass", gate->text);
}
