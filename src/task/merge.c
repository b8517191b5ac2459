#include "task/merge.h"

#include "base/fs.h"
#include "base/mem.h"

static struct node *merge_free(struct arena *arena, const struct node *lower,
                               const struct node *upper)
{
    struct node *map = node_new(arena, NODE_MAP, upper->mark);

    for (size_t i = 0; i < lower->count; i++)
        node_put(arena, map, &lower->members[i]);
    for (size_t i = 0; i < upper->count; i++)
        node_put(arena, map, &upper->members[i]);
    return map;
}

static void add_all(struct arena *arena, struct node *list, const struct node *items)
{
    for (size_t i = 0; i < items->count; i++)
        node_add_item(arena, list, items->items[i]);
}

static struct node *join(struct arena *arena, const struct node *lower, const struct node *upper)
{
    struct node *list = node_new(arena, NODE_LIST, upper->mark);
    bool task_above = strcmp(upper->mark.origin->source, "task") == 0;

    add_all(arena, list, task_above ? upper : lower);
    add_all(arena, list, task_above ? lower : upper);
    return list;
}

static struct node *merge_values(struct arena *arena, const struct field *field, struct node *lower,
                                 struct node *upper)
{
    if (lower == NULL || lower->kind != upper->kind)
        return upper;
    if (upper->kind == NODE_MAP && (field->types & TYPE_BLOCK) != 0)
        return merge_layers(arena, field->block, lower, upper);
    if (upper->kind == NODE_MAP && (field->types & TYPE_MAP) != 0)
        return merge_free(arena, lower, upper);
    if (upper->kind == NODE_LIST && (field->flags & FIELD_APPEND) != 0)
        return join(arena, lower, upper);
    return upper;
}

struct node *merge_layers(struct arena *arena, const struct block *block, const struct node *lower,
                          const struct node *upper)
{
    const struct node *some = upper != NULL ? upper : lower;

    ASSERT(some != NULL);
    struct node *map = node_new(arena, NODE_MAP, some->mark);

    for (const struct field *field = block->fields; field->name != NULL; field++) {
        const struct member *low = node_member(lower, field->name);
        const struct member *high = node_member(upper, field->name);

        if (low == NULL && high == NULL)
            continue;
        struct member member = high != NULL ? *high : *low;

        if (high != NULL)
            member.value = merge_values(arena, field, low == NULL ? NULL : low->value, high->value);
        node_put(arena, map, &member);
    }
    return map;
}

/* --- lineage -----------------------------------------------------------------------------------
 */

struct lineage {
    json_t *entries;
    const char *root; /* NULL: files are named as they are */
};

/* The file of an origin, NULL for a flag and for the defaults: what the record may say. */
static json_t *file_name(const struct lineage *lineage, const struct origin *origin)
{
    if (origin->path == NULL)
        return json_null();
    size_t length = lineage->root == NULL ? 0 : strlen(lineage->root);
    const char *path = origin->path;

    if (lineage->root == NULL)
        return json_text(origin->file, strlen(origin->file));
    if (strncmp(path, lineage->root, length) == 0 && path[length] == '/')
        path += length + 1;
    else
        path = path_base(path);
    return json_text(path, strlen(path));
}

static void put_entry(const struct lineage *lineage, const struct path *path,
                      const struct node *node, json_t *value)
{
    scoped(mem_freep) char *name = path_format(path);
    json_t *entry = json_object();

    json_put(entry, "value", value);
    json_put_text(entry, "source", node->mark.origin->source);
    json_put(entry, "file", file_name(lineage, node->mark.origin));
    if (node->mark.line > 0 && node->mark.origin->path != NULL)
        json_put_int(entry, "line", node->mark.line);
    json_put(lineage->entries, name, entry);
}

/* A list of maps has an entry for each item, which names its type only. */
static void add_items(const struct lineage *lineage, const struct node *list,
                      const struct path *path)
{
    for (size_t i = 0; i < list->count; i++) {
        struct path at = {.up = path, .index = i};

        put_entry(lineage, &at, list->items[i],
                  json_text_or_null(node_get_text(list->items[i], "type")));
    }
}

static void add_lineage(const struct lineage *lineage, const struct node *node,
                        const struct path *path)
{
    if (node->kind == NODE_LIST && node->count > 0 && node->items[0]->kind == NODE_MAP) {
        add_items(lineage, node, path);
        return;
    }
    if (node->kind != NODE_MAP || (node->count == 0 && path != NULL)) {
        put_entry(lineage, path, node, node_to_json(node));
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        struct path at = {.up = path, .name = node->members[i].key};

        add_lineage(lineage, node->members[i].value, &at);
    }
}

json_t *merge_lineage(const struct node *map, const char *root)
{
    struct lineage lineage = {json_object(), root};

    add_lineage(&lineage, map, NULL);
    return lineage.entries;
}
