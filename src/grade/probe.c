/*
 * grade_probe: answers questions about expressions, schemas and patterns, for compare.py.
 *
 * One JSON object a line in, one out. {"expression", "data"} -> {"result"} or {"error": "compile"
 * or "evaluate", "message"}; {"schema", "data"} -> {"valid", "message"} or {"error", "message"}.
 */
#include "base/json.h"
#include "base/mem.h"
#include "grade/jmespath.h"
#include "grade/jsonschema.h"
#include "grade/regex.h"
#include "grade/value.h"

static void put_error(json_t *answer, const char *when, const struct error *err)
{
    json_put_text(answer, "error", when);
    json_put_text(answer, "message", error_message(err));
}

static void answer_expression(const json_t *question, json_t *answer)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(jmespath_freep) struct jmespath *expression = NULL;
    json_t *result = NULL;

    if (jmespath_compile(json_get_text(question, "expression"), &expression, &err) < 0)
        put_error(answer, "compile", err);
    else if (jmespath_evaluate(expression, json_object_get(question, "data"), &result, &err) < 0)
        put_error(answer, "evaluate", err);
    else
        json_put(answer, "result", result);
}

static void answer_schema(const json_t *question, json_t *answer)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(schema_freep) struct schema *schema = NULL;
    scoped(buf_done) struct buf complaints = {0};
    bool valid = false;

    if (schema_compile(json_object_get(question, "schema"), &schema, &err) < 0) {
        put_error(answer, "compile", err);
        return;
    }
    if (schema_validate(schema, json_object_get(question, "data"), &valid, &complaints, &err) < 0) {
        put_error(answer, "evaluate", err);
        return;
    }
    json_put_bool(answer, "valid", valid);
    json_put_text(answer, "message", buf_text(&complaints));
}

static void answer_pattern(const json_t *question, json_t *answer)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(regex_freep) struct regex *regex = NULL;
    const json_t *subject = json_object_get(question, "subject");
    unsigned flags = 0;

    if (regex_flags_parse(json_object_get(question, "flags"), &flags, &err) < 0 ||
        regex_compile(json_get_text(question, "pattern"), flags, &regex, &err) < 0) {
        put_error(answer, "compile", err);
        return;
    }
    enum regex_outcome outcome =
        regex_search(regex, json_string_value(subject), json_string_length(subject));

    if (outcome == REGEX_LIMIT)
        json_put_text(answer, "error", "limit");
    else
        json_put_bool(answer, "match", outcome == REGEX_MATCH);
}

int main(void)
{
    scoped(mem_freep) char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    while ((length = getline(&line, &capacity, stdin)) >= 0) {
        scoped(json_freep) json_t *question = NULL;
        scoped(json_freep) json_t *answer = json_object();
        scoped(buf_done) struct buf text = {0};
        struct budget budget = {.left = UINT64_MAX};

        if (value_parse(line, (size_t)length, &question, NULL) < 0)
            return 1;
        if (json_object_get(question, "schema") != NULL)
            answer_schema(question, answer);
        else if (json_object_get(question, "pattern") != NULL)
            answer_pattern(question, answer);
        else
            answer_expression(question, answer);
        value_write(&text, answer, VALUE_COMPACT, &budget);
        if (puts(buf_text(&text)) < 0)
            return 1;
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
