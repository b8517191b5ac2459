#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/jmespath_internal.h"

/* Functions over single values, the table of all, and the check of their arguments. */

/* --- numbers --------------------------------------------------------------------------------- */

/* A real without a fraction becomes an integer where it fits. */
static json_t *whole_number(double real)
{
    if (real >= -0x1p63 && real < 0x1p63)
        return json_made(json_integer((json_int_t)real));
    return json_made(json_real(real));
}

static json_t *call_abs(struct evaluation *evaluation, const struct argument *arguments,
                        size_t count)
{
    const json_t *value = arguments[0].value;

    (void)evaluation;
    (void)count;
    if (json_is_integer(value) && json_integer_value(value) != INT64_MIN)
        return json_made(json_integer(llabs(json_integer_value(value))));
    return json_made(json_real(fabs(json_number_value(value))));
}

static json_t *round_number(json_t *value, double (*rounding)(double))
{
    if (json_is_integer(value))
        return json_incref(value);
    return whole_number(rounding(json_real_value(value)));
}

static json_t *call_ceil(struct evaluation *evaluation, const struct argument *arguments,
                         size_t count)
{
    (void)evaluation;
    (void)count;
    return round_number(arguments[0].value, ceil);
}

static json_t *call_floor(struct evaluation *evaluation, const struct argument *arguments,
                          size_t count)
{
    (void)evaluation;
    (void)count;
    return round_number(arguments[0].value, floor);
}

/* --- strings --------------------------------------------------------------------------------- */

/* Whether the bytes at haystack + offset are those of needle. */
static bool has_at(const json_t *haystack, const json_t *needle, size_t offset)
{
    return memcmp(json_string_value(haystack) + offset, json_string_value(needle),
                  json_string_length(needle)) == 0;
}

static json_t *call_starts_with(struct evaluation *evaluation, const struct argument *arguments,
                                size_t count)
{
    const json_t *subject = arguments[0].value, *prefix = arguments[1].value;

    (void)evaluation;
    (void)count;
    return json_boolean(json_string_length(prefix) <= json_string_length(subject) &&
                        has_at(subject, prefix, 0));
}

static json_t *call_ends_with(struct evaluation *evaluation, const struct argument *arguments,
                              size_t count)
{
    const json_t *subject = arguments[0].value, *suffix = arguments[1].value;
    size_t size = json_string_length(subject), tail = json_string_length(suffix);

    (void)evaluation;
    (void)count;
    return json_boolean(tail <= size && has_at(subject, suffix, size - tail));
}

static json_t *call_contains(struct evaluation *evaluation, const struct argument *arguments,
                             size_t count)
{
    const json_t *subject = arguments[0].value, *search = arguments[1].value;

    (void)count;
    if (json_is_string(subject)) {
        if (!json_is_string(search))
            return json_false();
        return json_boolean(memmem(json_string_value(subject), json_string_length(subject),
                                   json_string_value(search), json_string_length(search)) != NULL);
    }
    for (size_t i = 0; i < json_array_size(subject); i++) {
        if (value_equal(json_array_get(subject, i), search, &evaluation->budget))
            return json_true();
    }
    return evaluation->budget.exhausted && !evaluation_step(evaluation, 1) ? NULL : json_false();
}

/* --- any value ------------------------------------------------------------------------------- */

static json_t *call_length(struct evaluation *evaluation, const struct argument *arguments,
                           size_t count)
{
    const json_t *value = arguments[0].value;
    size_t length;

    (void)evaluation;
    (void)count;
    if (json_is_string(value))
        length = value_string_runes(value);
    else
        length = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    return json_made(json_integer((json_int_t)length));
}

static json_t *call_type(struct evaluation *evaluation, const struct argument *arguments,
                         size_t count)
{
    (void)evaluation;
    (void)count;
    return json_made(json_string(value_type_name(arguments[0].value)));
}

static json_t *call_not_null(struct evaluation *evaluation, const struct argument *arguments,
                             size_t count)
{
    (void)evaluation;
    for (size_t i = 0; i < count; i++) {
        if (!json_is_null(arguments[i].value))
            return json_incref(arguments[i].value);
    }
    return json_null();
}

static json_t *call_to_array(struct evaluation *evaluation, const struct argument *arguments,
                             size_t count)
{
    (void)evaluation;
    (void)count;
    if (json_is_array(arguments[0].value))
        return json_incref(arguments[0].value);
    json_t *array = json_made(json_array());

    json_push(array, json_incref(arguments[0].value));
    return array;
}

