/* The private half: reference, criteria, and which variables graders need. */
#include "task/internal.h"

/* --- reference ---------------------------------------------------------------------------------
 */

static void read_reference_dir(const struct build *build, const struct node *node, const char *path)
{
    scoped(mem_freep) char *dir = build_path(build, node, path, true);
    bool empty = false;

    if (dir == NULL)
        return;
    scoped(mem_freep) char *wrong = source_check_dir(build->loader->reader, dir, &empty);

    if (wrong == NULL && empty)
        wrong = str_dup("is empty: a reference must hold something");
    if (wrong != NULL)
        build_error(build, node->mark, path, "'%s' %s", dir, wrong);
    build->task->private_half->reference_dir = take(dir);
}

static void read_reference_file(const struct build *build, const struct node *node)
{
    bool strict = build->loader->overrides->strict;
    scoped(mem_freep) char *file = build_path(build, node, "reference.file", true);

    static const char legacy[] =
        "is legacy: put the file in a folder and name that as reference.directory";

    if (strict)
        build_error(build, node->mark, "reference.file", "%s", legacy);
    else
        build_warning(build, node->mark, "reference.file", "%s", legacy);
    if (file == NULL)
        return;
    scoped(mem_freep) char *wrong = source_check_file(build->loader->reader, file);

    if (wrong != NULL)
        build_error(build, node->mark, "reference.file", "'%s' %s", file, wrong);
    build->task->private_half->reference_file = take(file);
}

static void read_reference(const struct build *build)
{
    const struct node *block = node_get(build->file, "reference");
    const struct node *alias = node_get(build->file, "reference_dir");
    const struct node *directory = node_get(block, "directory"), *file = node_get(block, "file");
    int count = (alias != NULL) + (directory != NULL) + (file != NULL);

    if (count > 1) {
        const struct node *second = alias != NULL ? alias : file;

        build_error(build, second->mark, "reference",
                    "one of reference.directory, reference.file and reference_dir expected, "
                    "found %d",
                    count);
        return;
    }
    if (directory != NULL)
        read_reference_dir(build, directory, "reference.directory");
    if (alias != NULL)
        read_reference_dir(build, alias, "reference_dir");
    if (file != NULL)
        read_reference_file(build, file);
}

/* --- criteria ----------------------------------------------------------------------------------
 */

static enum criterion_kind kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum criterion_kind kind;
    } kinds[] = {
        {"file_exists", CRITERION_FILE_EXISTS},
        {"file_contains", CRITERION_FILE_CONTAINS},
        {"file_matches_regex", CRITERION_FILE_MATCHES_REGEX},
        {"file_check", CRITERION_FILE_CHECK},
        {"json_check", CRITERION_JSON_CHECK},
        {"run_command", CRITERION_RUN_COMMAND},
        {"command_executed", CRITERION_COMMAND_EXECUTED},
        {"command_not_executed", CRITERION_COMMAND_EXECUTED},
        {"classification_match", CRITERION_CLASSIFICATION_MATCH},
        {"commands_efficiency", CRITERION_COMMANDS_EFFICIENCY},
        {"skill_triggered", CRITERION_SKILL_TRIGGERED},
        {"cli_called", CRITERION_CLI_CALLED},
        {"reference_comparison", CRITERION_REFERENCE_COMPARISON},
        {"llm_judge", CRITERION_LLM_JUDGE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0)
            return kinds[i].kind;
    }
    return str_starts(name, "exec:") ? CRITERION_EXEC : CRITERION_COUNT;
}

static bool is_common(const char *key)
{
    for (const struct field *field = criterion_kinds.common; field->name != NULL; field++) {
        if (strcmp(field->name, key) == 0)
            return true;
    }
    return false;
}

static json_t *parameters(const struct node *item)
{
    json_t *params = json_object();

    for (size_t i = 0; i < item->count; i++) {
        if (!is_common(item->members[i].key))
            json_put(params, item->members[i].key, node_to_json(item->members[i].value));
    }
    return params;
}

