#include "base/mem.h"
#include "base/str.h"
#include "grade/internal.h"
#include "grade/jmespath.h"
#include "grade/jsonschema.h"
#include "grade/value.h"

#define SHOWN_BYTES_MAX 200

enum operator_kind {
    OPERATOR_EQUALS,
    OPERATOR_NOT_EQUALS,
    OPERATOR_CONTAINS,
    OPERATOR_GT,
    OPERATOR_GTE,
    OPERATOR_LT,
    OPERATOR_LTE,
    OPERATOR_TYPE,
    OPERATOR_REGEX,
    OPERATOR_EXISTS,
};
static const char *const operator_names[] = {
    [OPERATOR_EQUALS] = "equals",     [OPERATOR_NOT_EQUALS] = "not_equals",
    [OPERATOR_CONTAINS] = "contains", [OPERATOR_GT] = "gt",
    [OPERATOR_GTE] = "gte",           [OPERATOR_LT] = "lt",
    [OPERATOR_LTE] = "lte",           [OPERATOR_TYPE] = "type",
    [OPERATOR_REGEX] = "regex",       [OPERATOR_EXISTS] = "exists",
};

/* One assertion of the author. Everything is borrowed. */
struct assertion {
    const char *expression;
    enum operator_kind kind;
    const json_t *expected; /* null when absent */
};

/* --- configuration --------------------------------------------------------------------------- */

static int read_assertion(const json_t *spec, struct assertion *ret, struct error **err)
{
    const char *name = json_get_text(spec, "operator");
    const json_t *expected = json_object_get(spec, "expected");
    struct assertion assertion = {
        .expression = json_get_text(spec, "expression"),
        .expected = expected == NULL ? json_null() : expected,
    };

    if (assertion.expression == NULL)
        return error_set(err, ERROR_TASK, "expression: expected a JMESPath expression");
    for (size_t i = 0; name != NULL && i < ARRAY_SIZE(operator_names); i++) {
        if (!str_equal(name, operator_names[i]))
            continue;
        assertion.kind = (enum operator_kind)i;
        name = NULL;
    }
    if (name != NULL)
        return error_set(err, ERROR_TASK, "operator: '%s' is unknown", name);
    *ret = assertion;
    return 0;
}

static bool is_type_name(const json_t *value)
{
    static const char *const names[] = {"string", "number", "boolean", "array", "object", "null"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (str_equal(json_string_value(value), names[i]))
            return true;
    }
    return false;
}

/* NULL when the operator takes the expected value, else what it wants. */
static const char *wanted_value(const struct assertion *assertion)
{
    const json_t *expected = assertion->expected;

    switch (assertion->kind) {
    case OPERATOR_EQUALS:
    case OPERATOR_NOT_EQUALS:
    case OPERATOR_CONTAINS:
        return NULL;
    case OPERATOR_GT:
    case OPERATOR_GTE:
    case OPERATOR_LT:
    case OPERATOR_LTE:
        return json_is_number(expected) || json_is_string(expected) ? NULL
                                                                    : "wants a number or a string";
    case OPERATOR_TYPE:
        return is_type_name(expected) ? NULL
                                      : "wants string, number, boolean, array, object or null";
    case OPERATOR_REGEX:
        return json_is_string(expected) ? NULL : "wants a regular expression";
    case OPERATOR_EXISTS:
        return json_is_null(expected) || json_is_true(expected)
                   ? NULL
                   : "takes none; for 'is absent' use equals null";
    }
    return NULL;
}

static void check_expected(const json_t *spec, const char *place,
                           const struct complaints *complaints)
{
    scoped(mem_freep) char *whole = str_format("%s/expected", place);
    scoped(error_freep) struct error *err = NULL;
    struct assertion assertion = {0};

    if (read_assertion(spec, &assertion, &err) < 0) {
        complain_of(complaints, place, err);
        return;
    }
    const char *wanted = wanted_value(&assertion);

    if (wanted != NULL)
        complain(complaints, whole, "operator %s %s", operator_names[assertion.kind], wanted);
    else if (assertion.kind == OPERATOR_REGEX)
        config_pattern(spec, place, "expected", 0, complaints);
}

