#include "base/mem.h"
#include "base/str.h"
#include "grade/jsonschema_internal.h"

#define SCHEMA_NODES_MAX 10000

enum keyword_kind {
    KEYWORD_ANNOTATION, /* anything; says nothing about the data */
    KEYWORD_ANY,        /* anything */
    KEYWORD_TYPE,       /* a type or a list of types */
    KEYWORD_NUMBER,
    KEYWORD_POSITIVE, /* a number above 0 */
    KEYWORD_COUNT,    /* an integer from 0 */
    KEYWORD_BOOLEAN,
    KEYWORD_LIST,      /* a list of anything, not empty */
    KEYWORD_NAMES,     /* a list of different strings */
    KEYWORD_NAMES_MAP, /* an object of those */
    KEYWORD_PATTERN,
    KEYWORD_REFERENCE,
    KEYWORD_SCHEMA,
    KEYWORD_SCHEMA_LIST, /* not empty */
    KEYWORD_SCHEMA_MAP,
    KEYWORD_PATTERN_MAP, /* patterns to schemas */
    KEYWORD_ITEMS,       /* a schema or a list of schemas */
};

static const struct {
    const char *name;
    enum keyword_kind kind;
    bool in_place; /* its schemas look at the same value */
} keywords[] = {
    {"$comment", KEYWORD_ANNOTATION, false},
    {"$defs", KEYWORD_SCHEMA_MAP, false},
    {"$id", KEYWORD_ANNOTATION, false},
    {"$ref", KEYWORD_REFERENCE, true},
    {"$schema", KEYWORD_ANNOTATION, false},
    {"additionalItems", KEYWORD_SCHEMA, false},
    {"additionalProperties", KEYWORD_SCHEMA, false},
    {"allOf", KEYWORD_SCHEMA_LIST, true},
    {"anyOf", KEYWORD_SCHEMA_LIST, true},
    {"const", KEYWORD_ANY, false},
    {"contains", KEYWORD_SCHEMA, false},
    {"default", KEYWORD_ANNOTATION, false},
    {"definitions", KEYWORD_SCHEMA_MAP, false},
    {"dependentRequired", KEYWORD_NAMES_MAP, false},
    {"deprecated", KEYWORD_ANNOTATION, false},
    {"description", KEYWORD_ANNOTATION, false},
    {"else", KEYWORD_SCHEMA, true},
    {"enum", KEYWORD_LIST, false},
    {"examples", KEYWORD_ANNOTATION, false},
    {"exclusiveMaximum", KEYWORD_NUMBER, false},
    {"exclusiveMinimum", KEYWORD_NUMBER, false},
    {"format", KEYWORD_ANNOTATION, false},
    {"if", KEYWORD_SCHEMA, true},
    {"items", KEYWORD_ITEMS, false},
    {"maxContains", KEYWORD_COUNT, false},
    {"maxItems", KEYWORD_COUNT, false},
    {"maxLength", KEYWORD_COUNT, false},
    {"maxProperties", KEYWORD_COUNT, false},
    {"maximum", KEYWORD_NUMBER, false},
    {"minContains", KEYWORD_COUNT, false},
    {"minItems", KEYWORD_COUNT, false},
    {"minLength", KEYWORD_COUNT, false},
    {"minProperties", KEYWORD_COUNT, false},
    {"minimum", KEYWORD_NUMBER, false},
    {"multipleOf", KEYWORD_POSITIVE, false},
    {"not", KEYWORD_SCHEMA, true},
    {"oneOf", KEYWORD_SCHEMA_LIST, true},
    {"pattern", KEYWORD_PATTERN, false},
    {"patternProperties", KEYWORD_PATTERN_MAP, false},
    {"prefixItems", KEYWORD_SCHEMA_LIST, false},
    {"properties", KEYWORD_SCHEMA_MAP, false},
    {"propertyNames", KEYWORD_SCHEMA, false},
    {"readOnly", KEYWORD_ANNOTATION, false},
    {"required", KEYWORD_NAMES, false},
    {"then", KEYWORD_SCHEMA, true},
    {"title", KEYWORD_ANNOTATION, false},
    {"type", KEYWORD_TYPE, false},
    {"uniqueItems", KEYWORD_BOOLEAN, false},
    {"writeOnly", KEYWORD_ANNOTATION, false},
};

static const char *const type_names[] = {
    "array", "boolean", "integer", "null", "number", "object", "string",
};

struct compiler {
    struct schema *schema;
    struct buf pointer;
    unsigned depth;
    size_t node_count;
    struct error **err;
};

