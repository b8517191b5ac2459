/* Checks a tree against the tables and makes the tree of what is valid. */
#include "task/schema.h"

#include <ctype.h>
#include <math.h>
#include <strings.h>

#include "base/str.h"

#define NAMES_MAX 128

static struct node *load_field(const struct loader_context *context, const struct field *field,
                               const struct node *node, const struct path *path);

static struct node *wrong(const struct loader_context *context, const struct field *field,
                          const struct node *node, const struct path *path)
{
    const char *hint = "";

    if ((field->types & TYPE_TEXT) != 0 && field->choices == NULL && node->plain &&
        (node->kind == NODE_INT || node->kind == NODE_REAL || node->kind == NODE_BOOL))
        hint = ": put it in quotes";
    problems_error(context->problems, node->mark, path, "%s expected, found %s%s",
                   schema_expected(context->arena, field), node_describe(context->arena, node),
                   hint);
    return NULL;
}

/* --- scalars -----------------------------------------------------------------------------------
 */

/* yes, no, on, off in any case: what files written for YAML 1.1 mean by a bool. */
static bool is_old_bool(const struct node *node, bool *ret)
{
    static const char *const names[] = {"no", "off", "yes", "on"};

    if (node->kind != NODE_TEXT || !node->plain)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(node->text, names[i]) == 0) {
            *ret = i >= 2;
            return true;
        }
    }
    return false;
}

static struct node *load_old_bool(const struct loader_context *context, const struct node *node,
                                  const struct path *path, bool truth)
{
    struct node *copy = node_new_text(context->arena, node->text, node->mark);

    copy->kind = NODE_BOOL;
    copy->truth = truth;
    problems_note(context->problems, node->mark, path,
                  "'%s' is read as %s: YAML 1.2 wants true or false here", node->text,
                  truth ? "true" : "false");
    return copy;
}

static bool is_choice(const struct field *field, const char *text)
{
    if ((field->flags & FIELD_OPEN_CHOICES) != 0 && strchr(text, '/') != NULL)
        return true;
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        if (strcmp(field->choices[i], text) == 0)
            return true;
    }
    return false;
}

static size_t count_names(const char *const *names)
{
    size_t count = 0;

    while (names[count] != NULL)
        count++;
    return count;
}

static bool is_blank(const char *text)
{
    while (*text != '\0' && isspace((unsigned char)*text))
        text++;
    return *text == '\0';
}

static struct node *load_text(const struct loader_context *context, const struct field *field,
                              const struct node *node, const struct path *path)
{
    if (field->choices != NULL && !is_choice(field, node->text)) {
        const char *near = str_nearest(node->text, field->choices, count_names(field->choices));

        if (near == NULL)
            return wrong(context, field, node, path);
        problems_error(context->problems, node->mark, path,
                       "unknown value '%.60s', did you mean '%s'?", node->text, near);
        return NULL;
    }
    if (!form_accepts(field->form, node->text))
        return wrong(context, field, node, path);
    if ((field->flags & FIELD_NOT_EMPTY) != 0 && is_blank(node->text)) {
        problems_error(context->problems, node->mark, path, "a text expected, found a blank one");
        return NULL;
    }
    return node_new_text(context->arena, node->text, node->mark);
}

static struct node *load_number(const struct loader_context *context, const struct field *field,
                                const struct node *node, const struct path *path)
{
    double value = node->kind == NODE_INT ? (double)node->integer : node->real;
    bool fits = isfinite(value) != 0;

    if ((field->flags & FIELD_RANGE) != 0 && fits)
        fits = value <= field->max && value >= field->min &&
               ((field->flags & FIELD_ABOVE_MIN) == 0 || value > field->min);
    if (!fits)
        return wrong(context, field, node, path);
    struct node *copy = node_new_text(context->arena, node->text, node->mark);

    copy->kind = node->kind;
    if (node->kind == NODE_INT)
        copy->integer = node->integer;
    else
        copy->real = node->real;
    return copy;
}

