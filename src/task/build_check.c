/* What involves several fields: tokens, the two halves against each other, dead settings. */
#include "task/experiment.h"

static bool has_reference(const struct task_private *half)
{
    return half->reference_dir != NULL || half->reference_file != NULL;
}

static bool has_input(const struct task_public *half)
{
    return half->source_count > 0 && half->sources[half->source_count - 1].kind == SOURCE_INPUT_DIR;
}

/* --- what the agent would read -----------------------------------------------------------------
 */

static void check_tokens(const struct build *build, struct mark mark, const char *path,
                         const char *text)
{
    static const enum token_kind denied[] = {TOKEN_REFERENCE_DIR, TOKEN_TASK_DIR};

    for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
        if (token_is_in(text, denied[i]))
            build_error(build, mark, path, "$%s: the agent has no such folder, only graders do",
                        token_name(denied[i]));
    }
    if (token_is_in(text, TOKEN_INPUT_DIR) && node_get(build->file, "input_dir") == NULL)
        build_error(build, mark, path, "$INPUT_DIR: the task declares no input_dir");
}

static void check_suite_variables(const struct build *build, struct mark mark, const char *path,
                                  const char *text)
{
    size_t position = 0, start, length;

    while (variable_next(text, &position, &start, &length)) {
        scoped(mem_freep) char *name = str_ndup(text + start, length);
        const char *value = environment_get(build->loader->overrides->environment, name);

        if (value != NULL && is_suite_variable(build->task->private_half->suite_root, name, value))
            build_error(build, mark, path,
                        "$%s leads into the suite, which the agent never sees: declare the "
                        "fixture as input_dir",
                        name);
    }
}

void build_check_text(const struct build *build, struct mark mark, const char *path,
                      const char *text)
{
    check_tokens(build, mark, path, text);
    check_suite_variables(build, mark, path, text);
}

/* What an experiment adds to prompts. */
static void check_mutations(const struct build *build, const struct node *fields)
{
    static const char *const texts[] = {"content", "replacement"};
    const struct node *list = node_get(fields, "prompt_mutations");

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct node *variables = node_get(list->items[i], "variables");

        for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
            const struct node *text = node_get(list->items[i], texts[j]);

            if (text != NULL)
                build_check_text(build, text->mark, "prompt_mutations", text->text);
        }
        for (size_t j = 0; variables != NULL && j < variables->count; j++) {
            const struct node *value = variables->members[j].value;

            if (value->text != NULL)
                build_check_text(build, value->mark, "prompt_mutations", value->text);
        }
    }
}

/* Each part where it was written, then the whole, of which parts may have made something new. */
static void check_prompt(const struct build *build)
{
    const struct experiment *experiment = build->suite->experiment;
    size_t errors_before = build->schema.problems->error_count;

    if (build->prompt == NULL)
        return;
    if (build->row == NULL && strstr(build->plain_prompt, "${row.") != NULL)
        build_warning(build, build->prompt->mark, build->prompt_name,
                      "${row...} stays as it is: the task has no dataset");
    build_check_text(build, build->prompt->mark, build->prompt_name, build->plain_prompt);
    if (experiment != NULL)
        check_mutations(build, experiment->fields);
    if (build->variant != NULL)
        check_mutations(build, build->variant->fields);
    if (build->schema.problems->error_count == errors_before)
        build_check_text(build, build->prompt->mark, build->prompt_name,
                         build->task->public_half->prompt);
}

/* A value that holds a path of the private half, at a place where a path may start. */
static bool holds_path(const char *text, const char *path)
{
    size_t length = path == NULL ? 0 : strlen(path);

    if (length <= 1)
        return false;
    for (const char *s = strstr(text, path); s != NULL; s = strstr(s + 1, path)) {
        if (s[length] == '\0' || s[length] == '/' || strchr(":;, \"'", s[length]) != NULL)
            return true;
    }
    return false;
}

