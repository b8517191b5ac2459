/* JSON values compared and written, and command lines without their quotes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"
#include "grade/shell_text.h"
#include "grade/value.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(value_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

static void values_are_equal_by_what_they_are(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"1", "1.0", true},
        {"0", "-0.0", true},
        {"1", "true", false},
        {"0", "null", false},
        {"\"1\"", "1", false},
        {"9007199254740993", "9007199254740992.0", false},
        {"9007199254740992", "9007199254740992.0", true},
        {"9223372036854775807", "9223372036854775808.0", false},
        {"-9223372036854775808", "-9223372036854775808.0", true},
        {"1e300", "1e300", true},
        {"1", "1.5", false},
        {"[1,[2]]", "[1.0,[2.0]]", true},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1.0}", true},
        {"{\"a\":1}", "{\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{}", "[]", false},
        {"\"a\\u0000b\"", "\"a\\u0000c\"", false},
        {"null", "null", true},
        {"\"\\u00e9\"", "\"\xC3\xA9\"", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *a = parse(cases[i].a);
        scoped(json_freep) json_t *b = parse(cases[i].b);
        struct budget budget = {.left = 1000};
        scoped(buf_done) struct buf text_a = {0};
        scoped(buf_done) struct buf text_b = {0};

        if (value_equal(a, b, &budget) != cases[i].equal)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
        assert_int_equal(value_equal(b, a, &budget), cases[i].equal);
        value_write(&text_a, a, VALUE_SORTED, &budget);
        value_write(&text_b, b, VALUE_SORTED, &budget);
        assert_int_equal(str_equal(buf_text(&text_a), buf_text(&text_b)), cases[i].equal);
    }
}

static void documents_are_read_as_strictly_as_they_should(void **state)
{
    static const struct {
        const char *text, *result; /* "!" and a part of the error */
    } cases[] = {
        {"\xEF\xBB\xBF{\"a\":1}", "{\"a\":1}"},
        {" [1] \n", "[1]"},
        {"5", "5"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"\"a\\u0000b\"", "\"a\\u0000b\""},
        {"0.1", "0.1"},
        {"1E400", "!"},
        {"{\"a\":1,\"a\":2}", "!line 1, column"},
        {"", "!line 1"},
        {"{'a':1}", "!line 1, column 2"},
        {"[1,]", "!line 1, column 4"},
        {"{\n\"a\": nope}", "!line 2"},
        {"[1] 2", "!line 1, column 5"},
        {"\"\xFF\"", "!"},
        {"NaN", "!"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(error_freep) struct error *err = NULL;
        scoped(json_freep) json_t *value = NULL;
        scoped(buf_done) struct buf text = {0};
        struct budget budget = {.left = 1000};
        int r = value_parse(cases[i].text, strlen(cases[i].text), &value, &err);

        if (r < 0)
            buf_format(&text, "!%s", error_message(err));
        else
            value_write(&text, value, VALUE_COMPACT, &budget);
        if (!(r < 0 ? str_starts(buf_text(&text), cases[i].result)
                    : str_equal(buf_text(&text), cases[i].result)))
            fail_msg("%s: %s", cases[i].text, buf_text(&text));
    }
}

