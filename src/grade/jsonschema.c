#include "grade/jsonschema.h"

#include "base/mem.h"
#include "grade/jsonschema_internal.h"

/* Of schemas inside schemas while one validation runs: bounds the stack. */
#define VALIDATION_DEPTH_MAX 2500
#define SHOWN_BYTES_MAX 120

/* --- pointers -------------------------------------------------------------------------------- */

void pointer_key(struct buf *pointer, const char *key)
{
    buf_char(pointer, '/');
    for (; *key != '\0'; key++) {
        if (*key == '~')
            buf_text_append(pointer, "~0");
        else if (*key == '/')
            buf_text_append(pointer, "~1");
        else
            buf_char(pointer, *key);
    }
}

void pointer_index(struct buf *pointer, size_t index)
{
    buf_format(pointer, "/%zu", index);
}

void pointer_cut(struct buf *pointer, size_t size)
{
    ASSERT(size <= pointer->size_bytes);
    if (pointer->data == NULL)
        return;
    pointer->size_bytes = size;
    pointer->data[size] = '\0';
}

/* --- complaints ------------------------------------------------------------------------------ */

bool schema_complain(struct validation *validation, const json_t *value, const char *fmt, ...)
{
    va_list args;

    if (validation->complaints == NULL || validation->failed)
        return false;
    if (++validation->complaint_count > SCHEMA_COMPLAINTS_MAX)
        return false;
    buf_format(validation->complaints, "at '%s': found ", buf_text(&validation->pointer));
    value_show(validation->complaints, value, SHOWN_BYTES_MAX);
    buf_text_append(validation->complaints, ", expected ");
    va_start(args, fmt);
    buf_vformat(validation->complaints, fmt, args);
    va_end(args);
    buf_char(validation->complaints, '\n');
    return false;
}

bool schema_fail_limit(struct validation *validation, const char *what)
{
    if (!validation->failed)
        (void)error_set(validation->err, ERROR_LIMIT,
                        "json_schema: at '%s': %s", /* failed says so */
                        buf_text(&validation->pointer), what);
    validation->failed = true;
    return false;
}

bool schema_matches(struct validation *validation, const char *pattern, const char *text,
                    size_t size)
{
    switch (regex_search(schema_regex(validation->schema, pattern), text, size)) {
    case REGEX_MATCH:
        return true;
    case REGEX_NO_MATCH:
        return false;
    case REGEX_LIMIT:
        return schema_fail_limit(validation, "a pattern takes too long on this text");
    }
    return false;
}

/* --- schemas --------------------------------------------------------------------------------- */

bool schema_holds(struct validation *validation, const json_t *schema, json_t *value)
{
    if (validation->failed)
        return false;
    if (!budget_take(&validation->budget, 1) || validation->depth >= VALIDATION_DEPTH_MAX)
        return schema_fail_limit(validation, "the data takes too much work");
    if (json_is_false(schema))
        return schema_complain(validation, value, "nothing here (the schema is false)");
    if (!json_is_object(schema))
        return true;
    validation->depth++;
    /* All of them, so that all complaints are heard. */
    bool valid = keywords_any(validation, schema, value);

    valid = keywords_number(validation, schema, value) && valid;
    valid = keywords_string(validation, schema, value) && valid;
    valid = keywords_array(validation, schema, value) && valid;
    valid = keywords_object(validation, schema, value) && valid;
    validation->depth--;
    return valid && !validation->failed;
}

bool schema_holds_quietly(struct validation *validation, const json_t *schema, json_t *value)
{
    struct buf *complaints = validation->complaints;

    validation->complaints = NULL;
    bool valid = schema_holds(validation, schema, value);

    validation->complaints = complaints;
    return valid;
}

bool schema_holds_at_key(struct validation *validation, const json_t *schema, const char *key,
                         json_t *value)
{
    size_t size = validation->pointer.size_bytes;

    pointer_key(&validation->pointer, key);
    bool valid = schema_holds(validation, schema, value);

    pointer_cut(&validation->pointer, size);
    return valid;
}

bool schema_holds_at_index(struct validation *validation, const json_t *schema, size_t index,
                           json_t *value)
{
    size_t size = validation->pointer.size_bytes;

    pointer_index(&validation->pointer, index);
    bool valid = schema_holds(validation, schema, value);

    pointer_cut(&validation->pointer, size);
    return valid;
}

int schema_validate(const struct schema *schema, json_t *data, bool *ret_valid,
                    struct buf *complaints, struct error **err)
{
    struct validation validation = {
        .schema = schema,
        .budget = {.left = SCHEMA_STEPS_MAX},
        .complaints = complaints,
        .err = err,
    };
    bool valid = schema_holds(&validation, schema->document, data);

    /* What was not looked at to its end has no answer. */
    if (validation.budget.exhausted)
        valid = schema_fail_limit(&validation, "the data takes too much work");
    buf_done(&validation.pointer);
    if (validation.failed)
        return -ERROR_LIMIT;
    if (validation.complaint_count > SCHEMA_COMPLAINTS_MAX)
        buf_format(complaints, "and %zu more\n",
                   validation.complaint_count - SCHEMA_COMPLAINTS_MAX);
    *ret_valid = valid;
    return 0;
}