static void check_env(const struct build *build)
{
    const struct task_private *half = build->task->private_half;
    const struct str_list *env = &build->task->public_half->agent.env;
    const struct node *node = node_find(build->root, "agent.env");
    const char *const paths[] = {half->suite_root, half->task_dir, half->reference_dir,
                                 half->reference_file};

    for (size_t i = 0; i < env->count; i++) {
        const char *value = strchr(env->items[i], '=') + 1;

        check_tokens(build, node->mark, "agent.env", value);
        for (size_t j = 0; j < ARRAY_SIZE(paths); j++) {
            if (!holds_path(value, paths[j]))
                continue;
            build_error(build, node->mark, "agent.env",
                        "the value of '%.*s' holds a path of the task's private half",
                        (int)(value - 1 - env->items[i]), env->items[i]);
            break;
        }
    }
}

static void check_plugins(const struct build *build)
{
    const struct node *list = node_find(build->root, "agent.plugins");

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct node *include = node_get(list->items[i], "include");
        scoped(mem_freep) char *path = str_format("agent.plugins[%zu].include", i);

        for (size_t j = 0; include != NULL && j < include->count; j++)
            check_tokens(build, include->items[j]->mark, path, include->items[j]->text);
    }
}

static void check_agent(const struct build *build)
{
    const struct task_public *half = build->task->public_half;
    const struct node *command = node_find(build->root, "agent.command");
    const struct node *type = node_find(build->root, "agent.type");

    for (size_t i = 0; i < half->agent.command.count; i++)
        check_tokens(build, command->mark, "agent.command", half->agent.command.items[i]);
    check_env(build);
    check_plugins(build);
    if (half->agent.type == AGENT_ORACLE && !has_reference(build->task->private_half))
        build_error(build, type->mark, "agent.type",
                    "the agent type 'oracle' needs a reference, the task has none");
}

/* --- graders -----------------------------------------------------------------------------------
 */

static const struct node *criterion_node(const struct build *build, size_t index, const char *key)
{
    return node_get(node_get(build->file, "success_criteria")->items[index], key);
}

static void check_command(const struct build *build, const struct node *command, const char *path)
{
    if (token_is_in(command->text, TOKEN_REFERENCE_DIR) &&
        !has_reference(build->task->private_half))
        build_error(build, command->mark, path, "$REFERENCE_DIR: the task has no reference");
    if (token_is_in(command->text, TOKEN_INPUT_DIR) && !has_input(build->task->public_half))
        build_error(build, command->mark, path, "$INPUT_DIR: the task declares no input_dir");
}

/* What a read_only command changes is undone by making the workspace anew from what the agent left;
 * what earlier commands made of it would be lost, too. */
static void check_read_only(const struct build *build, size_t index, bool *changed)
{
    const struct node *item = node_get(build->file, "success_criteria")->items[index];
    const struct node *read_only = node_get(item, "read_only");
    scoped(mem_freep) char *path = str_format("success_criteria[%zu].read_only", index);

    if (str_starts(node_get_text(item, "type"), "exec:"))
        *changed = true;
    if (!str_equal(node_get_text(item, "type"), "run_command"))
        return;
    if (node_get_bool(item, "fresh"))
        return;
    if (!node_get_bool(item, "read_only"))
        *changed = true;
    else if (*changed)
        build_later(build, read_only->mark, path,
                    "'read_only' after a run_command without it is not in this version: put it "
                    "before that");
}

/* Its file is looked for before an agent runs: a criterion that cannot be evaluated is no 0. */
static void check_comparison(const struct build *build, size_t index)
{
    const struct task_private *half = build->task->private_half;
    const struct node *node = criterion_node(build, index, "reference_file");
    scoped(mem_freep) char *path = str_format("success_criteria[%zu].reference_file", index);

    if (node == NULL ||
        !str_equal(criterion_node(build, index, "type")->text, "reference_comparison"))
        return;
    if (!has_reference(half)) {
        build_error(build, node->mark, path, "the task has no reference to compare with");
        return;
    }
    if (half->reference_dir == NULL) {
        if (!str_equal(node->text, path_base(half->reference_file)))
            build_error(build, node->mark, path, "'%s' expected, which is all of the reference",
                        path_base(half->reference_file));
        return;
    }
    scoped(mem_freep) char *file = path_join(half->reference_dir, node->text);
    scoped(mem_freep) char *wrong = source_check_file(build->loader->reader, file);

    if (wrong != NULL)
        build_error(build, node->mark, path, "'%s' %s", file, wrong);
}

