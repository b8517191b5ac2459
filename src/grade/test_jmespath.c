/* The language of JMESPath, one test a section; its functions have a file of their own. */
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

/* The result as JSON, or "!" and the message. */
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
    value_write(&text, result, VALUE_SORTED, &budget);
    return buf_take(&text);
}

static bool is_expected(const char *got, const char *expected)
{
    struct budget budget = {.left = 100000};

    if (expected[0] == '!')
        return got[0] == '!' && strstr(got, expected + 1) != NULL;
    if (got[0] == '!')
        return false;
    scoped(json_freep) json_t *a = parse(got);
    scoped(json_freep) json_t *b = parse(expected);

    return value_equal(a, b, &budget);
}

static void check(const char *given, const struct expectation *cases, size_t count)
{
    scoped(json_freep) json_t *data = parse(given);

    for (size_t i = 0; i < count; i++) {
        scoped(mem_freep) char *got = evaluate(cases[i].expression, data);

        if (!is_expected(got, cases[i].result))
            fail_msg("%s gives %s, expected %s", cases[i].expression, got, cases[i].result);
    }
}
#define CHECK(given, ...)                                                                          \
    do {                                                                                           \
        static const struct expectation cases_[] = {__VA_ARGS__};                                  \
        check((given), cases_, ARRAY_SIZE(cases_));                                                \
    } while (0)

static void fields_and_chains_give_members_or_null(void **state)
{
    (void)state;
    CHECK("{\"one\":{\"two\":{\"three\":\"deep\"}},\"list\":[{\"k\":1},{\"k\":2}],\"n\":null,\"s\":"
          "\"x\"}",
          {"one.two.three", "\"deep\""}, {"one", "{\"two\":{\"three\":\"deep\"}}"},
          {"one.missing", "null"}, {"one.missing.deeper", "null"}, {"missing", "null"},
          {"one.two.three.four", "null"}, {"n.anything", "null"}, {"s.length", "null"},
          {"list.k", "null"}, {"one .two\n. three", "\"deep\""},
          {" one", "{\"two\":{\"three\":\"deep\"}}"});
    CHECK("[{\"k\":1}]", {"k", "null"}, {"@", "[{\"k\":1}]"});
    CHECK("7", {"@", "7"}, {"a", "null"}, {"@.a", "null"});
}

static void names_are_plain_or_quoted(void **state)
{
    (void)state;
    CHECK("{\"with space\":1,\"with.dot\":{\"in-side\":2},\"q\\\"uote\":3,\"\\u00e9\":4,\"_u\":5,"
          "\"A9\":6,\"\":7,\"back\\\\slash\":8,\"tab\\t\":9,\"\\ud83d\\ude00\":10,\"c:\\\\d\":11}",
          {"\"with space\"", "1"}, {"\"with.dot\".\"in-side\"", "2"}, {"\"q\\\"uote\"", "3"},
          {"\"\\u00e9\"", "4"}, {"\"\xC3\xA9\"", "4"}, {"_u", "5"}, {"\"_u\"", "5"}, {"A9", "6"},
          {"\"\"", "7"}, {"\"back\\\\slash\"", "8"}, {"\"tab\\t\"", "9"},
          {"\"\\ud83d\\ude00\"", "10"}, {"\"\xF0\x9F\x98\x80\"", "10"}, {"\"c:\\\\d\"", "11"},
          {"\xC3\xA9", "!offset 0: unexpected character"}, {"with-dash", "!offset 4"},
          {"9A", "!offset 0: found a number"}, {"\"bad\\q\"", "!a name in quotes"},
          {"\"nul\\u0000\"", "!a name in quotes"}, {"\"open", "!closing quote"},
          {"\"new\nline\"", "!a name in quotes"});
}