static void check_counts(const struct build *build, const struct node *item, size_t index)
{
    const struct node *max = node_get(item, "max_count");
    double min = node_get_real(item, "min_count", 0); /* cli_called has no default: see there */
    scoped(mem_freep) char *path = str_format("success_criteria[%zu].max_count", index);

    if (max != NULL && (double)max->integer < min)
        build_error(build, max->mark, path, "at least min_count (%.0f) expected, found %s", min,
                    max->text);
}

static bool is_metric(const char *name)
{
    static const char *const names[] = {"count", "mean",     "median",   "std",         "min",
                                        "max",   "accuracy", "macro_f1", "weighted_f1", "micro_f1"};
    static const char *const of_labels[] = {"precision.", "recall.", "f1."};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_labels); i++) {
        if (str_starts(name, of_labels[i]) && strlen(name) > strlen(of_labels[i]))
            return true;
    }
    return false;
}

/* NULL: none, or complained. */
static json_t *suite_thresholds(const struct build *build, const struct node *item, size_t index)
{
    const struct node *map = node_get(item, "suite_thresholds");
    scoped(mem_freep) char *path = str_format("success_criteria[%zu].suite_thresholds", index);
    size_t errors_before = build->schema.problems->error_count;

    if (map == NULL)
        return NULL;
    if (build->row == NULL)
        build_error(build, map->mark, path, "the task has no dataset, of whose rows this would be");
    if (!(node_get_real(item, "weight", 1) > 0))
        build_error(build, map->mark, path, "a criterion of weight 0 only informs: leave one out");
    for (size_t i = 0; i < map->count; i++) {
        const struct member *member = &map->members[i];

        if (!is_metric(member->key))
            build_error(build, member->mark, path,
                        "'%.60s' is no metric: count, mean, median, std, min, max, accuracy, "
                        "macro_f1, weighted_f1, micro_f1, precision.LABEL, recall.LABEL or "
                        "f1.LABEL expected",
                        member->key);
        else if (member->value->kind != NODE_INT && member->value->kind != NODE_REAL)
            build_error(build, member->value->mark, path, "%s: a number expected", member->key);
    }
    return build->schema.problems->error_count > errors_before ? NULL : node_to_json(map);
}

static void add_criterion(const struct build *build, const struct node *item, size_t index)
{
    struct task_private *half = build->task->private_half;
    const char *type = node_get_text(item, "type");
    const char *description = node_get_text(item, "description");
    const struct kind *row = type == NULL ? NULL : kinds_find(&criterion_kinds, type);

    if (row == NULL || kind_of(type) == CRITERION_COUNT)
        return; /* complained about where it was checked */
    struct criterion *criterion = &half->criteria[half->criterion_count++];

    *criterion = (struct criterion){
        .kind = kind_of(type),
        .type_name = row->name, /* of the constant table, so it outlives the task */
        .description = str_dup(description == NULL ? "" : description),
        .weight = node_get_real(item, "weight", 1),
        .pass_threshold = node_get_real(item, "pass_threshold", 0.9),
        .params = parameters(item),
        .suite_thresholds = suite_thresholds(build, item, index),
        .file = str_dup(build->origin->file),
        .line = item->mark.line,
    };
    if (strcmp(type, "command_not_executed") == 0) {
        json_put_int(criterion->params, "min_count", 0);
        json_put_int(criterion->params, "max_count", 0);
    }
    if (criterion->kind == CRITERION_EXEC)
        build_exec(build, criterion, node_get(item, "type"), index);
    build_stop_early(build, criterion, item, index);
    check_counts(build, item, index);
    build_check_criterion(build, criterion, item, index);
}

static void read_criteria(const struct build *build)
{
    const struct node *list = node_get(build->file, "success_criteria");

    if (list == NULL)
        return;
    build->task->private_half->criteria = mem_new(list->count, sizeof(struct criterion));
    for (size_t i = 0; i < list->count; i++)
        add_criterion(build, list->items[i], i);
}

