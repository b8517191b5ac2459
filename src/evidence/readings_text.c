/* Readings that are the text with something taken out of it. */
#include <string.h>

#include "evidence/readings_internal.h"

#define NUMBERED_LINES_MIN 3
#define NUMBER_DIGITS_MAX 7
#define COLOUR_BYTES_MAX 32
#define ESCAPES_CLOSE 3     /* so many ... */
#define ESCAPES_WITHIN 600  /* ... in so many bytes are looked behind */
#define ESCAPES_AROUND 4096 /* as is what stands so near */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* --- escapes -----------------------------------------------------------------------------------
 */

/* A number of so many digits; -1: there is none. */
static int32_t hex_number(const char *at, const char *end, size_t digits)
{
    int32_t value = 0;

    if ((size_t)(end - at) < digits)
        return -1;
    for (size_t i = 0; i < digits; i++) {
        int digit = hex_value(at[i]);

        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static void append_character(struct buf *buf, uint32_t value)
{
    if (value < 0x80) {
        buf_char(buf, (char)value);
    } else if (value < 0x800) {
        buf_char(buf, (char)(0xc0 | value >> 6));
        buf_char(buf, (char)(0x80 | (value & 0x3f)));
    } else {
        buf_char(buf, (char)(0xe0 | value >> 12));
        buf_char(buf, (char)(0x80 | (value >> 6 & 0x3f)));
        buf_char(buf, (char)(0x80 | (value & 0x3f)));
    }
}

/* Each returns the bytes that an escape takes, 0: it is none; and appends what it stands for. */
static size_t backslash(const char *at, const char *end, struct buf *ret)
{
    int32_t value;

    if (end - at < 2)
        return 0;
    switch (at[1]) {
    case 'n':
        buf_char(ret, '\n');
        return 2;
    case 't':
    case 'r':
        buf_char(ret, ' ');
        return 2;
    case '\\':
    case '"':
    case '\'':
    case '/':
        buf_char(ret, at[1]);
        return 2;
    case 'x':
        value = hex_number(at + 2, end, 2);
        if (value >= 0)
            buf_char(ret, (char)value);
        return value >= 0 ? 4 : 0;
    case 'u':
        value = hex_number(at + 2, end, 4);
        if (value >= 0)
            append_character(ret, (uint32_t)value);
        return value >= 0 ? 6 : 0;
    default:
        return 0;
    }
}

static size_t percent(const char *at, const char *end, struct buf *ret)
{
    int32_t value = hex_number(at + 1, end, 2);

    if (value < 0)
        return 0;
    buf_char(ret, (char)value);
    return 3;
}

static size_t entity(const char *at, const char *end, struct buf *ret)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"&lt;", '<'},   {"&gt;", '>'},   {"&amp;", '&'},
                 {"&quot;", '"'}, {"&#39;", '\''}, {"&apos;", '\''}};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        size_t size = strlen(names[i].name);

        if ((size_t)(end - at) < size || memcmp(at, names[i].name, size) != 0)
            continue;
        buf_char(ret, names[i].c);
        return size;
    }
    return 0;
}

static size_t colour(const char *at, const char *end)
{
    size_t size = 2;

    if (end - at < 3 || at[1] != '[')
        return 0;
    while (at + size < end && size < COLOUR_BYTES_MAX &&
           ((at[size] >= '0' && at[size] <= '9') || at[size] == ';'))
        size++;
    return at + size < end && at[size] >= '@' && at[size] <= '~' ? size + 1 : 0;
}

static size_t escape_at(const char *at, const char *end, struct buf *ret)
{
    switch (*at) {
    case '\\':
        return backslash(at, end, ret);
    case '%':
        return percent(at, end, ret);
    case '&':
        return entity(at, end, ret);
    case '\x1b':
        return colour(at, end);
    default:
        return 0;
    }
}

/* Where each of the bytes that begin an escape comes next: most texts have few, and are passed over
 * quickly. */
struct specials {
    const char *next[4]; /* the end: none */
    const char *end;
};

static const char special_bytes[4] = {'\\', '%', '&', '\x1b'};

static const char *find_byte(char c, const char *at, const char *end)
{
    const char *found = at < end ? memchr(at, c, (size_t)(end - at)) : NULL;

    return found != NULL ? found : end;
}

static void specials_init(struct specials *specials, const char *text, const char *end)
{
    specials->end = end;
    for (size_t i = 0; i < ARRAY_SIZE(special_bytes); i++)
        specials->next[i] = find_byte(special_bytes[i], text, end);
}

