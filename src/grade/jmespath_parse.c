#include "base/mem.h"
#include "base/str.h"
#include "grade/jmespath_internal.h"

/*
 * A parser by binding powers: parse_expression(n) takes as much to the right as binds tighter than
 * n. What follows a projection belongs to its right side until something weaker than
 * PROJECTION_STOP.
 */
enum {
    POWER_NONE = 0,
    POWER_PIPE = 1,
    POWER_OR = 2,
    POWER_AND = 3,
    POWER_COMPARE = 5,
    POWER_FLATTEN = 9,
    PROJECTION_STOP = 10,
    POWER_STAR = 20,
    POWER_FILTER = 21,
    POWER_DOT = 40,
    POWER_NOT = 45,
    POWER_BRACE = 50,
    POWER_BRACKET = 55,
    POWER_PAREN = 60,
};

struct parser {
    const struct token *token; /* the next one */
    struct jmespath *expression;
    unsigned depth; /* of parse_expression() */
    struct error **err;
    int r; /* of the failure that made a function return NULL */
};

static struct node *parse_expression(struct parser *parser, int power);

/* --- small parts ----------------------------------------------------------------------------- */

static const char *token_name(enum token_type type)
{
    static const char *const names[] = {
        [TOKEN_END] = "the end",
        [TOKEN_NAME] = "a name",
        [TOKEN_QUOTED_NAME] = "a name",
        [TOKEN_LITERAL] = "a literal",
        [TOKEN_NUMBER] = "a number",
        [TOKEN_DOT] = "'.'",
        [TOKEN_STAR] = "'*'",
        [TOKEN_COMMA] = "','",
        [TOKEN_COLON] = "':'",
        [TOKEN_CURRENT] = "'@'",
        [TOKEN_LEFT_BRACKET] = "'['",
        [TOKEN_FLATTEN] = "'[]'",
        [TOKEN_FILTER] = "'[?'",
        [TOKEN_RIGHT_BRACKET] = "']'",
        [TOKEN_LEFT_PAREN] = "'('",
        [TOKEN_RIGHT_PAREN] = "')'",
        [TOKEN_LEFT_BRACE] = "'{'",
        [TOKEN_RIGHT_BRACE] = "'}'",
        [TOKEN_PIPE] = "'|'",
        [TOKEN_OR] = "'||'",
        [TOKEN_AND] = "'&&'",
        [TOKEN_REFERENCE] = "'&'",
        [TOKEN_NOT] = "'!'",
        [TOKEN_EQUAL] = "'=='",
        [TOKEN_NOT_EQUAL] = "'!='",
        [TOKEN_LESS] = "'<'",
        [TOKEN_LESS_EQUAL] = "'<='",
        [TOKEN_GREATER] = "'>'",
        [TOKEN_GREATER_EQUAL] = "'>='",
    };

    return names[type];
}

static struct node *fail_expecting(struct parser *parser, const char *expected)
{
    parser->r = error_set_at(parser->err, ERROR_TASK, parser->token->offset,
                             "found %s, expected %s", token_name(parser->token->type), expected);
    return NULL;
}

static struct node *add_node(struct parser *parser, enum node_type type, size_t offset)
{
    struct node *node = mem_new(1, sizeof(*node));

    node->type = type;
    node->offset = offset;
    node->depth = 1;
    node->next_owned = parser->expression->owned;
    parser->expression->owned = node;
    return node;
}

/* Makes child count for the depth of node; NULL when that is too much, or child is NULL. */
static struct node *under(struct parser *parser, struct node *node, const struct node *child)
{
    if (child == NULL)
        return NULL;
    if (child->depth >= JMESPATH_DEPTH_MAX) {
        parser->r = error_set_at(parser->err, ERROR_LIMIT, node->offset,
                                 "nested deeper than %d levels", JMESPATH_DEPTH_MAX);
        return NULL;
    }
    if (child->depth >= node->depth)
        node->depth = child->depth + 1;
    return node;
}

