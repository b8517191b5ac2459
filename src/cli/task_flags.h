#pragma once
/*
 * task_flags: the options that run, execute, plan and cell share: which tasks, and what is laid
 * over them.
 */

#include "cli/options.h"
#include "run/session.h"
#include "task/task.h"

/* Embedded in a command's values as `tasks`. */
struct task_flags {
    struct option_list only, tags, exclude_tags, variants, sets;
    const char *agent, *model, *judge_model, *simulator_model, *driver, *experiment, *suite_root;
    uint64_t sample, sample_per_stratum, seed;
    bool include_skipped, skip_later, strict;
};

extern const char *const task_driver_choices[];

extern const char *const allow_tier_choices[];

/* The row of a command that makes cells; its values have `const char *allow_tier`. */
#define ALLOW_TIER_ROW(type)                                                                       \
    {                                                                                              \
        .kind = OPTION_TEXT, .long_name = "allow-tier", .value = "TIER",                           \
        .offset = offsetof(type, allow_tier), .choices = allow_tier_choices,                       \
        .help = "C: cells of landlock and seccomp alone will do where there are no namespaces"     \
    }

/* The row of a command that runs steps; its values have `bool trust_host_steps`. */
#define TRUST_HOST_STEPS_ROW(type)                                                                 \
    {                                                                                              \
        .kind = OPTION_FLAG, .long_name = "trust-host-steps",                                      \
        .offset = offsetof(type, trust_host_steps),                                                \
        .help = "run pre_run and post_run without a cell, as you; recorded"                        \
    }
/* What is said to whoever gives it. */
#define TRUST_HOST_STEPS_WARNING                                                                   \
    "--trust-host-steps: pre_run and post_run run on the bare host, as this user"

/* Rows for a command whose values struct is `type`. */
#define TASK_FLAG_ROWS(type)                                                                       \
    {.kind = OPTION_LIST,                                                                          \
     .long_name = "only",                                                                          \
     .value = "ID",                                                                                \
     .offset = offsetof(type, tasks.only),                                                         \
     .help = "only the task with this id (repeatable)"},                                           \
        {.kind = OPTION_LIST,                                                                      \
         .long_name = "tags",                                                                      \
         .value = "A,B",                                                                           \
         .offset = offsetof(type, tasks.tags),                                                     \
         .help = "tasks with any of these tags; repeated: all of them"},                           \
        {.kind = OPTION_LIST,                                                                      \
         .long_name = "exclude-tags",                                                              \
         .value = "A,B",                                                                           \
         .offset = offsetof(type, tasks.exclude_tags),                                             \
         .help = "not the tasks with these tags"},                                                 \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "include-skipped",                                                           \
         .offset = offsetof(type, tasks.include_skipped),                                          \
         .help = "run tasks marked skip, too"},                                                    \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "skip-later",                                                                \
         .offset = offsetof(type, tasks.skip_later),                                               \
         .help = "skip tasks that need what a later version has, each with the reason"},           \
        {.kind = OPTION_TEXT,                                                                      \
         .short_name = 'T',                                                                        \
         .long_name = "agent",                                                                     \
         .value = "TYPE[:ARG]",                                                                    \
         .offset = offsetof(type, tasks.agent),                                                    \
         .help = "the agent: script:FILE, exec:CMD, claude-code, codex, gemini, opencode, pi, "    \
                 "nop, oracle "                                                                    \
                 "(the reference) or none"},                                                       \
        {.kind = OPTION_TEXT,                                                                      \
         .short_name = 'm',                                                                        \
         .long_name = "model",                                                                     \
         .value = "NAME",                                                                          \
         .offset = offsetof(type, tasks.model),                                                    \
         .help = "the agent's model"},                                                             \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "judge-model",                                                               \
         .value = "[ROUTE/]NAME",                                                                  \
         .offset = offsetof(type, tasks.judge_model),                                              \
         .help = "the model of all judges, whatever they name"},                                   \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "simulator-model",                                                           \
         .value = "[ROUTE/]NAME",                                                                  \
         .offset = offsetof(type, tasks.simulator_model),                                          \
         .help = "the model that plays the users of dialogs"},                                     \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "driver",                                                                    \
         .value = "DRIVER",                                                                        \
         .offset = offsetof(type, tasks.driver),                                                   \
         .choices = task_driver_choices,                                                           \
         .help = "native, or tempdir (for development: not cheat-resistant)"},                     \
        {.kind = OPTION_TEXT,                                                                      \
         .short_name = 'e',                                                                        \
         .long_name = "experiment",                                                                \
         .value = "NAME|FILE",                                                                     \
         .offset = offsetof(type, tasks.experiment),                                               \
         .help = "run each task in the variants of an experiment: a file, or a name below "        \
                 "experiments/ of the suite"},                                                     \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "sample",                                                                    \
         .value = "N",                                                                             \
         .offset = offsetof(type, tasks.sample),                                                   \
         .min = 1,                                                                                 \
         .max = TASKS_MAX,                                                                         \
         .help = "N rows of each dataset, drawn by the seed"},                                     \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "sample-per-stratum",                                                        \
         .value = "N",                                                                             \
         .offset = offsetof(type, tasks.sample_per_stratum),                                       \
         .min = 1,                                                                                 \
         .max = TASKS_MAX,                                                                         \
         .help = "N rows of each stratum of each dataset"},                                        \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "seed",                                                                      \
         .value = "N",                                                                             \
         .offset = offsetof(type, tasks.seed),                                                     \
         .min = 1,                                                                                 \
         .max = UINT32_MAX,                                                                        \
         .help = "the seed of samples; another one for each run unless given"},                    \
        {.kind = OPTION_LIST,                                                                      \
         .long_name = "variant",                                                                   \
         .value = "ID",                                                                            \
         .offset = offsetof(type, tasks.variants),                                                 \
         .help = "only this variant of the experiment (repeatable)"},                              \
        {.kind = OPTION_LIST,                                                                      \
         .short_name = 'D',                                                                        \
         .long_name = "set",                                                                       \
         .value = "PATH=VALUE",                                                                    \
         .offset = offsetof(type, tasks.sets),                                                     \
         .help = "set a field of every task (repeatable): -D run_limits.task_timeout=60"},         \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "suite-root",                                                                \
         .value = "DIR",                                                                           \
         .offset = offsetof(type, tasks.suite_root),                                               \
         .help = "the suite's folder, when it is not the one with .git"},                          \
    {                                                                                              \
        .kind = OPTION_FLAG, .long_name = "strict", .offset = offsetof(type, tasks.strict),        \
        .help = "legacy forms are errors instead of warnings"                                      \
    }

