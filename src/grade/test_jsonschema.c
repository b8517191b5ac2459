/* The subset of JSON Schema: what holds, what is said when it does not, what is no schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/jsonschema.h"
#include "grade/value.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(value_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

/* "" when the data is valid, else the complaints; "!" and the message after an error. */
static char *complaints(const char *schema_text, const char *data_text)
{
    scoped(json_freep) json_t *document = parse(schema_text);
    scoped(json_freep) json_t *data = parse(data_text);
    scoped(schema_freep) struct schema *schema = NULL;
    scoped(error_freep) struct error *err = NULL;
    struct buf text = {0};
    bool valid = false;

    if (schema_compile(document, &schema, &err) < 0 ||
        schema_validate(schema, data, &valid, &text, &err) < 0) {
        buf_done(&text);
        return str_format("!%s", error_message(err));
    }
    assert_int_equal(valid, text.size_bytes == 0);
    return buf_take(&text);
}

static void each_keyword_holds_for_what_it_says(void **state)
{
    static const struct {
        const char *schema;
        const char *valid[6], *invalid[6];
    } cases[] = {
        {"true", {"1", "null"}, {NULL}},
        {"false", {NULL}, {"1", "{}"}},
        {"{}", {"1", "[]"}, {NULL}},
        {"{\"type\":\"string\"}", {"\"\""}, {"1", "null", "[]"}},
        {"{\"type\":\"number\"}", {"1", "1.5"}, {"\"1\"", "true"}},
        {"{\"type\":\"integer\"}", {"1", "1.0", "-3"}, {"1.5", "\"1\"", "true"}},
        {"{\"type\":\"boolean\"}", {"true", "false"}, {"0", "null"}},
        {"{\"type\":\"null\"}", {"null"}, {"0", "false", "\"\""}},
        {"{\"type\":\"array\"}", {"[]"}, {"{}"}},
        {"{\"type\":\"object\"}", {"{}"}, {"[]"}},
        {"{\"type\":[\"string\",\"null\"]}", {"\"a\"", "null"}, {"1"}},
        {"{\"enum\":[1,\"a\",[2],{\"k\":null}]}",
         {"1.0", "\"a\"", "[2.0]", "{\"k\":null}"},
         {"2", "[]", "true"}},
        {"{\"const\":{\"a\":[1]}}", {"{\"a\":[1.0]}"}, {"{\"a\":[2]}", "{}"}},
        {"{\"const\":null}", {"null"}, {"0"}},
        {"{\"minimum\":2}", {"2", "2.0", "3", "\"x\""}, {"1.999", "-5"}},
        {"{\"maximum\":2}", {"2", "1"}, {"2.001"}},
        {"{\"exclusiveMinimum\":2}", {"2.5"}, {"2", "1"}},
        {"{\"exclusiveMaximum\":2}", {"1"}, {"2", "2.0"}},
        {"{\"multipleOf\":3}", {"0", "9", "-3", "6.0"}, {"4", "7.5"}},
        {"{\"multipleOf\":0.1}", {"0.3", "1.1", "7"}, {"0.35"}},
        {"{\"minLength\":2}", {"\"\xC3\xA9\xC3\xA9\"", "5"}, {"\"\xC3\xA9\""}},
        {"{\"maxLength\":1}", {"\"\xF0\x9F\x98\x80\"", "\"\""}, {"\"ab\""}},
        {"{\"pattern\":\"^a+$\"}", {"\"aa\"", "1"}, {"\"b\"", "\"\""}},
        {"{\"minItems\":1}", {"[1]", "{}"}, {"[]"}},
        {"{\"maxItems\":1}", {"[]", "[1]"}, {"[1,2]"}},
        {"{\"uniqueItems\":true}",
         {"[1,2,\"1\"]", "[]", "[[1],[2]]", "[1,true]"},
         {"[1,1.0]", "[{\"a\":1,\"b\":2},{\"b\":2.0,\"a\":1}]", "[\"a\",\"b\",\"a\"]"}},
        {"{\"uniqueItems\":false}", {"[1,1]"}, {NULL}},
        {"{\"items\":{\"type\":\"number\"}}", {"[]", "[1,2]", "\"x\""}, {"[1,\"a\"]"}},
        {"{\"items\":false}", {"[]"}, {"[1]"}},
        {"{\"prefixItems\":[{\"type\":\"number\"},{\"type\":\"string\"}]}",
         {"[]", "[1]", "[1,\"a\",null]"},
         {"[\"a\"]", "[1,2]"}},
        {"{\"prefixItems\":[true],\"items\":{\"type\":\"number\"}}", {"[\"a\",1]"}, {"[1,\"a\"]"}},
        {"{\"items\":[{\"type\":\"number\"}],\"additionalItems\":false}",
         {"[1]", "[]"},
         {"[1,2]", "[\"a\"]"}},
        {"{\"contains\":{\"type\":\"number\"}}", {"[\"a\",1]"}, {"[]", "[\"a\"]"}},
        {"{\"contains\":{\"const\":1},\"minContains\":2,\"maxContains\":3}",
         {"[1,1]", "[1,0,1,1]"},
         {"[1]", "[1,1,1,1]"}},
        {"{\"contains\":{\"const\":1},\"minContains\":0}", {"[]", "[2]"}, {NULL}},
        {"{\"required\":[\"a\",\"b\"]}", {"{\"a\":1,\"b\":null}", "[]"}, {"{\"a\":1}", "{}"}},
        {"{\"minProperties\":1}", {"{\"a\":1}"}, {"{}"}},
        {"{\"maxProperties\":1}", {"{}"}, {"{\"a\":1,\"b\":2}"}},
        {"{\"properties\":{\"a\":{\"type\":\"number\"}}}",
         {"{\"a\":1}", "{}", "{\"b\":\"x\"}"},
         {"{\"a\":\"x\"}"}},
        {"{\"properties\":{\"a\":true},\"additionalProperties\":false}",
         {"{\"a\":1}"},
         {"{\"b\":1}"}},
        {"{\"additionalProperties\":{\"type\":\"number\"}}", {"{\"a\":1}"}, {"{\"a\":\"x\"}"}},
        {"{\"patternProperties\":{\"^n_\":{\"type\":\"number\"},\"_s$\":{\"type\":\"string\"}},"
         "\"additionalProperties\":false}",
         {"{\"n_a\":1,\"a_s\":\"x\"}"},
         {"{\"n_s\":1}", "{\"other\":1}"}},
        {"{\"propertyNames\":{\"maxLength\":2}}", {"{\"ab\":1}"}, {"{\"abc\":1}"}},
        {"{\"dependentRequired\":{\"a\":[\"b\",\"c\"]}}",
         {"{\"b\":1}", "{\"a\":1,\"b\":1,\"c\":1}"},
         {"{\"a\":1,\"b\":1}"}},
        {"{\"allOf\":[{\"minimum\":1},{\"maximum\":3}]}", {"2"}, {"0", "4"}},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3}]}", {"\"a\"", "3"}, {"2"}},
        {"{\"oneOf\":[{\"type\":\"number\"},{\"minimum\":3}]}", {"2", "\"a\""}, {"3"}},
        {"{\"not\":{\"type\":\"string\"}}", {"1"}, {"\"a\""}},
        {"{\"if\":{\"type\":\"number\"},\"then\":{\"minimum\":1},\"else\":{\"minLength\":1}}",
         {"1", "\"a\""},
         {"0", "\"\""}},
        {"{\"if\":{\"type\":\"number\"},\"then\":{\"minimum\":1}}", {"1", "\"\""}, {"0"}},
        {"{\"then\":{\"minimum\":1}}", {"0"}, {NULL}},
        {"{\"definitions\":{\"p\":{\"minimum\":1}},\"items\":{\"$ref\":\"#/definitions/p\"}}",
         {"[1]"},
         {"[0]"}},
        {"{\"$defs\":{\"a/b~c\":{\"type\":\"null\"}},\"$ref\":\"#/$defs/a~1b~0c\"}",
         {"null"},
         {"1"}},
        {"{\"$defs\":{\"p\":{\"minimum\":1}},\"$ref\":\"#/$defs/p\",\"maximum\":2}",
         {"2"},
         {"0", "3"}},
        {"{\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":{\"type\":\"number\"}},\"required\":["
         "\"v\"]}",
         {"{\"v\":1,\"next\":{\"v\":2}}"},
         {"{\"v\":1,\"next\":{}}"}},
        {"{\"$schema\":\"x\",\"$id\":\"y\",\"$comment\":\"z\",\"title\":1,\"description\":2,"
         "\"default\":3,\"examples\":4,\"format\":\"date\",\"deprecated\":true,\"readOnly\":true,"
         "\"writeOnly\":false}",
         {"1", "\"no date\""},
         {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t n = 0; n < 6 && cases[i].valid[n] != NULL; n++) {
            scoped(mem_freep) char *got = complaints(cases[i].schema, cases[i].valid[n]);

            if (got[0] != '\0')
                fail_msg("%s refuses %s: %s", cases[i].schema, cases[i].valid[n], got);
        }
        for (size_t n = 0; n < 6 && cases[i].invalid[n] != NULL; n++) {
            scoped(mem_freep) char *got = complaints(cases[i].schema, cases[i].invalid[n]);

            if (got[0] != 'a')
                fail_msg("%s takes %s: '%s'", cases[i].schema, cases[i].invalid[n], got);
        }
    }
}

