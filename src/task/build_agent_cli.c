/* What a task says to the program of an agent that is installed on the host. */
#include "task/internal.h"

enum cli {
    CLI_CLAUDE_CODE = 1,
    CLI_CODEX = 2,
    CLI_GEMINI = 4,
    CLI_OPENCODE = 8,
    CLI_PI = 16,
    CLI_ALL = 31,
};

/* Whose adapter passes a setting on. What nobody passes on must not look as if it were heard. */
static const struct {
    const char *key;
    unsigned clis;
} settings[] = {
    {"permission_mode", CLI_CLAUDE_CODE},
    {"allowed_tools", CLI_CLAUDE_CODE | CLI_PI},
    {"disallowed_tools", CLI_CLAUDE_CODE},
    {"claude_settings", CLI_CLAUDE_CODE},
    {"setting_sources", CLI_CLAUDE_CODE},
    {"system_prompt", CLI_CLAUDE_CODE | CLI_PI},
    {"extra_args", CLI_ALL},
    {"system_prompt_mode", CLI_CLAUDE_CODE | CLI_PI},
    {"sdk_options", 0},
    {"plugins", CLI_CLAUDE_CODE},
};

static const struct {
    enum task_agent_type type;
    enum cli cli;
} types[] = {
    {AGENT_CLAUDE_CODE, CLI_CLAUDE_CODE}, {AGENT_CODEX, CLI_CODEX}, {AGENT_GEMINI, CLI_GEMINI},
    {AGENT_OPENCODE, CLI_OPENCODE},       {AGENT_PI, CLI_PI},
};

/* 0: it is none. */
static unsigned cli_of(enum task_agent_type type)
{
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (types[i].type == type)
            return types[i].cli;
    }
    return 0;
}

bool task_agent_is_cli(enum task_agent_type type)
{
    return cli_of(type) != 0;
}

bool task_agent_is_trusted(const struct task_agent *agent)
{
    return agent->trust_self_reported || task_agent_is_cli(agent->type);
}

static char *text_at(const struct node *block, const char *key)
{
    const char *text = node_get_text(block, key);

    return text == NULL ? NULL : str_dup(text);
}

static void list_at(const struct node *block, const char *key, struct str_list *ret)
{
    const struct node *list = node_get(block, key);

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        if (list->items[i]->text != NULL) /* else complained of already */
            str_list_add(ret, list->items[i]->text);
    }
}

static void read_settings(const struct build *build, const struct node *block)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *settings_map = node_get(block, "claude_settings");

    agent->permission_mode = text_at(block, "permission_mode");
    agent->system_prompt = text_at(block, "system_prompt");
    agent->system_prompt_replaces =
        str_equal(node_get_text(block, "system_prompt_mode"), "replace");
    list_at(block, "allowed_tools", &agent->allowed_tools);
    list_at(block, "disallowed_tools", &agent->disallowed_tools);
    list_at(block, "setting_sources", &agent->setting_sources);
    list_at(block, "extra_args", &agent->extra_args);
    if (settings_map == NULL)
        return;
    if (settings_map->kind != NODE_MAP) {
        build_later(build, settings_map->mark, "agent.claude_settings",
                    "a path is not in this version: a map expected");
        return;
    }
    scoped(json_freep) json_t *json = node_to_json(settings_map);
    struct buf text = {0};

    json_write_line(&text, json);
    agent->claude_settings = buf_take(&text);
}

void build_agent_cli(const struct build *build, const struct node *block)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *type = node_get(block, "type");

    for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
        const struct node *value = node_get(block, settings[i].key);
        scoped(mem_freep) char *path = str_format("agent.%s", settings[i].key);

        if ((settings[i].clis & cli_of(agent->type)) != 0 || value == NULL ||
            value->kind == NODE_NULL || (value->kind == NODE_LIST && value->count == 0))
            continue;
        build_later(build, value->mark, path,
                    "the agent type '%s' does not take it in this version", type->text);
    }
    if (agent->model == NULL && !build->loader->overrides->model_optional &&
        !build_is_given(build, "agent.model"))
        build_error(build, type->mark, "agent.model",
                    "required by the agent type '%s', found nothing: name one in the task, in "
                    "closedbook.yaml or with -m",
                    type->text);
    read_settings(build, block);
}