static void check_assertion(const json_t *spec, const char *place,
                            const struct complaints *complaints)
{
    scoped(mem_freep) char *whole = str_format("%s/expression", place);
    scoped(jmespath_freep) struct jmespath *compiled = NULL;
    scoped(error_freep) struct error *err = NULL;
    const char *expression = json_get_text(spec, "expression");

    if (expression != NULL && jmespath_compile(expression, &compiled, &err) < 0)
        complain_of(complaints, whole, err);
    check_expected(spec, place, complaints);
}

static void check_schema(json_t *document, const struct complaints *complaints)
{
    scoped(schema_freep) struct schema *schema = NULL;
    scoped(error_freep) struct error *err = NULL;
    scoped(buf_done) struct buf pointer = {0};

    if (schema_compile_at(document, &schema, &pointer, &err) == 0)
        return;
    scoped(mem_freep) char *place = str_format("/json_schema%s", buf_text(&pointer));

    complain_of(complaints, place, err);
}

void json_check_check(const struct criterion *criterion, const struct complaints *complaints)
{
    json_t *document = json_object_get(criterion->params, "json_schema");
    const json_t *assertions = json_object_get(criterion->params, "assertions");

    config_path(criterion, complaints);
    /* A string is the path of a schema in the workspace: it is read when it is needed. */
    if (document != NULL && !json_is_null(document) && !json_is_string(document))
        check_schema(document, complaints);
    for (size_t i = 0; i < json_array_size(assertions); i++) {
        scoped(mem_freep) char *place = str_format("/assertions/%zu", i);

        check_assertion(json_array_get(assertions, i), place, complaints);
    }
}

/* --- operators ------------------------------------------------------------------------------- */

/* What an assertion or a schema came to. LIMIT: the data takes too much work. */
enum outcome { OUTCOME_HOLDS, OUTCOME_FAILS, OUTCOME_LIMIT };

static enum outcome outcome_of(bool holds)
{
    return holds ? OUTCOME_HOLDS : OUTCOME_FAILS;
}

static enum outcome is_equal(const json_t *a, const json_t *b)
{
    struct budget budget = {.left = JMESPATH_STEPS_MAX};
    bool equal = value_equal(a, b, &budget);

    return budget.exhausted ? OUTCOME_LIMIT : outcome_of(equal);
}

/* An element of an array, a part of a string, or a key of an object. */
static enum outcome contains(const json_t *actual, const json_t *expected)
{
    struct budget budget = {.left = JMESPATH_STEPS_MAX};
    bool found = false;

    if (json_is_string(actual) && json_is_string(expected))
        return outcome_of(memmem(json_string_value(actual), json_string_length(actual),
                                 json_string_value(expected),
                                 json_string_length(expected)) != NULL);
    if (json_is_object(actual) && json_is_string(expected))
        return outcome_of(json_object_get(actual, json_string_value(expected)) != NULL);
    for (size_t i = 0; i < json_array_size(actual) && !found; i++)
        found = value_equal(json_array_get(actual, i), expected, &budget);
    return budget.exhausted ? OUTCOME_LIMIT : outcome_of(found);
}

/* Two numbers or two strings; anything else has no order. */
static enum outcome compare(const struct assertion *assertion, const json_t *actual)
{
    const json_t *expected = assertion->expected;
    int order;

    if (json_is_number(actual) && json_is_number(expected))
        order = value_compare_numbers(actual, expected);
    else if (json_is_string(actual) && json_is_string(expected))
        order = value_compare_strings(actual, expected);
    else
        return OUTCOME_FAILS;
    switch ((int)assertion->kind) {
    case OPERATOR_GT:
        return outcome_of(order > 0);
    case OPERATOR_GTE:
        return outcome_of(order >= 0);
    case OPERATOR_LT:
        return outcome_of(order < 0);
    default:
        return outcome_of(order <= 0);
    }
}

static enum outcome matches(const json_t *actual, const json_t *expected)
{
    scoped(regex_freep) struct regex *regex = NULL;

