#pragma once
/*
 * agent: what an adapter contributes: argv, stdin, env and texts of the agent's command.
 *
 * One file and one table row per adapter. Never includes task_private.h, grade or evidence.
 */

#include "base/error.h"
#include "base/str.h"
#include "cell/cell.h"
#include "task/task_public.h"

/* The command for one turn; owned. */
struct agent_turn {
    struct str_list argv; /* empty: no program is run (none) */
    struct str_list env;  /* the whole environment */
    char *stdin_text;     /* NULL: /dev/null */
    bool events_on_fd3;
    struct cell_text script; /* target NULL: none; bytes owned by the turn */
    char *script_bytes;
};

struct agent_adapter {
    enum task_agent_type type;
    const char *name; /* "script" */
    /* script_fd: the program file of AGENT_SCRIPT, else -1 */
    int (*plan_turn)(const struct task_public *task, int script_fd, struct agent_turn *ret,
                     struct error **err);
};

/* NULL for AGENT_UNSET and AGENT_ORACLE, which is a step of run/. */
const struct agent_adapter *agent_adapter_of(enum task_agent_type type);
void agent_turn_done(struct agent_turn *turn) nonnull(1);
