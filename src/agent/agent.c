#include "agent/agent.h"

#include "agent/internal.h"

static const struct agent_adapter adapters[] = {
    {AGENT_SCRIPT, "script", NULL, script_plan_turn},
    {AGENT_EXEC, "exec", NULL, exec_plan_turn},
    {AGENT_NOP, "nop", NULL, nop_plan_turn},
    {AGENT_NONE, "none", NULL, none_plan_turn},
    {AGENT_CLAUDE_CODE, "claude-code", &claude_code_program, claude_code_plan_turn},
    {AGENT_CODEX, "codex", &codex_program, codex_plan_turn},
    {AGENT_GEMINI, "gemini", &gemini_program, gemini_plan_turn},
    {AGENT_OPENCODE, "opencode", &opencode_program, opencode_plan_turn},
    {AGENT_PI, "pi", &pi_program, pi_plan_turn},
};

const struct agent_adapter *agent_adapter_of(enum task_agent_type type)
{
    for (size_t i = 0; i < ARRAY_SIZE(adapters); i++) {
        if (adapters[i].type == type)
            return &adapters[i];
    }
    return NULL;
}

const struct agent_adapter *agent_adapter_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(adapters); i++) {
        if (strcmp(adapters[i].name, name) == 0)
            return &adapters[i];
    }
    return NULL;
}

const struct agent_adapter *agent_adapter_at(size_t index)
{
    return index < ARRAY_SIZE(adapters) ? &adapters[index] : NULL;
}

void agent_turn_done(struct agent_turn *turn)
{
    str_list_done(&turn->argv);
    str_list_done(&turn->env);
    free(turn->stdin_text);
    free(turn->script_bytes);
    for (size_t i = 0; i < turn->file_count; i++) {
        free(turn->files[i].path);
        free(turn->files[i].bytes);
    }
    *turn = (struct agent_turn){0};
}

void turn_offer_events(const struct task_public *task, struct agent_turn *turn)
{
    str_list_copy(&turn->env, &task->agent.env);
    str_list_add(&turn->env, AGENT_EVENTS_ENV "=3");
    turn->events_on_fd3 = true;
}

/* Index of the item with the same name before '=', list->count when there is none. */
static size_t find_name(const struct str_list *list, const char *item, size_t name_length)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], item, name_length + 1) == 0)
            return i;
    }
    return list->count;
}

static void merge(const struct str_list *from, struct str_list *to)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *equals = strchr(from->items[i], '=');

        if (equals == NULL || equals == from->items[i])
            continue;

        size_t at = find_name(to, from->items[i], (size_t)(equals - from->items[i]));

        if (at == to->count) {
            str_list_add(to, from->items[i]);
            continue;
        }
        free(to->items[at]);
        to->items[at] = str_dup(from->items[i]);
    }
}

void agent_env_merge(const struct str_list *base, const struct str_list *additions,
                     struct str_list *ret)
{
    *ret = (struct str_list){0};
    merge(base, ret);
    merge(additions, ret);
}