    if (!json_is_string(actual) || !json_is_string(expected) ||
        regex_compile(json_string_value(expected), 0, &regex, NULL) < 0)
        return OUTCOME_FAILS;
    switch (regex_search(regex, json_string_value(actual), json_string_length(actual))) {
    case REGEX_MATCH:
        return OUTCOME_HOLDS;
    case REGEX_NO_MATCH:
        return OUTCOME_FAILS;
    case REGEX_LIMIT:
        return OUTCOME_LIMIT;
    }
    return OUTCOME_FAILS;
}

static enum outcome apply(const struct assertion *assertion, const json_t *actual)
{
    const json_t *expected = assertion->expected;
    enum outcome outcome;

    switch (assertion->kind) {
    case OPERATOR_EQUALS:
        return is_equal(actual, expected);
    case OPERATOR_NOT_EQUALS:
        outcome = is_equal(actual, expected);
        return outcome == OUTCOME_LIMIT ? outcome : outcome_of(outcome == OUTCOME_FAILS);
    case OPERATOR_CONTAINS:
        return contains(actual, expected);
    case OPERATOR_GT:
    case OPERATOR_GTE:
    case OPERATOR_LT:
    case OPERATOR_LTE:
        return compare(assertion, actual);
    case OPERATOR_TYPE:
        return outcome_of(str_equal(value_type_name(actual), json_string_value(expected)));
    case OPERATOR_REGEX:
        return matches(actual, expected);
    case OPERATOR_EXISTS:
        return outcome_of(!json_is_null(actual));
    }
    return OUTCOME_FAILS;
}

/* --- evaluation ------------------------------------------------------------------------------ */

static void explain(const struct assertion *assertion, const json_t *actual, enum outcome outcome,
                    struct buf *details)
{
    if (outcome == OUTCOME_HOLDS)
        return;
    buf_format(details, "%s: ", assertion->expression);
    if (outcome == OUTCOME_LIMIT) {
        buf_format(details, "operator %s takes too long on this data\n",
                   operator_names[assertion->kind]);
        return;
    }
    buf_text_append(details, "found ");
    value_show(details, actual, SHOWN_BYTES_MAX);
    buf_format(details, ", expected it to be %s", operator_names[assertion->kind]);
    if (assertion->kind != OPERATOR_EXISTS) {
        buf_char(details, ' ');
        value_show(details, assertion->expected, SHOWN_BYTES_MAX);
    }
    buf_char(details, '\n');
}

static int evaluate_assertion(const json_t *spec, json_t *data, enum outcome *ret,
                              struct buf *details, struct error **err)
{
    scoped(jmespath_freep) struct jmespath *expression = NULL;
    scoped(error_freep) struct error *inner = NULL;
    scoped(json_freep) json_t *actual = NULL;
    struct assertion assertion = {0};
    int r = read_assertion(spec, &assertion, err);

    if (r < 0)
        return r;
    ASSERT(assertion.expression != NULL);
    r = jmespath_compile(assertion.expression, &expression, err);
    if (r < 0)
        return r;
    ASSERT(expression != NULL);
    r = jmespath_evaluate(expression, data, &actual, &inner);
    if (r == 0) {
        ASSERT(actual != NULL);
        *ret = apply(&assertion, actual);
        explain(&assertion, actual, *ret, details);
        return 0;
    }
    *ret = r == -ERROR_LIMIT ? OUTCOME_LIMIT : OUTCOME_FAILS;
    buf_format(details, "%s: %s\n", assertion.expression, error_message(inner));
    return 0;
}

static int evaluate_assertions(const json_t *specs, json_t *data, struct tally *ret,
                               bool *ret_limit, struct buf *details, struct error **err)
{
    struct tally tally = {.total = json_array_size(specs)};

    for (size_t i = 0; i < tally.total; i++) {
        enum outcome outcome = OUTCOME_FAILS;
        int r = evaluate_assertion(json_array_get(specs, i), data, &outcome, details, err);

        if (r < 0)
            return error_wrap(err, r, "assertions[%zu]", i);
        tally.holding += outcome == OUTCOME_HOLDS;
        *ret_limit |= outcome == OUTCOME_LIMIT;
    }
    if (tally.total > 0)
        buf_format(details, "assertions: %zu of %zu hold\n", tally.holding, tally.total);
    *ret = tally;
    return 0;
}

