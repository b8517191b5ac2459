#include "lint/shell.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_command_start(const char *text, const char *at)
{
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    if (at == text || strchr(";&|(\n`{", at[-1]) != NULL)
        return true;
    /* sudo curl, then curl, if curl ... */
    static const char *const before[] = {"sudo", "then", "if",   "do", "else",
                                         "!",    "time", "exec", "env"};

    for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
        size_t length = strlen(before[i]);

        if ((size_t)(at - text) >= length && strncmp(at - length, before[i], length) == 0 &&
            ((size_t)(at - text) == length || !is_name_char(at[-(ptrdiff_t)length - 1])))
            return true;
    }
    return false;
}

bool shell_runs(const char *text, const char *words)
{
    size_t length = strlen(words);

    for (const char *at = strstr(text, words); at != NULL; at = strstr(at + 1, words)) {
        char after = at[length];

        if ((after == '\0' || strchr(" \t\n;&|)", after) != NULL) && is_command_start(text, at))
            return true;
    }
    return false;
}

const char *shell_next_command(const char *text, const char *from)
{
    for (const char *at = from; *at != '\0'; at++) {
        if (strchr(" \t\n;&|(){`", *at) == NULL && is_command_start(text, at))
            return at;
    }
    return NULL;
}

const char *shell_always_succeeds(const char *text)
{
    static const struct {
        const char *end;
        bool alone; /* only as the whole command, or behind a separator */
    } ends[] = {{"|| true", false},   {"||true", false}, {"|| :", false}, {"||:", false},
                {"|| exit 0", false}, {"exit 0", true},  {"true", true},  {":", true}};
    size_t size = strlen(text);

    while (size > 0 && strchr(" \t\r\n;", text[size - 1]) != NULL)
        size--;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        size_t length = strlen(ends[i].end);
        const char *at = text + size - length;

        if (size < length || strncmp(at, ends[i].end, length) != 0)
            continue;
        if (!ends[i].alone)
            return ends[i].end;
        /* "a; exit 0" passes always, "a && exit 0" does not. */
        while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
            at--;
        if (at == text || at[-1] == ';' || at[-1] == '\n')
            return strstr(text, "exit 1") == NULL && strstr(text, "set -e") == NULL &&
                           strstr(text, "fi") == NULL && strstr(text, "|| exit") == NULL
                       ? ends[i].end
                       : NULL;
    }
    return NULL;
}

/* Behind what a '$' at s begins: *ret the name of a variable that is read and must be set, or NULL.
 */
static const char *take_variable(const char *s, char **ret)
{
    bool braces = s[1] == '{';
    const char *name = s + (braces ? 2 : 1), *end = name;

    *ret = NULL;
    while (is_name_char(*end))
        end++;
    if (end == name || (*name >= '0' && *name <= '9'))
        return s + 1;
    if (!braces || *end == '}' || *end == '%' || *end == '#' || *end == '/' || *end == '[')
        *ret = str_ndup(name, (size_t)(end - name));
    return end;
}

bool shell_next_variable(const char *text, size_t *position, char **ret)
{
    /* *position is always outside single quotes; whether it is inside double ones is counted. */
    bool in_double = false;
    const char *s = text;

    while (*s != '\0') {
        if (*s == '\\' && s[1] != '\0') {
            s += 2;
        } else if (*s == '"') {
            in_double = !in_double;
            s++;
        } else if (*s == '\'' && !in_double) {
            s = strchr(s + 1, '\'');
            if (s == NULL)
                return false;
            s++;
        } else if (strncmp(s, "<<'", 3) == 0 || strncmp(s, "<<\"", 3) == 0 ||
                   strncmp(s, "<<\\", 3) == 0 || strncmp(s, "<<-'", 4) == 0) {
            return false; /* what a quoted here-document holds is not the shell's; the rest is left
                           */
        } else if (*s == '$') {
            bool is_new = (size_t)(s - text) >= *position;
            char *name;

            s = take_variable(s, &name);
            if (name != NULL && is_new) {
                *position = (size_t)(s - text);
                *ret = name;
                return true;
            }
            free(name);
        } else {
            s++;
        }
    }
    return false;
}

bool shell_sets(const char *text, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name)) {
        char before = at == text ? ' ' : at[-1], after = at[length];

        if (strchr(" \t\n;&|({`\"'", before) == NULL)
            continue;
        if (after == '=' || strncmp(at + length, "+=", 2) == 0)
            return true;
        if (is_name_char(after))
            continue;
        /* for NAME in, read NAME, mapfile NAME ... */
        for (const char *line = at; line > text && line[-1] != '\n' && line[-1] != ';'; line--)
            if (strncmp(line - 1, "for ", 4) == 0 || strncmp(line - 1, "read ", 5) == 0 ||
                strncmp(line - 1, "mapfile ", 8) == 0 || strncmp(line - 1, "getopts ", 8) == 0)
                return true;
    }
    return false;
}
