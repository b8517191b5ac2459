#include "task/node.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

#define DESCRIBED_CHARS_MAX 60

struct node *node_new(struct arena *arena, enum node_kind kind, struct mark mark)
{
    struct node *node = arena_new(arena, 1, sizeof(*node));

    node->kind = kind;
    node->mark = mark;
    node->height = 1;
    node->weight = 1;
    return node;
}

struct node *node_new_text(struct arena *arena, const char *text, struct mark mark)
{
    struct node *node = node_new(arena, NODE_TEXT, mark);

    node->text = arena_text(arena, text, strlen(text));
    return node;
}

struct node *node_new_plain(struct arena *arena, const char *text, struct mark mark)
{
    struct node *node = node_new_text(arena, text, mark);

    node->plain = true;
    node_resolve(node);
    return node;
}

static void outgrow(struct node *parent, const struct node *child)
{
    parent->weight += child->weight;
    if (parent->height <= child->height)
        parent->height = child->height + 1;
}

void node_add_item(struct arena *arena, struct node *list, struct node *item)
{
    list->items = arena_grow(arena, list->items, list->count, sizeof(struct node *));
    list->items[list->count++] = item;
    outgrow(list, item);
}

void node_put(struct arena *arena, struct node *map, const struct member *member)
{
    outgrow(map, member->value);
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->members[i].key, member->key) == 0) {
            map->members[i] = *member;
            return;
        }
    }
    map->members = arena_grow(arena, map->members, map->count, sizeof(struct member));
    map->members[map->count++] = *member;
}

const struct member *node_member(const struct node *map, const char *key)
{
    if (map == NULL || map->kind != NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->members[i].key, key) == 0)
            return &map->members[i];
    }
    return NULL;
}

struct node *node_get(const struct node *map, const char *key)
{
    const struct member *member = node_member(map, key);

    return member == NULL ? NULL : member->value;
}

struct node *node_find(const struct node *map, const char *path)
{
    for (;;) {
        size_t length = strcspn(path, ".");
        scoped(mem_freep) char *key = str_ndup(path, length);
        struct node *found = node_get(map, key);

        if (path[length] == '\0')
            return found;
        map = found;
        path += length + 1;
    }
}

const char *node_get_text(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);

    return node != NULL && node->kind == NODE_TEXT ? node->text : NULL;
}

double node_get_real(const struct node *map, const char *key, double otherwise)
{
    const struct node *node = node_get(map, key);

    if (node == NULL)
        return otherwise;
    if (node->kind == NODE_INT)
        return (double)node->integer;
    return node->kind == NODE_REAL ? node->real : otherwise;
}

bool node_get_bool(const struct node *map, const char *key)
{
    const struct node *node = node_get(map, key);

    return node != NULL && node->kind == NODE_BOOL && node->truth;
}

const char *node_describe(struct arena *arena, const struct node *node)
{
    const char *text = node->text == NULL ? "" : node->text;
    size_t shown = 0;
    uint32_t rune;

    /* Cut between characters and before a line's end. */
    while (text[shown] != '\0' && text[shown] != '\n' && shown < DESCRIBED_CHARS_MAX) {
        size_t size = utf8_next(text + shown, strlen(text + shown), &rune);

        shown += size == 0 ? 1 : size;
    }
    const char *more = text[shown] == '\0' ? "" : "...";

    switch (node->kind) {
    case NODE_NULL:
        return "nothing";
    case NODE_BOOL:
        return node->truth ? "true" : "false";
    case NODE_INT:
    case NODE_REAL:
        return arena_format(arena, "the number %.*s%s", (int)shown, text, more);
    case NODE_TEXT:
        return arena_format(arena, "the text '%.*s%s'", (int)shown, text, more);
    case NODE_LIST:
        return node->count == 0 ? "an empty list" : "a list";
    case NODE_MAP:
        return "a map";
    }
    return "";
}

static json_t *map_to_json(const struct node *node)
{
    json_t *object = json_object();

    for (size_t i = 0; i < node->count; i++)
        json_put(object, node->members[i].key, node_to_json(node->members[i].value));
    return object;
}

json_t *node_to_json(const struct node *node)
{
    switch (node->kind) {
    case NODE_NULL:
        return json_null();
    case NODE_BOOL:
        return json_boolean(node->truth);
    case NODE_INT:
        return json_integer(node->integer);
    case NODE_REAL:
        return isfinite(node->real) ? json_real(node->real) : json_null();
    case NODE_TEXT:
        return json_text(node->text, strlen(node->text));
    case NODE_MAP:
        return map_to_json(node);
    case NODE_LIST:
        break;
    }
    json_t *array = json_array();

    for (size_t i = 0; i < node->count; i++)
        json_push(array, node_to_json(node->items[i]));
    return array;
}
