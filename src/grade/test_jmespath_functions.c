/* The functions of JMESPath, one test a group, each with what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/jmespath.h"
#include "grade/value.h"

/* An expression with the JSON that it must give, or "!" and a part of the error that it must give.
 */
struct expectation {
    const char *expression, *result;
};

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(value_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

/* The result as compact JSON in the order in which it was made, or "!" and the message. */
static char *evaluate(const char *expression, json_t *data)
{
    scoped(jmespath_freep) struct jmespath *compiled = NULL;
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *result = NULL;
    struct budget budget = {.left = 100000};
    struct buf text = {0};

    if (jmespath_compile(expression, &compiled, &err) < 0 ||
        jmespath_evaluate(compiled, data, &result, &err) < 0)
        return str_format("!%s", error_message(err));
    value_write(&text, result, VALUE_COMPACT, &budget);
    return buf_take(&text);
}

static void check(const char *given, const struct expectation *cases, size_t count)
{
    scoped(json_freep) json_t *data = parse(given);

    for (size_t i = 0; i < count; i++) {
        scoped(mem_freep) char *got = evaluate(cases[i].expression, data);
        const char *expected = cases[i].result;
        bool same = expected[0] == '!' ? got[0] == '!' && strstr(got, expected + 1) != NULL
                                       : str_equal(got, expected);

        if (!same)
            fail_msg("%s gives %s, expected %s", cases[i].expression, got, expected);
    }
}
#define CHECK(given, ...)                                                                          \
    do {                                                                                           \
        static const struct expectation cases_[] = {__VA_ARGS__};                                  \
        check((given), cases_, ARRAY_SIZE(cases_));                                                \
    } while (0)

static const char given[] = "{\"n\":-3,\"r\":2.5,\"m\":-2.5,\"s\":\"h\\u00e9llo\",\"e\":[],\"eo\":{"
                            "},\"es\":\"\",\"t\":true,\"z\":null,"
                            "\"nums\":[3,1,2.5,-1],\"ints\":[1,2,3],\"strs\":[\"b\",\"a\",\"C\","
                            "\"\\u00e9\"],\"mixed\":[1,\"a\"],"
                            "\"o\":{\"y\":2,\"x\":1},\"o2\":{\"x\":9,\"w\":[0]},"
                            "\"p\":[{\"n\":\"bo\",\"a\":30},{\"n\":\"al\",\"a\":40},{\"n\":\"cy\","
                            "\"a\":30}],\"q\":[{\"a\":1},{}],\"big\":[9223372036854775807,1]}";

static void numbers_are_rounded_and_summed(void **state)
{
    (void)state;
    CHECK(given, {"abs(n)", "3"}, {"abs(m)", "2.5"}, {"abs(`0`)", "0"},
          {"abs(`-9223372036854775808`)", "9.223372036854776e+18"},
          {"abs(s)", "!abs(): argument 1 is \"h\xC3\xA9llo\", expected a number"},
          {"abs(z)", "!is null"}, {"abs()", "!takes 1 argument, not 0"},
          {"abs(n,n)", "!takes 1 argument, not 2"}, {"ceil(r)", "3"}, {"ceil(m)", "-2"},
          {"ceil(n)", "-3"}, {"floor(r)", "2"}, {"floor(m)", "-3"}, {"floor(n)", "-3"},
          {"floor(`1e300`)", "1e+300"}, {"ceil('1')", "!expected a number"},
          {"floor(t)", "!expected a number"}, {"sum(ints)", "6"}, {"sum(nums)", "5.5"},
          {"sum(e)", "0"}, {"sum(big)", "9.223372036854776e+18"},
          {"sum(strs)", "!expected an array of numbers"},
          {"sum(mixed)", "!expected an array of numbers"},
          {"sum(n)", "!expected an array of numbers"},
          {"sum(`[1e308,1e308]`)", "!beyond the range"}, {"avg(ints)", "2.0"},
          {"avg(nums)", "1.375"}, {"avg(e)", "null"},
          {"avg(mixed)", "!expected an array of numbers"},
          {"avg(o)", "!expected an array of numbers"}, {"to_number('12')", "12"},
          {"to_number('-1.5e2')", "-150.0"}, {"to_number('0x1')", "null"},
          {"to_number('12x')", "null"}, {"to_number('')", "null"}, {"to_number('nan')", "null"},
          {"to_number('[1]')", "null"}, {"to_number(r)", "2.5"}, {"to_number(t)", "null"},
          {"to_number(z)", "null"}, {"to_number(ints)", "null"}, {"to_number(o)", "null"});
}

static void strings_are_searched_and_joined(void **state)
{
    (void)state;
    CHECK(given, {"length(s)", "5"}, {"length(es)", "0"}, {"length(ints)", "3"}, {"length(o)", "2"},
          {"length(e)", "0"}, {"length(eo)", "0"},
          {"length(n)", "!expected a string or an array or an object"}, {"length(z)", "!is null"},
          {"length(t)", "!is true"}, {"reverse(s)", "\"oll\xC3\xA9h\""}, {"reverse(es)", "\"\""},
          {"reverse(ints)", "[3,2,1]"}, {"reverse(e)", "[]"},
          {"reverse(o)", "!expected a string or an array"}, {"starts_with(s,'h\xC3\xA9')", "true"},
          {"starts_with(s,'x')", "false"}, {"starts_with(s,'')", "true"},
          {"starts_with('a','ab')", "false"}, {"starts_with(n,'a')", "!argument 1"},
          {"starts_with(s,n)", "!argument 2"}, {"starts_with(s)", "!takes 2 arguments, not 1"},
          {"ends_with(s,'llo')", "true"}, {"ends_with(s,'h')", "false"},
          {"ends_with(s,'')", "true"}, {"ends_with('a','ba')", "false"},
          {"ends_with(e,'a')", "!argument 1"}, {"contains(s,'\xC3\xA9l')", "true"},
          {"contains(s,'z')", "false"}, {"contains(s,n)", "false"}, {"contains(es,'')", "true"},
          {"contains(strs,'a')", "true"}, {"contains(strs,'z')", "false"},
          {"contains(ints,`2.0`)", "true"}, {"contains(ints,`true`)", "false"},
          {"contains(mixed,z)", "false"}, {"contains(`[null]`,z)", "true"},
          {"contains(`[[1],{\"a\":1}]`,`{\"a\":1.0}`)", "true"}, {"contains(o,'x')", "!argument 1"},
          {"contains(z,'x')", "!argument 1"}, {"join(', ',strs)", "\"b, a, C, \xC3\xA9\""},
          {"join('',strs)", "\"baC\xC3\xA9\""}, {"join(',',e)", "\"\""},
          {"join(',',`[\"x\"]`)", "\"x\""}, {"join(',',ints)", "!expected an array of strings"},
          {"join(n,strs)", "!argument 1"}, {"join(',',mixed)", "!argument 2"},
          {"join(',',s)", "!argument 2"});
}

static void values_are_converted_and_named(void **state)
{
    (void)state;
    CHECK(given, {"type(n)", "\"number\""}, {"type(r)", "\"number\""}, {"type(s)", "\"string\""},
          {"type(t)", "\"boolean\""}, {"type(e)", "\"array\""}, {"type(o)", "\"object\""},
          {"type(z)", "\"null\""}, {"type(missing)", "\"null\""}, {"type(&n)", "!is no expression"},
          {"to_string(s)", "\"h\xC3\xA9llo\""}, {"to_string(n)", "\"-3\""},
          {"to_string(r)", "\"2.5\""}, {"to_string(`0.1`)", "\"0.1\""},
          {"to_string(`1.0`)", "\"1.0\""}, {"to_string(t)", "\"true\""},
          {"to_string(z)", "\"null\""}, {"to_string(ints)", "\"[1,2,3]\""},
          {"to_string(o)", "\"{\\\"y\\\":2,\\\"x\\\":1}\""},
          {"to_string(`[\"a\\nb\"]`)", "\"[\\\"a\\\\nb\\\"]\""}, {"to_array(n)", "[-3]"},
          {"to_array(ints)", "[1,2,3]"}, {"to_array(z)", "[null]"},
          {"to_array(o)", "[{\"y\":2,\"x\":1}]"}, {"not_null(z,missing,n,s)", "-3"},
          {"not_null(z)", "null"}, {"not_null(es)", "\"\""},
          {"not_null()", "!at least 1 argument, not 0"}, {"keys(o)", "[\"y\",\"x\"]"},
          {"sort(keys(o))", "[\"x\",\"y\"]"}, {"keys(eo)", "[]"},
          {"keys(ints)", "!expected an object"}, {"keys(z)", "!expected an object"},
          {"values(o)", "[2,1]"}, {"values(eo)", "[]"}, {"values(s)", "!expected an object"},
          {"merge(o,o2)", "{\"y\":2,\"x\":9,\"w\":[0]}"}, {"merge(o)", "{\"y\":2,\"x\":1}"},
          {"merge(eo,eo)", "{}"}, {"merge(o2,o).x", "1"}, {"merge(o,z)", "!argument 2"},
          {"merge()", "!at least 1"}, {"merge(o,o2) && o.x", "1"});
}

static void arrays_are_ordered_by_themselves_and_by_expressions(void **state)
{
    (void)state;
    CHECK(given, {"sort(nums)", "[-1,1,2.5,3]"}, {"sort(strs)", "[\"C\",\"a\",\"b\",\"\xC3\xA9\"]"},
          {"sort(e)", "[]"},
          {"sort(mixed)", "!expected an array of numbers or an array of strings"},
          {"sort(`[true]`)", "!argument 1"}, {"sort(s)", "!argument 1"},
          {"sort(`[1,1.0]`)", "[1,1.0]"}, {"max(nums)", "3"}, {"min(nums)", "-1"},
          {"max(strs)", "\"\xC3\xA9\""}, {"min(strs)", "\"C\""}, {"max(e)", "null"},
          {"min(e)", "null"}, {"max(mixed)", "!argument 1"}, {"min(n)", "!argument 1"},
          {"sort_by(p,&a)[*].n", "[\"bo\",\"cy\",\"al\"]"},
          {"sort_by(p,&n)[*].n", "[\"al\",\"bo\",\"cy\"]"}, {"sort_by(p,&a)[0].n", "\"bo\""},
          {"sort_by(e,&a)", "[]"}, {"sort_by(p,&length(n))[*].n", "[\"bo\",\"al\",\"cy\"]"},
          {"sort_by(q,&a)", "!element 1 is ordered by null, expected a number"},
          {"sort_by(p,&missing)", "!element 0 is ordered by null, expected a number or a string"},
          {"sort_by(mixed,&@)", "!element 1 is ordered by \"a\", expected a number"},
          {"sort_by(p,a)", "!is an expression: '&' expected"},
          {"sort_by(&a,p)", "!argument 1 of sort_by() is no expression"},
          {"sort_by(o,&x)", "!expected an array"}, {"max_by(p,&a).n", "\"al\""},
          {"min_by(p,&a).n", "\"bo\""}, {"max_by(p,&n).n", "\"cy\""}, {"max_by(e,&a)", "null"},
          {"min_by(q,&a)", "!ordered by null"}, {"min_by(p,&n).a", "40"},
          {"max_by(p,&abs(n))", "!abs(): argument 1"}, {"map(&a,p)", "[30,40,30]"},
          {"map(&missing,p)", "[null,null,null]"}, {"map(&a,e)", "[]"},
          {"map(&[n,a],p)[0]", "[\"bo\",30]"}, {"map(&a,o)", "!expected an array"},
          {"map(p,&a)", "!argument 1 of map()"}, {"map(&a)", "!takes 2 arguments"},
          {"map(&to_string(@),ints)", "[\"1\",\"2\",\"3\"]"}, {"map(&a[?@],p)", "[null,null,null]"},
          {"map(&a || 'x', q)", "[1,\"x\"]"});
}

static void calls_stand_where_expressions_do(void **state)
{
    (void)state;
    CHECK(given, {"p[?a > `30`] | length(@)", "1"}, {"length(p[?a==`30`])", "2"},
          {"p[].length(n)", "[2,2,2]"}, {"o.keys(@)", "[\"y\",\"x\"]"},
          {"p[*].{l:length(n)}", "[{\"l\":2},{\"l\":2},{\"l\":2}]"},
          {"p | [0].starts_with(n,'b')", "true"}, {"p[?starts_with(n,'a')].a | [0]", "40"},
          {"length(p) >= `3`", "true"}, {"sort_by(p[?a==`30`], &n)[-1].n", "\"cy\""},
          {"abs( n )", "3"}, {"keys(o)[0]", "\"y\""}, {"keys(o).length(@)", "2"},
          {"join(',', sort(keys(o)))", "\"x,y\""}, {"max(map(&length(n), p))", "2"},
          {"!contains(s,'z') && 'ok'", "\"ok\""}, {"nope(n)", "!unknown function 'nope'"},
          {"lenght(s)", "!did you mean 'length'"}, {"\"length\"(s)", "!without quotes"},
          {"length(s,)", "!expected an expression"}, {"length(s s)", "!expected ')'"},
          {"length(s", "!expected ')'"}, {"length (s)", "5"},
          {"s(length)", "!unknown function 's'"}, {"length(s)(s)", "!offset 9"},
          {"@(s)", "!offset 1"}, {"length", "null"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_and_summed),
        cmocka_unit_test(strings_are_searched_and_joined),
        cmocka_unit_test(values_are_converted_and_named),
        cmocka_unit_test(arrays_are_ordered_by_themselves_and_by_expressions),
        cmocka_unit_test(calls_stand_where_expressions_do),
    };

    return cmocka_run_group_tests_name("grade_jmespath_functions", tests, NULL, NULL);
}