static void indices_count_from_both_ends(void **state)
{
    (void)state;
    CHECK("{\"a\":[\"p\",\"q\",\"r\"],\"o\":{\"x\":1},\"two\":[[1,2],[3]],\"s\":\"text\"}",
          {"a[0]", "\"p\""}, {"a[2]", "\"r\""}, {"a[3]", "null"}, {"a[-1]", "\"r\""},
          {"a[-3]", "\"p\""}, {"a[-4]", "null"}, {"o[0]", "null"}, {"s[0]", "null"},
          {"two[0][1]", "2"}, {"two[1][1]", "null"}, {"two[-1][-1]", "3"}, {"missing[0]", "null"},
          {"a[9223372036854775807]", "null"}, {"a[-9223372036854775808]", "null"},
          {"a[92233720368547758080]", "!too large"}, {"a[ 1 ]", "\"q\""}, {"a[- 1]", "!digit"},
          {"a[0,1]", "!offset 3"}, {"a.[0]", "!found a number"}, {"a[x]", "!after '['"},
          {"a.0", "!after '.'"}, {"a.-1", "!after '.'"}, {"a[]]", "!']'"},
          {"a[1 2]", "!expected ']'"});
    CHECK("[10,[20,30]]", {"[0]", "10"}, {"[1][0]", "20"}, {"[-1][-1]", "30"}, {"[2]", "null"},
          {"@[0]", "10"});
}

static void slices_take_every_step(void **state)
{
    (void)state;
    CHECK("{\"a\":[0,1,2,3,4,5],\"o\":[{\"k\":[1,2]},{\"k\":[3]},{\"j\":0}],\"s\":\"string\"}",
          {"a[:]", "[0,1,2,3,4,5]"}, {"a[::]", "[0,1,2,3,4,5]"}, {"a[2:4]", "[2,3]"},
          {"a[:2]", "[0,1]"}, {"a[4:]", "[4,5]"}, {"a[-2:]", "[4,5]"}, {"a[:-4]", "[0,1]"},
          {"a[::2]", "[0,2,4]"}, {"a[1::2]", "[1,3,5]"}, {"a[::-1]", "[5,4,3,2,1,0]"},
          {"a[::-2]", "[5,3,1]"}, {"a[4:1:-1]", "[4,3,2]"}, {"a[1:4:-1]", "[]"},
          {"a[-1:-4:-1]", "[5,4,3]"}, {"a[10:]", "[]"}, {"a[:100]", "[0,1,2,3,4,5]"},
          {"a[-100:2]", "[0,1]"}, {"a[100::-3]", "[5,2]"}, {"a[:-100:-1]", "[5,4,3,2,1,0]"},
          {"a[3:3]", "[]"}, {"a[0:6:9223372036854775807]", "[0]"},
          {"a[5:0:-9223372036854775808]", "[5]"}, {"a[2:5][0]", "[]"}, {"a[2:5] | [0]", "2"},
          {"o[:2].k", "[[1,2],[3]]"}, {"o[::-1].k[0]", "[3,1]"}, {"o[:].j", "[0]"},
          {"s[0:2]", "null"}, {"missing[:]", "null"}, {"a[::0]", "!step of a slice is 0"},
          {"a[1:2:3:4]", "!expected ']'"}, {"a[:x]", "!expected ']'"}, {"a[0:", "!expected ']'"},
          {"a[:2:]", "[0,1]"});
    CHECK("[1,2,3]", {"[1:]", "[2,3]"}, {"[:1]", "[1]"}, {"[::-1]", "[3,2,1]"});
}

