#include "base/str.h"

#include <locale.h>
#include <math.h>

#include "base/buf.h"
#include "base/mem.h"

/* "did you mean" is for names; a longer text is no misspelt name. */
#define NEAREST_CHARS_MAX 63

char *str_dup(const char *s)
{
    return mem_dup(s, strlen(s) + 1);
}

char *str_ndup(const char *s, size_t length)
{
    length = strnlen(s, length);
    char *copy = mem_new(length + 1, 1);

    memcpy(copy, s, length);
    return copy;
}

char *str_format(const char *fmt, ...)
{
    scoped(buf_done) struct buf text = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&text, fmt, args);
    va_end(args);
    return buf_take(&text);
}

bool str_equal(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

bool str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
    size_t length = strlen(s), suffix_length = strlen(suffix);

    return length >= suffix_length && strcmp(s + length - suffix_length, suffix) == 0;
}

bool str_to_u64(const char *s, uint64_t *ret)
{
    uint64_t value = 0;

    if (*s == '\0')
        return false;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return false;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
            return false;
    }
    *ret = value;
    return true;
}

bool str_to_i64(const char *s, int64_t *ret)
{
    bool negative = *s == '-';
    uint64_t magnitude;

    if (!str_to_u64(negative ? s + 1 : s, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    if (!negative)
        *ret = (int64_t)magnitude;
    else
        *ret = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    return true;
}

static const char *skip_digits(const char *s)
{
    while (*s >= '0' && *s <= '9')
        s++;
    return s;
}

/* -?digits(.digits)?([eE][+-]?digits)? and nothing else: no hex, no inf, no nan, no spaces. */
static bool is_decimal(const char *s)
{
    const char *start = *s == '-' ? s + 1 : s;
    const char *end = skip_digits(start);

    if (end == start)
        return false;
    if (*end == '.') {
        start = end + 1;
        end = skip_digits(start);
        if (end == start)
            return false;
    }
    if (*end == 'e' || *end == 'E') {
        start = end + 1;
        if (*start == '+' || *start == '-')
            start++;
        end = skip_digits(start);
        if (end == start)
            return false;
    }
    return *end == '\0';
}

static void locale_done(locale_t *locale)
{
    if (*locale != (locale_t)0)
        freelocale(*locale);
}

bool str_to_double(const char *s, double *ret)
{
    if (!is_decimal(s))
        return false;
    /* A locale of its own, as the program's may have a comma for a point. */
    scoped(locale_done) locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    ASSERT(plain != (locale_t)0);
    double value = strtod_l(s, NULL, plain);

    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

/*
 * The edit distance of a and b where swapping two neighbours costs one, too. Both are at most
 * NEAREST_CHARS_MAX long. Three rows of the table are enough.
 */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NEAREST_CHARS_MAX + 1];
    size_t *above = rows[1], *row = rows[0], *top = rows[2];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *spare = top;

        top = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t change = a[i - 1] == b[j - 1] ? 0 : 1;

            row[j] = size_min(size_min(above[j], row[j - 1]) + 1, above[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = size_min(row[j], top[j - 2] + 1);
        }
    }
    return row[b_length];
}

const char *str_nearest(const char *s, const char *const *names, size_t count)
{
    size_t length = strlen(s);
    const char *nearest = NULL;
    /* A third of the letters may be wrong, but never all of a short name. */
    size_t limit = length / 3 + 1;

    if (length < 2 || length > NEAREST_CHARS_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t name_length = strlen(names[i]);

        if (name_length == 0 || name_length > NEAREST_CHARS_MAX)
            continue;
        size_t changes = distance(s, length, names[i], name_length);

        if (changes <= limit && changes < size_max(length, name_length)) {
            nearest = names[i];
            /* Only a nearer one replaces it: the first of equals wins. */
            limit = changes == 0 ? 0 : changes - 1;
            if (changes == 0)
                break;
        }
    }
    return nearest;
}

void str_list_add_take(struct str_list *list, char *s)
{
    /* Room for the NULL at the end; the array grows by doubling at powers of two. */
    if (list->count == 0)
        list->items = mem_resize(list->items, 4, sizeof(*list->items));
    else if (list->count >= 3 && (list->count & (list->count + 1)) == 0)
        list->items = mem_resize(list->items, (list->count + 1) * 2, sizeof(*list->items));
    list->items[list->count++] = s;
    list->items[list->count] = NULL;
}

void str_list_add(struct str_list *list, const char *s)
{
    str_list_add_take(list, str_dup(s));
}

bool str_list_has(const struct str_list *list, const char *s)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], s) == 0)
            return true;
    }
    return false;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void str_list_sort(struct str_list *list)
{
    if (list->count > 1)
        qsort(list->items, list->count, sizeof(*list->items), by_bytes);
}

void str_list_copy(struct str_list *to, const struct str_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        str_list_add(to, from->items[i]);
}

void str_list_done(struct str_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct str_list){0};
}
