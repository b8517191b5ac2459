#pragma once
/*
 * agent: what an adapter contributes: argv, stdin, env and texts of the agent's command.
 *
 * One file and one table row per adapter. Never includes task_private.h, grade or evidence.
 * Depends on: base, cell, task_public.h. Limits: below.
 */

#include "agent/install.h"
#include "agent/stream.h"
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
#define AGENT_FILES_MAX 2
#define AGENT_HOME_PATH "/run/agent/home" /* the files, before they are in HOME */
#define AGENT_START_PATH "/run/agent/start"

/* A file that the agent's program finds in its HOME, where it may change it; owned by its turn. */
struct agent_file {
    char *path; /* relative to HOME, which has it before the program starts */
    char *bytes;
};

/* The command for one turn; owned. */
struct agent_turn {
    struct str_list argv; /* empty: no program is run (none) */
    struct str_list
        env;            /* "NAME=value", in addition to cell_env_default(): see agent_env_merge() */
    char *stdin_text;   /* NULL: /dev/null */
    bool events_on_fd3; /* descriptor 3 is the write end of a pipe for event lines */
    struct cell_text script; /* target NULL: none; bytes owned by the turn */
    char *script_bytes;
    struct agent_file files[AGENT_FILES_MAX];
    size_t file_count; /* not 0: AGENT_START_PATH is the first word, and copies them */
};

/* What a turn is planned for; all borrowed. */
struct agent_place {
    int script_fd; /* the program file of AGENT_SCRIPT (read from its start, its offset is left
                      alone), else -1 */
    const struct agent_install *install; /* of a CLI; NULL for the other types */
    const char
        *base_url;      /* of the broker as the cell sees it: "http://127.0.0.1:4096"; CLIs only */
    const char *key;    /* that stands in for the real one; CLIs only */
    const char *prompt; /* NULL: the task's */
    const struct str_list *plugins; /* their folders in the cell; NULL: none */
    const char *session;            /* to go on with, as stream_session() says; NULL: a new one */
};

/* A program that is installed on the host, and how what it does is read. */
struct agent_program {
    const char *package;     /* of npm, where its version stands */
    const char *bin;         /* what it is called on PATH */
    enum stream_kind stream; /* of what it prints */
    /* The wire format in which it asks for the task's model, as routes name it: "anthropic". */
    const char *(*api)(const struct task_public *task);
};

struct agent_adapter {
    enum task_agent_type type;
    const char *name;                    /* "script" */
    const struct agent_program *program; /* NULL: nothing is installed for it */
    /* ERROR_TASK for what the author can fix; *ret is written only on success. */
    int (*plan_turn)(const struct task_public *task, const struct agent_place *place,
                     struct agent_turn *ret, struct error **err);
};

/* NULL for AGENT_UNSET and AGENT_ORACLE, which is a step of run/. */
const struct agent_adapter *agent_adapter_of(enum task_agent_type type);
/* NULL when there is none of that name. */
const struct agent_adapter *agent_adapter_named(const char *name) nonnull(1);
/* All rows, for a listing; NULL past the last. */
const struct agent_adapter *agent_adapter_at(size_t index);
void agent_turn_done(struct agent_turn *turn) nonnull(1);
/* The program that copies the files into HOME and becomes the rest of its words. */
extern const char agent_start_script[];

/*
 * The whole environment: base, then additions; of one name only the last value stays, at the place
 * of the first. Items without '=' are left out. *ret is new.
 */
void agent_env_merge(const struct str_list *base, const struct str_list *additions,
                     struct str_list *ret) nonnull(1, 2, 3);
