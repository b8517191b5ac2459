#include "task/tokens.h"

#include "base/buf.h"
#include "base/str.h"

static bool is_name_char(char c, bool first)
{
    bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

    return letter || (!first && c >= '0' && c <= '9');
}

const char *token_name(enum token_kind kind)
{
    switch (kind) {
    case TOKEN_REFERENCE_DIR:
        return "REFERENCE_DIR";
    case TOKEN_INPUT_DIR:
        return "INPUT_DIR";
    case TOKEN_TASK_DIR:
        return "TASK_DIR";
    case TOKEN_COUNT:
        break;
    }
    return "";
}

bool variable_next(const char *text, size_t *position, size_t *ret_start, size_t *ret_length)
{
    size_t i = *position;

    while (text[i] != '\0') {
        bool escapes = text[i] == '\\' && text[i + 1] != '\0';

        if (escapes || (text[i] == '$' && text[i + 1] == '$')) {
            i += 2; /* an escaped character, or the shell's own number */
            continue;
        }
        if (text[i] != '$') {
            i++;
            continue;
        }
        bool braced = text[i + 1] == '{';
        size_t start = i + (braced ? 2 : 1), length = 0;

        while (is_name_char(text[start + length], length == 0))
            length++;
        i = start + length;
        if (length == 0 || (braced && text[i] != '}'))
            continue;
        *position = i + (braced ? 1 : 0);
        *ret_start = start;
        *ret_length = length;
        return true;
    }
    *position = i;
    return false;
}

bool token_next(const char *text, size_t *position, struct token *ret)
{
    size_t start, length;

    while (variable_next(text, position, &start, &length)) {
        for (enum token_kind kind = 0; kind < TOKEN_COUNT; kind++) {
            const char *name = token_name(kind);

            if (strlen(name) != length || memcmp(name, text + start, length) != 0)
                continue;
            size_t dollar = text[start - 1] == '{' ? start - 2 : start - 1;

            *ret = (struct token){kind, dollar, *position - dollar};
            return true;
        }
    }
    return false;
}

bool token_is_in(const char *text, enum token_kind kind)
{
    size_t position = 0;
    struct token token;

    while (token_next(text, &position, &token)) {
        if (token.kind == kind)
            return true;
    }
    return false;
}

char *token_replace(const char *text, enum token_kind kind, const char *by)
{
    scoped(buf_done) struct buf buf = {0};
    size_t position = 0, copied = 0;
    struct token token;

    while (token_next(text, &position, &token)) {
        if (token.kind != kind)
            continue;
        buf_append(&buf, text + copied, token.start - copied);
        buf_text_append(&buf, by);
        copied = token.start + token.length;
    }
    buf_text_append(&buf, text + copied);
    return buf_take(&buf);
}