static void wildcards_project_arrays_and_objects(void **state)
{
    (void)state;
    CHECK("{\"l\":[{\"v\":1,\"w\":{\"z\":9}},{\"v\":2},{\"w\":{\"z\":8}},3,null],"
          "\"o\":{\"a\":{\"v\":1},\"b\":{\"v\":2},\"c\":{},\"d\":5},\"n\":[[1,2],[3,[4]]],\"e\":[],"
          "\"eo\":{},\"s\":\"t\"}",
          {"l[*].v", "[1,2]"}, {"l[*].w.z", "[9,8]"}, {"l[*].missing", "[]"},
          {"l[*]", "[{\"v\":1,\"w\":{\"z\":9}},{\"v\":2},{\"w\":{\"z\":8}},3]"}, {"o.*.v", "[1,2]"},
          {"o.*", "[{\"v\":1},{\"v\":2},{},5]"}, {"l.*", "null"}, {"o[*]", "null"},
          {"s[*]", "null"}, {"s.*", "null"}, {"e[*].v", "[]"}, {"eo.*", "[]"}, {"eo.*.x", "[]"},
          {"missing[*].v", "null"}, {"missing.*.v", "null"}, {"n[*][0]", "[1,3]"},
          {"n[*][*]", "[[1,2],[3,[4]]]"}, {"n[*][1][0]", "[4]"}, {"o.*.*", "[[1],[2],[]]"},
          {"l[*].*", "[[1,{\"z\":9}],[2],[{\"z\":8}]]"}, {"*.a.v", "[1]"},
          {"l[*].w.*", "[[9],[8]]"}, {"l[*].[v]", "[[1],[2],[null],[null]]"},
          {"*[0]", "[{\"v\":1,\"w\":{\"z\":9}},[1,2]]"}, {"l[*]v", "!offset 4"},
          {"*v", "!offset 1"}, {".*", "!offset 0"}, {"l[*]*", "!'.', '['"},
          {"l[* ]", "[{\"v\":1,\"w\":{\"z\":9}},{\"v\":2},{\"w\":{\"z\":8}},3]"});
    CHECK("[[0],[1]]", {"[*]", "[[0],[1]]"}, {"[*][0]", "[0,1]"}, {"*", "null"}, {"[*].*", "[]"});
    CHECK("{\"a\":1}", {"*", "[1]"}, {"*.*", "[]"}, {"[*]", "null"}, {"[*.*]", "[[]]"});
}

static void flattening_merges_one_level_and_projects(void **state)
{
    (void)state;
    CHECK("{\"a\":[[1,2],[3,[4]],5,[]],\"r\":[{\"i\":[{\"s\":1},{\"s\":2}]},{\"i\":[{\"s\":3}]},{}]"
          ",\"o\":{\"x\":[1],\"y\":[2,3]},\"s\":\"t\"}",
          {"a[]", "[1,2,3,[4],5]"}, {"a[][]", "[1,2,3,4,5]"}, {"a[][][]", "[1,2,3,4,5]"},
          {"r[].i[].s", "[1,2,3]"}, {"r[*].i[].s", "[1,2,3]"}, {"r[*].i[*].s", "[[1,2],[3]]"},
          {"r[].i[0].s", "[1,3]"}, {"r[].missing[]", "[]"}, {"o.*[]", "[1,2,3]"}, {"o[]", "null"},
          {"s[]", "null"}, {"missing[]", "null"}, {"a[].b", "[]"}, {"a[]b", "!offset 3"},
          {"o.*.[@][]", "[[1],[2,3]]"});
    CHECK("[[1],[[2]]]", {"[]", "[1,[2]]"}, {"[][]", "[1,2]"}, {"@[]", "[1,[2]]"},
          {"[ ]", "!expected an expression"});
    CHECK("{\"a\":1}", {"[]", "null"});
}