static int check_schema(struct compiler *compiler, json_t *schema);

static void compiler_done(struct compiler *compiler)
{
    buf_done(&compiler->pointer);
}

static int complain(struct compiler *compiler, const char *fmt, ...) printf_like(2, 3);
static int complain(struct compiler *compiler, const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    return error_set(compiler->err, ERROR_TASK, "%s", buf_text(&message));
}

/* --- patterns and references ----------------------------------------------------------------- */

struct regex *schema_regex(const struct schema *schema, const char *pattern)
{
    for (size_t i = 0; i < schema->pattern_count; i++) {
        if (str_equal(schema->patterns[i].text, pattern))
            return schema->patterns[i].regex;
    }
    return NULL;
}

static int check_pattern(struct compiler *compiler, const char *pattern)
{
    struct schema *schema = compiler->schema;
    struct regex *regex = NULL;

    if (schema_regex(schema, pattern) != NULL)
        return 0;
    int r = regex_compile(pattern, 0, &regex, compiler->err);

    if (r < 0)
        return r;
    schema->patterns =
        mem_resize(schema->patterns, schema->pattern_count + 1, sizeof(*schema->patterns));
    schema->patterns[schema->pattern_count++] =
        (struct schema_pattern){.text = pattern, .regex = regex};
    return 0;
}

/* The name in a JSON pointer's last part: "~1" is "/", "~0" is "~". */
static char *unescape_pointer(const char *part)
{
    scoped(buf_done) struct buf name = {0};

    for (; *part != '\0'; part++) {
        if (str_starts(part, "~0")) {
            buf_char(&name, '~');
            part++;
        } else if (str_starts(part, "~1")) {
            buf_char(&name, '/');
            part++;
        } else {
            buf_char(&name, *part);
        }
    }
    return buf_take(&name);
}

json_t *schema_target(const struct schema *schema, const char *reference)
{
    static const char *const folders[] = {"definitions", "$defs"};

    if (str_equal(reference, "#"))
        return schema->document;
    for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
        scoped(mem_freep) char *prefix = str_format("#/%s/", folders[i]);

        if (!str_starts(reference, prefix) || strchr(reference + strlen(prefix), '/') != NULL)
            continue;
        scoped(mem_freep) char *name = unescape_pointer(reference + strlen(prefix));

        return json_object_get(json_object_get(schema->document, folders[i]), name);
    }
    return NULL;
}

static int check_reference(struct compiler *compiler, const json_t *value)
{
    if (!json_is_string(value))
        return complain(compiler, "expected a string");
    if (schema_target(compiler->schema, json_string_value(value)) == NULL)
        return complain(compiler,
                        "'%s' leads nowhere, expected '#', '#/definitions/NAME' or "
                        "'#/$defs/NAME' of this schema",
                        json_string_value(value));
    return 0;
}

/* --- values of keywords ---------------------------------------------------------------------- */

static bool is_type_name(const json_t *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(type_names); i++) {
        if (str_equal(json_string_value(value), type_names[i]))
            return true;
    }
    return false;
}

static int check_type(struct compiler *compiler, const json_t *value)
{
    static const char expected[] =
        "expected array, boolean, integer, null, number, object, string or a list of them";

    if (json_is_string(value))
        return is_type_name(value) ? 0 : complain(compiler, "%s", expected);
    if (json_array_size(value) == 0)
        return complain(compiler, "%s", expected);
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (!is_type_name(json_array_get(value, i)))
            return complain(compiler, "%s", expected);
    }
    return 0;
}

static int check_names(struct compiler *compiler, const json_t *value)
{
    scoped(json_freep) json_t *seen = json_object();

    if (!json_is_array(value))
        return complain(compiler, "expected a list of strings");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = json_string_value(json_array_get(value, i));

        if (name == NULL)
            return complain(compiler, "expected a list of strings");
        if (json_object_get(seen, name) != NULL)
            return complain(compiler, "'%s' stands twice", name);
        json_put_bool(seen, name, true);
    }
    return 0;
}

/* Each member of an object: as a list of names, as a schema, or as a schema under a pattern. */
static int check_map(struct compiler *compiler, json_t *map, enum keyword_kind kind)
{
    const char *key;
    json_t *member;

    if (!json_is_object(map))
        return complain(compiler, "expected an object");
    json_object_foreach (map, key, member) {
        size_t size = compiler->pointer.size_bytes;
        int r;

        pointer_key(&compiler->pointer, key);
        if (kind == KEYWORD_NAMES_MAP)
            r = check_names(compiler, member);
        else if (kind == KEYWORD_PATTERN_MAP && (r = check_pattern(compiler, key)) < 0)
            return r;
        else
            r = check_schema(compiler, member);
        if (r < 0)
            return r;
        pointer_cut(&compiler->pointer, size);
    }
    return 0;
}

