/* JSON: strict reading, writing that reads back. */
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

/* The message of the error for text, "" when it is accepted. Owned. */
static char *complaint(const char *text)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *value = NULL;
    int r = json_parse("f", text, strlen(text), &value, &err);

    assert_int_equal(r < 0, err != NULL);
    assert_int_equal(r < 0, value == NULL);
    if (r < 0)
        assert_int_equal(r, -ERROR_TASK);
    return str_dup(r < 0 ? error_message(err) : "");
}

static void says_where_a_mistake_is(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"{\"a\": 1, \"a\": 2}", "f:1:12: duplicate object key"},
        {"{\n\"a\": nul\n}", "f:2:8: "},
        {"", "f:1:0: "},
        {"[1] 2", "f:1:5: "},
        {"[1,]", "f:1:4: "},
        {"{\"a\": 'x'}", "f:1:7: "},
        {"[\"\xff\"]", "f:1:"},
        {"[\"\\u0000\"]", "f:1:"},
        {"[NaN]", "f:1:"},
        {"[1e999]", "f:1:"},
        {"[99999999999999999999]", "f:1:"},
        {"// x\n1", "f:1:"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *message = complaint(cases[i].text);

        if (!str_starts(message, cases[i].place))
            fail_msg("%s: '%s'", cases[i].text, message);
    }
}

/* count times open, then count times close. Owned. */
static char *nested(size_t count, const char *open, const char *close)
{
    scoped(buf_done) struct buf text = {0};

    for (size_t i = 0; i < count; i++)
        buf_text_append(&text, open);
    buf_char(&text, '1');
    for (size_t i = 0; i < count; i++)
        buf_text_append(&text, close);
    return buf_take(&text);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    scoped(mem_freep) char *deepest = nested(JSON_DEPTH_MAX, "[", "]");
    scoped(mem_freep) char *deeper = nested(JSON_DEPTH_MAX + 1, "[", "]");
    scoped(mem_freep) char *objects = nested(JSON_DEPTH_MAX + 1, "{\"a\":\n", "}");
    scoped(mem_freep) char *abyss = nested(1000000, "[", "]");
    scoped(mem_freep) char *quoted = str_format("[\"%s \\\" %s\"]", deeper, deeper);
    scoped(mem_freep) char *of_deepest = complaint(deepest);
    scoped(mem_freep) char *of_deeper = complaint(deeper);
    scoped(mem_freep) char *of_objects = complaint(objects);
    scoped(mem_freep) char *of_abyss = complaint(abyss);
    scoped(mem_freep) char *of_quoted = complaint(quoted);

    assert_string_equal(of_deepest, "");
    assert_string_equal(of_deeper, "f:1:65: nested deeper than 64 levels");
    assert_string_equal(of_objects, "f:65:1: nested deeper than 64 levels");
    assert_string_equal(of_abyss, "f:1:65: nested deeper than 64 levels");
    assert_string_equal(of_quoted, "");
}

static json_t *parsed(const char *text)
{
    json_t *value = NULL;

    assert_int_equal(json_parse("t", text, strlen(text), &value, NULL), 0);
    return value;
}

static void the_three_forms_of_a_value(void **state)
{
    (void)state;
    scoped(json_freep) json_t *value =
        parsed("{\"b\": [1, 2.5, true, null, {}], \"a\": {\"z\": \"\\u00e9\\n\", \"y\": []}}");
    scoped(buf_done) struct buf canonical = {0};
    scoped(buf_done) struct buf pretty = {0};
    scoped(buf_done) struct buf line = {0};

    json_write_canonical(&canonical, value);
    json_write_pretty(&pretty, value);
    json_write_line(&line, value);
    assert_string_equal(buf_text(&canonical),
                        "{\"a\":{\"y\":[],\"z\":\"\xc3\xa9\\n\"},\"b\":[1,2.5,true,null,{}]}");
    assert_string_equal(
        buf_text(&line),
        "{\"b\": [1, 2.5, true, null, {}], \"a\": {\"z\": \"\xc3\xa9\\n\", \"y\": []}}");
    assert_string_equal(buf_text(&pretty), "{\n  \"b\": [\n    1,\n    2.5,\n    true,\n    null,\n"
                                           "    {}\n  ],\n  \"a\": {\n    \"z\": \"\xc3\xa9\\n\",\n"
                                           "    \"y\": []\n  }\n}\n");
}