static void filters_keep_what_holds(void **state)
{
    (void)state;
    CHECK("{\"p\":[{\"n\":\"a\",\"g\":20,\"t\":[\"x\"]},{\"n\":\"b\",\"g\":30,\"t\":[]},{\"n\":"
          "\"c\",\"g\":40.0},{\"n\":\"d\",\"g\":null},{\"g\":\"30\"}],"
          "\"e\":[true,false,null,0,\"\",\"s\",[],[0],{},{\"a\":1}],\"o\":{\"x\":1}}",
          {"p[?g==`30`].n", "[\"b\"]"}, {"p[?g==`40`].n", "[\"c\"]"},
          {"p[?g!=`30`].n", "[\"a\",\"c\",\"d\"]"}, {"p[?g>`20`].n", "[\"b\",\"c\"]"},
          {"p[?g>=`20`].n", "[\"a\",\"b\",\"c\"]"}, {"p[?g<`30`].n", "[\"a\"]"},
          {"p[?g<=`30`].n", "[\"a\",\"b\"]"}, {"p[?`30`<g].n", "[\"c\"]"}, {"p[?n=='a'].g", "[20]"},
          {"p[?n=='a'||n=='c'].g", "[20,40]"}, {"p[?g>`20`&&n!='c'].n", "[\"b\"]"},
          {"p[?!(n=='a')].n", "[\"b\",\"c\",\"d\"]"}, {"p[?n && !t].n", "[\"b\",\"c\",\"d\"]"},
          {"p[?t].n", "[\"a\"]"}, {"p[?t[0]=='x'].n", "[\"a\"]"},
          {"p[?contains(n,'b')==`true`]", "!argument 1 is null"}, {"p[?n].n | [0]", "\"a\""},
          {"p[?n=='zz']", "[]"}, {"p[?g==`30`] | [0].n", "\"b\""}, {"p[?t==`[]`].n", "[\"b\"]"},
          {"p[?t==`[\"x\"]`].n", "[\"a\"]"}, {"p[?@.n=='a'].t[]", "[\"x\"]"},
          {"p[?t][].n", "[\"a\"]"}, {"p[?t].t[0]", "[\"x\"]"}, {"p[?t] [?n]", "[]"},
          {"e[?@]", "[true,0,\"s\",[0],{\"a\":1}]"}, {"e[?!@]", "[false,\"\",[],{}]"},
          {"o[?x]", "null"}, {"missing[?x]", "null"},
          {"p[?n=='a' || n=='b' && g==`0`].n", "[\"a\"]"},
          {"p[?(n=='a' || n=='b') && g==`30`].n", "[\"b\"]"}, {"p[?n=a]", "!did you mean '=='"},
          {"p[?n==]", "!expected an expression"}, {"p[?==n]", "!expected an expression"},
          {"p[?n", "!expected ']'"}, {"p[ ?n]", "!offset 3"}, {"p[?]", "!expected an expression"},
          {"p[?n<>g]", "!expected an expression"});
    CHECK("[{\"a\":1},{\"a\":2}]", {"[?a==`2`]", "[{\"a\":2}]"}, {"[?a==`2`].a | [0]", "2"},
          {"@[?a].a", "[1,2]"});
}

static void comparisons_follow_types(void **state)
{
    (void)state;
    CHECK("{\"i\":1,\"r\":1.0,\"s\":\"1\",\"t\":true,\"n\":null,\"a\":[1,2],\"b\":[1.0,2.0],\"o\":{"
          "\"x\":1,\"y\":2},\"q\":{\"y\":2.0,\"x\":1},\"big\":9007199254740993}",
          {"i==r", "true"}, {"i==s", "false"}, {"i==t", "false"}, {"n==missing", "true"},
          {"a==b", "true"}, {"o==q", "true"}, {"a!=b", "false"}, {"a==o", "false"},
          {"i<r", "false"}, {"i<=r", "true"}, {"i<`2`", "true"}, {"s<`2`", "null"},
          {"t>`0`", "null"}, {"n<`0`", "null"}, {"a<b", "null"}, {"o>=q", "null"},
          {"'a'<'b'", "true"}, {"'b'<='a'", "false"}, {"'a'<'ab'", "true"},
          {"'z'<'\xC3\xA9'", "true"}, {"big==`9007199254740992`", "false"},
          {"big>`9007199254740992.0`", "true"}, {"`1e2`==`100`", "true"},
          {"i==`1`==`true`", "true"}, {"i < `2` < `3`", "null"}, {"t==`true`", "true"},
          {"`-0.0`==`0`", "true"}, {"i = r", "!'=='"}, {"i === r", "!'=='"}, {"i =! r", "!'=='"},
          {"i >== r", "!'=='"});
}