static void values_are_written_in_three_styles(void **state)
{
    static const struct {
        const char *json;
        enum value_style style;
        const char *text;
    } cases[] = {
        {"{\"b\":[1,2.0],\"a\":\"x\\\"y\\\\z\"}", VALUE_COMPACT,
         "{\"b\":[1,2.0],\"a\":\"x\\\"y\\\\z\"}"},
        {"{\"b\":[1,2.0],\"a\":null}", VALUE_SPACED, "{\"b\": [1, 2.0], \"a\": null}"},
        {"{\"b\":[1,2.0],\"a\":true}", VALUE_SORTED, "{\"a\":true,\"b\":[1,2]}"},
        {"[\"\\b\\f\\n\\r\\t\\u0001\\u007f/\"]", VALUE_COMPACT,
         "[\"\\b\\f\\n\\r\\t\\u0001\\u007f/\"]"},
        {"[1e21,1.5e-7,-0.0,123456789.125]", VALUE_COMPACT, "[1e+21,1.5e-07,-0.0,123456789.125]"},
        {"[]", VALUE_SPACED, "[]"},
        {"{}", VALUE_SORTED, "{}"},
        {"false", VALUE_COMPACT, "false"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *value = parse(cases[i].json);
        scoped(buf_done) struct buf text = {0};
        struct budget budget = {.left = 1000};

        value_write(&text, value, cases[i].style, &budget);
        assert_string_equal(buf_text(&text), cases[i].text);
    }
}

static void a_value_that_is_shown_is_cut_with_a_mark(void **state)
{
    scoped(json_freep) json_t *value = parse("[\"\xC3\xA9\xC3\xA9\xC3\xA9\",1]");
    scoped(buf_done) struct buf whole = {0};
    scoped(buf_done) struct buf cut = {0};

    (void)state;
    value_show(&whole, value, 100);
    assert_string_equal(buf_text(&whole), "[\"\xC3\xA9\xC3\xA9\xC3\xA9\",1]");
    value_show(&cut, value, 5); /* in the middle of a character */
    assert_string_equal(buf_text(&cut), "[\"\xC3\xA9\xEF\xBF\xBD [cut]");
}

static void work_on_values_ends_with_the_budget(void **state)
{
    scoped(json_freep) json_t *a = parse("[[1,2],[3,4]]");
    scoped(json_freep) json_t *b = parse("[[1,2],[3,4]]");
    scoped(buf_done) struct buf text = {0};
    struct budget small = {.left = 3}, none = {0};

    (void)state;
    assert_false(value_equal(a, b, &small));
    assert_true(small.exhausted);
    value_write(&text, a, VALUE_COMPACT, &none);
    assert_true(none.exhausted);
    assert_int_equal(text.size_bytes, 0);
}

static void invalid_bytes_become_replacement_characters(void **state)
{
    scoped(buf_done) struct buf text = {0};

    (void)state;
    text_append_utf8(&text, "a\xFF\xC3\xA9\xE2\x82z\xED\xA0\x80", 10);
    assert_true(utf8_valid(text.data, text.size_bytes));
    assert_true(str_starts(buf_text(&text), "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD"));
}

static void command_lines_lose_their_quotes_and_their_wrapper(void **state)
{
    static const struct {
        const char *text, *normal; /* NULL: none */
    } cases[] = {
        {"ls -l", "ls -l"},
        {"  ls\t-l \n", "ls -l"},
        {"echo 'a b' \"c d\" e\\ f", "echo a b c d e f"},
        {"echo \"a\\\"b\\\\c\\d$x\"", "echo a\"b\\c\\d$x"},
        {"echo 'a\\b'", "echo a\\b"},
        {"echo a''b\"\"c", "echo abc"},
        {"echo '' x", "echo  x"},
        {"uip x \\\n  --body y", "uip x --body y"},
        {"uip \"a\\\nb\"", "uip ab"},
        {"a && b | c > d", "a && b | c > d"},
        {"bash -lc 'git commit -m \"a b\"'", "git commit -m a b"},
        {"/bin/sh -c \"ls 'x y'\"", "ls x y"},
        {"bash -c ls", "ls"},
        {"bash -lc git status", "git status"},
        {"bash -o pipefail -c 'a | b'", "a | b"},
        {"zsh -ilc 'x'", "x"},
        {"bash script.sh -c x", "bash script.sh -c x"},
        {"bash -c", "bash -c"},
        {"bash -c ''", NULL},
        {"bash -c 'echo \"open'", NULL},
        {"notbash -c 'a b'", "notbash -c a b"},
        {"bash --norc -c 'a'", "a"},
        {"bash -c 'bash -c \"ls\"'", "bash -c ls"},
        {"echo 'open", NULL},
        {"echo \"open", NULL},
        {"echo open\\", NULL},
        {"", NULL},
        {"   ", NULL},
        {"\\\n", NULL},
        {"echo \xFF '\xFF'", "echo \xFF \xFF"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *normal = shell_normal(cases[i].text);

        if (!str_equal(normal, cases[i].normal))
            fail_msg("%s: '%s'", cases[i].text, normal == NULL ? "(none)" : normal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_equal_by_what_they_are),
        cmocka_unit_test(documents_are_read_as_strictly_as_they_should),
        cmocka_unit_test(values_are_written_in_three_styles),
        cmocka_unit_test(a_value_that_is_shown_is_cut_with_a_mark),
        cmocka_unit_test(work_on_values_ends_with_the_budget),
        cmocka_unit_test(invalid_bytes_become_replacement_characters),
        cmocka_unit_test(command_lines_lose_their_quotes_and_their_wrapper),
    };

    return cmocka_run_group_tests_name("grade_text", tests, NULL, NULL);
}
