/* commands_efficiency: how few tool calls the agent took, against how many a good run takes. */
#include "grade/internal.h"

void commands_efficiency_check(const struct criterion *criterion,
                               const struct complaints *complaints)
{
    if (json_get_int(criterion->params, "expected_commands", 0) < 1)
        complain(complaints, "/expected_commands", "expected a number from 1");
}

int commands_efficiency_evaluate(const struct criterion *criterion, const struct grade_input *input,
                                 struct verdict *ret, struct error **err)
{
    int64_t expected = json_get_int(criterion->params, "expected_commands", 1);
    scoped(buf_done) struct buf details = DETAILS_INIT;
    int64_t actual = 0, attempts = 0;

    (void)err; /* nothing of the system can fail here */
    for (size_t i = 0; i < input->events->count; i++) {
        const struct event *event = &input->events->events[i];

        if (event->kind != EVENT_TOOL_CALL)
            continue;
        /* A call that only the agent's output shows is an attempt: see command_executed. */
        if (event->source == EVENT_STREAM)
            attempts++;
        else
            actual++;
    }
    buf_format(&details, "%lld call%s, expected %lld\n", (long long)actual, actual == 1 ? "" : "s",
               (long long)expected);
    if (attempts > 0)
        buf_format(&details, "not counted: %lld that only the agent's output shows\n",
                   (long long)attempts);
    if (!input->events_trusted) {
        buf_text_append(&details, "informational: the agent reported these calls itself\n");
        ret->informational = true;
    }
    /* Fewer calls score more, so what was not recorded may be what was to be counted. */
    if (input->events->cut || attempts > 0)
        verdict_agent_error(ret, &details);
    else
        verdict_score(ret, actual <= expected ? 1 : (double)expected / (double)actual, &details);
    return 0;
}
