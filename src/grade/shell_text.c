#include "grade/shell_text.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* From an opening double quote to behind the closing one; NULL when there is none. */
static const char *read_double(const char *s, struct buf *word)
{
    for (s++; *s != '"'; s++) {
        if (*s == '\0')
            return NULL;
        if (*s != '\\') {
            buf_char(word, *s);
            continue;
        }
        s++;
        if (*s == '\0')
            return NULL;
        if (*s == '\n')
            continue;
        if (*s != '"' && *s != '\\')
            buf_char(word, '\\');
        buf_char(word, *s);
    }
    return s + 1;
}

static const char *read_single(const char *s, struct buf *word)
{
    const char *end = strchr(s + 1, '\'');

    if (end == NULL)
        return NULL;
    buf_append(word, s + 1, (size_t)(end - s - 1));
    return end + 1;
}

/* Reads one word at s; NULL when it has no end. *ret_any tells a word from a continued line. */
static const char *read_word(const char *s, struct buf *word, bool *ret_any)
{
    *ret_any = false;
    while (s != NULL && *s != '\0' && !is_space(*s)) {
        if (*s == '\\' && s[1] == '\n') {
            s += 2;
            continue;
        }
        *ret_any = true;
        if (*s == '"') {
            s = read_double(s, word);
        } else if (*s == '\'') {
            s = read_single(s, word);
        } else if (*s == '\\') {
            if (s[1] == '\0')
                return NULL;
            buf_char(word, s[1]);
            s += 2;
        } else {
            buf_char(word, *s++);
        }
    }
    return s;
}

/* False when a quote is not closed. */
static bool split(const char *text, struct str_list *words)
{
    const char *s = text;

    for (;;) {
        struct buf word = {0};
        bool any = false;

        while (is_space(*s))
            s++;
        if (*s == '\0')
            return true;
        s = read_word(s, &word, &any);
        if (s != NULL && any)
            str_list_add_take(words, buf_take(&word));
        buf_done(&word);
        if (s == NULL)
            return false;
    }
}

static bool is_shell(const char *word)
{
    static const char *const shells[] = {"bash", "sh", "dash", "zsh"};
    const char *slash = strrchr(word, '/');

    for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
        if (str_equal(slash == NULL ? word : slash + 1, shells[i]))
            return true;
    }
    return false;
}

/* "-c", "-lc", "-lic": short options of which c is the last. */
static bool is_command_option(const char *word)
{
    size_t length = strlen(word);

    return length >= 2 && word[0] == '-' && word[length - 1] == 'c' &&
           strspn(word + 1, "abcdefghijklmnopqrstuvwxyz") == length - 1;
}

/* Index of the first word of the wrapped command, 0 when nothing is wrapped. */
static size_t wrapped_at(const struct str_list *words)
{
    if (words->count < 3 || !is_shell(words->items[0]))
        return 0;
    for (size_t i = 1; i + 1 < words->count; i++) {
        if (is_command_option(words->items[i]))
            return i + 1;
        if (words->items[i][0] != '-')
            return 0;
        if (str_equal(words->items[i], "-o")) /* takes a word */
            i++;
    }
    return 0;
}

static char *joined(const struct str_list *words, size_t first)
{
    struct buf text = {0};

    for (size_t i = first; i < words->count; i++) {
        if (i > first)
            buf_char(&text, ' ');
        buf_text_append(&text, words->items[i]);
    }
    return buf_take(&text);
}

char *shell_normal(const char *text)
{
    scoped(str_list_done) struct str_list words = {0};
    scoped(str_list_done) struct str_list inner = {0};

    if (!split(text, &words) || words.count == 0)
        return NULL;
    size_t first = wrapped_at(&words);

    /* Several words after -c: an argument vector that was joined without quotes. */
    if (first == 0 || first + 1 < words.count)
        return joined(&words, first);
    if (!split(words.items[first], &inner) || inner.count == 0)
        return NULL;
    return joined(&inner, 0);
}