static json_t *call_to_number(struct evaluation *evaluation, const struct argument *arguments,
                              size_t count)
{
    json_t *value = arguments[0].value;

    (void)evaluation;
    (void)count;
    if (json_is_number(value))
        return json_incref(value);
    json_t *number = NULL;

    if (!json_is_string(value) ||
        value_parse(json_string_value(value), json_string_length(value), &number, NULL) < 0)
        return json_null();
    if (json_is_number(number))
        return number;
    json_decref(number);
    return json_null();
}

static json_t *call_to_string(struct evaluation *evaluation, const struct argument *arguments,
                              size_t count)
{
    (void)count;
    if (json_is_string(arguments[0].value))
        return json_incref(arguments[0].value);
    scoped(buf_done) struct buf text = {0};

    value_write(&text, arguments[0].value, VALUE_COMPACT, &evaluation->budget);
    if (evaluation->budget.exhausted && !evaluation_step(evaluation, 1))
        return NULL;
    return json_made(json_stringn(buf_text(&text), text.size_bytes));
}

/* --- objects --------------------------------------------------------------------------------- */

static json_t *call_keys(struct evaluation *evaluation, const struct argument *arguments,
                         size_t count)
{
    const char *key;
    json_t *member;

    (void)count;
    if (!evaluation_step(evaluation, json_object_size(arguments[0].value)))
        return NULL;
    json_t *keys = json_made(json_array());

    json_object_foreach (arguments[0].value, key, member) {
        (void)member;
        json_push(keys, json_made(json_string(key)));
    }
    return keys;
}

static json_t *call_values(struct evaluation *evaluation, const struct argument *arguments,
                           size_t count)
{
    const char *key;
    json_t *member;

    (void)count;
    if (!evaluation_step(evaluation, json_object_size(arguments[0].value)))
        return NULL;
    json_t *values = json_made(json_array());

    json_object_foreach (arguments[0].value, key, member) {
        (void)key;
        json_push(values, json_incref(member));
    }
    return values;
}

static json_t *call_merge(struct evaluation *evaluation, const struct argument *arguments,
                          size_t count)
{
    scoped(json_freep) json_t *merged = json_made(json_object());

    for (size_t i = 0; i < count; i++) {
        if (!evaluation_step(evaluation, json_object_size(arguments[i].value)))
            return NULL;
        ASSERT(json_object_update(merged, arguments[i].value) == 0);
    }
    return take(merged);
}

/* --- the table ------------------------------------------------------------------------------- */

#define TYPE_ORDERED (TYPE_NUMBERS | TYPE_STRINGS)
#define ANY_COUNT FUNCTION_ARGUMENTS_MAX

/* Sorted by name. */
static const struct function functions[] = {
    {"abs", 1, 1, {TYPE_NUMBER}, call_abs},
    {"avg", 1, 1, {TYPE_NUMBERS}, call_avg},
    {"ceil", 1, 1, {TYPE_NUMBER}, call_ceil},
    {"contains", 2, 2, {TYPE_STRING | TYPE_ARRAY, TYPE_ANY}, call_contains},
    {"ends_with", 2, 2, {TYPE_STRING}, call_ends_with},
    {"floor", 1, 1, {TYPE_NUMBER}, call_floor},
    {"join", 2, 2, {TYPE_STRING, TYPE_STRINGS}, call_join},
    {"keys", 1, 1, {TYPE_OBJECT}, call_keys},
    {"length", 1, 1, {TYPE_STRING | TYPE_ARRAY | TYPE_OBJECT}, call_length},
    {"map", 2, 2, {TYPE_REFERENCE, TYPE_ARRAY}, call_map},
    {"max", 1, 1, {TYPE_ORDERED}, call_max},
    {"max_by", 2, 2, {TYPE_ARRAY, TYPE_REFERENCE}, call_max_by},
    {"merge", 1, ANY_COUNT, {TYPE_OBJECT}, call_merge},
    {"min", 1, 1, {TYPE_ORDERED}, call_min},
    {"min_by", 2, 2, {TYPE_ARRAY, TYPE_REFERENCE}, call_min_by},
    {"not_null", 1, ANY_COUNT, {TYPE_ANY}, call_not_null},
    {"reverse", 1, 1, {TYPE_STRING | TYPE_ARRAY}, call_reverse},
    {"sort", 1, 1, {TYPE_ORDERED}, call_sort},
    {"sort_by", 2, 2, {TYPE_ARRAY, TYPE_REFERENCE}, call_sort_by},
    {"starts_with", 2, 2, {TYPE_STRING}, call_starts_with},
    {"sum", 1, 1, {TYPE_NUMBERS}, call_sum},
    {"to_array", 1, 1, {TYPE_ANY}, call_to_array},
    {"to_number", 1, 1, {TYPE_ANY}, call_to_number},
    {"to_string", 1, 1, {TYPE_ANY}, call_to_string},
    {"type", 1, 1, {TYPE_ANY}, call_type},
    {"values", 1, 1, {TYPE_OBJECT}, call_values},
};

