/* The JSON Schema (draft 7) of the task language, made from the tables. */
#include "task/schema.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* yes, no, on, off as loaded where a bool is wanted. */
#define OLD_BOOL_REGEX "^([Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff])$"

static json_t *block_schema(const struct block *block);
static json_t *kinds_schema(const struct kinds *kinds);

static json_t *typed(const char *type)
{
    json_t *object = json_object();

    json_put_text(object, "type", type);
    return object;
}

static json_t *text_schema(const struct field *field)
{
    json_t *object = typed("string");

    if (field->choices != NULL && (field->flags & FIELD_OPEN_CHOICES) == 0) {
        json_t *names = json_array();

        for (size_t i = 0; field->choices[i] != NULL; i++)
            json_push(names, json_string(field->choices[i]));
        json_put(object, "enum", names);
    }
    if (field->form != FORM_ANY)
        json_put_text(object, "pattern", form_regex(field->form));
    else if ((field->flags & FIELD_NOT_EMPTY) != 0 && (field->types & TYPE_LIST) == 0)
        json_put_text(object, "pattern", "\\S");
    return object;
}

static json_t *number_schema(const struct field *field, unsigned types)
{
    json_t *object = typed((types & TYPE_REAL) != 0 ? "number" : "integer");

    if ((field->flags & FIELD_RANGE) == 0)
        return object;
    json_put_real(object, (field->flags & FIELD_ABOVE_MIN) != 0 ? "exclusiveMinimum" : "minimum",
                  field->min);
    json_put_real(object, "maximum", field->max);
    return object;
}

static json_t *bool_schema(void)
{
    json_t *object = json_object(), *any = json_array(), *old = typed("string");

    json_put_text(old, "pattern", OLD_BOOL_REGEX);
    json_push(any, typed("boolean"));
    json_push(any, old);
    json_put(object, "anyOf", any);
    return object;
}

static json_t *value_schema(const struct field *field, unsigned types);

static json_t *list_schema(const struct field *field)
{
    json_t *object = typed("array");
    struct field item = *field;

    item.flags &= ~(unsigned)FIELD_NOT_EMPTY;
    json_put(object, "items", value_schema(&item, field->items));
    if ((field->flags & FIELD_NOT_EMPTY) != 0)
        json_put_int(object, "minItems", 1);
    return object;
}

/* One alternative of a row, by its lowest bit. */
static json_t *alternative(const struct field *field, unsigned type)
{
    switch ((enum field_types)type) {
    case TYPE_TEXT:
        return text_schema(field);
    case TYPE_BOOL:
        return bool_schema();
    case TYPE_INT:
    case TYPE_REAL:
        return number_schema(field, type);
    case TYPE_BLOCK:
        return block_schema(field->block);
    case TYPE_UNION:
        return kinds_schema(field->kinds);
    case TYPE_MAP:
        return typed("object");
    case TYPE_LIST:
        return list_schema(field);
    case TYPE_ANY:
        break;
    }
    return json_object();
}

static json_t *value_schema(const struct field *field, unsigned types)
{
    if ((types & (types - 1)) == 0)
        return alternative(field, types);
    json_t *object = json_object(), *any = json_array();

    for (unsigned bit = 1; bit <= TYPE_ANY; bit <<= 1) {
        if ((types & bit) != 0)
            json_push(any, alternative(field, bit));
    }
    json_put(object, "anyOf", any);
    return object;
}

static const char *state_remark(enum field_state state)
{
    switch (state) {
    case FIELD_LATER:
        return " (not in this version)";
    case FIELD_LEGACY:
        return " (accepted with a warning)";
    case FIELD_CLI:
        return " (for agent programs)";
    case FIELD_UNUSED:
        return " (no effect in this version)";
    case FIELD_HERE:
    case FIELD_REMOVED:
        break;
    }
    return "";
}

