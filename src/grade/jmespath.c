#include "grade/jmespath.h"

#include "base/mem.h"
#include "grade/jmespath_internal.h"

/* --- life ------------------------------------------------------------------------------------ */

int jmespath_compile(const char *text, struct jmespath **ret, struct error **err)
{
    scoped(token_list_done) struct token_list tokens = {0};
    int r = jmespath_lex(text, &tokens, err);

    if (r < 0)
        return r;
    scoped(jmespath_freep) struct jmespath *expression = mem_new(1, sizeof(*expression));

    r = jmespath_parse(&tokens, expression, err);
    if (r < 0)
        return r;
    *ret = take(expression);
    return 0;
}

void jmespath_free(struct jmespath *expression)
{
    if (expression == NULL)
        return;
    while (expression->owned != NULL) {
        struct node *node = expression->owned;

        expression->owned = node->next_owned;
        json_decref(node->value);
        free(node->children);
        free(node);
    }
    free(expression);
}

void jmespath_freep(struct jmespath **expression)
{
    jmespath_free(*expression);
    *expression = NULL;
}

/* --- evaluation ------------------------------------------------------------------------------ */

json_t *evaluation_fail(struct evaluation *evaluation, const char *fmt, ...)
{
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    evaluation->r = error_set(evaluation->err, ERROR_AGENT, "%s", buf_text(&message));
    return NULL;
}

static bool fail_limit(struct evaluation *evaluation)
{
    evaluation->r = error_set(evaluation->err, ERROR_LIMIT,
                              "the expression needs more than %llu steps on this data",
                              (unsigned long long)JMESPATH_STEPS_MAX);
    return false;
}

bool evaluation_step(struct evaluation *evaluation, uint64_t steps)
{
    return budget_take(&evaluation->budget, steps) || fail_limit(evaluation);
}

json_t *json_made(json_t *value)
{
    ASSERT(value != NULL);
    return value;
}

bool value_is_true(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return json_object_size(value) > 0;
    case JSON_ARRAY:
        return json_array_size(value) > 0;
    case JSON_STRING:
        return json_string_length(value) > 0;
    case JSON_INTEGER:
    case JSON_REAL:
    case JSON_TRUE:
        return true;
    case JSON_FALSE:
    case JSON_NULL:
        return false;
    }
    return false;
}

static json_t *field(const struct node *node, const json_t *value)
{
    json_t *member = json_object_get(value, json_string_value(node->value));

    return member == NULL ? json_null() : json_incref(member);
}

static json_t *index_of(const struct node *node, const json_t *array)
{
    int64_t size = (int64_t)json_array_size(array); /* 0 for anything else */
    int64_t i = node->numbers[0];

    if (i < 0 && i >= -size)
        i += size;
    if (i < 0 || i >= size)
        return json_null();
    return json_incref(json_array_get(array, (size_t)i));
}

/* A bound of a slice as an index: from the end when negative, then into [lowest, highest]. */
static int64_t bound(const struct node *node, size_t part, int64_t size, int64_t otherwise)
{
    if (!node->given[part])
        return otherwise;
    bool backward = node->given[2] && node->numbers[2] < 0;
    int64_t lowest = backward ? -1 : 0, highest = backward ? size - 1 : size;
    int64_t n = node->numbers[part];

    if (n < 0)
        n = n < -size ? lowest : n + size;
    if (n < lowest)
        n = lowest;
    return n > highest ? highest : n;
}