static void logic_gives_operands_back(void **state)
{
    (void)state;
    CHECK("{\"t\":true,\"f\":false,\"n\":5,\"z\":0,\"es\":\"\",\"el\":[],\"eo\":{},\"l\":[1],\"s\":"
          "\"x\"}",
          {"t||f", "true"}, {"f||t", "true"}, {"f||z", "0"}, {"missing||n", "5"},
          {"es||s", "\"x\""}, {"el||l", "[1]"}, {"eo||el", "[]"}, {"f||missing", "null"},
          {"n&&s", "\"x\""}, {"f&&s", "false"}, {"missing&&s", "null"}, {"el&&s", "[]"},
          {"z&&s", "\"x\""}, {"!t", "false"}, {"!f", "true"}, {"!missing", "true"}, {"!z", "false"},
          {"!el", "true"}, {"!!n", "true"}, {"!es && n", "5"}, {"t||f&&f", "true"},
          {"(t||f)&&f", "false"}, {"f||f||n", "5"}, {"t&&n&&s", "\"x\""}, {"!(t&&f)", "true"},
          {"!l[0]", "false"}, {"!t||n", "5"}, {"t && !f", "true"},
          {"n == `5` && 'yes' || 'no'", "\"yes\""}, {"n == `6` && 'yes' || 'no'", "\"no\""},
          {"t ||", "!expected an expression"}, {"|| t", "!expected an expression"},
          {"t && && f", "!expected an expression"}, {"t !f", "!offset 2"},
          {"!", "!expected an expression"}, {"t & f", "!offset 2"});
}

/* A selection ends the projection that it stands in, as in every implementation of the language. */
static void selections_build_lists_and_objects(void **state)
{
    (void)state;
    CHECK("{\"a\":1,\"b\":{\"c\":2,\"d\":3},\"l\":[{\"x\":1,\"y\":2},{\"x\":3}],\"n\":null}",
          {"[a,b.c]", "[1,2]"}, {"[a]", "[1]"}, {"b.[c,d,e]", "[2,3,null]"},
          {"{p:a,q:b.d}", "{\"p\":1,\"q\":3}"}, {"b.{\"with space\":c}", "{\"with space\":2}"},
          {"l[*].[x,y]", "[[1,2],[3,null]]"}, {"l[*].{k:x}", "[{\"k\":1},{\"k\":3}]"},
          {"l[].[x][]", "[1,3]"}, {"n.[a]", "null"}, {"n.{a:a}", "null"}, {"missing.{a:a}", "null"},
          {"a.[x]", "[null]"}, {"[a,[b.c,[b.d]]]", "[1,[2,[3]]]"},
          {"{o:{i:a}}", "{\"o\":{\"i\":1}}"}, {"[l[0].x, l[*].y]", "[1,[2]]"}, {"b.[*]", "[[2,3]]"},
          {"[*.c]", "[[2]]"}, {"{k:a,k:b.c}", "{\"k\":2}"}, {"[a || b, !a]", "[1,false]"},
          {"{a: a == `1`}", "{\"a\":true}"}, {"[a].b", "null"}, {"l[*].{k:x}.k", "null"},
          {"l[*].{k:x} | [*].k", "[1,3]"}, {"l[*].[x][0]", "[1]"},
          {"[a,]", "!expected an expression"}, {"[,a]", "!expected an expression"},
          {"[a", "!expected ']'"}, {"[a b]", "!expected ']'"}, {"{}", "!expected a name"},
          {"{a}", "!expected ':'"}, {"{a:}", "!expected an expression"},
          {"{a:a,}", "!expected a name"}, {"{a:a", "!expected '}'"}, {"{1:a}", "!expected a name"},
          {"b{c:c}", "!offset 1"}, {"{'a':a}", "!expected a name"}, {"a[b,c]", "!after '['"},
          {"b.[c", "!expected ']'"});
}