static int check_list(struct compiler *compiler, const json_t *list)
{
    if (json_array_size(list) == 0)
        return complain(compiler, "expected a list of at least one schema");
    for (size_t i = 0; i < json_array_size(list); i++) {
        size_t size = compiler->pointer.size_bytes;

        pointer_index(&compiler->pointer, i);
        int r = check_schema(compiler, json_array_get(list, i));

        if (r < 0)
            return r;
        pointer_cut(&compiler->pointer, size);
    }
    return 0;
}

/* Keywords whose value is a number or a flag, or nothing that is looked at. */
static int check_scalar(struct compiler *compiler, const json_t *value, enum keyword_kind kind)
{
    if (kind == KEYWORD_NUMBER && !json_is_number(value))
        return complain(compiler, "expected a number");
    if (kind == KEYWORD_POSITIVE && !(json_is_number(value) && json_number_value(value) > 0))
        return complain(compiler, "expected a number above 0");
    if (kind == KEYWORD_COUNT &&
        !(json_is_number(value) && value_is_integral(value) && json_number_value(value) >= 0))
        return complain(compiler, "expected an integer from 0");
    if (kind == KEYWORD_BOOLEAN && !json_is_boolean(value))
        return complain(compiler, "expected true or false");
    if (kind == KEYWORD_LIST && json_array_size(value) == 0)
        return complain(compiler, "expected a list that is not empty");
    return 0;
}

static int check_value(struct compiler *compiler, json_t *value, enum keyword_kind kind)
{
    switch (kind) {
    case KEYWORD_ANNOTATION:
    case KEYWORD_ANY:
    case KEYWORD_NUMBER:
    case KEYWORD_POSITIVE:
    case KEYWORD_COUNT:
    case KEYWORD_BOOLEAN:
    case KEYWORD_LIST:
        return check_scalar(compiler, value, kind);
    case KEYWORD_TYPE:
        return check_type(compiler, value);
    case KEYWORD_NAMES:
        return check_names(compiler, value);
    case KEYWORD_PATTERN:
        if (!json_is_string(value))
            return complain(compiler, "expected a string");
        return check_pattern(compiler, json_string_value(value));
    case KEYWORD_REFERENCE:
        return check_reference(compiler, value);
    case KEYWORD_NAMES_MAP:
    case KEYWORD_SCHEMA_MAP:
    case KEYWORD_PATTERN_MAP:
        return check_map(compiler, value, kind);
    case KEYWORD_SCHEMA_LIST:
        return check_list(compiler, value);
    case KEYWORD_ITEMS:
        return json_is_array(value) ? check_list(compiler, value) : check_schema(compiler, value);
    case KEYWORD_SCHEMA:
        return check_schema(compiler, value);
    }
    return 0;
}

/* --- schemas --------------------------------------------------------------------------------- */

static int find_keyword(struct compiler *compiler, const char *name, size_t *ret)
{
    const char *names[ARRAY_SIZE(keywords)];

    for (size_t i = 0; i < ARRAY_SIZE(keywords); i++) {
        names[i] = keywords[i].name;
        if (str_equal(name, names[i])) {
            *ret = i;
            return 0;
        }
    }
    const char *nearest = str_nearest(name, names, ARRAY_SIZE(names));

    return complain(compiler, "keyword '%s' is not in the supported subset of JSON Schema%s%s%s",
                    name, nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
                    nearest == NULL ? "" : "'?");
}

static int check_keywords(struct compiler *compiler, json_t *schema)
{
    const char *key;
    json_t *value;

    json_object_foreach (schema, key, value) {
        size_t size = compiler->pointer.size_bytes, which = 0;
        int r = find_keyword(compiler, key, &which);

        if (r < 0)
            return r;
        pointer_key(&compiler->pointer, key);
        r = check_value(compiler, value, keywords[which].kind);
        if (r < 0)
            return r;
        pointer_cut(&compiler->pointer, size);
    }
    if (json_is_array(json_object_get(schema, "items")) &&
        json_object_get(schema, "prefixItems") != NULL)
        return complain(compiler, "'items' is a list beside 'prefixItems'");
    return 0;
}

