#include "grade/value.h"

#include <math.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

/* Values that are only shown, not built by an expression without bounds. */
#define SHOW_STEPS_MAX 100000

bool budget_take(struct budget *budget, uint64_t steps)
{
    if (steps > budget->left) {
        budget->left = 0;
        budget->exhausted = true;
        return false;
    }
    budget->left -= steps;
    return true;
}

/* --- reading --------------------------------------------------------------------------------- */

int value_parse(const char *text, size_t size, json_t **ret, struct error **err)
{
    static const char mark[] = "\xEF\xBB\xBF";
    size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_error_t error;

    if (size >= 3 && memcmp(text, mark, 3) == 0) {
        text += 3;
        size -= 3;
    }
    json_t *value = json_loadb(text, size, flags, &error);

    if (value == NULL && json_error_code(&error) == json_error_numeric_overflow)
        value = json_loadb(text, size, flags | JSON_DECODE_INT_AS_REAL, &error);
    if (value == NULL)
        return error_set(err, ERROR_AGENT, "line %d, column %d: %s", error.line, error.column,
                         error.text);
    *ret = value;
    return 0;
}

/* jansson's iterators take no const object but change none. */
static json_t *iterable(const json_t *object)
{
    union {
        const json_t *given;
        json_t *taken;
    } same = {.given = object};

    return same.taken;
}

/* --- comparing ------------------------------------------------------------------------------- */

static int order(bool less, bool greater)
{
    return greater - less;
}

/* An integer against a real, without rounding either. */
static int compare_mixed(json_int_t integer, double real)
{
    if (real >= 0x1p63)
        return -1;
    if (real < -0x1p63)
        return 1;
    json_int_t whole = (json_int_t)real; /* toward zero, exact */
    double rest = real - (double)whole;

    if (integer != whole)
        return order(integer<whole, integer> whole);
    return order(rest > 0, rest < 0);
}

int value_compare_numbers(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a), y = json_integer_value(b);

        return order(x<y, x> y);
    }
    if (json_is_integer(a))
        return compare_mixed(json_integer_value(a), json_real_value(b));
    if (json_is_integer(b))
        return -compare_mixed(json_integer_value(b), json_real_value(a));
    double x = json_real_value(a), y = json_real_value(b);

    return order(x<y, x> y);
}

int value_compare_strings(const json_t *a, const json_t *b)
{
    size_t size_a = json_string_length(a), size_b = json_string_length(b);
    /* Bytes of UTF-8 sort as their code points do. */
    int r = memcmp(json_string_value(a), json_string_value(b), size_min(size_a, size_b));

    return r != 0 ? order(r<0, r> 0) : order(size_a<size_b, size_a> size_b);
}

static bool equal_arrays(const json_t *a, const json_t *b, struct budget *budget)
{
    size_t count = json_array_size(a);

    if (count != json_array_size(b))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!value_equal(json_array_get(a, i), json_array_get(b, i), budget))
            return false;
    }
    return true;
}

static bool equal_objects(const json_t *a, const json_t *b, struct budget *budget)
{
    if (json_object_size(a) != json_object_size(b))
        return false;
    const char *key;
    json_t *member;

    void *iterator = json_object_iter(iterable(a));

    for (; iterator != NULL; iterator = json_object_iter_next(iterable(a), iterator)) {
        key = json_object_iter_key(iterator);
        member = json_object_get(b, key);
        if (member == NULL || !value_equal(json_object_iter_value(iterator), member, budget))
            return false;
    }
    return true;
}

bool value_equal(const json_t *a, const json_t *b, struct budget *budget)
{
    if (!budget_take(budget, 1))
        return false;
    if (a == b)
        return true;
    if (json_is_number(a) && json_is_number(b))
        return value_compare_numbers(a, b) == 0;
    if (json_typeof(a) != json_typeof(b))
        return false;
    switch (json_typeof(a)) {
    case JSON_OBJECT:
        return equal_objects(a, b, budget);
    case JSON_ARRAY:
        return equal_arrays(a, b, budget);
    case JSON_STRING:
        return value_compare_strings(a, b) == 0;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return true;
    }
    return false;
}

bool value_is_integral(const json_t *value)
{
    if (json_is_real(value))
        return json_real_value(value) == trunc(json_real_value(value));
    return json_is_integer(value);
}

const char *value_type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "object";
    case JSON_ARRAY:
        return "array";
    case JSON_STRING:
        return "string";
    case JSON_INTEGER:
    case JSON_REAL:
        return "number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "boolean";
    case JSON_NULL:
        return "null";
    }
    return "null";
}

size_t value_string_runes(const json_t *value)
{
    const char *s = json_string_value(value);
    size_t size = json_string_length(value), runes = 0;

    for (size_t i = 0; i < size; i++)
        runes += ((unsigned char)s[i] & 0xC0) != 0x80;
    return runes;
}

/* --- writing --------------------------------------------------------------------------------- */

struct writer {
    struct buf *buf;
    enum value_style style;
    struct budget *budget;
};