static void pipes_end_projections(void **state)
{
    (void)state;
    CHECK("{\"l\":[{\"v\":[1,2]},{\"v\":[3]}],\"a\":{\"b\":{\"c\":7}}}", {"l[*].v | [0]", "[1,2]"},
          {"l[*].v[0]", "[1,3]"}, {"l[*].v[0] | [1]", "3"}, {"a | b | c", "7"}, {"a|b.c", "7"},
          {"l[].v[] | [-1]", "3"}, {"l | [*].v | [] | [0]", "1"}, {"missing | @", "null"},
          {"a.b | [c, c]", "[7,7]"}, {"(l[*].v)[0]", "[1,2]"}, {"(l[*].v) | [0]", "[1,2]"},
          {"l[*].(v)", "!after '.'"}, {"a.*.c | [0]", "7"}, {"missing || l | [0].v[1]", "2"},
          {"a | ", "!expected an expression"}, {"| a", "!expected an expression"},
          {"a | | b", "!expected an expression"});
}

static void literals_are_json_and_raw_text(void **state)
{
    (void)state;
    CHECK("{\"a\":1}", {"`1`", "1"}, {"`-1.5e3`", "-1500"}, {"`\"x\"`", "\"x\""},
          {"`[1,{\"k\":null}]`", "[1,{\"k\":null}]"}, {"` true `", "true"}, {"`null`", "null"},
          {"`\"a\\`b\"`", "\"a`b\""}, {"`plain`", "\"plain\""}, {"`  two words`", "\"two words\""},
          {"`a\\`b`", "\"a`b\""}, {"`1\\``", "\"1`\""}, {"`\\\\`", "\"\\\\\""},
          {"`\"\\u00e9\"`", "\"\xC3\xA9\""}, {"`{\"a\":{\"b\":[1]}}`.a.b[0]", "1"},
          {"`[1,2]`[1]", "2"}, {"'raw'", "\"raw\""}, {"'it\\'s'", "\"it's\""},
          {"'back\\\\slash'", "\"back\\\\\\\\slash\""}, {"'\\n'", "\"\\\\n\""}, {"''", "\"\""},
          {"'two\nlines'", "\"two\\nlines\""}, {"'\"q\"'", "\"\\\"q\\\"\""}, {"'`'", "\"`\""},
          {"'a' == `\"a\"`", "true"}, {"'a'.b", "null"}, {"'a'.{k:a}", "{\"k\":null}"},
          {"``", "\"\""}, {"`", "!closing quote"}, {"'", "!closing quote"},
          {"'open\\'", "!closing quote"}, {"`\"a`", "!no JSON"}, {"a.`1`", "!after '.'"},
          {"a.'x'", "!after '.'"}, {"`1` `2`", "!offset 4"}, {"`\"\\ud800\"`", "!no JSON"});
}

static void mistakes_in_the_text_are_found_with_their_place(void **state)
{
    (void)state;
    CHECK("{}", {"", "!offset 0: found the end, expected an expression"}, {"   ", "!offset 3"},
          {".", "!offset 0"}, {"a.", "!offset 2"}, {"a..b", "!offset 2"}, {"a.b.", "!offset 4"},
          {":", "!offset 0"}, {",", "!offset 0"}, {"]", "!offset 0"}, {"[", "!offset 1"},
          {"}", "!offset 0"}, {"{", "!offset 1"}, {")", "!offset 0"}, {"(", "!offset 1"},
          {"()", "!offset 1"}, {"(a", "!offset 2: found the end, expected ')'"},
          {"a)", "!offset 1"}, {"a b", "!offset 2: found a name, expected an operator or the end"},
          {"a[", "!offset 2"}, {"a]", "!offset 1"}, {"a][", "!offset 1"},
          {"a#b", "!offset 1: unexpected '#'"}, {"a$", "!offset 1"}, {"a^b", "!offset 1"},
          {"a;", "!offset 1"}, {"-", "!offset 0: a digit"}, {"1", "!offset 0: found a number"},
          {"@@", "!offset 1"}, {"@ a", "!offset 2"}, {"&a", "!offset 0"}, {"[&a]", "!offset 1"},
          {"a\xFF", "!not valid UTF-8"});
}