static int check_schema(struct compiler *compiler, json_t *schema)
{
    if (json_is_boolean(schema))
        return 0;
    if (!json_is_object(schema))
        return complain(compiler, "expected a schema: an object, true or false");
    if (compiler->depth >= SCHEMA_DEPTH_MAX || compiler->node_count >= SCHEMA_NODES_MAX)
        return error_set(compiler->err, ERROR_LIMIT, "more than %d levels or %d parts",
                         SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX);
    compiler->depth++;
    compiler->node_count++;
    int r = check_keywords(compiler, schema);

    compiler->depth--;
    return r;
}

/* --- schemas that never get anywhere --------------------------------------------------------- */

/* Schemas on the way from a reference to itself without a step into the data. */
struct walk {
    const struct schema *schema;
    json_t *done; /* references that lead to an end */
    json_t *open; /* references on the way */
    unsigned depth;
    const char *loop; /* the reference that came back */
};

static void walk_in_place(struct walk *walk, const json_t *schema);

static void walk_reference(struct walk *walk, const char *reference)
{
    if (json_object_get(walk->done, reference) != NULL)
        return;
    if (json_object_get(walk->open, reference) != NULL) {
        walk->loop = reference;
        return;
    }
    json_put_bool(walk->open, reference, true);
    walk_in_place(walk, schema_target(walk->schema, reference));
    (void)json_object_del(walk->open, reference); /* it is there */
    json_put_bool(walk->done, reference, true);
}

static void walk_in_place(struct walk *walk, const json_t *schema)
{
    for (size_t i = 0; i < ARRAY_SIZE(keywords) && walk->loop == NULL; i++) {
        const json_t *value = json_object_get(schema, keywords[i].name);

        if (value == NULL || !keywords[i].in_place)
            continue;
        if (keywords[i].kind == KEYWORD_REFERENCE)
            walk_reference(walk, json_string_value(value));
        else if (keywords[i].kind == KEYWORD_SCHEMA)
            walk_in_place(walk, value);
        for (size_t j = 0; keywords[i].kind == KEYWORD_SCHEMA_LIST && j < json_array_size(value);
             j++)
            walk_in_place(walk, json_array_get(value, j));
    }
}

/* Every reference of the document is the start of a walk. */
static void walk_all(struct walk *walk, json_t *schema)
{
    const char *key;
    json_t *member;
    const json_t *reference = json_object_get(schema, "$ref");

    if (json_is_string(reference) &&
        schema_target(walk->schema, json_string_value(reference)) != NULL)
        walk_reference(walk, json_string_value(reference));
    json_object_foreach (schema, key, member) {
        (void)key;
        walk_all(walk, member);
    }
    for (size_t i = 0; i < json_array_size(schema); i++)
        walk_all(walk, json_array_get(schema, i));
}

static int check_loops(struct schema *schema, struct error **err)
{
    scoped(json_freep) json_t *done = json_object();
    scoped(json_freep) json_t *open = json_object();
    struct walk walk = {.schema = schema, .done = done, .open = open};

    walk_all(&walk, schema->document);
    if (walk.loop == NULL)
        return 0;
    return error_set(err, ERROR_TASK, "'%s' leads back to itself without an end", walk.loop);
}

int schema_compile_at(json_t *document, struct schema **ret, struct buf *ret_place,
                      struct error **err)
{
    scoped(schema_freep) struct schema *schema = mem_new(1, sizeof(*schema));

    schema->document = json_incref(document);
    scoped(compiler_done) struct compiler compiler = {.schema = schema, .err = err};
    int r = check_schema(&compiler, document);

    if (r < 0)
        buf_text_append(ret_place, buf_text(&compiler.pointer));
    else
        r = check_loops(schema, err);
    if (r < 0)
        return r;
    *ret = take(schema);
    return 0;
}

int schema_compile(json_t *document, struct schema **ret, struct error **err)
{
    scoped(buf_done) struct buf place = {0};
    int r = schema_compile_at(document, ret, &place, err);

    return r < 0 ? error_wrap(err, r, "json_schema: at '%s'", buf_text(&place)) : 0;
}

void schema_free(struct schema *schema)
{
    if (schema == NULL)
        return;
    for (size_t i = 0; i < schema->pattern_count; i++)
        regex_free(schema->patterns[i].regex);
    free(schema->patterns);
    json_decref(schema->document);
    free(schema);
}

void schema_freep(struct schema **schema)
{
    schema_free(*schema);
    *schema = NULL;
}
