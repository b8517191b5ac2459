/* The agent block of the merged layers to struct task_agent. */
#include "task/internal.h"

/* Keys of model providers: the broker holds them, no cell ever does. */
static const char *const provider_keys[] = {
    "ANTHROPIC_API_KEY",  "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",  "OPENAI_API_KEY",
    "CODEX_API_KEY",      "AZURE_OPENAI_API_KEY", "GEMINI_API_KEY",           "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY", "MISTRAL_API_KEY",      "DEEPSEEK_API_KEY",         "XAI_API_KEY",
    "GROQ_API_KEY",       "DASHSCOPE_API_KEY",    "AWS_BEARER_TOKEN_BEDROCK",
};

static enum task_agent_type built_type(const char *name)
{
    static const struct {
        const char *name;
        enum task_agent_type type;
    } types[] = {
        {"script", AGENT_SCRIPT}, {"exec", AGENT_EXEC},     {"nop", AGENT_NOP},
        {"oracle", AGENT_ORACLE}, {"none", AGENT_NONE},     {"claude-code", AGENT_CLAUDE_CODE},
        {"codex", AGENT_CODEX},   {"gemini", AGENT_GEMINI}, {"opencode", AGENT_OPENCODE},
        {"pi", AGENT_PI},
    };

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    }
    return AGENT_UNSET;
}

static void complain_type(const struct build *build, const struct node *type)
{
    const struct agent_name *name = agent_names;

    while (name->name != NULL && strcmp(name->name, type->text) != 0)
        name++;
    if (name->name != NULL && name->state == FIELD_REMOVED)
        build_error(build, type->mark, "agent.type", "the agent type '%s' is unsupported: %s",
                    name->name, name->hint);
    else if (name->name != NULL)
        build_later(build, type->mark, "agent.type", "the agent type '%s' is not in this version",
                    name->name);
    else
        build_later(build, type->mark, "agent.type",
                    "adapter files and executables ('%.60s') are not in this version", type->text);
}

static bool is_provider_key(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(provider_keys); i++) {
        if (strcmp(name, provider_keys[i]) == 0)
            return true;
    }
    return false;
}

/* NAME or NAME=value to NAME=value; an unset NAME is remarked on and left out. */
static void add_variable(const struct build *build, const struct node *item)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const char *equals = strchr(item->text, '=');
    size_t length = equals == NULL ? strlen(item->text) : (size_t)(equals - item->text);
    scoped(mem_freep) char *name = str_ndup(item->text, length);
    const char *value =
        equals == NULL ? environment_get(build->loader->overrides->environment, name) : equals + 1;

    if (is_provider_key(name)) {
        build_error(build, item->mark, "agent.env",
                    "'%s': the key of a model provider is never given to an agent", name);
        return;
    }
    if (value == NULL) {
        build_warning(build, item->mark, "agent.env",
                      "'%.60s' is not set outside, so the agent does not get it", name);
        return;
    }
    str_list_add_take(&agent->env, str_format("%s=%s", name, value));
}

static void read_command(const struct build *build, const struct node *command)
{
    struct str_list *words = &build->task->public_half->agent.command;

    if (command->kind == NODE_TEXT && !words_split(command->text, words))
        build_error(build, command->mark, "agent.command", "a quote is not closed");
    for (size_t i = 0; command->kind == NODE_LIST && i < command->count; i++)
        str_list_add(words, command->items[i]->text);
    if (words->count == 0 || words->items[0][0] == '\0')
        build_error(build, command->mark, "agent.command",
                    "a program expected as the first word, found nothing");
}

static void read_script(const struct build *build, const struct node *script)
{
    scoped(mem_freep) char *path = build_path(build, script, "agent.script", false);
    struct loader *loader = build->loader;
    /* Most often one for all tasks, given by a flag: it is looked for once. */
    bool is_known = loader->script != NULL && str_equal(loader->script, path);
    scoped(mem_freep) char *wrong = is_known ? NULL : source_check_file(loader->reader, path);

    if (wrong != NULL) {
        build_error(build, script->mark, "agent.script", "'%s' %s", path, wrong);
    } else if (!is_known) {
        free(loader->script);
        loader->script = str_dup(path);
    }
    build->task->public_half->agent.script = take(path);
}

/* Settings of agent programs that the agent at hand has no use for. */
static void remark_unused(const struct build *build, const struct node *block, const char *type)
{
    for (size_t i = 0; i < block->count; i++) {
        const struct member *member = &block->members[i];
        const struct field *field = block_field(&agent_block, member->key);
        scoped(mem_freep) char *path = str_format("agent.%s", member->key);

        if (field != NULL && field->state == FIELD_CLI)
            build_warning(build, member->mark, path, "has no effect for the agent type '%s'", type);
    }
}

static void read_type(const struct build *build, const struct node *block)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *type = node_get(block, "type");
    const struct node *script = node_get(block, "script"), *command = node_get(block, "command");

    if (type == NULL) {
        struct mark mark = {.origin = build->origin};

        if (!build->loader->overrides->agent_optional && !build_is_given(build, "agent.type"))
            build_error(build, mark, "agent.type",
                        "not set anywhere: name the agent in the task, in closedbook.yaml or "
                        "with -T");
        return;
    }
    agent->type = built_type(type->text);
    if (agent->type == AGENT_UNSET) {
        complain_type(build, type);
        return;
    }
    if (task_agent_is_cli(agent->type)) {
        build_agent_cli(build, block);
        return;
    }
    remark_unused(build, block, type->text);
    if (agent->type == AGENT_SCRIPT && script != NULL)
        read_script(build, script);
    else if (agent->type == AGENT_SCRIPT && !build_is_given(build, "agent.script"))
        build_error(build, type->mark, "agent.script",
                    "required by the agent type 'script', found nothing");
    if (agent->type == AGENT_EXEC && command != NULL)
        read_command(build, command);
    else if (agent->type == AGENT_EXEC && !build_is_given(build, "agent.command"))
        build_error(build, type->mark, "agent.command",
                    "required by the agent type 'exec', found nothing");
}

void build_agent(struct build *build)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *block = node_get(build->root, "agent");
    const struct node *env = node_get(block, "env");
    const char *model = node_get_text(block, "model");

    agent->model = model == NULL ? NULL : str_dup(model);
    agent->trust_self_reported = node_get_bool(block, "trust_self_reported");
    read_type(build, block);
    for (size_t i = 0; env != NULL && i < env->count; i++)
        add_variable(build, env->items[i]);
}