/* A text of count times part between two ends; owned. */
static char *repeated(const char *before, const char *part, size_t count, const char *after)
{
    struct buf text = {0};

    buf_text_append(&text, before);
    for (size_t i = 0; i < count; i++)
        buf_text_append(&text, part);
    buf_text_append(&text, after);
    return buf_take(&text);
}

static void depth_length_and_work_have_limits(void **state)
{
    static const struct {
        const char *before, *part, *after;
        size_t count;
    } cases[] = {
        {"a", ".a", "", 1000},  {"", "(", "a", 1000},         {"", "[", "a", 1000},
        {"", "!", "a", 1000},   {"a", "[0]", "", 1000},       {"a", "|a", "", 1000},
        {"a", "[]", "", 1000},  {"a", "||a", "", 1000},       {"", "{a:", "a", 1000},
        {"a", "[?a", "", 1000}, {"", "not_null(", "a", 1000}, {"'", "x", "'", 20000},
        {"a", "[*]", "", 1000}, {"", "map(&", "a", 1000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text =
            repeated(cases[i].before, cases[i].part, cases[i].count, cases[i].after);
        scoped(jmespath_freep) struct jmespath *compiled = NULL;
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(jmespath_compile(text, &compiled, &err), -ERROR_LIMIT);
        assert_null(compiled);
    }
}

static void doubling_in_an_expression_ends_at_the_step_limit(void **state)
{
    static const char *const ends[] = {" | to_string(@)", " | @ == [@]", "[]",
                                       " | contains(@, 'x')"};
    scoped(json_freep) json_t *data = parse("[1,2]");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        /* "[]" doubles the array itself; without it only its printed form. */
        const char *part = i == 2 ? " | [@,@][]" : " | [@,@]";
        scoped(mem_freep) char *text = repeated("@", part, 60, ends[i]);
        scoped(jmespath_freep) struct jmespath *compiled = NULL;
        scoped(error_freep) struct error *err = NULL;
        json_t *result = NULL;
        int r;

        assert_int_equal(jmespath_compile(text, &compiled, &err), 0);
        r = jmespath_evaluate(compiled, data, &result, &err);
        if (i == 1 || i == 3) {
            /* Shared parts are equal at once, and a difference shows at the top. */
            assert_int_equal(r, 0);
            json_decref(result);
            continue;
        }
        assert_int_equal(r, -ERROR_LIMIT);
        assert_non_null(strstr(error_message(err), "steps"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_and_chains_give_members_or_null),
        cmocka_unit_test(names_are_plain_or_quoted),
        cmocka_unit_test(indices_count_from_both_ends),
        cmocka_unit_test(slices_take_every_step),
        cmocka_unit_test(wildcards_project_arrays_and_objects),
        cmocka_unit_test(flattening_merges_one_level_and_projects),
        cmocka_unit_test(filters_keep_what_holds),
        cmocka_unit_test(comparisons_follow_types),
        cmocka_unit_test(logic_gives_operands_back),
        cmocka_unit_test(selections_build_lists_and_objects),
        cmocka_unit_test(pipes_end_projections),
        cmocka_unit_test(literals_are_json_and_raw_text),
        cmocka_unit_test(mistakes_in_the_text_are_found_with_their_place),
        cmocka_unit_test(depth_length_and_work_have_limits),
        cmocka_unit_test(doubling_in_an_expression_ends_at_the_step_limit),
    };

    return cmocka_run_group_tests_name("grade_jmespath", tests, NULL, NULL);
}
