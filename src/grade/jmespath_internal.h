#pragma once
/*
 * What the lexer, the parser, the evaluator and the functions of JMESPath share.
 */

#include "base/json.h"
#include "grade/jmespath.h"
#include "grade/value.h"

/* --- tokens ---------------------------------------------------------------------------------- */

enum token_type {
    TOKEN_END,
    TOKEN_NAME,        /* value: string */
    TOKEN_QUOTED_NAME, /* value: string */
    TOKEN_LITERAL,     /* value: any JSON; raw strings, too */
    TOKEN_NUMBER,      /* number */
    TOKEN_DOT,
    TOKEN_STAR,
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_CURRENT,
    TOKEN_LEFT_BRACKET,
    TOKEN_FLATTEN, /* [] */
    TOKEN_FILTER,  /* [? */
    TOKEN_RIGHT_BRACKET,
    TOKEN_LEFT_PAREN,
    TOKEN_RIGHT_PAREN,
    TOKEN_LEFT_BRACE,
    TOKEN_RIGHT_BRACE,
    TOKEN_PIPE,
    TOKEN_OR,
    TOKEN_AND,
    TOKEN_REFERENCE, /* & */
    TOKEN_NOT,
    TOKEN_EQUAL,
    TOKEN_NOT_EQUAL,
    TOKEN_LESS,
    TOKEN_LESS_EQUAL,
    TOKEN_GREATER,
    TOKEN_GREATER_EQUAL,
};

struct token {
    enum token_type type;
    size_t offset; /* in bytes, of its first character */
    json_t *value; /* owned, NULL for most */
    int64_t number;
};

/* The last token is TOKEN_END. */
struct token_list {
    struct token *items;
    size_t count;
};
must_check int jmespath_lex(const char *text, struct token_list *ret, struct error **err)
    nonnull(1, 2);
void token_list_done(struct token_list *list) nonnull(1);

/* --- the tree -------------------------------------------------------------------------------- */

enum node_type {
    NODE_CURRENT,
    NODE_FIELD,          /* value: the name */
    NODE_LITERAL,        /* value */
    NODE_INDEX,          /* left[numbers[0]] */
    NODE_SLICE,          /* left[numbers[0]:numbers[1]:numbers[2]] where given */
    NODE_CHAIN,          /* right of the result of left: "." and "|" */
    NODE_PROJECT,        /* right of each element of the array left */
    NODE_PROJECT_VALUES, /* right of each value of the object left */
    NODE_FILTER,         /* right of each element of left for which condition holds */
    NODE_FLATTEN,        /* left with its arrays merged by one level */
    NODE_LIST,           /* [children] */
    NODE_HASH,           /* {value[i]: children[i]} */
    NODE_OR,
    NODE_AND,
    NODE_NOT,       /* left */
    NODE_COMPARE,   /* left comparator right */
    NODE_CALL,      /* function(children) */
    NODE_REFERENCE, /* &left, an argument only */
};

struct function;

/* Fields that a type does not name are empty. The expression owns all nodes. */
struct node {
    enum node_type type;
    size_t offset;
    unsigned depth; /* 1 for a leaf */
    struct node *left, *right, *condition;
    struct node **children;
    size_t child_count;
    json_t *value;
    int64_t numbers[3];
    bool given[3];
    enum token_type comparator;
    const struct function *function;
    struct node *next_owned;
};

struct jmespath {
    struct node *root;
    struct node *owned; /* every node, newest first */
};
must_check int jmespath_parse(const struct token_list *tokens, struct jmespath *expression,
                              struct error **err) nonnull(1, 2);

/* --- evaluation ------------------------------------------------------------------------------ */

/* One evaluation. A function that returns NULL has set err and r. */
struct evaluation {
    struct budget budget;
    struct error **err;
    int r;
};
json_t *jmespath_node_evaluate(struct evaluation *evaluation, const struct node *node,
                               json_t *value) nonnull(1, 2, 3);
/* Fail the evaluation; return NULL. */
json_t *evaluation_fail(struct evaluation *evaluation, const char *fmt, ...) printf_like(2, 3);
/* False when the work is too much; then the evaluation has failed. */
bool evaluation_step(struct evaluation *evaluation, uint64_t steps) nonnull(1);
/* For values made by jansson: out of memory aborts, as everywhere. */
json_t *json_made(json_t *value);
/* False for null, false, "", [] and {}. */
bool value_is_true(const json_t *value) nonnull(1);

/* --- functions ------------------------------------------------------------------------------- */

enum argument_types {
    TYPE_NULL = 1 << 0,
    TYPE_BOOLEAN = 1 << 1,
    TYPE_NUMBER = 1 << 2,
    TYPE_STRING = 1 << 3,
    TYPE_ARRAY = 1 << 4,
    TYPE_OBJECT = 1 << 5,
    TYPE_ANY = (1 << 6) - 1,
    TYPE_NUMBERS = 1 << 6, /* an array of numbers only */
    TYPE_STRINGS = 1 << 7, /* an array of strings only */
    TYPE_REFERENCE = 1 << 8,
};

/* value, or expression for TYPE_REFERENCE. */
struct argument {
    json_t *value;
    const struct node *expression;
};

#define FUNCTION_TYPES_MAX 2
#define FUNCTION_ARGUMENTS_MAX 64
struct function {
    const char *name;
    size_t min_count, max_count;
    unsigned types[FUNCTION_TYPES_MAX]; /* the last one given is that of all further arguments */
    json_t *(*call)(struct evaluation *evaluation, const struct argument *arguments, size_t count);
};
/* NULL when there is none of this name. */
const struct function *jmespath_function(const char *name) nonnull(1);
/* "did you mean" for a name that is none; NULL when nothing is near. */
const char *jmespath_function_nearest(const char *name) nonnull(1);
unsigned function_types(const struct function *function, size_t index) nonnull(1);
json_t *jmespath_call(struct evaluation *evaluation, const struct node *call, json_t *value)
    nonnull(1, 2, 3);

/* The functions over arrays, in jmespath_arrays.c. */
typedef json_t *function_call(struct evaluation *evaluation, const struct argument *arguments,
                              size_t count);
function_call call_avg, call_join, call_map, call_max, call_max_by, call_min, call_min_by,
    call_reverse, call_sort, call_sort_by, call_sum;
