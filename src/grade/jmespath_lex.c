#include <errno.h>

#include "base/mem.h"
#include "base/term.h"
#include "grade/jmespath_internal.h"

struct lexer {
    const char *text;
    size_t size, position;
    struct token_list list;
    size_t capacity;
    struct error **err;
};

void token_list_done(struct token_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        json_decref(list->items[i].value);
    free(list->items);
    *list = (struct token_list){0};
}

static void lexer_done(struct lexer *lexer)
{
    token_list_done(&lexer->list);
}

static void add_token(struct lexer *lexer, enum token_type type, size_t offset, json_t *value)
{
    struct token_list *list = &lexer->list;

    if (list->count == lexer->capacity) {
        lexer->capacity = size_max(16, lexer->capacity * 2);
        list->items = mem_resize(list->items, lexer->capacity, sizeof(*list->items));
    }
    list->items[list->count++] = (struct token){.type = type, .offset = offset, .value = value};
}

static int complain(struct lexer *lexer, size_t offset, const char *what)
{
    return error_set_at(lexer->err, ERROR_TASK, offset, "%s", what);
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char at(const struct lexer *lexer, size_t position)
{
    if (position < lexer->size)
        return lexer->text[position];
    return '\0';
}

/*
 * Finds the end of a text in quotes that starts at the position, a backslash protecting the next
 * character. On success the position is behind the closing quote and *ret is the text between.
 */
static int read_between(struct lexer *lexer, char quote, const char **ret, size_t *ret_size)
{
    size_t start = lexer->position, i = start + 1;

    while (i < lexer->size && lexer->text[i] != quote)
        i += lexer->text[i] == '\\' ? 2 : 1;
    if (i >= lexer->size)
        return complain(lexer, start, "the closing quote is missing");
    *ret = lexer->text + start + 1;
    *ret_size = i - start - 1;
    lexer->position = i + 1;
    return 0;
}

/* The text with each "\quote" as the bare quote; other backslashes stay. */
static void unescape_quote(struct buf *buf, const char *text, size_t size, char quote)
{
    for (size_t i = 0; i < size; i++) {
        bool escape = text[i] == '\\' && i + 1 < size;

        if (escape && text[i + 1] != quote)
            buf_char(buf, text[i]);
        i += escape;
        buf_char(buf, text[i]);
    }
}

static int lex_raw_string(struct lexer *lexer)
{
    size_t offset = lexer->position, size = 0;
    const char *text = NULL;
    int r = read_between(lexer, '\'', &text, &size);

    if (r < 0)
        return r;
    scoped(buf_done) struct buf buf = {0};

    unescape_quote(&buf, text, size, '\'');
    add_token(lexer, TOKEN_LITERAL, offset,
              json_made(json_stringn(buf_text(&buf), buf.size_bytes)));
    return 0;
}

static int lex_quoted_name(struct lexer *lexer)
{
    size_t offset = lexer->position, size = 0;
    const char *text = NULL;
    int r = read_between(lexer, '"', &text, &size);

    if (r < 0)
        return r;
    json_error_t error;
    /* With its quotes it is a JSON string. Without JSON_ALLOW_NUL: names are C strings. */
    json_t *name = json_loadb(text - 1, size + 2, JSON_DECODE_ANY, &error);

    if (name == NULL)
        return error_set_at(lexer->err, ERROR_TASK, offset, "a name in quotes is a JSON string: %s",
                            error.text);
    add_token(lexer, TOKEN_QUOTED_NAME, offset, name);
    return 0;
}

static json_t *read_json(const char *text, size_t size)
{
    json_t *value = NULL;

    return value_parse(text, size, &value, NULL) < 0 ? NULL : value;
}

/* JSON in backticks; what is no JSON is the text of a string (the older form of literals). */
static int lex_literal(struct lexer *lexer)
{
    size_t offset = lexer->position, size = 0;
    const char *text = NULL;
    int r = read_between(lexer, '`', &text, &size);

    if (r < 0)
        return r;
    scoped(buf_done) struct buf json = {0};

    unescape_quote(&json, text, size, '`');
    json_t *value = read_json(buf_text(&json), json.size_bytes);

    if (value == NULL) {
        scoped(buf_done) struct buf quoted = {0};

        buf_char(&quoted, '"');
        buf_text_append(&quoted, buf_text(&json) + strspn(buf_text(&json), " \t\r\n"));
        buf_char(&quoted, '"');
        value = read_json(buf_text(&quoted), quoted.size_bytes);
    }
    if (value == NULL)
        return complain(lexer, offset, "the text between backticks is no JSON");
    add_token(lexer, TOKEN_LITERAL, offset, value);
    return 0;
}

static int lex_number(struct lexer *lexer)
{
    size_t offset = lexer->position;

    lexer->position++;
    while (is_digit(at(lexer, lexer->position)))
        lexer->position++;
    if (lexer->text[offset] == '-' && lexer->position == offset + 1)
        return complain(lexer, offset, "a digit expected after '-'");
    errno = 0;
    long long number = strtoll(lexer->text + offset, NULL, 10);

    if (errno != 0)
        return complain(lexer, offset, "the number is too large");
    add_token(lexer, TOKEN_NUMBER, offset, NULL);
    lexer->list.items[lexer->list.count - 1].number = number;
    return 0;
}

static int lex_name(struct lexer *lexer)
{
    size_t offset = lexer->position;

    while (is_name_start(at(lexer, lexer->position)) || is_digit(at(lexer, lexer->position)))
        lexer->position++;
    add_token(lexer, TOKEN_NAME, offset,
              json_made(json_stringn(lexer->text + offset, lexer->position - offset)));
    return 0;
}

/* Longer ones first. */
static const struct {
    char text[3];
    enum token_type type;
} symbols[] = {
    {"[]", TOKEN_FLATTEN},    {"[?", TOKEN_FILTER},        {"||", TOKEN_OR},
    {"&&", TOKEN_AND},        {"==", TOKEN_EQUAL},         {"!=", TOKEN_NOT_EQUAL},
    {"<=", TOKEN_LESS_EQUAL}, {">=", TOKEN_GREATER_EQUAL}, {".", TOKEN_DOT},
    {"*", TOKEN_STAR},        {",", TOKEN_COMMA},          {":", TOKEN_COLON},
    {"@", TOKEN_CURRENT},     {"[", TOKEN_LEFT_BRACKET},   {"]", TOKEN_RIGHT_BRACKET},
    {"(", TOKEN_LEFT_PAREN},  {")", TOKEN_RIGHT_PAREN},    {"{", TOKEN_LEFT_BRACE},
    {"}", TOKEN_RIGHT_BRACE}, {"|", TOKEN_PIPE},           {"&", TOKEN_REFERENCE},
    {"!", TOKEN_NOT},         {"<", TOKEN_LESS},           {">", TOKEN_GREATER},
};

static int lex_symbol(struct lexer *lexer)
{
    size_t offset = lexer->position;

    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        size_t length = strlen(symbols[i].text);

        if (lexer->size - offset >= length &&
            memcmp(lexer->text + offset, symbols[i].text, length) == 0) {
            lexer->position += length;
            add_token(lexer, symbols[i].type, offset, NULL);
            return 0;
        }
    }
    if (lexer->text[offset] == '=')
        return complain(lexer, offset, "unexpected '=', did you mean '=='?");
    if (lexer->text[offset] == '#')
        return complain(lexer, offset, "unexpected '#'");
    return complain(lexer, offset, "unexpected character");
}

