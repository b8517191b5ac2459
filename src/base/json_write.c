#include "base/json.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

/*
 * A writer of our own: jansson prints 0.1 as 0.10000000000000001, and would leave DEL, the C1
 * controls and bidi marks as they are: no record shows otherwise than it reads. Numbers are the
 * shortest text that reads back as the same double.
 */

enum style { STYLE_CANONICAL, STYLE_PRETTY, STYLE_LINE };

struct writer {
    struct buf *buf;
    enum style style;
    size_t depth;
};

static void write_value(struct writer *writer, const json_t *value);

/* A character of more than one byte: as it is, or escaped when it shows nothing or reorders text.
 */
static size_t write_wide(struct buf *buf, const char *s, size_t size)
{
    uint32_t rune = 0;
    size_t length = utf8_next(s, size, &rune);

    if (length == 0) {
        buf_char(buf, *s);
        return 1;
    }
    if (!rune_is_hidden(rune))
        buf_append(buf, s, length);
    else if (rune < 0x10000)
        buf_format(buf, "\\u%04x", rune);
    else
        buf_format(buf, "\\u%04x\\u%04x", 0xd800 + ((rune - 0x10000) >> 10),
                   0xdc00 + ((rune - 0x10000) & 0x3ff));
    return length;
}

static void write_string(struct buf *buf, const char *s, size_t size)
{
    buf_char(buf, '"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c >= 0x80) {
            i += write_wide(buf, s + i, size - i) - 1;
            continue;
        }
        if (c == '"' || c == '\\')
            buf_char(buf, '\\');
        if (c == '\n')
            buf_text_append(buf, "\\n");
        else if (c == '\t')
            buf_text_append(buf, "\\t");
        else if (c == '\r')
            buf_text_append(buf, "\\r");
        else if (c < 0x20 || c == 0x7f)
            buf_format(buf, "\\u%04x", c);
        else
            buf_char(buf, s[i]);
    }
    buf_char(buf, '"');
}

static void write_real(struct buf *buf, double number)
{
    char text[64];

    for (int digits = 15; digits <= 17; digits++) {
        double back;

        (void)snprintf(text, sizeof(text), "%.*g", digits, number); /* at most 24 characters */
        /* The point is a comma in some locales. */
        char *comma = strchr(text, ',');

        if (comma != NULL)
            *comma = '.';
        if (str_to_double(text, &back) && back <= number && back >= number)
            break;
    }
    buf_text_append(buf, text);
    /* A real stays a real when it is read again. */
    if (strpbrk(text, ".e") == NULL)
        buf_text_append(buf, ".0");
}

static void new_line(struct writer *writer)
{
    if (writer->style != STYLE_PRETTY)
        return;
    buf_char(writer->buf, '\n');
    for (size_t i = 0; i < writer->depth; i++)
        buf_text_append(writer->buf, "  ");
}

static void write_array(struct writer *writer, const json_t *array)
{
    size_t count = json_array_size(array);

    buf_char(writer->buf, '[');
    writer->depth++;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_text_append(writer->buf, writer->style == STYLE_LINE ? ", " : ",");
        new_line(writer);
        write_value(writer, json_array_get(array, i));
    }
    writer->depth--;
    if (count > 0)
        new_line(writer);
    buf_char(writer->buf, ']');
}

static void write_object(struct writer *writer, const json_t *object)
{
    scoped(str_list_done) struct str_list keys = {0};
    const char *key;
    json_t *iterated, *value;

    /* The iteration does not write, but its type says it might. */
    memcpy(&iterated, &object, sizeof(iterated));
    json_object_foreach (iterated, key, value)
        str_list_add(&keys, key);
    if (writer->style == STYLE_CANONICAL)
        str_list_sort(&keys);
    buf_char(writer->buf, '{');
    writer->depth++;
    for (size_t i = 0; i < keys.count; i++) {
        if (i > 0)
            buf_text_append(writer->buf, writer->style == STYLE_LINE ? ", " : ",");
        new_line(writer);
        write_string(writer->buf, keys.items[i], strlen(keys.items[i]));
        buf_text_append(writer->buf, writer->style == STYLE_CANONICAL ? ":" : ": ");
        write_value(writer, json_object_get(object, keys.items[i]));
    }
    writer->depth--;
    if (keys.count > 0)
        new_line(writer);
    buf_char(writer->buf, '}');
}

static void write_value(struct writer *writer, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        write_object(writer, value);
        break;
    case JSON_ARRAY:
        write_array(writer, value);
        break;
    case JSON_STRING:
        write_string(writer->buf, json_string_value(value), json_string_length(value));
        break;
    case JSON_INTEGER:
        buf_format(writer->buf, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        write_real(writer->buf, json_real_value(value));
        break;
    case JSON_TRUE:
        buf_text_append(writer->buf, "true");
        break;
    case JSON_FALSE:
        buf_text_append(writer->buf, "false");
        break;
    case JSON_NULL:
        buf_text_append(writer->buf, "null");
        break;
    }
}

void json_write_canonical(struct buf *buf, const json_t *value)
{
    write_value(&(struct writer){.buf = buf, .style = STYLE_CANONICAL}, value);
}

void json_write_pretty(struct buf *buf, const json_t *value)
{
    write_value(&(struct writer){.buf = buf, .style = STYLE_PRETTY}, value);
    buf_char(buf, '\n');
}

void json_write_line(struct buf *buf, const json_t *value)
{
    write_value(&(struct writer){.buf = buf, .style = STYLE_LINE}, value);
}