/* The schema of a file in the workspace. *ret stays NULL, with the reason in details, when it is
 * none. */
static int read_schema(const char *path, const struct grade_input *input, struct schema **ret,
                       struct buf *details, struct error **err)
{
    scoped(grade_file_done) struct grade_file file = {0};
    scoped(error_freep) struct error *inner = NULL;
    scoped(json_freep) json_t *document = NULL;
    int r = input->workspace->read(input->workspace->context, path, true, &file, err);

    if (r < 0)
        return r;
    if (file.state != GRADE_FILE_OK) {
        buf_text_append(details, "json_schema: ");
        content_explain(path, &file, details);
        buf_char(details, '\n');
        return 0;
    }
    r = value_parse(buf_text(&file.content), file.content.size_bytes, &document, &inner);
    if (r == 0)
        r = schema_compile(document, ret, &inner);
    if (r < 0)
        buf_format(details, "json_schema: '%s': %s\n", path, error_message(inner));
    return 0;
}

static int evaluate_schema(json_t *document, json_t *data, const struct grade_input *input,
                           enum outcome *ret, struct buf *details, struct error **err)
{
    scoped(schema_freep) struct schema *schema = NULL;
    scoped(error_freep) struct error *inner = NULL;
    scoped(buf_done) struct buf complaints = {0};
    bool valid = false;
    int r;

    if (json_is_string(document))
        r = read_schema(json_string_value(document), input, &schema, details, err);
    else
        r = schema_compile(document, &schema, err);
    if (r < 0)
        return r;
    *ret = OUTCOME_FAILS;
    if (schema == NULL)
        return 0;
    r = schema_validate(schema, data, &valid, &complaints, &inner);
    if (r < 0) {
        *ret = OUTCOME_LIMIT;
        buf_format(details, "%s\n", error_message(inner));
        return 0;
    }
    *ret = outcome_of(valid);
    buf_format(details, "schema: %s\n", valid ? "valid" : "not valid");
    buf_append(details, buf_text(&complaints), complaints.size_bytes);
    return 0;
}

/* Everything once the document is there. */
static int evaluate_document(const struct criterion *criterion, const struct grade_input *input,
                             json_t *data, struct buf *details, struct verdict *verdict,
                             struct error **err)
{
    json_t *document = json_object_get(criterion->params, "json_schema");
    const json_t *assertions = json_object_get(criterion->params, "assertions");
    struct tally tallies[2] = {{0}, {0}};
    bool limit = false;
    int r = evaluate_assertions(assertions, data, &tallies[1], &limit, details, err);

    if (r < 0)
        return r;
    if (document != NULL && !json_is_null(document)) {
        enum outcome outcome = OUTCOME_FAILS;

        r = evaluate_schema(document, data, input, &outcome, details, err);
        if (r < 0)
            return r;
        tallies[0] = (struct tally){.holding = outcome == OUTCOME_HOLDS, .total = 1};
        limit |= outcome == OUTCOME_LIMIT;
    }
    if (details->size_bytes == 0)
        buf_text_append(details, "the file is valid JSON");
    if (limit)
        verdict_agent_error(verdict, details);
    else
        verdict_score(verdict, tally_mean(tallies, ARRAY_SIZE(tallies)), details);
    return 0;
}

int json_check_evaluate(const struct criterion *criterion, const struct grade_input *input,
                        struct verdict *ret, struct error **err)
{
    scoped(content_done) struct content content = {0};
    scoped(buf_done) struct buf details = DETAILS_INIT;
    scoped(error_freep) struct error *inner = NULL;
    scoped(json_freep) json_t *data = NULL;
    int r = content_read(criterion, input, &content, &details, ret, err);

    if (r < 0 || !content.readable)
        return r;
    if (value_parse(buf_text(&content.file.content), content.file.content.size_bytes, &data,
                    &inner) < 0) {
        buf_format(&details, "'%s' is not valid JSON: %s", json_get_text(criterion->params, "path"),
                   error_message(inner));
        verdict_score(ret, 0, &details);
        return 0;
    }
    return evaluate_document(criterion, input, data, &details, ret, err);
}
