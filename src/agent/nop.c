#include "agent/internal.h"

/* Does nothing, as a program: what a trial costs without an agent. */
int nop_plan_turn(const struct task_public *task, const struct agent_place *place,
                  struct agent_turn *ret, struct error **err)
{
    struct agent_turn turn = {0};

    (void)task;
    (void)place;
    (void)err;
    str_list_add(&turn.argv, "/bin/true");
    *ret = turn;
    return 0;
}