static struct node *add_pair(struct parser *parser, enum node_type type, struct node *left,
                             struct node *right)
{
    if (left == NULL || right == NULL)
        return NULL;
    struct node *node = add_node(parser, type, left->offset);

    node->left = left;
    node->right = right;
    return under(parser, node, left) == NULL ? NULL : under(parser, node, right);
}

static struct node *add_child(struct parser *parser, struct node *parent, struct node *child)
{
    if (under(parser, parent, child) == NULL)
        return NULL;
    parent->children =
        mem_resize(parent->children, parent->child_count + 1, sizeof(*parent->children));
    parent->children[parent->child_count++] = child;
    return parent;
}

static struct node *current(struct parser *parser)
{
    return add_node(parser, NODE_CURRENT, parser->token->offset);
}

/* Steps over a token of this type, or fails. */
static bool expect(struct parser *parser, enum token_type type)
{
    if (parser->token->type != type) {
        (void)fail_expecting(parser, token_name(type)); /* r is set */
        return false;
    }
    parser->token++;
    return true;
}

static int power_of(enum token_type type)
{
    static const int powers[] = {
        [TOKEN_PIPE] = POWER_PIPE,
        [TOKEN_OR] = POWER_OR,
        [TOKEN_AND] = POWER_AND,
        [TOKEN_EQUAL] = POWER_COMPARE,
        [TOKEN_NOT_EQUAL] = POWER_COMPARE,
        [TOKEN_LESS] = POWER_COMPARE,
        [TOKEN_LESS_EQUAL] = POWER_COMPARE,
        [TOKEN_GREATER] = POWER_COMPARE,
        [TOKEN_GREATER_EQUAL] = POWER_COMPARE,
        [TOKEN_FLATTEN] = POWER_FLATTEN,
        [TOKEN_STAR] = POWER_STAR,
        [TOKEN_FILTER] = POWER_FILTER,
        [TOKEN_DOT] = POWER_DOT,
        [TOKEN_NOT] = POWER_NOT,
        [TOKEN_LEFT_BRACE] = POWER_BRACE,
        [TOKEN_LEFT_BRACKET] = POWER_BRACKET,
        [TOKEN_LEFT_PAREN] = POWER_PAREN,
    };

    return (size_t)type < ARRAY_SIZE(powers) ? powers[type] : POWER_NONE;
}

/* --- brackets and braces --------------------------------------------------------------------- */

/* After "[": one expression or more, up to "]". */
static struct node *parse_list(struct parser *parser, size_t offset)
{
    struct node *list = add_node(parser, NODE_LIST, offset);

    for (;;) {
        if (add_child(parser, list, parse_expression(parser, POWER_NONE)) == NULL)
            return NULL;
        if (parser->token->type != TOKEN_COMMA)
            break;
        parser->token++;
    }
    return expect(parser, TOKEN_RIGHT_BRACKET) ? list : NULL;
}

/* After "{": one "name: expression" or more, up to "}". */
static struct node *parse_hash(struct parser *parser, size_t offset)
{
    struct node *hash = add_node(parser, NODE_HASH, offset);

    hash->value = json_made(json_array());
    for (;;) {
        if (parser->token->type != TOKEN_NAME && parser->token->type != TOKEN_QUOTED_NAME)
            return fail_expecting(parser, "a name");
        json_push(hash->value, json_incref(parser->token->value));
        parser->token++;
        if (!expect(parser, TOKEN_COLON) ||
            add_child(parser, hash, parse_expression(parser, POWER_NONE)) == NULL)
            return NULL;
        if (parser->token->type != TOKEN_COMMA)
            break;
        parser->token++;
    }
    return expect(parser, TOKEN_RIGHT_BRACE) ? hash : NULL;
}

/* What a projection does with each of its elements. */
static struct node *parse_projected(struct parser *parser, int power);

/* At the number or colon after "[": an index, or a slice, which is a projection. */
static struct node *parse_index(struct parser *parser, struct node *left)
{
    struct node *node = add_node(parser, NODE_INDEX, left->offset);
    size_t part = 0;