static int lex_one(struct lexer *lexer)
{
    char c = lexer->text[lexer->position];

    if (is_name_start(c))
        return lex_name(lexer);
    if (is_digit(c) || c == '-')
        return lex_number(lexer);
    if (c == '"')
        return lex_quoted_name(lexer);
    if (c == '\'')
        return lex_raw_string(lexer);
    if (c == '`')
        return lex_literal(lexer);
    return lex_symbol(lexer);
}

int jmespath_lex(const char *text, struct token_list *ret, struct error **err)
{
    scoped(lexer_done) struct lexer lexer = {.text = text, .size = strlen(text), .err = err};

    if (lexer.size > JMESPATH_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "an expression of more than %zu bytes",
                         JMESPATH_BYTES_MAX);
    if (!utf8_valid(text, lexer.size))
        return error_set_at(err, ERROR_TASK, 0, "the expression is not valid UTF-8");
    for (;;) {
        lexer.position += strspn(text + lexer.position, " \t\r\n");
        if (lexer.position >= lexer.size)
            break;
        int r = lex_one(&lexer);

        if (r < 0)
            return r;
    }
    add_token(&lexer, TOKEN_END, lexer.size, NULL);
    *ret = lexer.list;
    lexer.list = (struct token_list){0};
    return 0;
}
