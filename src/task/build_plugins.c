/* agent.plugins and agent.ignore_patterns to struct task_plugin. */
#include "task/internal.h"

/* A pattern stays below the plugin's root, "!" in front or not. */
static void add_pattern(const struct build *build, const struct node *item, const char *path,
                        struct str_list *patterns)
{
    const char *text = item->text + (item->text[0] == '!');
    scoped(mem_freep) char *clean = path_normal(text);

    if (text[0] == '\0' || text[0] == '/' || !path_is_inside(clean))
        build_error(build, item->mark, path,
                    "a pattern below the plugin's root expected, without a leading '/' and '..', "
                    "found '%.200s'",
                    item->text);
    else
        str_list_add_take(patterns, str_format("%s%s", item->text[0] == '!' ? "!" : "",
                                               strcmp(clean, ".") == 0 ? "**" : clean));
}

static void add_plugin(const struct build *build, const struct node *item, size_t index)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *node = node_get(item, "path"), *include = node_get(item, "include");
    scoped(mem_freep) char *name = str_format("agent.plugins[%zu].path", index);
    scoped(mem_freep) char *include_name = str_format("agent.plugins[%zu].include", index);
    scoped(mem_freep) char *path = node == NULL ? NULL : build_path(build, node, name, true);
    const char *reference = build->task->private_half->reference_dir;
    bool empty = false;

    if (path == NULL)
        return;
    scoped(mem_freep) char *wrong = source_check_dir(build->loader->reader, path, &empty);

    if (wrong != NULL)
        build_error(build, node->mark, name, "'%s' %s", path, wrong);
    else if (reference != NULL && path_is_below(path, reference))
        build_error(build, node->mark, name,
                    "'%s' lies in the reference, which the agent must not get", path);
    struct task_plugin *plugin = &agent->plugins[agent->plugin_count++];

    *plugin = (struct task_plugin){
        .path = take(path), .file = str_dup(node->mark.origin->file), .line = node->mark.line};
    for (size_t i = 0; include != NULL && i < include->count; i++)
        add_pattern(build, include->items[i], include_name, &plugin->include);
}

void build_plugins(const struct build *build)
{
    struct task_agent *agent = &build->task->public_half->agent;
    const struct node *list = node_find(build->root, "agent.plugins");
    const struct node *ignore = node_find(build->root, "agent.ignore_patterns");
    size_t count = list == NULL ? 0 : list->count;

    if (count > TASK_PLUGINS_MAX) {
        build_error(build, list->mark, "agent.plugins", "at most %d plugins, found %zu",
                    TASK_PLUGINS_MAX, count);
        return;
    }
    agent->plugins = mem_new(size_max(count, 1), sizeof(*agent->plugins));
    for (size_t i = 0; i < count; i++)
        add_plugin(build, list->items[i], i);
    for (size_t i = 0; ignore != NULL && i < ignore->count; i++)
        str_list_add(&agent->plugin_ignore, ignore->items[i]->text);
}

void task_plugins_done(struct task_agent *agent)
{
    for (size_t i = 0; i < agent->plugin_count; i++) {
        free(agent->plugins[i].path);
        free(agent->plugins[i].file);
        str_list_done(&agent->plugins[i].include);
    }
    free(agent->plugins);
    str_list_done(&agent->plugin_ignore);
}