/* An optional field may be null, which is the same as leaving it out. */
static void add_nullable(json_t *object, json_t *value)
{
    json_t *any = json_object_get(value, "anyOf"), *either = json_array();

    if (json_get_text(value, "type") != NULL && json_object_get(value, "enum") == NULL) {
        (void)json_object_update(object, value); /* both are objects */
        json_push(either, json_string(json_get_text(value, "type")));
        json_push(either, json_string("null"));
        json_put(object, "type", either);
        return;
    }
    if (any != NULL)
        (void)json_array_extend(either, any); /* both are arrays */
    else
        json_push(either, json_incref(value));
    json_push(either, typed("null"));
    json_put(object, "anyOf", either);
}

static json_t *field_schema(const struct field *field)
{
    static const struct origin built_in = {.source = "default"};
    scoped(arena_done) struct arena arena = {0};
    scoped(mem_freep) char *text = str_format("%s%s", field->doc, state_remark(field->state));
    scoped(json_freep) json_t *value = value_schema(field, field->types);
    json_t *object = json_object();

    json_put_text(object, "description", text);
    if ((field->flags & FIELD_REQUIRED) != 0) {
        (void)json_object_update(object, value); /* both are objects */
    } else {
        add_nullable(object, value);
    }
    if (field->standard != NULL)
        json_put(object, "default",
                 node_to_json(
                     schema_value(&arena, field->standard, (struct mark){.origin = &built_in})));
    return object;
}

static void add_fields(const struct field *fields, json_t *properties, json_t *required)
{
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (field->state == FIELD_REMOVED)
            continue;
        if (json_object_get(properties, field->name) == NULL)
            json_put(properties, field->name, field_schema(field));
        if ((field->flags & FIELD_REQUIRED) != 0)
            json_push(required, json_string(field->name));
    }
}

static json_t *map_schema(json_t *properties, json_t *required, bool open)
{
    json_t *object = typed("object");

    json_put(object, "properties", properties);
    if (json_array_size(required) > 0)
        json_put(object, "required", required);
    else
        json_decref(required);
    json_put_bool(object, "additionalProperties", open);
    return object;
}

static json_t *block_schema(const struct block *block)
{
    json_t *properties = json_object(), *required = json_array();

    add_fields(block->fields, properties, required);
    return map_schema(properties, required, block->unknown_is_fine);
}

static json_t *kinds_schema(const struct kinds *kinds)
{
    json_t *object = json_object(), *any = json_array();

    for (const struct kind *kind = kinds->kinds; kind->name != NULL; kind++) {
        json_t *properties = json_object(), *required = json_array(), *type = json_object();
        scoped(mem_freep) char *text =
            str_format("%s%s", kind->doc == NULL ? "" : kind->doc, state_remark(kind->state));

        if (kind->state == FIELD_REMOVED) {
            json_decref(properties);
            json_decref(required);
            json_decref(type);
            continue;
        }
        if (kind->is_prefix) {
            scoped(mem_freep) char *pattern = str_format("^%s.", kind->name);

            json_put_text(type, "type", "string");
            json_put_text(type, "pattern", pattern);
        } else {
            json_put_text(type, "const", kind->name);
        }
        json_put_text(type, "description", text);
        json_put(properties, "type", type);
        add_fields(kinds->common, properties, required);
        add_fields(kind->block->fields, properties, required);
        json_push(any, map_schema(properties, required, false));
    }
    json_put(object, "oneOf", any);
    return object;
}

json_t *task_schema_json(void)
{
    json_t *schema = json_object();
    scoped(json_freep) json_t *block = block_schema(&task_block);

    json_put_text(schema, "$schema", "http://json-schema.org/draft-07/schema#");
    json_put_text(schema, "$id", "https://closedbook.invalid/schema/task.schema.json");
    json_put_text(schema, "title", "closedbook/task/1: a task file, task.yaml");
    (void)json_object_update(schema, block); /* both are objects */
    return schema;
}
