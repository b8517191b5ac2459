#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/jsonschema_internal.h"

/* --- values of any type ---------------------------------------------------------------------- */

static bool has_type(const json_t *value, const char *type)
{
    if (str_equal(type, "integer"))
        return json_is_number(value) && value_is_integral(value);
    return str_equal(type, value_type_name(value));
}

static bool check_type(struct validation *validation, const json_t *type, const json_t *value)
{
    scoped(buf_done) struct buf names = {0};

    if (type == NULL)
        return true;
    if (json_is_string(type)) {
        if (has_type(value, json_string_value(type)))
            return true;
        return schema_complain(validation, value, "type %s", json_string_value(type));
    }
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));

        if (has_type(value, name))
            return true;
        buf_format(&names, "%s%s", i == 0 ? "" : " or ", name);
    }
    return schema_complain(validation, value, "type %s", buf_text(&names));
}

static bool check_constants(struct validation *validation, const json_t *schema,
                            const json_t *value)
{
    const json_t *list = json_object_get(schema, "enum");
    const json_t *constant = json_object_get(schema, "const");
    bool valid = list == NULL;
    scoped(buf_done) struct buf text = {0};

    for (size_t i = 0; i < json_array_size(list) && !valid; i++)
        valid = value_equal(json_array_get(list, i), value, &validation->budget);
    if (!valid) {
        value_show(&text, list, 200);
        (void)schema_complain(validation, value, "one of %s", buf_text(&text)); /* is false */
    }
    if (constant == NULL || value_equal(constant, value, &validation->budget))
        return valid;
    buf_clear(&text);
    value_show(&text, constant, 200);
    return schema_complain(validation, value, "%s", buf_text(&text));
}

static bool check_all_of(struct validation *validation, const json_t *list, json_t *value)
{
    bool valid = true;

    for (size_t i = 0; i < json_array_size(list); i++)
        valid = schema_holds(validation, json_array_get(list, i), value) && valid;
    return valid;
}

/* How many of the schemas hold, counted up to enough. */
static size_t count_holding(struct validation *validation, const json_t *list, json_t *value,
                            size_t enough)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(list) && count < enough; i++)
        count += schema_holds_quietly(validation, json_array_get(list, i), value);
    return count;
}

static bool check_any_of(struct validation *validation, const json_t *list, json_t *value)
{
    if (list == NULL || count_holding(validation, list, value, 1) > 0)
        return true;
    return schema_complain(validation, value, "one of the %zu alternatives of anyOf to hold",
                           json_array_size(list));
}

static bool check_one_of(struct validation *validation, const json_t *list, json_t *value)
{
    size_t count = list == NULL ? 1 : count_holding(validation, list, value, 2);

    if (count == 1)
        return true;
    return schema_complain(validation, value,
                           "exactly one of the %zu alternatives of oneOf to hold, %s do",
                           json_array_size(list), count == 0 ? "none" : "two or more");
}

static bool check_condition(struct validation *validation, const json_t *schema, json_t *value)
{
    const json_t *condition = json_object_get(schema, "if");

    if (condition == NULL)
        return true;
    const json_t *branch = json_object_get(
        schema, schema_holds_quietly(validation, condition, value) ? "then" : "else");

    return branch == NULL || schema_holds(validation, branch, value);
}

bool keywords_any(struct validation *validation, const json_t *schema, json_t *value)
{
    const char *reference = json_get_text(schema, "$ref");
    const json_t *not = json_object_get(schema, "not");
    bool valid = check_type(validation, json_object_get(schema, "type"), value);

    valid = check_constants(validation, schema, value) && valid;
    if (reference != NULL)
        valid =
            schema_holds(validation, schema_target(validation->schema, reference), value) && valid;
    valid = check_all_of(validation, json_object_get(schema, "allOf"), value) && valid;
    valid = check_any_of(validation, json_object_get(schema, "anyOf"), value) && valid;
    valid = check_one_of(validation, json_object_get(schema, "oneOf"), value) && valid;
    valid = check_condition(validation, schema, value) && valid;
    if (not != NULL && schema_holds_quietly(validation, not, value))
        valid = schema_complain(validation, value, "the schema of not not to hold");
    return valid;
}

/* --- numbers --------------------------------------------------------------------------------- */