static struct node *load_scalar(const struct loader_context *context, const struct field *field,
                                const struct node *node, const struct path *path)
{
    bool truth;

    if ((field->types & TYPE_BOOL) != 0 && is_old_bool(node, &truth))
        return load_old_bool(context, node, path, truth);
    if (node->kind == NODE_BOOL && (field->types & TYPE_BOOL) != 0) {
        struct node *copy = node_new_text(context->arena, node->text, node->mark);

        copy->kind = NODE_BOOL;
        copy->truth = node->truth;
        return copy;
    }
    if (node->kind == NODE_TEXT && (field->types & TYPE_TEXT) != 0)
        return load_text(context, field, node, path);
    if (node->kind == NODE_INT && (field->types & (TYPE_INT | TYPE_REAL)) != 0)
        return load_number(context, field, node, path);
    if (node->kind == NODE_REAL && (field->types & TYPE_REAL) != 0)
        return load_number(context, field, node, path);
    return wrong(context, field, node, path);
}

/* --- free values -------------------------------------------------------------------------------
 */

/* A copy of anything that JSON can hold. NULL: a number that it cannot. */
static struct node *copy_any(const struct loader_context *context, const struct node *node,
                             const struct path *path)
{
    struct node *copy = arena_new(context->arena, 1, sizeof(*copy));

    *copy = *node;
    if (node->kind == NODE_REAL && !isfinite(node->real)) {
        problems_error(context->problems, node->mark, path, "a finite number expected, found %s",
                       node->text);
        return NULL;
    }
    if (node->kind != NODE_LIST && node->kind != NODE_MAP)
        return copy;
    copy->items = NULL;
    copy->members = NULL;
    copy->count = 0;
    copy->weight = 1;
    copy->height = 1;
    if (node->kind == NODE_MAP)
        copy->members = arena_new(context->arena, node->count + 1, sizeof(struct member));
    for (size_t i = 0; i < node->count; i++) {
        bool is_map = node->kind == NODE_MAP;
        struct node *child =
            copy_any(context, is_map ? node->members[i].value : node->items[i], path);

        if (child == NULL)
            return NULL;
        if (!is_map) {
            node_add_item(context->arena, copy, child);
            continue;
        }
        copy->members[copy->count] = node->members[i];
        copy->members[copy->count++].value = child;
        copy->height = copy->height <= child->height ? child->height + 1 : copy->height;
    }
    return copy;
}

/* --- lists and unions --------------------------------------------------------------------------
 */

static struct node *load_list(const struct loader_context *context, const struct field *field,
                              const struct node *node, const struct path *path)
{
    struct node *list = node_new(context->arena, NODE_LIST, node->mark);
    struct field item = *field;

    item.types = field->items;
    item.flags &= ~(unsigned)(FIELD_NOT_EMPTY | FIELD_REQUIRED);
    item.state = FIELD_HERE;
    if ((field->flags & FIELD_NOT_EMPTY) != 0 && node->count == 0) {
        problems_error(context->problems, node->mark, path,
                       "at least one item expected, found an empty list");
        return NULL;
    }
    for (size_t i = 0; i < node->count; i++) {
        struct path at = {.up = path, .index = i};
        struct node *value = node->items[i]->kind == NODE_NULL
                                 ? wrong(context, &item, node->items[i], &at)
                                 : load_field(context, &item, node->items[i], &at);

        if (value != NULL)
            node_add_item(context->arena, list, value);
    }
    return list;
}

static void complain_kind(const struct loader_context *context, const struct kinds *kinds,
                          const struct node *type, const struct path *path)
{
    const char *names[NAMES_MAX];
    size_t count = 0;

    for (const struct kind *kind = kinds->kinds; kind->name != NULL && count < NAMES_MAX; kind++)
        names[count++] = kind->name;
    const char *near = str_nearest(type->text, names, count);

    if (near != NULL)
        problems_error(context->problems, type->mark, path,
                       "unknown %s type '%.60s', did you mean '%s%s'?", kinds->title, type->text,
                       near, kinds_find(kinds, near) == NULL ? "PATH" : "");
    else
        problems_error(context->problems, type->mark, path, "unknown %s type '%.60s'", kinds->title,
                       type->text);
}

