/* The one function that sees both halves. What each holds is decided where they are made. */
#include "task/internal.h"

void task_split(const struct task *task, const struct task_public **ret_public,
                const struct task_private **ret_private)
{
    *ret_public = task->public_half;
    *ret_private = task->private_half;
}
