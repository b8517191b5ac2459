#include "grade/live.h"

#include "base/mem.h"
#include "grade/internal.h"

enum live_state { LIVE_UNDECIDED, LIVE_PASS, LIVE_FAIL, LIVE_LATE /* failed: decide_within */ };

struct live {
    const struct task_private *task;
    enum live_state *states; /* of each criterion */
    bool is_over;            /* decided, or not watched any more */
    enum live_reason reason;
    size_t decided_by, calls, seen;
    unsigned turn;
};

/* What weighs nothing decides nothing. */
static bool is_watched(const struct criterion *criterion)
{
    return criterion->armed && criterion->weight > 0;
}

struct live *live_new(const struct task_private *task, bool is_trusted)
{
    size_t watched = 0;

    for (size_t i = 0; i < task->criterion_count; i++)
        watched += is_watched(&task->criteria[i]);
    if (watched == 0 || task->stop_early_off || !is_trusted)
        return NULL;
    struct live *live = mem_new(1, sizeof(*live));

    live->task = task;
    live->states = mem_new(task->criterion_count, sizeof(*live->states));
    return live;
}

void live_free(struct live *live)
{
    if (live == NULL)
        return;
    free(live->states);
    free(live);
}

/* --- one criterion -----------------------------------------------------------------------------
 */

static int64_t most_of(const struct criterion *criterion)
{
    return json_get_int(criterion->params, "max_count", -1);
}

/* Something that it waits for can make it pass; else it passes by what never comes. */
static bool can_pass(const struct criterion *criterion)
{
    const char *expected = json_get_text(criterion->params, "expected_skill");

    if (criterion->kind == CRITERION_SKILL_TRIGGERED)
        return expected == NULL ||
               str_equal(expected, json_get_text(criterion->params, "skill_name"));
    return most_of(criterion) < 0;
}

/* False: it cannot be looked at. */
static bool look(const struct criterion *criterion, const struct event_log *events,
                 enum live_state *ret)
{
    size_t calls = 0;

    if (criterion->kind == CRITERION_SKILL_TRIGGERED) {
        if (skill_triggered_seen(criterion, events))
            *ret = can_pass(criterion) ? LIVE_PASS : LIVE_FAIL;
        return true;
    }
    if (!command_executed_calls(criterion, events, &calls))
        return false;
    if (most_of(criterion) >= 0)
        *ret = (int64_t)calls > most_of(criterion) ? LIVE_FAIL : LIVE_UNDECIDED;
    else if ((int64_t)calls >= json_get_int(criterion->params, "min_count", 1))
        *ret = LIVE_PASS;
    return true;
}

static bool look_at_all(struct live *live, const struct event_log *events)
{
    for (size_t i = 0; i < live->task->criterion_count; i++) {
        const struct criterion *criterion = &live->task->criteria[i];

        if (!is_watched(criterion) || live->states[i] != LIVE_UNDECIDED)
            continue;
        if (!look(criterion, events, &live->states[i]))
            return false;
        if (live->states[i] == LIVE_UNDECIDED && criterion->decide_within != 0 &&
            live->calls >= criterion->decide_within)
            live->states[i] = LIVE_LATE;
        if (live->states[i] != LIVE_UNDECIDED)
            live->decided_by = i;
    }
    return true;
}

/* --- all of them -------------------------------------------------------------------------------
 */

/* Of the armed ones, or of those that stop on a pass: the part of the weight in a state. */
struct sums {
    double weight, passed, lost;
    size_t waiting; /* that could still pass */
};

static struct sums sum(const struct live *live, bool stopping)
{
    struct sums sums = {0};

    for (size_t i = 0; i < live->task->criterion_count; i++) {
        const struct criterion *criterion = &live->task->criteria[i];
        enum live_state state = live->states[i];

        if (!is_watched(criterion))
            continue;
        sums.waiting += state == LIVE_UNDECIDED && can_pass(criterion);
        if (stopping && !criterion->stops_on_pass)
            continue;
        sums.weight += criterion->weight;
        sums.passed += state == LIVE_PASS ? criterion->weight : 0;
        sums.lost += state == LIVE_FAIL || state == LIVE_LATE ? criterion->weight : 0;
    }
    return sums;
}

/* The best that can come is too little; then: the worst that can come is enough. */
static enum live_reason decide(const struct live *live)
{
    double least = live->task->stop_early_gate;
    struct sums all = sum(live, false), stopping = sum(live, true);

    if (all.waiting > 0)
        return LIVE_GOES_ON;
    if ((all.weight - all.lost) / all.weight < least)
        return live->states[live->decided_by] == LIVE_LATE ? LIVE_BUDGET : LIVE_FAILED;
    if (stopping.weight > 0 && stopping.passed / stopping.weight >= least)
        return LIVE_PASSED;
    return LIVE_GOES_ON;
}

static enum live_reason look_at(struct live *live, const struct event_log *so_far)
{
    const struct event *event = &so_far->events[so_far->count - 1];

    live->turn = event->turn;
    live->calls += event->kind == EVENT_TOOL_CALL;
    if (event->kind != EVENT_TOOL_CALL && event->kind != EVENT_TOOL_RESULT)
        return LIVE_GOES_ON;
    if (live->calls > LIVE_CALLS_MAX || !look_at_all(live, so_far)) {
        live->is_over = true;
        return LIVE_GOES_ON;
    }
    return decide(live);
}

/* One event after the other: how they came in pieces must not matter. */
enum live_reason live_look(struct live *live, const struct event_log *events)
{
    while (!live->is_over && live->seen < events->count) {
        struct event_log so_far = *events;

        so_far.count = ++live->seen;
        live->reason = look_at(live, &so_far);
        live->is_over = live->is_over || live->reason != LIVE_GOES_ON;
    }
    return live->reason;
}

json_t *live_json(const struct live *live)
{
    static const char *const reasons[] = {[LIVE_GOES_ON] = "",
                                          [LIVE_PASSED] = "criteria_passed",
                                          [LIVE_FAILED] = "criteria_failed",
                                          [LIVE_BUDGET] = "decision_budget_exceeded"};
    size_t armed = 0;

    if (live == NULL || live->reason == LIVE_GOES_ON)
        return NULL;
    const struct criterion *criterion = &live->task->criteria[live->decided_by];
    json_t *object = json_object();

    for (size_t i = 0; i < live->task->criterion_count; i++)
        armed += is_watched(&live->task->criteria[i]);
    json_put_text(object, "reason", reasons[live->reason]);
    json_put_int(object, "criterion", (int64_t)live->decided_by + 1);
    json_put_text(object, "type", criterion->type_name);
    json_put(object, "description",
             json_text(criterion->description, strlen(criterion->description)));
    json_put_int(object, "armed", (int64_t)armed);
    json_put_int(object, "turn", live->turn);
    json_put_int(object, "calls", (int64_t)live->calls);
    json_put_real(object, "gate_threshold", live->task->stop_early_gate);
    return object;
}
