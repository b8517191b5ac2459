/* pre_run and post_run: an experiment's pre_run come before a task's own, its post_run after. */
#include "task/experiment.h"

static bool is_in_agent(const struct node *node)
{
    const char *place = node_get_text(node, "runs_in");

    return place != NULL && strcmp(place, "agent") == 0;
}

static void add_step(const struct node *node, struct task_step **steps, size_t *count)
{
    const struct node *command = node_get(node, "command");
    const struct node *fail = node_get(node, "fail_on_error");

    if (command == NULL)
        return; /* complained about */
    *steps = mem_resize(*steps, *count + 1, sizeof(**steps));
    (*steps)[(*count)++] = (struct task_step){
        .command = str_dup(command->text),
        .timeout_ms = (uint64_t)(node_get_real(node, "timeout", 0) * 1000),
        .fail_on_error = fail != NULL && fail->truth,
        .in_agent = is_in_agent(node),
        .file = str_dup(command->mark.origin->file),
        .line = command->mark.line,
    };
}

/* The agent's cell is there once, and last. */
static void check_order(const struct build *build, const struct node *node, size_t i)
{
    const struct task_private *half = build->task->private_half;
    scoped(mem_freep) char *path = str_format("pre_run[%zu].runs_in", i);

    if (!is_in_agent(node) && half->pre_run_count > 0 &&
        half->pre_run[half->pre_run_count - 1].in_agent)
        build_later(build, node->mark, path,
                    "a step of the host after one of the agent's is not in this version; put it "
                    "before that");
}

static void add_before(const struct build *build, const struct node *fields)
{
    struct task_private *half = build->task->private_half;
    const struct node *list = node_get(fields, "pre_run");

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        check_order(build, list->items[i], i);
        add_step(list->items[i], &half->pre_run, &half->pre_run_count);
    }
}

static void add_steps(const struct node *fields, const char *name, struct task_step **steps,
                      size_t *count)
{
    const struct node *list = node_get(fields, name);

    for (size_t i = 0; list != NULL && i < list->count; i++)
        add_step(list->items[i], steps, count);
}

/* The reference is for graders and what comes after them. */
static void check_tokens(const struct build *build, const struct node *fields, const char *name)
{
    const struct task_private *half = build->task->private_half;
    bool has_reference = half->reference_dir != NULL || half->reference_file != NULL;
    bool is_before = strcmp(name, "pre_run") == 0;
    const struct node *list = node_get(fields, name);

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct node *command = node_get(list->items[i], "command");
        scoped(mem_freep) char *path = str_format("%s[%zu].command", name, i);

        if (command != NULL && is_in_agent(list->items[i])) {
            build_check_text(build, command->mark, path, command->text);
            continue;
        }
        if (command == NULL || !token_is_in(command->text, TOKEN_REFERENCE_DIR))
            continue;
        if (is_before)
            build_error(build, command->mark, path,
                        "$REFERENCE_DIR: what runs before the agent has no reference");
        else if (!has_reference)
            build_error(build, command->mark, path, "$REFERENCE_DIR: the task has no reference");
    }
}

void build_steps(struct build *build)
{
    struct task_private *half = build->task->private_half;
    const struct experiment *experiment = build->suite->experiment;
    const struct node *shared = experiment == NULL ? NULL : experiment->fields;

    add_before(build, shared);
    add_before(build, build->file);
    add_steps(build->file, "post_run", &half->post_run, &half->post_run_count);
    add_steps(shared, "post_run", &half->post_run, &half->post_run_count);
    check_tokens(build, build->file, "pre_run");
    check_tokens(build, build->file, "post_run");
    check_tokens(build, shared, "pre_run");
    check_tokens(build, shared, "post_run");
}