static json_t *slice(struct evaluation *evaluation, const struct node *node, const json_t *array)
{
    if (!json_is_array(array))
        return json_null();
    int64_t size = (int64_t)json_array_size(array);
    int64_t step = node->given[2] ? node->numbers[2] : 1;
    int64_t i = bound(node, 0, size, step < 0 ? size - 1 : 0);
    int64_t end = bound(node, 1, size, step < 0 ? -1 : size);
    json_t *result = json_made(json_array());

    while (step > 0 ? i < end : i > end) {
        if (!evaluation_step(evaluation, 1)) {
            json_decref(result);
            return NULL;
        }
        json_push(result, json_incref(json_array_get(array, (size_t)i)));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return result;
}

/* Appends a result to a projection, null left out. Takes value; false when it is NULL. */
static bool project_one(json_t *array, json_t *value)
{
    if (value == NULL)
        return false;
    if (json_is_null(value))
        json_decref(value);
    else
        json_push(array, value);
    return true;
}

/* Whether the filter of a projection keeps the element: 1, 0, or -1 after a failure. */
static int keeps(struct evaluation *evaluation, const struct node *node, json_t *element)
{
    if (node->condition == NULL)
        return 1;
    json_t *condition = jmespath_node_evaluate(evaluation, node->condition, element);

    if (condition == NULL)
        return -1;
    int kept = value_is_true(condition);

    json_decref(condition);
    return kept;
}

static json_t *project(struct evaluation *evaluation, const struct node *node, json_t *array)
{
    if (!json_is_array(array))
        return json_null();
    scoped(json_freep) json_t *result = json_made(json_array());

    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element = json_array_get(array, i);
        int kept = keeps(evaluation, node, element);

        if (kept < 0 || (kept > 0 && !project_one(result, jmespath_node_evaluate(
                                                              evaluation, node->right, element))))
            return NULL;
    }
    return take(result);
}

static json_t *project_values(struct evaluation *evaluation, const struct node *node,
                              json_t *object)
{
    if (!json_is_object(object))
        return json_null();
    scoped(json_freep) json_t *result = json_made(json_array());
    const char *key;
    json_t *member;

    json_object_foreach (object, key, member) {
        if (!project_one(result, jmespath_node_evaluate(evaluation, node->right, member)))
            return NULL;
    }
    return take(result);
}

static json_t *flatten(struct evaluation *evaluation, const json_t *array)
{
    if (!json_is_array(array))
        return json_null();
    scoped(json_freep) json_t *result = json_made(json_array());

    for (size_t i = 0; i < json_array_size(array); i++) {
        json_t *element = json_array_get(array, i);

        if (!evaluation_step(evaluation, 1 + json_array_size(element)))
            return NULL;
        if (!json_is_array(element))
            json_push(result, json_incref(element));
        else if (json_array_extend(result, element) < 0)
            assert_failed("out of memory", __FILE__, __LINE__);
    }
    return take(result);
}

static json_t *list(struct evaluation *evaluation, const struct node *node, json_t *value)
{
    if (json_is_null(value))
        return json_null();
    scoped(json_freep) json_t *result = json_made(json_array());

    for (size_t i = 0; i < node->child_count; i++) {
        json_t *element = jmespath_node_evaluate(evaluation, node->children[i], value);

        if (element == NULL)
            return NULL;
        json_push(result, element);
    }
    return take(result);
}

static json_t *hash(struct evaluation *evaluation, const struct node *node, json_t *value)
{
    if (json_is_null(value))
        return json_null();
    scoped(json_freep) json_t *result = json_made(json_object());

    for (size_t i = 0; i < node->child_count; i++) {
        json_t *member = jmespath_node_evaluate(evaluation, node->children[i], value);

        if (member == NULL)
            return NULL;
        json_put(result, json_string_value(json_array_get(node->value, i)), member);
    }
    return take(result);
}

/* "||" gives the first true side, "&&" the first false one; otherwise the right side. */
static json_t *choose(struct evaluation *evaluation, const struct node *node, json_t *value)
{
    json_t *left = jmespath_node_evaluate(evaluation, node->left, value);

    if (left == NULL || value_is_true(left) == (node->type == NODE_OR))
        return left;
    json_decref(left);
    return jmespath_node_evaluate(evaluation, node->right, value);
}

static json_t *negate(struct evaluation *evaluation, const struct node *node, json_t *value)
{
    json_t *inner = jmespath_node_evaluate(evaluation, node->left, value);

    if (inner == NULL)
        return NULL;
    json_t *result = json_boolean(!value_is_true(inner));

    json_decref(inner);
    return result;
}