/* The next at or after `at`, or the end. */
static const char *next_special(struct specials *specials, const char *at)
{
    const char *first = specials->end;

    for (size_t i = 0; i < ARRAY_SIZE(special_bytes); i++) {
        if (specials->next[i] < at)
            specials->next[i] = find_byte(special_bytes[i], at, specials->end);
        if (specials->next[i] < first)
            first = specials->next[i];
    }
    return first;
}

/* The text from `at` to `end` without its escapes. */
static void unescape(const char *at, const char *end, struct buf *ret)
{
    struct specials specials;

    specials_init(&specials, at, end);
    while (at < end) {
        const char *special = next_special(&specials, at);
        size_t taken;

        buf_append(ret, at, (size_t)(special - at));
        at = special;
        if (at == end)
            return;
        taken = escape_at(at, end, ret);
        if (taken == 0)
            buf_char(ret, *at);
        at += taken > 0 ? taken : 1;
    }
}

/*
 * Only where escapes stand close to each other: a single one hides no copied lines, and nearly
 * every source has some.
 */
bool reading_unescape(const char *text, size_t size, struct buf *ret)
{
    const char *end = text + size, *recent[ESCAPES_CLOSE - 1] = {0}, *done = text;
    scoped(buf_done) struct buf unused = {0};
    struct specials specials;
    size_t count = 0;

    specials_init(&specials, text, end);
    for (const char *at = next_special(&specials, text); at < end;) {
        size_t taken = escape_at(at, end, &unused);
        const char *oldest = recent[count % ARRAY_SIZE(recent)];

        buf_clear(&unused);
        if (taken > 0 && oldest != NULL && at - oldest <= ESCAPES_WITHIN && at >= done) {
            const char *from = oldest - done > ESCAPES_AROUND ? oldest - ESCAPES_AROUND : done;
            const char *to = end - at > ESCAPES_AROUND ? at + ESCAPES_AROUND : end;

            unescape(from, to, ret);
            done = to;
        }
        if (taken > 0)
            recent[count++ % ARRAY_SIZE(recent)] = at;
        at = next_special(&specials, at + (taken > 0 ? taken : 1));
    }
    return done > text;
}

/* --- line numbers ------------------------------------------------------------------------------
 */

static size_t digits_at(const char *at, const char *end)
{
    size_t count = 0;

    while (at + count < end && at[count] >= '0' && at[count] <= '9')
        count++;
    return count;
}

/* "  12\t", "12:", "12-" and what agents' tools print, "12" and an arrow: bytes of it, or 0. */
static size_t number_size(const char *line, const char *end)
{
    static const char arrow[] = "\xe2\x86\x92";
    const char *at = line;

    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    size_t digits = digits_at(at, end);

    if (digits == 0 || digits > NUMBER_DIGITS_MAX)
        return 0;
    at += digits;
    if (at == end)
        return (size_t)(at - line);
    if ((size_t)(end - at) >= sizeof(arrow) - 1 && memcmp(at, arrow, sizeof(arrow) - 1) == 0)
        return (size_t)(at - line) + sizeof(arrow) - 1;
    return strchr(" \t:|-.)", *at) != NULL ? (size_t)(at - line) + 1 : 0;
}

/* "path:12:" as grep prints it; bytes of it, or 0. */
static size_t place_size(const char *line, const char *end)
{
    const char *colon = memchr(line, ':', (size_t)(end - line));

    if (colon == NULL || memchr(line, ' ', (size_t)(colon - line)) != NULL)
        return 0;
    size_t digits = digits_at(colon + 1, end);
    const char *after = colon + 1 + digits;

    return digits > 0 && after < end && (*after == ':' || *after == '-')
               ? (size_t)(after + 1 - line)
               : 0;
}

bool reading_without_numbers(const char *text, size_t size, struct buf *ret)
{
    const char *end = text + size;
    size_t lines = 0, numbered = 0;

    /* First only counted: a copy is made of few texts. */
    for (int pass = 0; pass < 2; pass++) {
        for (const char *line = text; line < end;) {
            const char *stop = memchr(line, '\n', (size_t)(end - line));
            const char *line_end = stop == NULL ? end : stop;
            size_t prefix = number_size(line, line_end);

            prefix = prefix > 0 ? prefix : place_size(line, line_end);
            if (pass == 0) {
                lines++;
                numbered += prefix > 0;
            } else {
                buf_append(ret, line + prefix, (size_t)(line_end - line) - prefix);
                buf_char(ret, '\n');
            }
            line = line_end + 1;
        }
        if (numbered < NUMBERED_LINES_MIN || numbered < lines / 4)
            return false;
    }
    return true;
}
