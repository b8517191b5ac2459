/* The task as a whole, and the task among others. */
#include <string.h>

#include "lint/internal.h"

void check_timeouts(struct target *target)
{
    const struct node *limits = node_get(target->merged, "run_limits");
    const struct node *turn = node_get(limits, "turn_timeout");
    double turn_s = node_get_real(limits, "turn_timeout", 0);
    double task_s = node_get_real(limits, "task_timeout", 0);

    if (turn != NULL && turn_s > 0 && task_s > 0 && turn_s >= task_s)
        found(target, turn->mark, "run_limits.turn_timeout",
              "%g s, and the task ends after task_timeout, %g s", turn_s, task_s);
}

void check_duplicate_id(struct target *target)
{
    const struct member *member = node_member(target->file, "task_id");
    struct lint *lint = target->lint;

    if (member == NULL || member->value->text == NULL)
        return;
    for (size_t i = 0; i < lint->id_count; i++) {
        if (strcmp(lint->ids[i].id, member->value->text) != 0)
            continue;
        found(target, member->mark, "task_id", "'%s' is also the id of %s:%u", lint->ids[i].id,
              lint->ids[i].file, lint->ids[i].line);
        return;
    }
    if ((lint->id_count & (lint->id_count - 1)) == 0)
        lint->ids =
            mem_resize(lint->ids, lint->id_count == 0 ? 1 : lint->id_count * 2, sizeof(*lint->ids));
    lint->ids[lint->id_count++] = (struct first_id){
        str_dup(member->value->text), str_dup(target->origin->file), member->mark.line};
}

/* Skills of the plugin at path, added to *ret. */
static void take_skills(const struct target *target, const char *path, struct str_list *ret)
{
    scoped(mem_freep) char *folder = path_join(path, "skills");
    struct str_list names = {0};

    if (!list_folder(target, folder, &names) && !list_folder(target, path, &names))
        return;
    for (size_t i = 0; i < names.count; i++) {
        size_t length = strlen(names.items[i]);

        if (names.items[i][length - 1] == '/')
            names.items[i][length - 1] = '\0';
        str_list_add(ret, names.items[i]);
    }
    str_list_done(&names);
}

/* False: not every plugin can be looked into, so nothing can be said. */
static bool take_all_skills(const struct target *target, struct str_list *ret)
{
    const struct node *plugins = setting(target, "agent.plugins");

    if (plugins == NULL || plugins->kind != NODE_LIST || plugins->count == 0)
        return false;
    for (size_t i = 0; i < plugins->count; i++) {
        const struct node *node = node_get(plugins->items[i], "path");
        scoped(mem_freep) char *path =
            node != NULL && node->kind == NODE_TEXT ? yaml_path(target, node) : NULL;

        if (path == NULL)
            return false;
        take_skills(target, path, ret);
    }
    return ret->count > 0;
}

void check_skills(struct target *target)
{
    struct criterion_seen criterion;
    struct str_list skills = {0};
    size_t position = 0;
    bool is_known = false, looked = false;

    while (next_criterion(target, &position, &criterion)) {
        const struct node *node = node_get(criterion.node, "skill_name");
        scoped(mem_freep) char *place = str_format("%s.skill_name", criterion.place);

        if (strcmp(criterion.type, "skill_triggered") != 0 || node == NULL || node->text == NULL ||
            strchr(node->text, '$') != NULL)
            continue;
        if (!looked)
            is_known = take_all_skills(target, &skills);
        looked = true;
        const char *colon = strrchr(node->text, ':');
        const char *name = colon == NULL ? node->text : colon + 1;

        if (!is_known || str_list_has(&skills, name))
            continue;
        const char *nearest = str_nearest(name, (const char *const *)skills.items, skills.count);

        found(target, node->mark, place, "'%s'%s%s%s", name,
              nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
              nearest == NULL ? "" : "'?");
    }
    str_list_done(&skills);
}

static bool is_old_boolean(const struct node *node, bool *ret)
{
    static const char *const truths[] = {"yes", "on"}, *const falsehoods[] = {"no", "off"};

    if (node == NULL || node->kind != NODE_TEXT || !node->plain)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(truths); i++) {
        if (strcasecmp(node->text, truths[i]) == 0 || strcasecmp(node->text, falsehoods[i]) == 0) {
            *ret = strcasecmp(node->text, truths[i]) == 0;
            return true;
        }
    }
    return false;
}

static void check_boolean(struct target *target, const struct node *map, const char *field,
                          const char *prefix)
{
    const struct node *node = node_get(map, field);
    scoped(mem_freep) char *place =
        str_format("%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", field);
    bool truth = false;

    if (!is_old_boolean(node, &truth))
        return;
    scoped(mem_freep) char *message = str_format("'%s' for a truth value", node->text);

    found_fixable(target, node, place, truth ? "true" : "false", message);
}

void check_old_booleans(struct target *target)
{
    static const char *const fields[] = {
        "must_match",        "score_from_stdout",    "read_only",     "require_success",
        "include_reference", "include_agent_output", "case_sensitive"};
    static const char *const blocks[][2] = {{"run_limits", "stop_early"},
                                            {"run_limits", "count_cached_input"},
                                            {"simulation", "enabled"},
                                            {"simulation", "stop_on_criteria_pass"}};
    struct criterion_seen criterion;
    size_t position = 0;

    check_boolean(target, target->file, "skip", "");
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
        check_boolean(target, node_get(target->file, blocks[i][0]), blocks[i][1], blocks[i][0]);
    while (next_criterion(target, &position, &criterion))
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            check_boolean(target, criterion.node, fields[i], criterion.place);
}