static bool check_bound(struct validation *validation, const json_t *schema, const char *keyword,
                        const json_t *value)
{
    const json_t *limit = json_object_get(schema, keyword);
    bool exclusive = str_starts(keyword, "exclusive");
    bool upper = str_ends(keyword, "aximum");
    scoped(buf_done) struct buf text = {0};

    if (limit == NULL)
        return true;
    int order = value_compare_numbers(value, limit) * (upper ? -1 : 1);

    if (exclusive ? order > 0 : order >= 0)
        return true;
    value_show(&text, limit, 40);
    return schema_complain(validation, value, "a number %s%s %s", upper ? "below" : "above",
                           exclusive ? "" : " or equal to", buf_text(&text));
}

/* Reals are compared after a division, with room for the rounding of binary fractions. */
static bool is_multiple(const json_t *value, const json_t *of)
{
    if (json_is_integer(value) && json_is_integer(of))
        return json_integer_value(value) % json_integer_value(of) == 0;
    double quotient = json_number_value(value) / json_number_value(of);

    return isfinite(quotient) &&
           fabs(quotient - nearbyint(quotient)) <= 1e-12 * fmax(1, fabs(quotient));
}

bool keywords_number(struct validation *validation, const json_t *schema, json_t *value)
{
    static const char *const bounds[] = {
        "minimum",
        "exclusiveMinimum",
        "maximum",
        "exclusiveMaximum",
    };
    const json_t *of = json_object_get(schema, "multipleOf");
    scoped(buf_done) struct buf text = {0};
    bool valid = true;

    if (!json_is_number(value))
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++)
        valid = check_bound(validation, schema, bounds[i], value) && valid;
    if (of == NULL || is_multiple(value, of))
        return valid;
    value_show(&text, of, 40);
    return schema_complain(validation, value, "a multiple of %s", buf_text(&text));
}

/* --- sizes ----------------------------------------------------------------------------------- */

/* The keywords that bound how much there is of something. */
struct size_keywords {
    const char *least, *most, *what;
};

static bool check_size(struct validation *validation, const json_t *schema,
                       const struct size_keywords *keywords, size_t size, const json_t *value)
{
    const json_t *least = json_object_get(schema, keywords->least);
    const json_t *most = json_object_get(schema, keywords->most);
    bool valid = true;

    if (least != NULL && (double)size < json_number_value(least))
        valid = schema_complain(validation, value, "at least %.0f %s, not %zu",
                                json_number_value(least), keywords->what, size);
    if (most != NULL && (double)size > json_number_value(most))
        valid = schema_complain(validation, value, "at most %.0f %s, not %zu",
                                json_number_value(most), keywords->what, size);
    return valid;
}

bool keywords_string(struct validation *validation, const json_t *schema, json_t *value)
{
    static const struct size_keywords sizes = {"minLength", "maxLength", "characters"};
    const char *pattern = json_get_text(schema, "pattern");

    if (!json_is_string(value))
        return true;
    bool valid = check_size(validation, schema, &sizes, value_string_runes(value), value);

    if (pattern == NULL ||
        schema_matches(validation, pattern, json_string_value(value), json_string_length(value)))
        return valid;
    return schema_complain(validation, value, "a match of /%s/", pattern);
}

/* --- arrays ---------------------------------------------------------------------------------- */

/* prefixItems and then items; or, in the older form, items as a list and then additionalItems. */
static bool check_items(struct validation *validation, const json_t *schema, json_t *array)
{
    const json_t *first = json_object_get(schema, "prefixItems");
    const json_t *rest = json_object_get(schema, "items");
    bool valid = true;

    if (json_is_array(rest)) {
        first = rest;
        rest = json_object_get(schema, "additionalItems");
    }
    if (first == NULL && rest == NULL)
        return true;
    for (size_t i = 0; i < json_array_size(array) && !validation->failed; i++) {
        const json_t *item = i < json_array_size(first) ? json_array_get(first, i) : rest;

        if (item != NULL)
            valid = schema_holds_at_index(validation, item, i, json_array_get(array, i)) && valid;
    }
    return valid;
}

static bool check_contains(struct validation *validation, const json_t *schema, json_t *array)
{
    const json_t *contains = json_object_get(schema, "contains");
    const json_t *minimum = json_object_get(schema, "minContains");
    const json_t *maximum = json_object_get(schema, "maxContains");
    double least = minimum == NULL ? 1 : json_number_value(minimum);
    double most = maximum == NULL ? HUGE_VAL : json_number_value(maximum);
    size_t count = 0;

    if (contains == NULL)
        return true;
    for (size_t i = 0; i < json_array_size(array) && !validation->failed; i++)
        count += schema_holds_quietly(validation, contains, json_array_get(array, i));
    if ((double)count < least)
        return schema_complain(validation, array,
                               "at least %.0f items that contains allows, not %zu", least, count);
    if ((double)count > most)
        return schema_complain(validation, array,
                               "at most %.0f items that contains allows, not %zu", most, count);
    return true;
}