    node->left = left;
    for (;;) {
        if (parser->token->type == TOKEN_NUMBER) {
            node->numbers[part] = parser->token->number;
            node->given[part] = true;
            parser->token++;
        }
        if (parser->token->type != TOKEN_COLON || part == 2)
            break;
        node->type = NODE_SLICE;
        part++;
        parser->token++;
    }
    if (!expect(parser, TOKEN_RIGHT_BRACKET) || under(parser, node, left) == NULL)
        return NULL;
    if (node->type == NODE_INDEX)
        return node;
    if (node->given[2] && node->numbers[2] == 0) {
        parser->r = error_set_at(parser->err, ERROR_TASK, node->offset, "the step of a slice is 0");
        return NULL;
    }
    return add_pair(parser, NODE_PROJECT, node, parse_projected(parser, POWER_STAR));
}

/* After "[", at "*]". */
static struct node *parse_list_wildcard(struct parser *parser, struct node *left)
{
    parser->token += 2;
    return add_pair(parser, NODE_PROJECT, left, parse_projected(parser, POWER_STAR));
}

static bool at_list_wildcard(const struct parser *parser)
{
    return parser->token[0].type == TOKEN_STAR && parser->token[1].type == TOKEN_RIGHT_BRACKET;
}

static bool at_index(const struct parser *parser)
{
    return parser->token->type == TOKEN_NUMBER || parser->token->type == TOKEN_COLON;
}

/* After "[?". */
static struct node *parse_filter(struct parser *parser, struct node *left)
{
    struct node *node = add_node(parser, NODE_FILTER, left->offset);

    node->left = left;
    node->condition = parse_expression(parser, POWER_NONE);
    if (under(parser, node, left) == NULL || under(parser, node, node->condition) == NULL ||
        !expect(parser, TOKEN_RIGHT_BRACKET))
        return NULL;
    node->right = parse_projected(parser, POWER_FILTER);
    return under(parser, node, node->right);
}

/* After "[]". */
static struct node *parse_flatten(struct parser *parser, struct node *left)
{
    struct node *node = add_node(parser, NODE_FLATTEN, left->offset);

    node->left = left;
    if (under(parser, node, left) == NULL)
        return NULL;
    return add_pair(parser, NODE_PROJECT, node, parse_projected(parser, POWER_FLATTEN));
}

/* After ".": a name, a call, "*", "[list]" or "{hash}". */
static struct node *parse_after_dot(struct parser *parser, int power)
{
    size_t offset = parser->token->offset;

    switch ((int)parser->token->type) {
    case TOKEN_NAME:
    case TOKEN_QUOTED_NAME:
    case TOKEN_STAR:
        return parse_expression(parser, power);
    case TOKEN_LEFT_BRACKET:
        parser->token++;
        return parse_list(parser, offset);
    case TOKEN_LEFT_BRACE:
        parser->token++;
        return parse_hash(parser, offset);
    default:
        return fail_expecting(parser, "a name, '*', '[' or '{' after '.'");
    }
}

static struct node *parse_projected(struct parser *parser, int power)
{
    enum token_type type = parser->token->type;

    if (power_of(type) < PROJECTION_STOP)
        return current(parser);
    if (type == TOKEN_LEFT_BRACKET || type == TOKEN_FILTER)
        return parse_expression(parser, power);
    if (type != TOKEN_DOT)
        return fail_expecting(parser, "'.', '[' or an operator");
    parser->token++;
    return parse_after_dot(parser, power);
}

/* --- calls ----------------------------------------------------------------------------------- */

static struct node *check_count(struct parser *parser, struct node *call)
{
    const struct function *function = call->function;
    size_t count = call->child_count;

    if (count >= function->min_count && count <= function->max_count)
        return call;
    bool variadic = function->max_count == FUNCTION_ARGUMENTS_MAX;

