#pragma once
/*
 * services: the programs that a task wants beside the agent or the grader, in their cell.
 *
 * They end with the cell. What they print is kept until they are all ready, for the error that says
 * why one is not. Depends on: base, cell, task (public half).
 */

#include "cell/cell.h"
#include "task/task_public.h"

struct services {
    const struct task_service *items;
    size_t count;
    const char *shell;        /* in the cell */
    const char *const *envp;  /* of those that they run beside */
    const volatile int *stop; /* given up when non-zero; NULL: never */
};

/*
 * Starts them, one after the other, each when those before it are ready. ERROR_TASK with the end of
 * its output when one ended, or took too long. When stopped it returns at once: who asks looks at
 * stop itself.
 */
must_check int services_start(struct cell *cell, const struct services *services,
                              struct error **err) nonnull(1, 2);
