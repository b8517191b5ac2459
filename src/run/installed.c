#include "run/installed.h"

#include "agent/agent.h"
#include "base/mem.h"

int installed_find(const struct session *session, const struct task_public *task,
                   struct agent_install *ret, struct error **err)
{
    const struct agent_adapter *adapter = agent_adapter_of(task->agent.type);
    const char *search = getenv("PATH");
    scoped(error_freep) struct error *problem = NULL;

    if (adapter == NULL || adapter->program == NULL)
        return 0;
    if (search == NULL)
        search = "";
    int r = agent_install_find(adapter->program, search, &session->reader, ret, &problem);

    if (r == 0)
        return 0;
    return error_set(err, error_code_of(problem),
                     "the agent type '%s' needs its program: %s; it was looked for along PATH=%s; "
                     "'npm install -g %s' installs it, 'closedbook agents' lists what is found",
                     adapter->name, error_message(problem), search, adapter->program->package);
}

int installed_check(const struct session *session, const struct task_set *tasks, struct error **err)
{
    uint64_t known = 0; /* a bit for each type that was found */

    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_public *half = NULL;
        const struct task_private *private_half = NULL;
        scoped(agent_install_done) struct agent_install install = {0};

        task_split(tasks->tasks[i], &half, &private_half);
        uint64_t bit = UINT64_C(1) << (unsigned)half->agent.type;

        if ((known & bit) != 0 || task_skip_reason(tasks->tasks[i]) != NULL)
            continue;
        int r = installed_find(session, half, &install, err);

        if (r < 0)
            return r;
        known |= bit;
    }
    return 0;
}
