#include "broker/keys.h"

#include <ctype.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

static void wipe(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

void keys_done(struct keys *keys)
{
    for (size_t i = 0; i < keys->count; i++) {
        free(keys->items[i].name);
        wipe(keys->items[i].value);
    }
    *keys = (struct keys){0};
}

const char *keys_get(const struct keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->count; i++) {
        if (str_equal(keys->items[i].name, name))
            return keys->items[i].value;
    }
    return NULL;
}

/* One line's parts, which point into it. */
struct line {
    const char *name, *value;
    size_t name_length, value_length;
};

static const char *skip_blanks(const char *s)
{
    return s + strspn(s, " \t");
}

static bool is_value(const char *value, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (value[i] <= ' ' || value[i] > '~')
            return false;
    }
    return length > 0 && length <= KEY_BYTES_MAX;
}

/* Without blanks at its end and quotes around it. */
static void trim_value(struct line *line)
{
    while (line->value_length > 0 &&
           isspace((unsigned char)line->value[line->value_length - 1]) != 0)
        line->value_length--;
    const char *value = line->value;
    size_t length = line->value_length;

    if (length >= 2 && (value[0] == '"' || value[0] == '\'') && value[length - 1] == value[0]) {
        line->value++;
        line->value_length -= 2;
    }
}

/* False: it is no line of that form. */
static bool read_line(enum keys_form form, const char *text, size_t length, struct line *ret)
{
    const char *end = text + length, *name = skip_blanks(text);

    if (form == KEYS_ENV && str_starts(name, "export "))
        name = skip_blanks(name + strlen("export "));
    *ret = (struct line){.name = name, .name_length = strspn(name, letters)};
    const char *mark = skip_blanks(name + ret->name_length);

    if (ret->name_length == 0 || mark >= end || *mark != (form == KEYS_ENV ? '=' : ':'))
        return false;
    ret->value = skip_blanks(mark + 1);
    if (ret->value > end)
        return false;
    ret->value_length = (size_t)(end - ret->value);
    trim_value(ret);
    return is_value(ret->value, ret->value_length);
}

static bool is_empty(const char *text, size_t length)
{
    const char *first = skip_blanks(text);

    return first >= text + length || *first == '#' || *first == '\r';
}

static int add(struct keys *keys, const struct line *line, const char *source, struct error **err)
{
    scoped(mem_freep) char *name = str_ndup(line->name, line->name_length);

    if (keys_get(keys, name) != NULL)
        return 0;
    if (keys->count >= KEYS_MAX)
        return error_set(err, ERROR_USER, "%s: more than %d keys", source, KEYS_MAX);
    keys->items[keys->count++] = (struct key){
        .name = take(name),
        .value = str_ndup(line->value, line->value_length),
    };
    return 0;
}

int keys_parse(struct keys *keys, enum keys_form form, const char *name, const char *text,
               struct error **err)
{
    size_t number = 0;

    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        struct line line;

        number++;
        if (!is_empty(text, length)) {
            bool is_key = read_line(form, text, length, &line);

            if (!is_key && form == KEYS_YAML)
                return error_set(err, ERROR_USER,
                                 "%s:%zu: 'NAME: key' expected, on one line, without blanks in it",
                                 name, number);
            int r = is_key ? add(keys, &line, name, err) : 0;

            if (r < 0)
                return r;
        }
        text += length + (text[length] == '\n');
    }
    return 0;
}

static void wipe_buf(struct buf *buf)
{
    if (buf->data != NULL)
        explicit_bzero(buf->data, buf->capacity_bytes);
    buf_done(buf);
}

/* At once as large as it gets, so that no part of it is left behind in memory that was freed. */
static int read_whole(int fd, const char *name, struct buf *ret, struct error **err)
{
    ret->data = mem_new(KEYS_BYTES_MAX + 2, 1);
    ret->capacity_bytes = KEYS_BYTES_MAX + 2;
    while (ret->size_bytes <= KEYS_BYTES_MAX) {
        ssize_t n = pread(fd, ret->data + ret->size_bytes, KEYS_BYTES_MAX + 1 - ret->size_bytes,
                          (off_t)ret->size_bytes);

        if (n < 0)
            return error_errno(err, errno, "cannot read %s", name);
        if (n == 0)
            break;
        ret->size_bytes += (size_t)n;
    }
    if (ret->size_bytes > KEYS_BYTES_MAX)
        return error_set(err, ERROR_USER, "%s is larger than %zu bytes", name, KEYS_BYTES_MAX);
    return strlen(ret->data) == ret->size_bytes
               ? 0
               : error_set(err, ERROR_USER, "%s holds a NUL character", name);
}

int keys_read(struct keys *keys, enum keys_form form, const char *name, int fd, struct error **err)
{
    scoped(wipe_buf) struct buf text = {0};
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    if (form == KEYS_YAML && (status.st_mode & 077) != 0)
        return error_set(err, ERROR_USER,
                         "%s has mode %04o, and holds keys: only its owner may read it (chmod 600)",
                         name, (unsigned)status.st_mode & 07777u);
    int r = read_whole(fd, name, &text, err);

    return r < 0 ? r : keys_parse(keys, form, name, buf_text(&text), err);
}

int keys_take_env(const char *const *names, int *ret, struct error **err)
{
    scoped(wipe_buf) struct buf text = {.data = mem_new(KEYS_BYTES_MAX, 1),
                                        .capacity_bytes = KEYS_BYTES_MAX,
                                        .max_bytes = KEYS_BYTES_MAX - 1};

    for (; *names != NULL; names++) {
        char *value = getenv(*names);

        if (value == NULL)
            continue;
        if (is_value(value, strlen(value))) {
            buf_text_append(&text, *names);
            buf_char(&text, '=');
            buf_text_append(&text, value);
            buf_char(&text, '\n');
        }
        explicit_bzero(value, strlen(value)); /* /proc/PID/environ is where it stood */
        (void)unsetenv(*names);               /* a name that getenv() took is fine */
    }
    return fs_memfd("keys", buf_text(&text), text.size_bytes, ret, err);
}