static void check_criteria(const struct build *build)
{
    const struct node *list = node_get(build->file, "success_criteria");
    bool changed = false;
    bool no_agent = build->task->public_half->agent.type == AGENT_NONE;

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct node *command = criterion_node(build, i, "command");
        const struct node *type = criterion_node(build, i, "type");
        scoped(mem_freep) char *command_path = str_format("success_criteria[%zu].command", i);
        scoped(mem_freep) char *type_path = str_format("success_criteria[%zu].type", i);

        if (command != NULL)
            check_command(build, command, command_path);
        check_read_only(build, i, &changed);
        if (type != NULL)
            check_comparison(build, i);
        if (no_agent && type != NULL && str_starts(type->text, "command"))
            build_error(build, type->mark, type_path,
                        "'%s' looks at what an agent did, and the agent type is 'none'",
                        type->text);
    }
}

/* --- the two halves ----------------------------------------------------------------------------
 */

/*
 * A folder that is staged for the agent must not hold the task file or the reference. What a link
 * or a copy may bring in is looked for in the staged view; this finds the plain mistake before
 * that.
 */
static void check_overlap(const struct build *build, const char *source, struct mark mark,
                          const char *path)
{
    const struct task_private *half = build->task->private_half;
    const char *const hidden[] = {half->task_file, half->reference_dir, half->reference_file};
    static const char *const names[] = {"the task file", "the reference", "the reference"};

    for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
        if (hidden[i] == NULL || !path_is_below(hidden[i], source))
            continue;
        build_error(build, mark, path, "'%s' holds %s ('%s'), which the agent must not get", source,
                    names[i], hidden[i]);
    }
    for (size_t i = 0; i < half->private_files.count; i++) {
        if (path_is_below(half->private_files.items[i], source))
            build_error(build, mark, path,
                        "'%s' holds '%s', of the experiment, dataset or a criterion, which the "
                        "agent must not get",
                        source, half->private_files.items[i]);
    }
    if (half->reference_dir != NULL && path_is_below(source, half->reference_dir) &&
        strcmp(source, half->reference_dir) != 0)
        build_error(build, mark, path, "'%s' lies in the reference, which the agent must not get",
                    source);
}

static void check_root(const struct build *build)
{
    const struct task_root *root = &build->task->public_half->root;
    const struct node *expose = node_find(build->root, "sandbox.expose");
    const struct node *rootfs = node_find(build->root, "sandbox.rootfs");

    for (size_t i = 0; i < root->expose.count; i++)
        check_overlap(build, root->expose.items[i], expose->mark, "sandbox.expose");
    if (root->rootfs != NULL)
        check_overlap(build, root->rootfs, rootfs->mark, "sandbox.rootfs");
}

static void check_overlaps(const struct build *build)
{
    const struct task_public *half = build->task->public_half;
    const struct node *sources = node_find(build->root, "sandbox.template_sources");
    const struct node *input = node_get(build->file, "input_dir");

    for (size_t i = 0; i < half->source_count; i++) {
        const struct task_source *source = &half->sources[i];

        if (source->kind == SOURCE_TEMPLATE_DIR)
            check_overlap(build, source->path, sources->mark, "sandbox.template_sources");
        else if (source->kind == SOURCE_INPUT_DIR)
            check_overlap(build, source->path, input->mark, "input_dir");
        /* The files of the one commit are compared by content when they are staged. */
        else if (source->kind == SOURCE_REPO && source->history == HISTORY_ANCESTORS)
            check_overlap(build, source->path, sources->mark, "sandbox.template_sources");
    }
    check_root(build);
}

static void check_timeouts(const struct build *build)
{
    const struct task_limits *limits = &build->task->public_half->limits;
    const struct node *turn = node_find(build->root, "run_limits.turn_timeout");

    if (turn != NULL && limits->task_timeout_ms > 0 &&
        limits->turn_timeout_ms >= limits->task_timeout_ms)
        build_warning(build, turn->mark, "run_limits.turn_timeout",
                      "never reached: task_timeout is not longer");
}

void build_check(struct build *build)
{
    check_prompt(build);
    check_agent(build);
    check_criteria(build);
    check_overlaps(build);
    check_timeouts(build);
}