/* Two numbers or two strings have an order; of anything else it is null. */
static json_t *ordered(const json_t *left, const json_t *right, enum token_type comparator)
{
    int order;

    if (json_is_number(left) && json_is_number(right))
        order = value_compare_numbers(left, right);
    else if (json_is_string(left) && json_is_string(right))
        order = value_compare_strings(left, right);
    else
        return json_null();
    switch ((int)comparator) {
    case TOKEN_LESS:
        return json_boolean(order < 0);
    case TOKEN_LESS_EQUAL:
        return json_boolean(order <= 0);
    case TOKEN_GREATER:
        return json_boolean(order > 0);
    default:
        return json_boolean(order >= 0);
    }
}

static json_t *compare(struct evaluation *evaluation, const struct node *node, json_t *value)
{
    scoped(json_freep) json_t *left = jmespath_node_evaluate(evaluation, node->left, value);

    if (left == NULL)
        return NULL;
    scoped(json_freep) json_t *right = jmespath_node_evaluate(evaluation, node->right, value);

    if (right == NULL)
        return NULL;
    if (node->comparator != TOKEN_EQUAL && node->comparator != TOKEN_NOT_EQUAL)
        return ordered(left, right, node->comparator);
    bool equal = value_equal(left, right, &evaluation->budget);

    if (evaluation->budget.exhausted) {
        (void)fail_limit(evaluation); /* r is set */
        return NULL;
    }
    return json_boolean(equal == (node->comparator == TOKEN_EQUAL));
}

/* Nodes that act on the result of their left side. */
static json_t *apply(struct evaluation *evaluation, const struct node *node, json_t *left)
{
    switch (node->type) {
    case NODE_INDEX:
        return index_of(node, left);
    case NODE_SLICE:
        return slice(evaluation, node, left);
    case NODE_CHAIN:
        return jmespath_node_evaluate(evaluation, node->right, left);
    case NODE_PROJECT:
    case NODE_FILTER:
        return project(evaluation, node, left);
    case NODE_PROJECT_VALUES:
        return project_values(evaluation, node, left);
    case NODE_FLATTEN:
        return flatten(evaluation, left);
    case NODE_CURRENT:
    case NODE_FIELD:
    case NODE_LITERAL:
    case NODE_LIST:
    case NODE_HASH:
    case NODE_OR:
    case NODE_AND:
    case NODE_NOT:
    case NODE_COMPARE:
    case NODE_CALL:
    case NODE_REFERENCE:
        break;
    }
    assert_failed("a node without a left side", __FILE__, __LINE__);
}

json_t *jmespath_node_evaluate(struct evaluation *evaluation, const struct node *node,
                               json_t *value)
{
    json_t *left, *result;

    if (!evaluation_step(evaluation, 1))
        return NULL;
    switch (node->type) {
    case NODE_CURRENT:
        return json_incref(value);
    case NODE_FIELD:
        return field(node, value);
    case NODE_LITERAL:
        return json_incref(node->value);
    case NODE_LIST:
        return list(evaluation, node, value);
    case NODE_HASH:
        return hash(evaluation, node, value);
    case NODE_OR:
    case NODE_AND:
        return choose(evaluation, node, value);
    case NODE_NOT:
        return negate(evaluation, node, value);
    case NODE_COMPARE:
        return compare(evaluation, node, value);
    case NODE_CALL:
        return jmespath_call(evaluation, node, value);
    case NODE_INDEX:
    case NODE_SLICE:
    case NODE_CHAIN:
    case NODE_PROJECT:
    case NODE_PROJECT_VALUES:
    case NODE_FILTER:
    case NODE_FLATTEN:
        left = jmespath_node_evaluate(evaluation, node->left, value);
        if (left == NULL)
            return NULL;
        result = apply(evaluation, node, left);
        json_decref(left);
        return result;
    case NODE_REFERENCE:
        break; /* the parser lets it stand as an argument only */
    }
    assert_failed("a reference outside an argument", __FILE__, __LINE__);
}

int jmespath_evaluate(const struct jmespath *expression, json_t *data, json_t **ret,
                      struct error **err)
{
    struct evaluation evaluation = {.budget = {.left = JMESPATH_STEPS_MAX}, .err = err};
    json_t *result = jmespath_node_evaluate(&evaluation, expression->root, data);

    if (result == NULL)
        return evaluation.r;
    *ret = result;
    return 0;
}