static void write_value(struct writer *writer, const json_t *value);

static void write_string(struct buf *buf, const char *s, size_t size)
{
    static const char escapes[] = "btnvfr"; /* from 8 on; 'v' is none of JSON's */
    size_t start = 0;

    buf_char(buf, '"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7F)
            continue;
        buf_append(buf, s + start, i - start);
        start = i + 1;
        if (c == '"' || c == '\\')
            buf_format(buf, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            buf_format(buf, "\\%c", escapes[c - 8]);
        else
            buf_format(buf, "\\u%04x", c);
    }
    buf_append(buf, s + start, size - start);
    buf_char(buf, '"');
}

/* The shortest digits that read back as the same double, always recognisable as a real. */
static void write_real(struct buf *buf, double real)
{
    char text[40];
    double back = 0;

    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, real); /* 24 bytes at most */
        if (str_to_double(text, &back) && back == real)
            break;
    }
    buf_text_append(buf, text);
    if (strpbrk(text, ".e") == NULL)
        buf_text_append(buf, ".0");
}

static void write_number(struct writer *writer, const json_t *value)
{
    if (json_is_integer(value)) {
        buf_format(writer->buf, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return;
    }
    double real = json_real_value(value);

    if (writer->style == VALUE_SORTED && real >= -0x1p63 && real < 0x1p63 && real == trunc(real))
        buf_format(writer->buf, "%" JSON_INTEGER_FORMAT, (json_int_t)real);
    else
        write_real(writer->buf, real);
}

static void write_array(struct writer *writer, const json_t *array)
{
    size_t count = json_array_size(array);

    buf_char(writer->buf, '[');
    for (size_t i = 0; i < count && !writer->budget->exhausted && !writer->buf->overflowed; i++) {
        if (i > 0)
            buf_text_append(writer->buf, writer->style == VALUE_SPACED ? ", " : ",");
        write_value(writer, json_array_get(array, i));
    }
    buf_char(writer->buf, ']');
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_object(struct writer *writer, const json_t *object)
{
    size_t count = json_object_size(object), n = 0;
    scoped(mem_freep) const char **keys = mem_new(count + 1, sizeof(*keys));
    void *iterator = json_object_iter(iterable(object));

    for (; iterator != NULL && n < count; n++) {
        keys[n] = json_object_iter_key(iterator);
        iterator = json_object_iter_next(iterable(object), iterator);
    }
    if (writer->style == VALUE_SORTED)
        qsort(keys, n, sizeof(*keys), compare_keys);
    buf_char(writer->buf, '{');
    for (size_t i = 0; i < n && !writer->budget->exhausted && !writer->buf->overflowed; i++) {
        if (i > 0)
            buf_text_append(writer->buf, writer->style == VALUE_SPACED ? ", " : ",");
        write_string(writer->buf, keys[i], strlen(keys[i]));
        buf_text_append(writer->buf, writer->style == VALUE_SPACED ? ": " : ":");
        write_value(writer, json_object_get(object, keys[i]));
    }
    buf_char(writer->buf, '}');
}

static void write_value(struct writer *writer, const json_t *value)
{
    if (!budget_take(writer->budget, 1))
        return;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(writer, value);
        return;
    case JSON_ARRAY:
        write_array(writer, value);
        return;
    case JSON_STRING:
        (void)budget_take(writer->budget, json_string_length(value) / 64);
        write_string(writer->buf, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
    case JSON_REAL:
        write_number(writer, value);
        return;
    case JSON_TRUE:
        buf_text_append(writer->buf, "true");
        return;
    case JSON_FALSE:
        buf_text_append(writer->buf, "false");
        return;
    case JSON_NULL:
        buf_text_append(writer->buf, "null");
        return;
    }
}

void value_write(struct buf *buf, const json_t *value, enum value_style style,
                 struct budget *budget)
{
    struct writer writer = {.buf = buf, .style = style, .budget = budget};

    write_value(&writer, value);
}

void value_show(struct buf *buf, const json_t *value, size_t max_bytes)
{
    struct budget budget = {.left = SHOW_STEPS_MAX};
    scoped(buf_done) struct buf text = {.max_bytes = max_bytes};

    value_write(&text, value, VALUE_COMPACT, &budget);
    text_append_utf8(buf, buf_text(&text), text.size_bytes); /* the cut may be inside a character */
    if (text.overflowed || budget.exhausted)
        buf_text_append(buf, " [cut]");
}

void text_append_utf8(struct buf *buf, const char *bytes, size_t size)
{
    size_t start = 0;

    if (utf8_valid(bytes, size)) {
        buf_append(buf, bytes, size);
        return;
    }
    for (size_t i = 0; i < size;) {
        uint32_t rune;
        size_t length = utf8_next(bytes + i, size - i, &rune);

        if (length > 0) {
            i += length;
            continue;
        }
        buf_append(buf, bytes + start, i - start);
        buf_text_append(buf, "\xEF\xBF\xBD");
        start = ++i;
    }
    buf_append(buf, bytes + start, size - start);
}