    parser->r =
        error_set_at(parser->err, ERROR_TASK, call->offset, "%s() takes %s%zu argument%s, not %zu",
                     function->name, variadic ? "at least " : "", function->min_count,
                     function->min_count == 1 ? "" : "s", count);
    return NULL;
}

/* One argument, at its place: & exactly where the function wants an expression. */
static struct node *parse_argument(struct parser *parser, const struct node *call)
{
    unsigned types = function_types(call->function, call->child_count);
    size_t offset = parser->token->offset;
    bool is_reference = parser->token->type == TOKEN_REFERENCE;

    if (is_reference != ((types & TYPE_REFERENCE) != 0)) {
        parser->r = error_set_at(parser->err, ERROR_TASK, offset, "argument %zu of %s() is %s",
                                 call->child_count + 1, call->function->name,
                                 is_reference ? "no expression" : "an expression: '&' expected");
        return NULL;
    }
    if (!is_reference)
        return parse_expression(parser, POWER_NONE);
    parser->token++;
    struct node *reference = add_node(parser, NODE_REFERENCE, offset);

    reference->left = parse_expression(parser, POWER_NONE);
    return under(parser, reference, reference->left);
}

/* After "name(". */
static struct node *parse_call(struct parser *parser, const struct token *name)
{
    const char *text = json_string_value(name->value);
    struct node *call = add_node(parser, NODE_CALL, name->offset);

    call->function = jmespath_function(text);
    if (call->function == NULL) {
        const char *nearest = jmespath_function_nearest(text);

        parser->r =
            error_set_at(parser->err, ERROR_TASK, name->offset, "unknown function '%s'%s%s%s", text,
                         nearest == NULL ? "" : ", did you mean '", nearest == NULL ? "" : nearest,
                         nearest == NULL ? "" : "'?");
        return NULL;
    }
    while (parser->token->type != TOKEN_RIGHT_PAREN || call->child_count > 0) {
        if (call->child_count == FUNCTION_ARGUMENTS_MAX)
            return fail_expecting(parser, "no more arguments");
        if (add_child(parser, call, parse_argument(parser, call)) == NULL)
            return NULL;
        if (parser->token->type != TOKEN_COMMA)
            break;
        parser->token++;
    }
    return expect(parser, TOKEN_RIGHT_PAREN) ? check_count(parser, call) : NULL;
}

static struct node *parse_name(struct parser *parser, const struct token *token)
{
    if (parser->token->type == TOKEN_LEFT_PAREN) {
        if (token->type == TOKEN_QUOTED_NAME)
            return fail_expecting(parser, "a function's name without quotes");
        parser->token++;
        return parse_call(parser, token);
    }
    struct node *field = add_node(parser, NODE_FIELD, token->offset);

    field->value = json_incref(token->value);
    return field;
}

/* --- expressions ----------------------------------------------------------------------------- */

static struct node *parse_left_bracket(struct parser *parser, size_t offset)
{
    if (at_index(parser))
        return parse_index(parser, current(parser));
    if (at_list_wildcard(parser))
        return parse_list_wildcard(parser, current(parser));
    return parse_list(parser, offset);
}

static struct node *parse_star(struct parser *parser)
{
    struct node *left = current(parser);

    return add_pair(parser, NODE_PROJECT_VALUES, left, parse_projected(parser, POWER_STAR));
}

static struct node *parse_not(struct parser *parser, size_t offset)
{
    struct node *node = add_node(parser, NODE_NOT, offset);

    node->left = parse_expression(parser, POWER_NOT);
    return under(parser, node, node->left);
}

static struct node *parse_parens(struct parser *parser)
{
    struct node *inner = parse_expression(parser, POWER_NONE);

    if (inner == NULL || !expect(parser, TOKEN_RIGHT_PAREN))
        return NULL;
    return inner;
}

/* An expression's first token, and what belongs to it. */
static struct node *parse_start(struct parser *parser)
{
    const struct token *token = parser->token++;
    struct node *node;