static void reals_are_short_and_exact(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0.1, "0.1"},
        {1.0, "1.0"},
        {-0.0, "-0.0"},
        {1e300, "1e+300"},
        {1.0 / 3, "0.3333333333333333"},
        {0.30000000000000004, "0.30000000000000004"},
        {5e-324, "4.94065645841247e-324"},
        {123456789.125, "123456789.125"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf text = {0};
        scoped(json_freep) json_t *value = json_real(cases[i].number);

        json_write_line(&text, value);
        assert_string_equal(buf_text(&text), cases[i].text);
        scoped(json_freep) json_t *back = parsed(buf_text(&text));

        assert_true(json_is_real(back));
        assert_true(json_real_value(back) == cases[i].number);
    }
}

static void any_bytes_become_a_valid_text(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        const char *text;
    } cases[] = {
        {"ok", 2, "ok"},
        {"a\0b", 3,
         "a\xef\xbf\xbd"
         "b"},
        {"\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xe2\x82\xac", 3, "\xe2\x82\xac"},
        {"", 0, ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *value = json_text(cases[i].bytes, cases[i].size);

        assert_string_equal(json_string_value(value), cases[i].text);
    }
    scoped(json_freep) json_t *null = json_text_or_null(NULL);

    assert_true(json_is_null(null));
}

static void controls_are_escaped(void **state)
{
    (void)state;
    scoped(json_freep) json_t *value = json_text("\x01\"\\\x7f\r\t", 6);
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, value);
    assert_string_equal(buf_text(&text), "\"\\u0001\\\"\\\\\\u007f\\r\\t\"");
}

static void what_reorders_or_hides_text_is_escaped(void **state)
{
    (void)state;
    static const char raw[] = "a\u202eb\u200b\xc2\x85\U000e0041\u00e9\U0001f600";
    scoped(json_freep) json_t *value = json_text(raw, sizeof(raw) - 1);
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, value);
    assert_string_equal(buf_text(&text),
                        "\"a\\u202eb\\u200b\\u0085\\udb40\\udc41\u00e9\U0001f600\"");
    scoped(json_freep) json_t *again = json_loads(buf_text(&text), JSON_DECODE_ANY, NULL);

    assert_true(json_equal(again, value));
}

static void getters_check_the_type(void **state)
{
    (void)state;
    scoped(json_freep) json_t *object = json_object();

    json_put_text(object, "text", "x");
    json_put_int(object, "int", -5);
    json_put_real(object, "real", 0.5);
    json_put_bool(object, "bool", true);
    json_put(object, "null", json_null());
    json_put(object, "object", json_object());
    json_put(object, "array", json_array());
    json_push(json_get_array(object, "array"), json_integer(1));
    assert_string_equal(json_get_text(object, "text"), "x");
    assert_null(json_get_text(object, "int"));
    assert_null(json_get_text(object, "absent"));
    assert_null(json_get_text(NULL, "text"));
    assert_int_equal(json_get_int(object, "int", 9), -5);
    assert_int_equal(json_get_int(object, "real", 9), 9);
    assert_true(json_get_real(object, "real", 9) == 0.5);
    assert_true(json_get_real(object, "int", 9) == -5);
    assert_true(json_get_real(object, "null", 9) == 9);
    assert_true(json_get_bool(object, "bool", false));
    assert_true(json_get_bool(object, "text", true));
    assert_non_null(json_get_object(object, "object"));
    assert_null(json_get_object(object, "array"));
    assert_int_equal(json_array_size(json_get_array(object, "array")), 1);
    assert_null(json_get_array(object, "object"));
}

static void a_file_is_loaded_up_to_its_limit(void **state)
{
    (void)state;
    scoped(json_freep) json_t *value = NULL;
    scoped(error_freep) struct error *err = NULL;

    /* A regular file that every Linux has, and that is no JSON. */
    assert_int_equal(json_load(AT_FDCWD, "/proc/self/status", 4, &value, &err), -ERROR_LIMIT);
    error_freep(&err);
    assert_int_equal(json_load(AT_FDCWD, "/proc/self/status", 1 << 20, &value, &err), -ERROR_TASK);
    assert_true(str_starts(error_message(err), "/proc/self/status:1:"));
    error_freep(&err);
    assert_int_equal(json_load(AT_FDCWD, "/nowhere/x", 4, &value, &err), -ERROR_SYSTEM);
    assert_null(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_where_a_mistake_is),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(the_three_forms_of_a_value),
        cmocka_unit_test(reals_are_short_and_exact),
        cmocka_unit_test(any_bytes_become_a_valid_text),
        cmocka_unit_test(controls_are_escaped),
        cmocka_unit_test(what_reorders_or_hides_text_is_escaped),
        cmocka_unit_test(getters_check_the_type),
        cmocka_unit_test(a_file_is_loaded_up_to_its_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