/* The flags as tasks_load() wants them. Stays where it was initialised: overrides point into it. */
struct task_inputs {
    struct str_list paths, only, tags, exclude_tags, variants, sets;
    char *user_config;
    struct task_overrides overrides;
    struct task_selection selection;
};

/* paths: the command's operands; without any, tasks/ or tests/tasks/ below the working directory.
 */
void task_inputs_init(const struct task_flags *flags, const char *const *paths, size_t path_count,
                      struct task_inputs *ret) nonnull(1, 4);
/* The inputs that a run's plan.json recorded; strings point into the plan or are owned. */
must_check int task_inputs_recorded(const json_t *plan, struct task_inputs *ret,
                                    unsigned *ret_repeats, struct error **err) nonnull(1, 2, 3);
void task_inputs_done(struct task_inputs *inputs) nonnull(1);
/* Whether each judge of the tasks (for: INPUTS_GRADE) and each user that a model plays (INPUTS_RUN)
 * can be asked: judges_prepare() by the user's configuration. */
enum { INPUTS_GRADE = 1 << 0, INPUTS_RUN = 1 << 1 };
must_check int task_inputs_judges(const struct task_inputs *inputs, unsigned purpose,
                                  struct session *session, const struct task_set *set,
                                  struct error **err) nonnull(1, 3, 4);

/*
 * Loads, checks the graders' configuration, too, and prints problems on standard error.
 * ERROR_TASK or ERROR_USER with the count when anything is wrong.
 */
must_check int task_inputs_load(const struct task_inputs *inputs, const struct task_reader *reader,
                                bool verbose, struct task_set *ret, struct error **err)
    nonnull(1, 2, 4);

struct session;
/* Starts what speaks with models for agents that may ask them: wire_prepare(). */
must_check int task_inputs_endpoints(const struct task_inputs *inputs, struct session *session,
                                     const struct task_set *set, struct error **err)
    nonnull(1, 2, 3);