static void complaints_say_where_what_and_what_else(void **state)
{
    static const struct {
        const char *schema, *data, *text;
    } cases[] = {
        {"{\"properties\":{\"a\":{\"items\":{\"type\":\"number\"}}}}", "{\"a\":[1,\"x\"]}",
         "at '/a/1': found \"x\", expected type number\n"},
        {"{\"type\":[\"string\",\"null\"]}", "1", "at '': found 1, expected type string or null\n"},
        {"{\"properties\":{\"x/y~z\":{\"minimum\":3}}}", "{\"x/y~z\":2}",
         "at '/x~1y~0z': found 2, expected a number above or equal to 3\n"},
        {"{\"exclusiveMaximum\":1.5}", "2", "at '': found 2, expected a number below 1.5\n"},
        {"{\"required\":[\"k\"]}", "{\"a\":1}",
         "at '': found {\"a\":1}, expected a property 'k'\n"},
        {"{\"dependentRequired\":{\"a\":[\"k\"]}}", "{\"a\":1}",
         "at '': found {\"a\":1}, expected a property 'k', as there is a\n"},
        {"{\"additionalProperties\":false}", "{\"bad\":1}",
         "at '/bad': found 1, expected no property of this name\n"},
        {"{\"enum\":[1,2]}", "3", "at '': found 3, expected one of [1,2]\n"},
        {"{\"const\":\"a\"}", "\"b\"", "at '': found \"b\", expected \"a\"\n"},
        {"{\"pattern\":\"^a\"}", "\"b\"", "at '': found \"b\", expected a match of /^a/\n"},
        {"{\"minLength\":3}", "\"ab\"",
         "at '': found \"ab\", expected at least 3 characters, not 2\n"},
        {"{\"maxItems\":1}", "[1,2]", "at '': found [1,2], expected at most 1 items, not 2\n"},
        {"{\"uniqueItems\":true}", "[5,6,5]",
         "at '': found [5,6,5], expected different items, numbers 0 and 2 are equal\n"},
        {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1",
         "at '': found 1, expected one of the 2 alternatives of anyOf to hold\n"},
        {"{\"oneOf\":[{},{}]}", "1",
         "at '': found 1, expected exactly one of the 2 alternatives of oneOf to hold, two or more "
         "do\n"},
        {"{\"oneOf\":[false]}", "1",
         "at '': found 1, expected exactly one of the 1 alternatives of oneOf to hold, none do\n"},
        {"{\"not\":{}}", "1", "at '': found 1, expected the schema of not not to hold\n"},
        {"{\"items\":false}", "[1]",
         "at '/0': found 1, expected nothing here (the schema is false)\n"},
        {"{\"items\":{\"type\":\"null\"}}", "[1,2,3,4,5,6,7,8,9,10,11,12]", "and 2 more\n"},
        {"{\"type\":\"null\",\"minimum\":5}", "1",
         "at '': found 1, expected type null\nat '': found 1, expected a number above or equal to "
         "5\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = complaints(cases[i].schema, cases[i].data);

        if (cases[i].text[2] == 'd' ? !str_ends(got, cases[i].text)
                                    : !str_equal(got, cases[i].text))
            fail_msg("%s of %s: %s", cases[i].schema, cases[i].data, got);
    }
}

static void what_is_no_schema_is_said_with_its_place(void **state)
{
    static const struct {
        const char *schema, *complaint;
    } cases[] = {
        {"1", "!json_schema: at '': expected a schema"},
        {"{\"propertis\":{}}", "keyword 'propertis' is not in the supported subset of JSON Schema, "
                               "did you mean 'properties'?"},
        {"{\"properties\":{\"a\":{\"unevaluatedProperties\":false}}}",
         "!json_schema: at '/properties/a': keyword 'unevaluatedProperties' is not"},
        {"{\"dependencies\":{}}", "keyword 'dependencies' is not"},
        {"{\"type\":\"int\"}", "at '/type': expected array, boolean"},
        {"{\"type\":[]}", "at '/type': expected"},
        {"{\"type\":[\"string\",1]}", "at '/type': expected"},
        {"{\"enum\":[]}", "at '/enum': expected a list"},
        {"{\"enum\":1}", "at '/enum': expected a list"},
        {"{\"minimum\":\"1\"}", "at '/minimum': expected a number"},
        {"{\"multipleOf\":0}", "at '/multipleOf': expected a number above 0"},
        {"{\"minLength\":-1}", "at '/minLength': expected an integer from 0"},
        {"{\"minItems\":1.5}", "at '/minItems': expected an integer from 0"},
        {"{\"uniqueItems\":1}", "at '/uniqueItems': expected true or false"},
        {"{\"required\":\"a\"}", "at '/required': expected a list of strings"},
        {"{\"required\":[\"a\",1]}", "at '/required': expected a list of strings"},
        {"{\"required\":[\"a\",\"a\"]}", "at '/required': 'a' stands twice"},
        {"{\"dependentRequired\":{\"a\":\"b\"}}",
         "at '/dependentRequired/a': expected a list of strings"},
        {"{\"properties\":[]}", "at '/properties': expected an object"},
        {"{\"properties\":{\"a\":1}}", "at '/properties/a': expected a schema"},
        {"{\"patternProperties\":{\"(\":{}}}",
         "at '/patternProperties/(': offset 0: missing closing"},
        {"{\"pattern\":\"[\"}", "at '/pattern': offset 0: missing terminating"},
        {"{\"pattern\":1}", "at '/pattern': expected a string"},
        {"{\"allOf\":[]}", "at '/allOf': expected a list of at least one schema"},
        {"{\"anyOf\":[1]}", "at '/anyOf/0': expected a schema"},
        {"{\"items\":[]}", "at '/items': expected a list of at least one schema"},
        {"{\"items\":[{}],\"prefixItems\":[{}]}", "'items' is a list beside 'prefixItems'"},
        {"{\"$ref\":1}", "at '/$ref': expected a string"},
        {"{\"$ref\":\"#/$defs/none\"}", "at '/$ref': '#/$defs/none' leads nowhere"},
        {"{\"$ref\":\"http://x/\"}", "leads nowhere"},
        {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}", "'#/$defs/a' leads back to itself"},
        {"{\"$ref\":\"#\"}", "'#' leads back to itself"},
        {"{\"$defs\":{\"a\":{\"not\":{\"$ref\":\"#/$defs/"
         "b\"}},\"b\":{\"anyOf\":[true,{\"if\":{\"$ref\":\"#/$defs/a\"}}]}}}",
         "leads back to itself"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = complaints(cases[i].schema, "1");

        if (got[0] != '!' || strstr(got, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].schema, got);
    }
}

/* An object with the schema under the key, count levels deep. */
static char *nested(const char *before, size_t count, const char *middle, const char *after)
{
    struct buf text = {0};

    for (size_t i = 0; i < count; i++)
        buf_text_append(&text, before);
    buf_text_append(&text, middle);
    for (size_t i = 0; i < count; i++)
        buf_text_append(&text, after);
    return buf_take(&text);
}

static void depth_and_work_have_limits(void **state)
{
    scoped(mem_freep) char *deep_schema = nested("{\"not\":", 200, "{}", "}");
    scoped(mem_freep) char *deep_data = nested("[", 40, "1", "]");
    scoped(mem_freep) char *deeper_data = nested("[", 2000, "1", "]");
    scoped(mem_freep) char *got = complaints(deep_schema, "1");
    scoped(mem_freep) char *doubled =
        complaints("{\"items\":{\"anyOf\":[{\"allOf\":[{\"$ref\":\"#\"},false]},{\"allOf\":[{\"$"
                   "ref\":\"#\"},false]}]}}",
                   deep_data);
    scoped(mem_freep) char *deep = complaints("{\"items\":{\"$ref\":\"#\"}}", deeper_data);
    scoped(mem_freep) char *pattern = complaints(
        "{\"pattern\":\"(a+)+$\"}", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"");

    (void)state;
    assert_non_null(strstr(got, "more than 100 levels"));
    assert_non_null(strstr(doubled, "!json_schema: at '/0"));
    assert_non_null(strstr(doubled, "too much work"));
    assert_non_null(strstr(deep, "too much work"));
    assert_non_null(strstr(pattern, "takes too long"));
}

/* count arrays of a thousand zeros and then their number, from first on. */
static void long_arrays(struct buf *text, int first, int count)
{
    buf_char(text, '[');
    for (int i = 0; i < count; i++) {
        buf_text_append(text, i == 0 ? "[" : ",[");
        for (int n = 0; n < 1000; n++)
            buf_text_append(text, "0,");
        buf_format(text, "%d]", first + i);
    }
    buf_char(text, ']');
}

static void comparing_with_an_enum_is_work_too(void **state)
{
    scoped(buf_done) struct buf schema = {0};
    scoped(buf_done) struct buf data = {0};

    (void)state;
    buf_text_append(&schema, "{\"items\":{\"enum\":");
    long_arrays(&schema, 1000, 100);
    buf_text_append(&schema, "}}");
    long_arrays(&data, 0, 120);
    scoped(mem_freep) char *got = complaints(buf_text(&schema), buf_text(&data));

    assert_non_null(strstr(got, "too much work"));
}

static void many_equal_items_are_found_in_time(void **state)
{
    scoped(buf_done) struct buf data = {0};

    (void)state;
    buf_char(&data, '[');
    for (int i = 0; i < 200000; i++)
        buf_format(&data, "%d,", i);
    buf_text_append(&data, "77]");
    scoped(mem_freep) char *got = complaints("{\"uniqueItems\":true}", buf_text(&data));

    assert_non_null(strstr(got, "numbers 77 and 200000 are equal"));
    assert_non_null(strstr(got, "[cut]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_keyword_holds_for_what_it_says),
        cmocka_unit_test(complaints_say_where_what_and_what_else),
        cmocka_unit_test(what_is_no_schema_is_said_with_its_place),
        cmocka_unit_test(depth_and_work_have_limits),
        cmocka_unit_test(comparing_with_an_enum_is_work_too),
        cmocka_unit_test(many_equal_items_are_found_in_time),
    };

    return cmocka_run_group_tests_name("grade_jsonschema", tests, NULL, NULL);
}
