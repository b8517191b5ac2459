#pragma once
/*
 * task_private: the half of a task that no agent-facing code may see: criteria, reference, names.
 *
 * docs/layers lists who may include this header; tools/check-layers enforces it.
 * Made by task_split() only; immutable; owned by the struct task.
 */

#include "base/base.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "task/task_public.h"

enum criterion_kind {
    CRITERION_FILE_EXISTS,
    CRITERION_FILE_CONTAINS,
    CRITERION_FILE_MATCHES_REGEX,
    CRITERION_FILE_CHECK,
    CRITERION_JSON_CHECK,
    CRITERION_RUN_COMMAND,
    CRITERION_COMMAND_EXECUTED,
    CRITERION_CLASSIFICATION_MATCH,
    CRITERION_COMMANDS_EFFICIENCY,
    CRITERION_SKILL_TRIGGERED,
    CRITERION_CLI_CALLED,
    CRITERION_REFERENCE_COMPARISON,
    CRITERION_EXEC,
    CRITERION_LLM_JUDGE,
    CRITERION_COUNT,
};

/*
 * One success criterion. params holds the type's own parameters with their defaults filled in, as
 * checked by the schema tables (names and types of task-format.md); the common ones are fields.
 * command_not_executed is loaded as command_executed with min_count = max_count = 0. Of exec:PATH,
 * params holds program (the path from task_dir), its digest, timeout and params, what is its own.
 */
struct criterion {
    enum criterion_kind kind;
    const char *type_name; /* as written in the file, for records: "command_not_executed" stays; of
                              the constant tables, or of params */
    char *description;
    double weight;             /* >= 0 */
    double pass_threshold;     /* 0..1 */
    json_t *params;            /* object */
    json_t *suite_thresholds;  /* {metric: least}; NULL: none */
    bool armed, stops_on_pass; /* it is watched while the agent works, and can end the run */
    uint64_t decide_within;    /* calls after which it has failed, when undecided; 0: never */
    char *file;                /* position for errors */
    unsigned line;
};

/* What is wrong with one parameter of a criterion. Borrowed. */
struct criterion_mistake {
    const char *place; /* JSON pointer below the criterion, "/assertions/0/expected"; "": all */
    size_t offset;     /* into the bytes of the text there, or ERROR_NO_OFFSET */
    const char *message;
};

/* Findings of the search for private text that are meant (run/leak_sight.h). */
struct task_leak {
    char *file; /* a pattern (collect/glob.h) */
    char *reason;
};

/* A command of pre_run or post_run. */
struct task_step {
    char *command;
    uint64_t timeout_ms;
    bool fail_on_error; /* pre_run: a failure ends the trial as ERROR */
    bool in_agent;      /* pre_run: in the agent's cell; none of the host's comes after it */
    char *file;         /* position for errors */
    unsigned line;
};

/* A user who talks with the agent, and knows no more than what stands here. */
struct task_simulation {
    char *persona, *goal; /* NULL: the script says all */
    struct str_list constraints;
    struct str_list script;    /* what the user says, in order; empty: a model plays the user */
    char *stop_token;          /* what the model ends the dialog with */
    char *model;               /* that plays the user; NULL: as for judges */
    unsigned max_turns;        /* exchanges at most */
    uint64_t max_total_tokens; /* of agent and user together; 0: no budget */
    bool share_description;    /* the model reads the task's description */
};

struct task_private {
    char *task_id;
    char *description;
    char *task_file;                 /* absolute path of the YAML */
    char *task_dir;                  /* its folder */
    char *suite_root;                /* absolute; task_dir lies in it */
    char *reference_dir;             /* absolute, NULL when the task has none */
    char *reference_file;            /* legacy {file: F}: the one file, absolute; else NULL */
    struct str_list private_digests; /* of these files, in their order: 64 hex digits each */
    struct str_list private_files;   /* further ones, absolute: of experiment and dataset */
    struct str_list tags;
    char *skip_reason; /* NULL: not skipped */
    struct criterion *criteria;
    size_t criterion_count;
    struct task_step *pre_run, *post_run; /* in order, those of an experiment included */
    size_t pre_run_count, post_run_count;
    struct task_leak *leaks_ok;
    size_t leak_ok_count;
    /* suite-root variables of the operator's environment that commands here use: names */
    struct str_list suite_variables;
    struct task_root root;  /* of the grading cell */
    json_t *record_cli;     /* what recorded tools answer, a list; NULL: none */
    bool stop_early_off;    /* the kill switch: nothing is watched */
    double stop_early_gate; /* of the armed criteria's weights, to pass after an early stop */
    struct task_simulation *simulation; /* NULL: the agent is asked once */
    char *simulator_model;              /* of a flag: plays every user; NULL */
    char *judge_model;                  /* of judges that name none; NULL: the default of a key */
    bool judge_forced;                  /* by a flag: of all of them */
};