/* --- variables of the suite --------------------------------------------------------------------
 */

bool path_is_below(const char *path, const char *root)
{
    size_t length = strlen(root);

    while (length > 0 && root[length - 1] == '/')
        length--;
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool text_has_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    for (const char *s = strstr(text, word); s != NULL; s = strstr(s + 1, word)) {
        char before = s == text ? ' ' : s[-1], after = s[length];
        const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

        if (strchr(letters, before) == NULL && (after == '\0' || strchr(letters, after) == NULL))
            return true;
    }
    return false;
}

bool is_suite_variable(const char *suite_root, const char *name, const char *value)
{
    static const char *const always_set[] = {"PWD",  "OLDPWD",   "HOME",          "TMPDIR",
                                             "_",    "TASK_DIR", "REFERENCE_DIR", "INPUT_DIR",
                                             "PATH", "SHELL"};

    for (size_t i = 0; i < ARRAY_SIZE(always_set); i++) {
        if (strcmp(always_set[i], name) == 0)
            return false;
    }
    if (value[0] != '/')
        return false;
    scoped(mem_freep) char *path = path_normal(value);

    return path_is_below(path, suite_root);
}

static bool steps_use(const struct task_step *steps, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (text_has_word(steps[i].command, name))
            return true;
    }
    return false;
}

static bool commands_use(const struct task_private *half, const char *name)
{
    if (steps_use(half->pre_run, half->pre_run_count, name) ||
        steps_use(half->post_run, half->post_run_count, name))
        return true;
    for (size_t i = 0; i < half->criterion_count; i++) {
        const struct criterion *criterion = &half->criteria[i];
        const char *command = json_get_text(criterion->params, "command");

        if (criterion->kind == CRITERION_RUN_COMMAND && command != NULL &&
            text_has_word(command, name))
            return true;
    }
    return false;
}

static void find_suite_variables(const struct build *build)
{
    struct task_private *half = build->task->private_half;
    char *const *variable = build->loader->overrides->environment;

    for (; variable != NULL && *variable != NULL; variable++) {
        const char *equals = strchr(*variable, '=');

        if (equals == NULL || equals == *variable)
            continue;
        scoped(mem_freep) char *name = str_ndup(*variable, (size_t)(equals - *variable));

        if (is_suite_variable(half->suite_root, name, equals + 1) && commands_use(half, name))
            str_list_add(&half->suite_variables, name);
    }
    str_list_sort(&half->suite_variables);
}

/* A flag wins over what criteria name, the configuration does not. */
static void read_judge(const struct build *build)
{
    struct task_private *half = build->task->private_half;
    const char *flag = build->loader->overrides->judge_model;
    const char *configured =
        build->suite->config == NULL ? NULL : config_judge(build->suite->config);

    if (build->loader->overrides->simulator_model != NULL)
        half->simulator_model = str_dup(build->loader->overrides->simulator_model);
    half->judge_forced = flag != NULL;
    if (flag != NULL || configured != NULL)
        half->judge_model = str_dup(flag != NULL ? flag : configured);
}

static void read_leaks(const struct build *build)
{
    struct task_private *half = build->task->private_half;
    const struct node *list = node_get(build->file, "leak_ok");

    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const char *file = node_get_text(list->items[i], "file");
        const char *reason = node_get_text(list->items[i], "reason");

        if (file == NULL || reason == NULL)
            continue; /* complained about */
        half->leaks_ok =
            mem_resize(half->leaks_ok, half->leak_ok_count + 1, sizeof(*half->leaks_ok));
        half->leaks_ok[half->leak_ok_count++] =
            (struct task_leak){.file = str_dup(file), .reason = str_dup(reason)};
    }
}

void build_private(struct build *build)
{
    read_reference(build);
    build_simulation(build);
    read_criteria(build);
    build_stop_limits(build);
    read_judge(build);
    build_steps(build);
    read_leaks(build);
    find_suite_variables(build);
    build_root(build, "grading", &build->task->private_half->root);
}
