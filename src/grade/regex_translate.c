#include "base/mem.h"
#include "grade/regex_internal.h"

/*
 * From Python's spelling to PCRE2's. The text is read once per set of global flags: an inline
 * "(?x)" anywhere changes how the whole pattern reads, so it is read again when one is found.
 */
struct translator {
    const char *pattern;
    size_t size, i; /* i: the next byte to read */
    unsigned flags; /* global ones found so far */
    struct regex_text *ret;
    size_t nesting;
    bool verbose[REGEX_NESTING_MAX + 1]; /* per open parenthesis */
    struct error **err;
};

void regex_text_done(struct regex_text *text)
{
    buf_done(&text->text);
    buf_done(&text->origins);
}

size_t regex_text_origin(const struct regex_text *text, size_t offset)
{
    uint32_t origin = 0;
    size_t count = text->origins.size_bytes / sizeof(origin);

    if (count == 0)
        return 0;
    if (offset >= count)
        offset = count - 1;
    memcpy(&origin, text->origins.data + offset * sizeof(origin), sizeof(origin));
    return origin;
}

static char peek(const struct translator *translator, size_t ahead)
{
    size_t i = translator->i + ahead;

    if (i < translator->size)
        return translator->pattern[i];
    return '\0';
}

/* Appends text that stands for what is read at the next byte. */
static void emit(struct translator *translator, const char *text, size_t size)
{
    uint32_t origin = (uint32_t)translator->i;

    buf_append(&translator->ret->text, text, size);
    for (size_t i = 0; i < size; i++)
        buf_append(&translator->ret->origins, &origin, sizeof(origin));
}

static void copy(struct translator *translator, size_t size)
{
    size_t end = size_min(translator->i + size, translator->size);

    for (; translator->i < end; translator->i++)
        emit(translator, translator->pattern + translator->i, 1);
}

static void replace(struct translator *translator, size_t size, const char *text)
{
    emit(translator, text, strlen(text));
    translator->i += size;
}