/* The kind that a map's "type" names, if it is built; otherwise says why not. */
static const struct kind *choose_kind(const struct loader_context *context,
                                      const struct kinds *kinds, const struct node *node,
                                      const struct path *path)
{
    const struct node *type = node_get(node, "type");
    struct path at = {.up = path, .name = "type"};

    if (type == NULL || type->kind != NODE_TEXT) {
        problems_error(context->problems, type == NULL ? node->mark : type->mark, &at,
                       "required: the type of the %s as a text, found %s", kinds->title,
                       type == NULL ? "nothing" : node_describe(context->arena, type));
        return NULL;
    }
    const struct kind *kind = kinds_find(kinds, type->text);

    if (kind != NULL && kind->state == FIELD_HERE)
        return kind;
    if (kind != NULL && kind->state == FIELD_REMOVED)
        problems_error(context->problems, type->mark, &at, "the %s type '%s' was removed: %s",
                       kinds->title, kind->name, kind->hint);
    else if (kind != NULL)
        problems_later(context->problems, type->mark, &at,
                       "the %s type '%.60s' is not in this version", kinds->title, type->text);
    else
        complain_kind(context, kinds, type, &at);
    return NULL;
}

static struct node *load_union(const struct loader_context *context, const struct field *field,
                               const struct node *node, const struct path *path)
{
    const struct kinds *kinds = field->kinds;
    const struct kind *kind = choose_kind(context, kinds, node, path);
    struct field both[NAMES_MAX];
    size_t count = 0;

    if (kind == NULL)
        return NULL;
    for (const struct field *row = kinds->common; row->name != NULL; row++)
        both[count++] = *row;
    for (const struct field *row = kind->block->fields; row->name != NULL; row++)
        both[count++] = *row;
    ASSERT(count < NAMES_MAX);
    both[count] = (struct field){0};

    struct block block = {.title = kind->name, .fields = both};

    return schema_load(context, &block, node, path);
}

/* --- one field ---------------------------------------------------------------------------------
 */

static struct node *load_field(const struct loader_context *context, const struct field *field,
                               const struct node *node, const struct path *path)
{
    if (node->kind == NODE_MAP && (field->types & TYPE_BLOCK) != 0)
        return schema_load(context, field->block, node, path);
    if (node->kind == NODE_MAP && (field->types & TYPE_UNION) != 0)
        return load_union(context, field, node, path);
    if ((field->types & TYPE_ANY) != 0 ||
        (node->kind == NODE_MAP && (field->types & TYPE_MAP) != 0))
        return copy_any(context, node, path);
    if (node->kind == NODE_LIST && (field->types & TYPE_LIST) != 0)
        return load_list(context, field, node, path);
    if (node->kind == NODE_LIST || node->kind == NODE_MAP)
        return wrong(context, field, node, path);
    return load_scalar(context, field, node, path);
}

/* Known, not built, and not asked for either: an empty list, a block switched off, the usual value.
 */
static bool is_idle(const struct loader_context *context, const struct field *field,
                    const struct node *node)
{
    const struct node *enabled = node_get(node, "enabled");
    bool truth;

    if (node->kind == NODE_LIST && node->count == 0)
        return true;
    if (enabled != NULL && enabled->kind == NODE_BOOL && !enabled->truth)
        return true;
    if (field->idle == NULL)
        return false;
    const struct node *idle = schema_value(context->arena, field->idle, node->mark);

    if (idle->kind == NODE_MAP)
        return node->kind == NODE_MAP && node->count == 0;
    if (idle->kind == NODE_BOOL && is_old_bool(node, &truth))
        return truth == idle->truth;
    if (node->kind == NODE_LIST || node->kind == NODE_MAP)
        return false;
    if (node->kind == NODE_REAL && idle->kind == NODE_INT)
        return node->real >= (double)idle->integer && node->real <= (double)idle->integer;
    return node->kind == idle->kind &&
           (idle->kind == NODE_BOOL ? node->truth == idle->truth
                                    : strcmp(node->text, idle->text) == 0);
}