struct item_text {
    char *text;
    size_t index;
};

static int compare_texts(const void *a, const void *b)
{
    const struct item_text *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* By sorted texts: comparing each with each would take the square of the items. */
static bool check_unique(struct validation *validation, const json_t *array)
{
    size_t count = json_array_size(array), i, twin = 0;
    scoped(mem_freep) struct item_text *texts = mem_new(count + 1, sizeof(*texts));

    for (i = 0; i < count; i++) {
        struct buf text = {0};

        value_write(&text, json_array_get(array, i), VALUE_SORTED, &validation->budget);
        texts[i] = (struct item_text){.text = buf_take(&text), .index = i};
    }
    qsort(texts, count, sizeof(*texts), compare_texts);
    for (i = 1; i < count && twin == 0; i++) {
        if (strcmp(texts[i - 1].text, texts[i].text) == 0)
            twin = i;
    }
    size_t first = twin == 0 ? 0 : texts[twin - 1].index, second = texts[twin].index;

    for (i = 0; i < count; i++)
        free(texts[i].text);
    return twin == 0 ||
           schema_complain(validation, array, "different items, numbers %zu and %zu are equal",
                           first, second);
}

bool keywords_array(struct validation *validation, const json_t *schema, json_t *value)
{
    static const struct size_keywords sizes = {"minItems", "maxItems", "items"};
    if (!json_is_array(value))
        return true;
    bool valid = check_size(validation, schema, &sizes, json_array_size(value), value);

    valid = check_items(validation, schema, value) && valid;
    valid = check_contains(validation, schema, value) && valid;
    if (json_get_bool(schema, "uniqueItems", false))
        valid = check_unique(validation, value) && valid;
    return valid;
}

/* --- objects --------------------------------------------------------------------------------- */

static bool check_names(struct validation *validation, const json_t *names, const json_t *object,
                        const char *because)
{
    bool valid = true;

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (json_object_get(object, name) == NULL)
            valid = schema_complain(validation, object, "a property '%s'%s%s", name,
                                    because == NULL ? "" : ", as there is ",
                                    because == NULL ? "" : because);
    }
    return valid;
}

static bool check_dependent(struct validation *validation, json_t *map, const json_t *object)
{
    const char *key;
    json_t *names;
    bool valid = true;

    json_object_foreach (map, key, names) {
        if (json_object_get(object, key) != NULL)
            valid = check_names(validation, names, object, key) && valid;
    }
    return valid;
}

/* One property against properties, patternProperties and, when neither names it, the rest. */
static bool check_property(struct validation *validation, const json_t *schema, const char *key,
                           json_t *value)
{
    const json_t *named = json_object_get(json_object_get(schema, "properties"), key);
    json_t *patterns = json_object_get(schema, "patternProperties");
    const json_t *rest = json_object_get(schema, "additionalProperties");
    bool valid = true, seen = named != NULL;
    const char *pattern;
    json_t *under;

    if (named != NULL)
        valid = schema_holds_at_key(validation, named, key, value);
    json_object_foreach (patterns, pattern, under) {
        if (!schema_matches(validation, pattern, key, strlen(key)))
            continue;
        seen = true;
        valid = schema_holds_at_key(validation, under, key, value) && valid;
    }
    if (seen || rest == NULL)
        return valid;
    if (json_is_false(rest)) {
        size_t size = validation->pointer.size_bytes;

        pointer_key(&validation->pointer, key);
        (void)schema_complain(validation, value, "no property of this name"); /* is false */
        pointer_cut(&validation->pointer, size);
        return false;
    }
    return schema_holds_at_key(validation, rest, key, value);
}

bool keywords_object(struct validation *validation, const json_t *schema, json_t *value)
{
    static const struct size_keywords sizes = {"minProperties", "maxProperties", "properties"};
    const json_t *name_schema = json_object_get(schema, "propertyNames");
    const char *key;
    json_t *member;

    if (!json_is_object(value))
        return true;
    bool valid = check_size(validation, schema, &sizes, json_object_size(value), value);

    valid = check_names(validation, json_object_get(schema, "required"), value, NULL) && valid;
    valid =
        check_dependent(validation, json_object_get(schema, "dependentRequired"), value) && valid;
    json_object_foreach (value, key, member) {
        if (validation->failed)
            return false;
        valid = check_property(validation, schema, key, member) && valid;
        if (name_schema == NULL)
            continue;
        scoped(json_freep) json_t *name = json_string(key);

        valid = schema_holds(validation, name_schema, name) && valid;
    }
    return valid;
}