    switch ((int)token->type) {
    case TOKEN_LITERAL:
        node = add_node(parser, NODE_LITERAL, token->offset);
        node->value = json_incref(token->value);
        return node;
    case TOKEN_NAME:
    case TOKEN_QUOTED_NAME:
        return parse_name(parser, token);
    case TOKEN_CURRENT:
        return add_node(parser, NODE_CURRENT, token->offset);
    case TOKEN_STAR:
        return parse_star(parser);
    case TOKEN_FILTER:
        return parse_filter(parser, current(parser));
    case TOKEN_FLATTEN:
        return parse_flatten(parser, current(parser));
    case TOKEN_LEFT_BRACKET:
        return parse_left_bracket(parser, token->offset);
    case TOKEN_LEFT_BRACE:
        return parse_hash(parser, token->offset);
    case TOKEN_LEFT_PAREN:
        return parse_parens(parser);
    case TOKEN_NOT:
        return parse_not(parser, token->offset);
    default:
        parser->token = token;
        return fail_expecting(parser, "an expression");
    }
}

static struct node *parse_dot(struct parser *parser, struct node *left)
{
    if (parser->token->type != TOKEN_STAR)
        return add_pair(parser, NODE_CHAIN, left, parse_after_dot(parser, POWER_DOT));
    parser->token++;
    return add_pair(parser, NODE_PROJECT_VALUES, left, parse_projected(parser, POWER_DOT));
}

static struct node *parse_comparison(struct parser *parser, struct node *left,
                                     enum token_type comparator)
{
    struct node *node =
        add_pair(parser, NODE_COMPARE, left, parse_expression(parser, POWER_COMPARE));

    if (node != NULL)
        node->comparator = comparator;
    return node;
}

/* An operator after left, and what belongs to it. */
static struct node *parse_rest(struct parser *parser, struct node *left)
{
    const struct token *token = parser->token++;

    switch ((int)token->type) {
    case TOKEN_DOT:
        return parse_dot(parser, left);
    case TOKEN_PIPE:
        return add_pair(parser, NODE_CHAIN, left, parse_expression(parser, POWER_PIPE));
    case TOKEN_OR:
        return add_pair(parser, NODE_OR, left, parse_expression(parser, POWER_OR));
    case TOKEN_AND:
        return add_pair(parser, NODE_AND, left, parse_expression(parser, POWER_AND));
    case TOKEN_FILTER:
        return parse_filter(parser, left);
    case TOKEN_FLATTEN:
        return parse_flatten(parser, left);
    case TOKEN_EQUAL:
    case TOKEN_NOT_EQUAL:
    case TOKEN_LESS:
    case TOKEN_LESS_EQUAL:
    case TOKEN_GREATER:
    case TOKEN_GREATER_EQUAL:
        return parse_comparison(parser, left, token->type);
    case TOKEN_LEFT_BRACKET:
        if (at_index(parser))
            return parse_index(parser, left);
        if (at_list_wildcard(parser))
            return parse_list_wildcard(parser, left);
        return fail_expecting(parser, "a number, ':' or '*' after '['");
    default:
        parser->token = token;
        return fail_expecting(parser, "an operator or the end");
    }
}

static struct node *parse_expression(struct parser *parser, int power)
{
    if (parser->depth >= JMESPATH_DEPTH_MAX) {
        parser->r = error_set_at(parser->err, ERROR_LIMIT, parser->token->offset,
                                 "nested deeper than %d levels", JMESPATH_DEPTH_MAX);
        return NULL;
    }
    parser->depth++;
    struct node *node = parse_start(parser);

    while (node != NULL && power < power_of(parser->token->type))
        node = parse_rest(parser, node);
    parser->depth--;
    return node;
}

int jmespath_parse(const struct token_list *tokens, struct jmespath *expression, struct error **err)
{
    struct parser parser = {.token = tokens->items, .expression = expression, .err = err};

    expression->root = parse_expression(&parser, POWER_NONE);
    if (expression->root != NULL && parser.token->type != TOKEN_END)
        (void)fail_expecting(&parser, "an operator or the end"); /* r is set */
    return parser.r;
}
