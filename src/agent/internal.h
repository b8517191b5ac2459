#pragma once
/*
 * internal: what the adapters share. Each adapter is one file with one row in agent.c.
 */

#include "agent/agent.h"

int script_plan_turn(const struct task_public *task, const struct agent_place *place,
                     struct agent_turn *ret, struct error **err);
int exec_plan_turn(const struct task_public *task, const struct agent_place *place,
                   struct agent_turn *ret, struct error **err);
int nop_plan_turn(const struct task_public *task, const struct agent_place *place,
                  struct agent_turn *ret, struct error **err);
int none_plan_turn(const struct task_public *task, const struct agent_place *place,
                   struct agent_turn *ret, struct error **err);

int claude_code_plan_turn(const struct task_public *task, const struct agent_place *place,
                          struct agent_turn *ret, struct error **err);
int codex_plan_turn(const struct task_public *task, const struct agent_place *place,
                    struct agent_turn *ret, struct error **err);
int gemini_plan_turn(const struct task_public *task, const struct agent_place *place,
                     struct agent_turn *ret, struct error **err);
int opencode_plan_turn(const struct task_public *task, const struct agent_place *place,
                       struct agent_turn *ret, struct error **err);
int pi_plan_turn(const struct task_public *task, const struct agent_place *place,
                 struct agent_turn *ret, struct error **err);
extern const struct agent_program claude_code_program, codex_program, gemini_program,
    opencode_program, pi_program;

/* --- what the adapters of CLIs share --------------------------------------------------------- */

/* argv begins with the installed program, after AGENT_START_PATH where there will be files. */
void turn_begin(const struct agent_place *place, bool has_files, struct agent_turn *turn)
    nonnull(1, 3);
void turn_words(struct agent_turn *turn, const char *const *words) nonnull(1, 2); /* to NULL */
/* --name value, unless value is NULL. */
void turn_option(struct agent_turn *turn, const char *name, const char *value) nonnull(1, 2);
/* --name a,b,c, unless the list is empty. */
void turn_option_list(struct agent_turn *turn, const char *name, const struct str_list *values)
    nonnull(1, 2, 3);
void turn_env(struct agent_turn *turn, const char *name, const char *value) nonnull(1, 2, 3);
/* bytes is taken. */
void turn_file(struct agent_turn *turn, const char *path, char *bytes) nonnull(1, 2, 3);
/* The value as one line; owned. */
char *turn_json(const json_t *value) nonnull(1);
/*
 * The prompt as an argument; owned. A blank line goes before one that programs would take for an
 * option or a file. ERROR_TASK when it is longer than an argument may be.
 */
must_check int turn_prompt(const struct task_public *task, const struct agent_place *place,
                           char **ret, struct error **err) nonnull(1, 2, 3);
/* ERROR_TASK unless the task names a model. */
must_check int turn_needs_model(const struct task_public *task, const char *agent,
                                struct error **err) nonnull(1, 2);
/* The task's own env and further arguments, which win over the adapter's. */
void turn_end(const struct task_public *task, struct agent_turn *turn) nonnull(1, 2);
/* "anthropic", "openai-chat" or "gemini", by how models are named. */
const char *api_of_model(const char *model);

/* The task's own env, then descriptor 3 offered for event lines (ours wins). */
void turn_offer_events(const struct task_public *task, struct agent_turn *turn) nonnull(1, 2);
