/* Replacing what a pattern matches. */
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "grade/regex_code_internal.h"

/* One text being made. */
struct replacing {
    struct regex *regex;
    pcre2_match_data *match;
    const char *text, *replacement;
    size_t size;
    struct buf out;
};

static void replacing_done(struct replacing *replacing)
{
    pcre2_match_data_free(replacing->match);
    regex_free(replacing->regex);
    buf_done(&replacing->out);
}

static int match(const struct replacing *replacing, size_t start, uint32_t options)
{
    const unsigned char *bytes = (const unsigned char *)replacing->text;
    struct regex *regex = replacing->regex;

    regex_prepare(regex);
    regex->position = start;
    regex->steps_left += STEPS_PER_BYTE;
    int r = pcre2_match(regex->code, bytes, replacing->size, start, options, replacing->match,
                        regex->context);

    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(regex->code, bytes, replacing->size, start, options | PCRE2_NO_JIT,
                        replacing->match, regex->context);
    return r;
}

/* What a group took of the last match; nothing when it took no part. */
static void append_group(struct replacing *replacing, uint32_t number)
{
    const size_t *ends = pcre2_get_ovector_pointer(replacing->match);
    size_t start = ends[2 * (size_t)number], end = ends[2 * (size_t)number + 1];

    if (start != PCRE2_UNSET && end > start)
        buf_append(&replacing->out, replacing->text + start, end - start);
}

/* "NAME" or "12" as a group that the pattern has. */
static int find_group(const struct replacing *replacing, const char *name, uint32_t *ret,
                      struct error **err)
{
    uint64_t number = UINT64_MAX;
    uint32_t count = pcre2_get_ovector_count(replacing->match);

    if (!str_to_u64(name, &number)) {
        int found =
            pcre2_substring_number_from_name(replacing->regex->code, (const unsigned char *)name);

        number = found < 0 ? UINT64_MAX : (uint64_t)found;
    }
    if (number >= count)
        return error_set(err, ERROR_TASK, "replacement: the pattern has no group '%.60s'", name);
    *ret = (uint32_t)number;
    return 0;
}

/* The group that an escape names ("\\12", "\\g<name>"; s stands behind the backslash): how many
 * bytes it takes, 0: it names none. */
static size_t group_name(const char *s, char **ret)
{
    size_t digits = *s == '0' ? 0 : strspn(s, "0123456789");
    const char *end = s[0] == 'g' && s[1] == '<' ? strchr(s, '>') : NULL;

    if (digits > 0) {
        digits = size_min(digits, 2);
        *ret = str_ndup(s, digits);
        return digits;
    }
    if (end == NULL)
        return 0;
    *ret = str_ndup(s + 2, (size_t)(end - s) - 2);
    return (size_t)(end - s) + 1;
}

static int append_escape(struct replacing *replacing, const char **s, struct error **err)
{
    static const char letters[] = "nrt\\", values[] = "\n\r\t\\";
    scoped(mem_freep) char *name = NULL;
    size_t taken = group_name(*s, &name);
    const char *letter = **s == '\0' ? NULL : strchr(letters, **s);
    uint32_t group = 0;

    if (taken > 0) {
        int r = find_group(replacing, name, &group, err);

        if (r < 0)
            return r;
        append_group(replacing, group);
        *s += taken;
        return 0;
    }
    if (letter != NULL) {
        buf_char(&replacing->out, values[letter - letters]);
        (*s)++;
        return 0;
    }
    if ((**s >= 'a' && **s <= 'z') || (**s >= 'A' && **s <= 'Z') || **s == '\0')
        return error_set(err, ERROR_TASK, "replacement: unknown escape '\\%.1s'", *s);
    buf_char(&replacing->out, '\\'); /* before anything else it stands for itself */
    return 0;
}

static int append_replacement(struct replacing *replacing, struct error **err)
{
    const char *s = replacing->replacement;

    while (*s != '\0') {
        if (*s != '\\') {
            buf_char(&replacing->out, *s++);
            continue;
        }
        s++;
        int r = append_escape(replacing, &s, err);

        if (r < 0)
            return r;
    }
    if (replacing->out.size_bytes > REGEX_REPLACED_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "the text grows past %zu bytes",
                         REGEX_REPLACED_BYTES_MAX);
    return 0;
}

/* Copies one character; true while there was one. */
static bool step(struct replacing *replacing, size_t *position)
{
    uint32_t rune;
    size_t size = utf8_next(replacing->text + *position, replacing->size - *position, &rune);

    if (*position >= replacing->size)
        return false;
    size = size_max(size, 1);
    buf_append(&replacing->out, replacing->text + *position, size);
    *position += size;
    return true;
}

static int replace_all(struct replacing *replacing, struct error **err)
{
    uint32_t options = PCRE2_NO_UTF_CHECK;
    size_t position = 0;

    for (;;) {
        int r = match(replacing, position, options);
        bool retried = (options & PCRE2_ANCHORED) != 0;

        options = PCRE2_NO_UTF_CHECK;
        if (r == PCRE2_ERROR_NOMATCH && retried) {
            /* Nothing but the empty match is there: go past the character. */
            if (!step(replacing, &position))
                return 0;
            continue;
        }
        if (r == PCRE2_ERROR_NOMATCH) {
            buf_append(&replacing->out, replacing->text + position, replacing->size - position);
            return 0;
        }
        if (r < 0)
            return error_set(err, ERROR_LIMIT, "the pattern takes too long on this text");
        const size_t *ends = pcre2_get_ovector_pointer(replacing->match);
        size_t start = ends[0], end = ends[1];

        /* A lookbehind with \\K may begin a match before the place where the search began. */
        if (start < position || end < start)
            return error_set(err, ERROR_TASK, "the pattern matches what lies before its start");
        buf_append(&replacing->out, replacing->text + position, start - position);
        r = append_replacement(replacing, err);
        if (r < 0)
            return r;
        position = end;
        if (start == end)
            options |= PCRE2_NOTEMPTY_ATSTART | PCRE2_ANCHORED;
    }
}

int regex_replace(const char *pattern, const char *text, const char *replacement, char **ret,
                  struct error **err)
{
    scoped(replacing_done) struct replacing replacing = {
        .text = text, .replacement = replacement, .size = strlen(text)};

    if (!utf8_valid(text, replacing.size))
        return error_set(err, ERROR_TASK, "the text is not UTF-8");
    int r = regex_compile(pattern, 0, &replacing.regex, err);

    if (r < 0)
        return r;
    replacing.match = pcre2_match_data_create_from_pattern(replacing.regex->code, NULL);
    ASSERT(replacing.match != NULL);
    r = replace_all(&replacing, err);
    if (r < 0)
        return r;
    *ret = buf_take(&replacing.out);
    return 0;
}