static int complain(const struct translator *translator, const char *what)
{
    return error_set_at(translator->err, ERROR_TASK, translator->i, "%s", what);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* \uXXXX or \UXXXXXXXX. */
static int translate_rune(struct translator *translator, size_t digits)
{
    for (size_t i = 0; i < digits; i++) {
        if (!is_hex(peek(translator, 2 + i)))
            return complain(translator, digits == 4 ? "\\u wants four hexadecimal digits"
                                                    : "\\U wants eight hexadecimal digits");
    }
    emit(translator, "\\x{", 3);
    emit(translator, translator->pattern + translator->i + 2, digits);
    emit(translator, "}", 1);
    translator->i += 2 + digits;
    return 0;
}

/* At a backslash. */
static int translate_escape(struct translator *translator, bool in_class)
{
    switch (peek(translator, 1)) {
    case 'v': /* one character in Python, a class in PCRE2 */
        replace(translator, 2, "\\x0b");
        return 0;
    case 'Z':
        if (in_class)
            break;
        replace(translator, 2, "\\z");
        return 0;
    case 'u':
        return translate_rune(translator, 4);
    case 'U':
        return translate_rune(translator, 8);
    case 'N':
        if (peek(translator, 2) == '{')
            return complain(translator, "\\N{name} is not supported, use \\uXXXX");
        break;
    case '\0':
        return complain(translator, "nothing after the backslash");
    default:
        break;
    }
    copy(translator, 2);
    return 0;
}

/* Length of "[:name:]" at the next byte, 0 when there is none. */
static size_t posix_class(const struct translator *translator)
{
    size_t n = 2;

    if (peek(translator, 1) != ':')
        return 0;
    if (peek(translator, n) == '^')
        n++;
    while (is_letter(peek(translator, n)))
        n++;
    return n > 2 && peek(translator, n) == ':' && peek(translator, n + 1) == ']' ? n + 2 : 0;
}

/* At "[". */
static int translate_class(struct translator *translator)
{
    copy(translator, peek(translator, 1) == '^' ? 2 : 1);
    if (peek(translator, 0) == ']')
        replace(translator, 1, "\\]");
    while (translator->i < translator->size && peek(translator, 0) != ']') {
        char c = peek(translator, 0);
        size_t posix;

        if (c == '\\') {
            int r = translate_escape(translator, true);

            if (r < 0)
                return r;
        } else if (c != '[') {
            copy(translator, 1);
        } else if ((posix = posix_class(translator)) > 0) {
            copy(translator, posix);
        } else {
            replace(translator, 1, "\\[");
        }
    }
    copy(translator, 1);
    return 0;
}

static unsigned flag_of(char letter)
{
    switch (letter) {
    case 'a':
        return REGEX_ASCII;
    case 'i':
        return REGEX_IGNORE_CASE;
    case 'm':
        return REGEX_MULTI_LINE;
    case 's':
        return REGEX_DOT_ALL;
    case 'u':
        return REGEX_UNICODE;
    case 'x':
        return REGEX_VERBOSE;
    default:
        return 0;
    }
}

static int open_group(struct translator *translator, bool verbose)
{
    if (translator->nesting == REGEX_NESTING_MAX)
        return error_set_at(translator->err, ERROR_LIMIT, translator->i,
                            "more than %d groups in groups", REGEX_NESTING_MAX);
    translator->verbose[++translator->nesting] = verbose;
    return 0;
}

/* "(?flags-flags:", with the letters of Python that PCRE2 has not. */
static int translate_scoped_flags(struct translator *translator, size_t length)
{
    bool verbose = translator->verbose[translator->nesting], on = true;
    size_t end = translator->i + length;

    copy(translator, 2);
    while (translator->i < end) {
        char c = peek(translator, 0);

        if (c == 'a' || c == 'L')
            return complain(translator, "the flags a and L are not supported for a part of a "
                                        "pattern");
        if (c == '-')
            on = false;
        if (c == 'x')
            verbose = on;
        if (c == 'u')
            translator->i++; /* Unicode is what holds anyway */
        else
            copy(translator, 1);
    }
    copy(translator, 1); /* the colon */
    return open_group(translator, verbose);
}

/* At "(?" and a letter or '-': flags for the whole pattern, or for a group. */
static int translate_flags(struct translator *translator)
{
    size_t length = 2;
    unsigned flags = 0;

    while (is_letter(peek(translator, length)) || peek(translator, length) == '-')
        length++;
    char end = peek(translator, length);

    if (end == ':')
        return translate_scoped_flags(translator, length);
    for (size_t i = 2; i < length; i++)
        flags |= flag_of(peek(translator, i));
    if (end != ')' || memchr(translator->pattern + translator->i, '-', length) != NULL) {
        copy(translator, 1); /* PCRE2 says what it thinks of it */
        return open_group(translator, translator->verbose[translator->nesting]);
    }
    for (size_t i = 2; i < length; i++) {
        if (flag_of(peek(translator, i)) == 0)
            return complain(translator, "unknown flag in '(?...)', known are a, i, m, s, u and x");
    }
    translator->flags |= flags;
    translator->i += length + 1;
    return 0;
}

/* At "(?(": a group's name needs brackets in PCRE2, a number does not. */
static int translate_condition(struct translator *translator)
{
    size_t n = 1;

    copy(translator, 2);
    while (is_letter(peek(translator, n)) || peek(translator, n) == '_' ||
           (n > 1 && peek(translator, n) >= '0' && peek(translator, n) <= '9'))
        n++;
    if (n > 1 && peek(translator, n) == ')' &&
        strncmp(translator->pattern + translator->i, "(DEFINE)", 8) != 0) {
        copy(translator, 1);
        emit(translator, "<", 1);
        copy(translator, n - 1);
        emit(translator, ">", 1);
        copy(translator, 1);
    } else {
        size_t length = strcspn(translator->pattern + translator->i, ")");

        if (peek(translator, 1) == '?') /* an assertion as condition: its own group follows */
            length = 0;
        else
            length++;
        copy(translator, length);
    }
    return open_group(translator, translator->verbose[translator->nesting]);
}

/* At "(". */
static int translate_group(struct translator *translator)
{
    char c = '\0';

    if (peek(translator, 1) == '?')
        c = peek(translator, 2);

    if (c == '#') {
        size_t length = strcspn(translator->pattern + translator->i, ")");

        if (translator->i + length >= translator->size)
            return complain(translator, "the comment is not closed");
        translator->i += length + 1;
        return 0;
    }
    if (c == '(')
        return translate_condition(translator);
    if (c == '-' || (is_letter(c) && c != 'P' && c != 'R' && c != 'C'))
        return translate_flags(translator);
    copy(translator, 1);
    return open_group(translator, translator->verbose[translator->nesting]);
}

/* "{,n}" is "{0,n}" in Python and plain text in PCRE2. */
static bool is_open_repeat(const struct translator *translator)
{
    size_t n = 2;

    if (peek(translator, 1) != ',')
        return false;
    while (peek(translator, n) >= '0' && peek(translator, n) <= '9')
        n++;
    return peek(translator, n) == '}';
}

static int translate_one(struct translator *translator)
{
    switch (peek(translator, 0)) {
    case '\\':
        return translate_escape(translator, false);
    case '[':
        return translate_class(translator);
    case '(':
        return translate_group(translator);
    case ')':
        if (translator->nesting > 0)
            translator->nesting--;
        break;
    case '{':
        if (is_open_repeat(translator)) {
            replace(translator, 2, "{0,");
            return 0;
        }
        break;
    case '#':
        if (translator->verbose[translator->nesting]) {
            translator->i += strcspn(translator->pattern + translator->i, "\n");
            return 0;
        }
        break;
    default:
        break;
    }
    copy(translator, 1);
    return 0;
}

static int translate_with(const char *pattern, unsigned *flags, struct regex_text *ret,
                          struct error **err)
{
    struct translator translator = {
        .pattern = pattern,
        .size = strlen(pattern),
        .flags = *flags,
        .ret = ret,
        .verbose = {(*flags & REGEX_VERBOSE) != 0},
        .err = err,
    };

    while (translator.i < translator.size) {
        int r = translate_one(&translator);

        if (r < 0)
            return r;
    }
    *flags = translator.flags;
    return 0;
}

int regex_translate(const char *pattern, unsigned *flags, struct regex_text *ret,
                    struct error **err)
{
    unsigned before = *flags, after = before;

    if (strlen(pattern) > REGEX_PATTERN_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "a pattern of more than %zu bytes",
                         REGEX_PATTERN_BYTES_MAX);
    int r = translate_with(pattern, &after, ret, err);

    if (r < 0)
        return r;
    if (((before ^ after) & REGEX_VERBOSE) != 0) {
        buf_clear(&ret->text);
        buf_clear(&ret->origins);
        r = translate_with(pattern, &after, ret, err);
    }
    if (r == 0)
        *flags = after;
    return r;
}
