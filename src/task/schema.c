#include "task/schema.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define CHOICES_LISTED_MAX 10

const struct field *block_field(const struct block *block, const char *name)
{
    for (const struct field *field = block->fields; field->name != NULL; field++) {
        if (strcmp(field->name, name) == 0)
            return field;
    }
    return NULL;
}

const struct kind *kinds_find(const struct kinds *kinds, const char *name)
{
    for (const struct kind *kind = kinds->kinds; kind->name != NULL; kind++) {
        bool longer = kind->is_prefix && str_starts(name, kind->name);

        if (longer ? name[strlen(kind->name)] != '\0' : strcmp(kind->name, name) == 0)
            return kind;
    }
    return NULL;
}

struct node *schema_value(struct arena *arena, const char *text, struct mark mark)
{
    if (strcmp(text, "[]") == 0)
        return node_new(arena, NODE_LIST, mark);
    if (strcmp(text, "{}") == 0)
        return node_new(arena, NODE_MAP, mark);
    return node_new_plain(arena, text, mark);
}

struct node *schema_defaults(struct arena *arena, const struct block *block, struct mark mark)
{
    struct node *map = node_new(arena, NODE_MAP, mark);

    for (const struct field *field = block->fields; field->name != NULL; field++) {
        struct member member = {.key = field->name, .mark = mark};

        if (field->block != NULL && field->types == TYPE_BLOCK && field->block->layered)
            member.value = schema_defaults(arena, field->block, mark);
        else if (field->standard != NULL && field->state == FIELD_HERE && block->layered)
            member.value = schema_value(arena, field->standard, mark);
        if (member.value != NULL)
            node_put(arena, map, &member);
    }
    return map;
}

static void add_alternative(struct buf *buf, const char *text)
{
    if (buf->size_bytes > 0)
        buf_text_append(buf, " or ");
    buf_text_append(buf, text);
}

static void add_number(struct buf *buf, const struct field *field)
{
    add_alternative(buf, (field->types & TYPE_REAL) != 0 ? "a number" : "a whole number");
    if ((field->flags & FIELD_RANGE) == 0)
        return;
    if ((field->flags & FIELD_ABOVE_MIN) != 0)
        buf_format(buf, " above %.10g and up to %.10g", field->min, field->max);
    else
        buf_format(buf, " from %.10g to %.10g", field->min, field->max);
}

/* All of them, or the first few of a long list. */
static void add_choices(struct buf *buf, const char *const *choices)
{
    size_t count = 0;

    while (choices[count] != NULL)
        count++;
    buf_text_append(buf, "one of ");
    for (size_t i = 0; i < size_min(count, count > CHOICES_LISTED_MAX ? 5 : count); i++)
        buf_format(buf, "%s'%s'", i == 0 ? "" : ", ", choices[i]);
    if (count > CHOICES_LISTED_MAX)
        buf_text_append(buf, " ...");
}

const char *schema_expected(struct arena *arena, const struct field *field)
{
    scoped(buf_done) struct buf buf = {0};

    if (field->choices != NULL)
        add_choices(&buf, field->choices);
    else if ((field->types & TYPE_TEXT) != 0 && field->form != FORM_ANY)
        add_alternative(&buf, form_expected(field->form));
    else if ((field->types & TYPE_TEXT) != 0)
        add_alternative(&buf, "a text");
    if ((field->types & TYPE_BOOL) != 0)
        add_alternative(&buf, "true or false");
    if ((field->types & (TYPE_INT | TYPE_REAL)) != 0)
        add_number(&buf, field);
    if ((field->types & (TYPE_BLOCK | TYPE_UNION | TYPE_MAP)) != 0)
        add_alternative(&buf, "a map");
    if ((field->types & TYPE_LIST) != 0)
        add_alternative(&buf,
                        (field->items & TYPE_TEXT) != 0 ? "a list of texts" : "a list of maps");
    if (buf.size_bytes == 0)
        buf_text_append(&buf, "a value");
    return arena_text(arena, buf_text(&buf), buf.size_bytes);
}

/* Items of a list, free maps and what is in items is not looked into. */
bool task_field_exists(const char *path)
{
    const struct block *block = &task_block;

    while (block != NULL) {
        size_t length = strcspn(path, ".[");
        scoped(mem_freep) char *name = str_ndup(path, length);
        const struct field *field = block_field(block, name);

        if (field == NULL)
            return false;
        if (path[length] != '.')
            return true;
        if ((field->types & TYPE_MAP) != 0)
            return true;
        path += length + 1;
        block = (field->types & TYPE_BLOCK) != 0 ? field->block : NULL;
    }
    return false;
}