/* What is known but not loaded: says so. True: nothing more to do with the member. */
static bool is_set_aside(const struct loader_context *context, const struct field *field,
                         const struct member *member, const struct path *path)
{
    switch (field->state) {
    case FIELD_HERE:
    case FIELD_CLI:
    case FIELD_UNUSED:
        return false;
    case FIELD_LATER:
        if (!is_idle(context, field, member->value))
            problems_later(context->problems, member->mark, path, "'%s' is not in this version%s%s",
                           field->name, field->hint == NULL ? "" : ": ",
                           field->hint == NULL ? "" : field->hint);
        return true;
    case FIELD_LEGACY:
        problems_warning(context->problems, member->mark, path, "%s", field->hint);
        return true;
    case FIELD_REMOVED:
        problems_error(context->problems, member->mark, path, "'%s' was removed: %s", field->name,
                       field->hint);
        return true;
    }
    return true;
}

static void complain_unknown(const struct loader_context *context, const struct block *block,
                             const struct member *member, const struct path *path)
{
    enum problem_level level = block->unknown_is_fine ? PROBLEM_WARNING : PROBLEM_ERROR;
    const char *names[NAMES_MAX];
    size_t count = 0;

    for (const struct field *field = block->fields; field->name != NULL && count < NAMES_MAX;
         field++)
        names[count++] = field->name;
    /* Past the cap nobody reads the advice, and it is what costs time. */
    const char *near = context->problems->count < TASK_PROBLEMS_MAX
                           ? str_nearest(member->key, names, count)
                           : NULL;

    const char *message =
        near != NULL ? arena_format(context->arena, "unknown key, did you mean '%s'?", near)
                     : arena_format(context->arena, "unknown key in %s", block->title);

    problems_say(context->problems, level, member->mark, path, message);
}

static void load_member(const struct loader_context *context, const struct block *block,
                        const struct member *member, struct node *map, const struct path *path)
{
    const struct field *field = block_field(block, member->key);
    struct path at = {.up = path, .name = member->key};

    if (field == NULL) {
        complain_unknown(context, block, member, &at);
        return;
    }
    bool keeps_null = (field->types & TYPE_ANY) != 0 && field->state == FIELD_HERE;

    if (member->value->kind == NODE_NULL && (field->flags & FIELD_KEEPS_NULL) != 0) {
        node_put(context->arena, map, member);
        return;
    }
    if (member->value->kind == NODE_NULL && !keeps_null)
        return;
    if (is_set_aside(context, field, member, &at))
        return;
    struct member loaded = {.key = field->name, .mark = member->mark};

    loaded.value = load_field(context, field, member->value, &at);
    if (loaded.value != NULL)
        node_put(context->arena, map, &loaded);
}

/* Required fields that are absent (not those that were there and wrong), and defaults. */
static void complete(const struct loader_context *context, const struct block *block,
                     const struct node *node, struct node *map, const struct path *path)
{
    for (const struct field *field = block->fields; field->name != NULL; field++) {
        const struct node *given = node_get(node, field->name);
        struct path at = {.up = path, .name = field->name};

        if (given != NULL && given->kind != NODE_NULL)
            continue;
        if ((field->flags & FIELD_REQUIRED) != 0)
            problems_error(context->problems, given == NULL ? node->mark : given->mark, &at,
                           "required: %s expected, found nothing",
                           schema_expected(context->arena, field));
        if (field->standard == NULL || field->state != FIELD_HERE || block->layered)
            continue;
        static const struct origin built_in = {.source = "default"};
        struct mark mark = {.origin = &built_in};
        struct member member = {.key = field->name, .mark = mark};

        member.value = schema_value(context->arena, field->standard, mark);
        node_put(context->arena, map, &member);
    }
}

struct node *schema_load(const struct loader_context *context, const struct block *block,
                         const struct node *node, const struct path *path)
{
    struct node *map = node_new(context->arena, NODE_MAP, node->mark);

    if (node->kind != NODE_MAP) {
        problems_error(context->problems, node->mark, path, "a map expected, found %s",
                       node_describe(context->arena, node));
        return map;
    }
    for (size_t i = 0; i < node->count; i++)
        load_member(context, block, &node->members[i], map, path);
    complete(context, block, node, map, path);
    return map;
}