const struct function *jmespath_function(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        if (str_equal(functions[i].name, name))
            return &functions[i];
    }
    return NULL;
}

const char *jmespath_function_nearest(const char *name)
{
    const char *names[ARRAY_SIZE(functions)];

    for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
        names[i] = functions[i].name;
    return str_nearest(name, names, ARRAY_SIZE(names));
}

unsigned function_types(const struct function *function, size_t index)
{
    for (size_t i = size_min(index, FUNCTION_TYPES_MAX - 1); i > 0; i--) {
        if (function->types[i] != 0)
            return function->types[i];
    }
    return function->types[0];
}

/* --- arguments ------------------------------------------------------------------------------- */

static bool all_of(const json_t *array, bool strings)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *element = json_array_get(array, i);

        if (strings ? !json_is_string(element) : !json_is_number(element))
            return false;
    }
    return true;
}

static bool has_type(const json_t *value, unsigned types)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return (types & TYPE_NULL) != 0;
    case JSON_TRUE:
    case JSON_FALSE:
        return (types & TYPE_BOOLEAN) != 0;
    case JSON_INTEGER:
    case JSON_REAL:
        return (types & TYPE_NUMBER) != 0;
    case JSON_STRING:
        return (types & TYPE_STRING) != 0;
    case JSON_OBJECT:
        return (types & TYPE_OBJECT) != 0;
    case JSON_ARRAY:
        return (types & TYPE_ARRAY) != 0 || ((types & TYPE_NUMBERS) != 0 && all_of(value, false)) ||
               ((types & TYPE_STRINGS) != 0 && all_of(value, true));
    }
    return false;
}

/* "a string or an array": what the types allow. */
static void name_types(struct buf *buf, unsigned types)
{
    static const struct {
        unsigned type;
        const char *name;
    } names[] = {
        {TYPE_NUMBER, "a number"},
        {TYPE_STRING, "a string"},
        {TYPE_ARRAY, "an array"},
        {TYPE_OBJECT, "an object"},
        {TYPE_NUMBERS, "an array of numbers"},
        {TYPE_STRINGS, "an array of strings"},
    };
    bool first = true;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if ((types & names[i].type) == 0)
            continue;
        buf_format(buf, "%s%s", first ? "" : " or ", names[i].name);
        first = false;
    }
}

static bool check_argument(struct evaluation *evaluation, const struct function *function,
                           size_t index, const json_t *value)
{
    unsigned types = function_types(function, index);

    if ((types & TYPE_ORDERED) != 0 && !evaluation_step(evaluation, json_array_size(value)))
        return false;
    if (has_type(value, types))
        return true;
    scoped(buf_done) struct buf message = {0};

    buf_format(&message, "%s(): argument %zu is ", function->name, index + 1);
    value_show(&message, value, 80);
    buf_text_append(&message, ", expected ");
    name_types(&message, types);
    (void)evaluation_fail(evaluation, "%s", buf_text(&message)); /* r is set */
    return false;
}

json_t *jmespath_call(struct evaluation *evaluation, const struct node *call, json_t *value)
{
    struct argument arguments[FUNCTION_ARGUMENTS_MAX] = {0};
    json_t *result = NULL;
    size_t count = 0;

    for (; count < call->child_count; count++) {
        const struct node *child = call->children[count];

        if (child->type == NODE_REFERENCE) {
            arguments[count].expression = child->left;
            continue;
        }
        arguments[count].value = jmespath_node_evaluate(evaluation, child, value);
        if (arguments[count].value == NULL)
            break;
        if (!check_argument(evaluation, call->function, count, arguments[count].value))
            break;
    }
    if (count == call->child_count)
        result = call->function->call(evaluation, arguments, count);
    for (size_t i = 0; i < call->child_count; i++)
        json_decref(arguments[i].value);
    return result;
}
