#pragma once
/*
 * agent: what an adapter contributes: argv, stdin, env and texts of the agent's command.
 *
 * One file and one table row per adapter. Never includes task_private.h, grade or evidence.
 * Depends on: base, cell, task_public.h. Limits: below.
 */

#include "base/error.h"
#include "base/str.h"
#include "cell/cell.h"
#include "task/task_public.h"

#define AGENT_SCRIPT_PATH "/run/agent/script"
#define AGENT_SCRIPT_BYTES_MAX ((size_t)16 << 20)
#define AGENT_ARG_BYTES_MAX                                                                        \
    ((size_t)131071) /* what Linux takes as one argument, without its NUL                          \
                      */
#define AGENT_EVENTS_ENV "CLOSEDBOOK_EVENTS_FD"

/* The command for one turn; owned. */
struct agent_turn {
    struct str_list argv; /* empty: no program is run (none) */
    struct str_list
        env;            /* "NAME=value", in addition to cell_env_default(): see agent_env_merge() */
    char *stdin_text;   /* NULL: /dev/null */
    bool events_on_fd3; /* descriptor 3 is the write end of a pipe for event lines */
    struct cell_text script; /* target NULL: none; bytes owned by the turn */
    char *script_bytes;
};

struct agent_adapter {
    enum task_agent_type type;
    const char *name; /* "script" */
    /*
     * script_fd: the program file of AGENT_SCRIPT (read from its start, its offset is left alone),
     * else -1. ERROR_TASK for what the author can fix; *ret is written only on success.
     */
    int (*plan_turn)(const struct task_public *task, int script_fd, struct agent_turn *ret,
                     struct error **err);
};

/* NULL for AGENT_UNSET and AGENT_ORACLE, which is a step of run/. */
const struct agent_adapter *agent_adapter_of(enum task_agent_type type);
void agent_turn_done(struct agent_turn *turn) nonnull(1);

/*
 * The whole environment: base, then additions; of one name only the last value stays, at the place
 * of the first. Items without '=' are left out. *ret is new.
 */
void agent_env_merge(const struct str_list *base, const struct str_list *additions,
                     struct str_list *ret) nonnull(1, 2, 3);
