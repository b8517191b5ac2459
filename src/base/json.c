#include "base/json.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"

void json_freep(json_t **value)
{
    json_decref(*value);
    *value = NULL;
}

/* Where a text has got to. Columns count bytes, as jansson's do. */
struct place {
    size_t line, column;
};

static struct place place_at(const char *text, size_t offset)
{
    struct place place = {.line = 1, .column = 1};

    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            place.line++;
            place.column = 1;
        } else {
            place.column++;
        }
    }
    return place;
}

/* The end of the string that starts at i: the offset of its closing quote, or length. */
static size_t string_end(const char *text, size_t length, size_t i)
{
    for (i++; i < length && text[i] != '"'; i++) {
        if (text[i] == '\\')
            i++;
    }
    return i;
}

/*
 * The offset of the bracket that goes deeper than JSON_DEPTH_MAX, or length. Looked at before the
 * parser sees the text, as its own limit would let it recurse further than we want.
 */
static size_t too_deep_at(const char *text, size_t length)
{
    size_t depth = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            i = string_end(text, length, i);
        else if (text[i] == '[' || text[i] == '{')
            depth++;
        else if ((text[i] == ']' || text[i] == '}') && depth > 0)
            depth--;
        if (depth > JSON_DEPTH_MAX)
            return i;
    }
    return length;
}

int json_parse(const char *name, const char *text, size_t length, json_t **ret, struct error **err)
{
    json_error_t problem;
    size_t deep = too_deep_at(text, length);

    if (deep < length) {
        struct place place = place_at(text, deep);

        return error_set(err, ERROR_TASK, "%s:%zu:%zu: nested deeper than %d levels", name,
                         place.line, place.column, JSON_DEPTH_MAX);
    }
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);

    if (value == NULL)
        return error_set(err, ERROR_TASK, "%s:%d:%d: %s", name, problem.line, problem.column,
                         problem.text);
    *ret = value;
    return 0;
}

int json_load(int dir_fd, const char *path, size_t max_bytes, json_t **ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = fs_read_file(dir_fd, path, max_bytes, &text, err);

    if (r < 0)
        return r;
    return json_parse(path, buf_text(&text), text.size_bytes, ret, err);
}

json_t *json_text(const void *bytes, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    scoped(buf_done) struct buf clean = {0};
    const char *s = bytes;

    while (size > 0) {
        uint32_t rune;
        size_t length = utf8_next(s, size, &rune);

        if (length == 0 || rune == 0) {
            buf_text_append(&clean, replacement);
            length = 1;
        } else {
            buf_append(&clean, s, length);
        }
        s += length;
        size -= length;
    }
    json_t *value = json_stringn_nocheck(buf_text(&clean), clean.size_bytes);

    ASSERT(value != NULL);
    return value;
}

json_t *json_text_or_null(const char *s)
{
    return s == NULL ? json_null() : json_text(s, strlen(s));
}

void json_put(json_t *object, const char *key, json_t *value)
{
    ASSERT(json_object_set_new(object, key, value) == 0);
}

void json_put_text(json_t *object, const char *key, const char *s)
{
    json_put(object, key, json_text(s, strlen(s)));
}

void json_put_int(json_t *object, const char *key, int64_t n)
{
    json_put(object, key, json_integer(n));
}

void json_put_real(json_t *object, const char *key, double n)
{
    json_put(object, key, json_real(n));
}

void json_put_bool(json_t *object, const char *key, bool b)
{
    json_put(object, key, json_boolean(b));
}

void json_push(json_t *array, json_t *value)
{
    ASSERT(json_array_append_new(array, value) == 0);
}

const char *json_get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

int64_t json_get_int(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

double json_get_real(const json_t *object, const char *key, double otherwise)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

bool json_get_bool(const json_t *object, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(object, key);

    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

json_t *json_get_object(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_object(value) ? value : NULL;
}

json_t *json_get_array(const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    return json_is_array(value) ? value : NULL;
}
