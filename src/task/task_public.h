#pragma once
/*
 * task_public: the half of a task that may reach the agent's cell.
 *
 * Made by task_split() only; immutable; owned by the struct task it was split from. Nothing here
 * points to the private half. Paths are absolute on the host unless said otherwise.
 */

#include "base/base.h"
#include "base/str.h"

enum task_agent_type {
    AGENT_UNSET,
    AGENT_SCRIPT, /* a program file, run in the cell with the prompt on stdin */
    AGENT_EXEC,   /* a command line with {prompt} */
    AGENT_NOP,
    AGENT_ORACLE,
    AGENT_NONE,
    /* Programs that are installed on the host; they reach their model through the broker. */
    AGENT_CLAUDE_CODE,
    AGENT_CODEX,
    AGENT_GEMINI,
    AGENT_OPENCODE,
    AGENT_PI,
};

#define TASK_PLUGINS_MAX 8

/* A plugin of the agent: what it gets of it is a projection (stage/plugins.h). */
struct task_plugin {
    char *path;              /* absolute */
    struct str_list include; /* patterns, "!" takes back; empty: what its manifests name */
    char *file;              /* position for errors */
    unsigned line;
};

struct task_agent {
    enum task_agent_type type;
    char *model;             /* NULL: none */
    char *script;            /* AGENT_SCRIPT: absolute path */
    struct str_list command; /* AGENT_EXEC: argv, "{prompt}" anywhere in a word */
    struct str_list env;     /* "NAME=value", already resolved against the allowlist */
    bool trust_self_reported;
    /* Of programs on the host; those that have no use for one remark on it. */
    char *permission_mode; /* "plan"; NULL: nothing is asked */
    struct str_list allowed_tools, disallowed_tools, setting_sources, extra_args;
    char *system_prompt; /* NULL: none */
    bool system_prompt_replaces;
    char *claude_settings; /* JSON; NULL: none */
    struct task_plugin *plugins;
    size_t plugin_count;
    struct str_list plugin_ignore; /* patterns of what no plugin brings */
};

/* Whether it is a program that is installed on the host and asks a model. */
bool task_agent_is_cli(enum task_agent_type type);
/* Whether its calls count: of the wire, or reported by itself where the task trusts that. */
bool task_agent_is_trusted(const struct task_agent *agent) nonnull(1);

enum task_source_kind {
    SOURCE_TEMPLATE_DIR,
    SOURCE_STARTER_FILES,
    SOURCE_INPUT_DIR,
    SOURCE_REPO, /* the first, if there is one */
};

/* What a repository in the workspace knows beside its files. */
enum task_history {
    HISTORY_BASE,      /* one commit of ours that holds the tree of the pinned one */
    HISTORY_ANCESTORS, /* the pinned commit and all that it rests on */
    HISTORY_NONE,      /* nothing: there is no .git */
};

struct task_starter_file {
    char *path; /* relative, inside */
    char *content;
};

/* One source of the workspace, applied in order, last wins. */
struct task_source {
    enum task_source_kind kind;
    char *path;        /* template_dir, input_dir, repo: absolute directory */
    char *mount_point; /* relative to the workspace, "." is its root */
    struct task_starter_file *files;
    size_t file_count;
    char *commit; /* repo: 40 or 64 hexadecimal digits */
    enum task_history history;
};

struct task_limits {
    uint64_t task_timeout_ms; /* 0: none */
    uint64_t turn_timeout_ms; /* 0: none */
    uint64_t max_turns;       /* 0: none */
    uint64_t expected_turns;  /* soft: more are remarked on; 0: none */
    uint64_t max_input_tokens, max_output_tokens, max_total_tokens, max_microusd; /* 0: none */
    bool count_cached_input, count_cache_creation;                                /* as input */
    uint64_t command_timeout_ms; /* sandbox.limits.timeout, default 300 s */
    uint64_t max_pids, max_disk_mb, max_inodes, max_output_mb;
    uint64_t max_memory_mb;  /* 0: none */
    uint64_t max_cpu_millis; /* thousandths of a processor; 0: all */
    bool best_effort;        /* what cannot be enforced is recorded instead of refused */
};

#define TASK_EXPOSE_MAX 8        /* paths of the host in one cell */
#define TASK_EXPOSE_PATH_MAX 127 /* bytes of one */

/* NULL: a path of the host that a cell may show. Else the cell's own place that it would lie over.
 */
const char *task_expose_taken(const char *path) nonnull(1);

#define TASK_PACKAGES_MAX 64 /* of one environment */

enum task_env_want {
    ENV_NONE,
    ENV_USUAL, /* one without packages, when the root has the program */
    ENV_ASKED, /* the task asks for it: a root without the program is an error */
};

/* An environment of a language: its program first on PATH, with packages. */
struct task_env {
    enum task_env_want want;
    struct str_list packages; /* absolute paths of files and folders, in the author's order */
    char *field;              /* "sandbox.python", for errors; NULL: none was read */
};

/* What a cell's root is made of: the host's /usr unless this names something else. */
struct task_root {
    struct str_list
        expose;   /* absolute paths of the host, seen read-only at the same place; sorted */
    char *rootfs; /* absolute directory that is the whole root; NULL: none */
    char *image;  /* "oci:PATH[:tag]", "docker-archive:FILE" (absolute), "docker-daemon:NAME",
                     "docker://NAME"; NULL: none; never beside rootfs */
    struct task_env python, node;
};

#define TASK_SERVICES_MAX 8
#define TASK_RECORD_CLI_MAX 64

/* A program that runs beside the agent, and beside the grader. */
struct task_service {
    char *run;   /* for a shell */
    char *ready; /* for a shell, until it succeeds; NULL: there is nothing to wait for */
    uint64_t timeout_ms;
};

enum task_driver { DRIVER_NATIVE, DRIVER_TEMPDIR };

struct task_public {
    char *prompt; /* "" when the agent gets none */
    struct task_agent agent;
    struct task_source *sources;
    size_t source_count;
    struct str_list ignore_patterns; /* defaults already merged */
    struct str_list mock_dirs;  /* folders of the workspace, first on the agent's PATH; normal */
    bool mocks_sealed;          /* their programs run outside of the agent's cell */
    struct str_list mock_tools; /* names of programs that are answered for from outside the cell */
    struct task_limits limits;
    enum task_driver driver;
    bool network_broker;           /* its agent may ask models, through the broker */
    char *require_tier;            /* "A", "B", "B-", "C"; NULL: any */
    struct task_root root;         /* of the agent's cell */
    bool identity_root;            /* its programs are root inside */
    struct task_service *services; /* started in this order */
    size_t service_count;
};
