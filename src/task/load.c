/* One task: its text, the layers, both halves. */
#include <limits.h>
#include <stdarg.h>

#include "task/dataset.h"
#include "task/experiment.h"

void build_error(const struct build *build, struct mark mark, const char *path, const char *fmt,
                 ...)
{
    scoped(buf_done) struct buf message = {0};
    struct path at = {.name = path};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_error(build->schema.problems, mark, path[0] == '\0' ? NULL : &at, "%s",
                   buf_text(&message));
}

void build_later(const struct build *build, struct mark mark, const char *path, const char *fmt,
                 ...)
{
    scoped(buf_done) struct buf message = {0};
    struct path at = {.name = path};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_later(build->schema.problems, mark, &at, "%s", buf_text(&message));
}

void build_warning(const struct build *build, struct mark mark, const char *path, const char *fmt,
                   ...)
{
    scoped(buf_done) struct buf message = {0};
    struct path at = {.name = path};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_warning(build->schema.problems, mark, path[0] == '\0' ? NULL : &at, "%s",
                     buf_text(&message));
}

void build_note(const struct build *build, struct mark mark, const char *path, const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    struct path at = {.name = path};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    problems_note(build->schema.problems, mark, &at, "%s", buf_text(&message));
}

bool build_is_given(const struct build *build, const char *path)
{
    const struct node *node = node_find(build->raw, path);

    return node != NULL && node->kind != NODE_NULL;
}

/* $NAME, ${NAME} and a leading ~ by the environment. NULL: complained. */
static char *expand_text(const struct build *build, const struct node *node, const char *path)
{
    char *const *environment = build->loader->overrides->environment;
    scoped(buf_done) struct buf buf = {0};
    const char *text = node->text, *home = environment_get(environment, "HOME");
    size_t position = 0, copied = 0, start, length;

    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0') && home != NULL) {
        buf_text_append(&buf, home);
        copied = 1;
    }
    while (variable_next(text, &position, &start, &length)) {
        scoped(mem_freep) char *name = str_ndup(text + start, length);
        const char *value = environment_get(environment, name);
        size_t dollar = text[start - 1] == '{' ? start - 2 : start - 1;

        if (value == NULL) {
            build_error(build, node->mark, path, "the variable '%.60s' is not set", name);
            return NULL;
        }
        buf_append(&buf, text + copied, dollar - copied);
        buf_text_append(&buf, value);
        copied = position;
    }
    buf_text_append(&buf, text + copied);
    return buf_take(&buf);
}

char *build_path(const struct build *build, const struct node *node, const char *path, bool expand)
{
    scoped(mem_freep) char *text = expand ? expand_text(build, node, path) : str_dup(node->text);

    if (text == NULL)
        return NULL;
    const char *dir = node->mark.origin->dir;
    scoped(mem_freep) char *base = path_join(build->loader->cwd, dir == NULL ? "" : dir);
    scoped(mem_freep) char *whole = path_join(base, text);

    return path_normal(whole);
}

static void add_layer(struct build *build, const struct node *layer)
{
    if (layer != NULL)
        build->root = merge_layers(build->schema.arena, &set_block, build->root, layer);
}

/* The operator's driver of closedbook.yaml wins over what an experiment says. */
static void keep_driver(struct build *build)
{
    const struct node *suite = config_suite_layer(build->suite->config);
    const struct node *mine = node_find(suite, "sandbox.driver");
    const struct node *driver = node_find(build->root, "sandbox.driver");
    const char *source = driver->mark.origin->source;

    if (mine == NULL || (strcmp(source, "experiment") != 0 && strcmp(source, "variant") != 0))
        return;
    if (strcmp(mine->text, driver->text) != 0)
        build_note(build, driver->mark, "sandbox.driver",
                   "closedbook.yaml says '%s', which wins over the experiment's '%s'", mine->text,
                   driver->text);
    build->root = layer_alias(&build->schema, build->root, "sandbox", "driver",
                              node_new_text(build->schema.arena, mine->text, mine->mark));
}

/* A task that says that it takes no agent has no prompt for one: -T is for the others. The agents
 * that need no prompt may stand in. */
static void keep_no_agent(struct build *build)
{
    const struct node *own = node_find(build->file, "agent.type");
    const struct node *type = node_find(build->root, "agent.type");
    static const char *const needless[] = {"none", "nop", "oracle"};

    if (own == NULL || type == NULL || strcmp(own->text, "none") != 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(needless); i++) {
        if (strcmp(type->text, needless[i]) == 0)
            return;
    }
    build_note(build, own->mark, "agent.type",
               "the task takes no agent, so that the agent '%s' of %s is not for it", type->text,
               type->mark.origin->source);
    build->root = layer_alias(&build->schema, build->root, "agent", "type",
                              node_new_text(build->schema.arena, own->text, own->mark));
}

/* The layers in their order; fields that no other layer may set come from the file alone. */
static void merge_all(struct build *build)
{
    const struct config *config = build->suite->config;
    struct node *whole = node_new(build->schema.arena, NODE_MAP, build->file->mark);

    build->root = build->loader->defaults;
    add_layer(build, config_user_layer(config));
    add_layer(build, config_suite_layer(config));
    if (build->suite->experiment != NULL)
        add_layer(build, build->suite->experiment->layer);
    add_layer(build, build->file);
    if (build->variant != NULL)
        add_layer(build, build->variant->layer);
    keep_driver(build);
    add_layer(build, build->loader->flags);
    keep_no_agent(build);
    for (const struct field *field = task_block.fields; field->name != NULL; field++) {
        bool layered = block_field(&set_block, field->name) != NULL;
        const struct member *member = node_member(layered ? build->root : build->file, field->name);

        if (member != NULL)
            node_put(build->schema.arena, whole, member);
    }
    build->root = whole;
}

/* What is known of every task, skipped ones too. */
static void note_identity(struct build *build)
{
    struct task_private *half = build->task->private_half;
    const struct node *skip = node_get(build->file, "skip"), *tags = node_get(build->file, "tags");
    const char *id = node_get_text(build->file, "task_id");
    const char *description = node_get_text(build->file, "description");

    half->task_file = str_dup(build->origin->path);
    half->task_dir = str_dup(build->origin->dir);
    half->task_id = build->row == NULL ? str_dup(id == NULL ? "" : id)
                                       : str_format("%s/%s", id, build->row->id);
    half->description = str_dup(description == NULL ? "" : description);
    for (size_t i = 0; tags != NULL && i < tags->count; i++)
        str_list_add(&half->tags, tags->items[i]->text);
    if (skip != NULL && skip->kind == NODE_TEXT)
        half->skip_reason = str_dup(skip->text);
    else if (skip != NULL && skip->truth)
        half->skip_reason = str_dup("skip: true");
}

/* One task of the file: the variant's, or the only one. */
static void build_whole(struct build *build)
{
    struct task *task = build->task;
    struct task_private *half = task->private_half;
    const struct experiment *experiment = build->suite->experiment;

    half->suite_root = str_dup(build->suite->root);
    if (!path_is_below(half->task_dir, half->suite_root))
        build_error(build, (struct mark){.origin = build->origin}, "",
                    "the task is not inside the suite root '%s'", half->suite_root);
    for (size_t i = 0; build->dataset != NULL && i < build->dataset->files.count; i++) {
        str_list_add(&half->private_files, build->dataset->files.items[i]);
        str_list_add(&half->private_digests, build->dataset->digests.items[i]);
    }
    if (experiment != NULL) {
        str_list_add(&half->private_files, experiment->path);
        str_list_add(&half->private_digests, experiment->digest);
        task->repeats = experiment->repeats;
    }
    if (build->variant != NULL) {
        free(task->variant_id);
        task->variant_id = str_dup(build->variant->id);
        free(task->key);
        task->key = str_format("%s/%s", task->variant_id, half->task_id);
        if (build->variant->repeats != 0)
            task->repeats = build->variant->repeats;
    }
    merge_all(build);
    if (build->first_root == NULL)
        build->first_root = build->root;
    build_agent(build);
    build_public(build);
    build_private(build);
    build_plugins(build);
    build_mocks(build);
    build_check(build);
    task->lineage = merge_lineage(build->root, half->suite_root);
    task->resolved = node_to_json(build->root);
    build_digests(build);
}

void task_list_done(struct task_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        task_free(list->items[i]);
    free(list->items);
    *list = (struct task_list){0};
}

/* A further task of the file, which has its identity only. */
static void add_task(struct build *build, struct task_list *list)
{
    build->task = task_new();
    note_identity(build);
    build->task->variant_id = str_dup("default");
    build->task->key = str_dup(task_id(build->task));
    list->items = mem_resize(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = build->task;
}

static bool wants_variant(const struct build *build, const char *id)
{
    const struct task_selection *selection = build->loader->selection;
    const struct str_list *wanted = selection == NULL ? NULL : selection->variants;

    return wanted == NULL || wanted->count == 0 || str_list_has(wanted, id);
}

/* --only TASK takes every row, --only TASK/ROW that one. */
static bool wants_row(const struct build *build)
{
    const struct task_selection *selection = build->loader->selection;
    const struct str_list *only = selection == NULL ? NULL : selection->only;
    const char *id = node_get_text(build->file, "task_id");
    scoped(mem_freep) char *whole = str_format("%s/%s", id, build->row->id);

    return only == NULL || only->count == 0 || str_list_has(only, id) || str_list_has(only, whole);
}

/* More tasks than anybody means; said once. */
static bool is_full(const struct build *build)
{
    struct loader *loader = build->loader;

    if (loader->task_count++ < loader->task_max)
        return false;
    if (loader->task_count == loader->task_max + 1)
        build_error(build, (struct mark){.origin = build->origin}, "",
                    "more than %zu tasks, with those of rows and variants", loader->task_max);
    return true;
}

/* Each variant that is wanted of what build->file is now. */
static void build_variants(struct build *build, struct task_list *list)
{
    const struct experiment *experiment = build->suite->experiment;
    size_t count = experiment == NULL ? 0 : experiment->variant_count;

    for (size_t i = 0; i < size_max(count, 1); i++) {
        if (count > 0 && !wants_variant(build, experiment->variants[i].id))
            continue;
        if (is_full(build))
            return;
        add_task(build, list);
        mem_freep(&build->task->private_half->skip_reason);
        build->variant = count == 0 ? NULL : &experiment->variants[i];
        build_whole(build);
    }
}

/* A trial's folder is named by task and row together. */
static bool is_name(const struct build *build, const struct dataset_row *row)
{
    size_t size = strlen(node_get_text(build->file, "task_id")) + 1 + strlen(row->id);

    if (size <= NAME_MAX)
        return true;
    build_error(build, row->fields->mark, "dataset",
                "the task's and the row's id together have %zu characters, at most %d expected",
                size - 1, NAME_MAX - 1);
    return false;
}

static void build_rows(struct build *build, struct task_list *list)
{
    scoped(dataset_done) struct dataset dataset = {0};

    if (node_get_text(build->file, "task_id") == NULL || !dataset_read(build, &dataset))
        return;
    build->dataset = &dataset;
    for (size_t i = 0; i < dataset.count && build->loader->task_count <= build->loader->task_max;
         i++) {
        const struct node *filled =
            is_name(build, &dataset.rows[i]) ? dataset_fill(build, &dataset.rows[i]) : NULL;

        build->row = &dataset.rows[i];
        if (filled == NULL || !wants_row(build))
            continue;
        build->file = schema_load(&build->schema, &task_block, filled, NULL);
        build_variants(build, list);
    }
    build->dataset = NULL;
}

static enum load_outcome make_tasks(struct build *build, struct task_list *ret)
{
    build->suite =
        loader_suite(build->loader, build->task->private_half->task_dir, build->schema.problems);
    if (build->suite->experiment_broken)
        return LOAD_TASK; /* with errors, so that nothing comes of it */
    if (node_get(build->file, "dataset") != NULL)
        build_rows(build, ret);
    else
        build_variants(build, ret);
    return ret->count > 1 ? LOAD_TASK : LOAD_UNSELECTED;
}

static void show(const struct build *build)
{
    const struct loader *loader = build->loader;
    struct task_seen seen = {build->origin, build->raw, build->first_root};

    if (loader->visit != NULL)
        loader->visit(loader->visit_context, &seen);
}

enum load_outcome load_tasks(struct loader *loader, const struct origin *origin,
                             struct task_list *ret, unsigned *ret_line, struct problems *problems)
{
    scoped(arena_done) struct arena arena = {0};
    struct build build = {.loader = loader, .origin = origin, .schema = {&arena, problems}};
    size_t errors_before = problems->error_count;
    const struct node *root = yaml_read(&arena, origin, problems);
    const struct member *id = node_member(root, "task_id");

    if (root == NULL) {
        show(&build);
        return LOAD_BROKEN;
    }
    if (id == NULL)
        return LOAD_NO_TASK;
    build.raw = root;
    build.file = schema_load(&build.schema, &task_block, root, NULL);
    add_task(&build, ret); /* stands for the file until it is known what the file makes */

    const struct task_private *half = build.task->private_half;
    const struct task_selection *selection = loader->selection;

    char *unmet = requires_unmet(node_get(build.file, "requires"), loader->overrides->version);

    if (unmet != NULL) {
        free(build.task->private_half->skip_reason);
        build.task->private_half->skip_reason = unmet;
    }
    *ret_line = id->mark.line;
    if (!selection_matches(selection, half))
        return LOAD_UNSELECTED;
    if (unmet != NULL ||
        (half->skip_reason != NULL && (selection == NULL || !selection->include_skipped)))
        return LOAD_SKIPPED;

    enum load_outcome outcome = make_tasks(&build, ret);

    show(&build);
    return problems->error_count > errors_before ? LOAD_TASK : outcome;
}
