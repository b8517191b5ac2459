/* What base does with text: mem, buf, str, clock, log. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

static void a_buf_is_a_string_after_every_call(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {0};

    assert_string_equal(buf_text(&buf), "");
    buf_append(&buf, "ab", 2);
    assert_string_equal(buf.data, "ab");
    buf_char(&buf, 'c');
    buf_format(&buf, "%d-%s", 7, "x");
    assert_string_equal(buf.data, "abc7-x");
    assert_int_equal(buf.size_bytes, 6);
    buf_append(&buf, "\0y", 2);
    assert_int_equal(buf.size_bytes, 8);
    assert_memory_equal(buf.data, "abc7-x\0y", 9);
    buf_clear(&buf);
    assert_string_equal(buf.data, "");
}

static void a_buf_keeps_what_fits_below_its_cap(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {.max_bytes = 5};

    buf_text_append(&buf, "abc");
    assert_false(buf.overflowed);
    buf_text_append(&buf, "defg");
    assert_true(buf.overflowed);
    assert_string_equal(buf.data, "abcde");
    /* Nothing smaller slips in behind the cut. */
    buf_clear(&buf);
    buf_text_append(&buf, "123456");
    buf_char(&buf, 'x');
    assert_string_equal(buf.data, "12345");
}

static void a_buf_grows_to_any_size(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < 100000; i++)
        buf_char(&buf, (char)('a' + i % 26));
    assert_int_equal(buf.size_bytes, 100000);
    assert_int_equal(buf.data[99999], 'a' + 99999 % 26);
    assert_int_equal(buf.data[100000], '\0');
}

static void a_taken_buf_is_empty_and_keeps_its_cap(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {.max_bytes = 3};
    scoped(mem_freep) char *nothing = buf_take(&buf);

    assert_string_equal(nothing, "");
    buf_text_append(&buf, "abcd");
    scoped(mem_freep) char *text = buf_take(&buf);

    assert_string_equal(text, "abc");
    assert_int_equal(buf.size_bytes, 0);
    assert_int_equal(buf.max_bytes, 3);
    assert_false(buf.overflowed);
}

static void memory_of_no_size_is_still_memory(void **state)
{
    (void)state;
    scoped(mem_freep) char *none = mem_new(0, 8);
    scoped(mem_freep) char *copy = mem_dup("", 0);

    assert_non_null(none);
    assert_non_null(copy);
    scoped(mem_freep) int *numbers = mem_new(3, sizeof(int));

    assert_int_equal(numbers[0] | numbers[1] | numbers[2], 0);
    numbers = mem_resize(numbers, 1000, sizeof(int));
    numbers[999] = 1;
    mem_freep(&numbers);
    assert_null(numbers);
}

static void strings_are_compared_and_copied(void **state)
{
    (void)state;
    scoped(mem_freep) char *part = str_ndup("hello", 3);
    scoped(mem_freep) char *shorter = str_ndup("hi", 30);
    scoped(mem_freep) char *formatted = str_format("%s/%02d", "a", 5);

    assert_string_equal(part, "hel");
    assert_string_equal(shorter, "hi");
    assert_string_equal(formatted, "a/05");
    assert_true(str_equal(NULL, NULL));
    assert_false(str_equal(NULL, ""));
    assert_true(str_equal("a", "a"));
    assert_true(str_starts("abc", "ab"));
    assert_true(str_starts("abc", ""));
    assert_false(str_starts("a", "ab"));
    assert_true(str_ends("abc", "bc"));
    assert_false(str_ends("c", "bc"));
}

static void only_plain_digits_are_a_number(void **state)
{
    (void)state;
    static const char *const refused[] = {"",    " 1",  "1 ", "+1", "-1",
                                          "0x1", "1e3", "1.", "١",  "18446744073709551616"};
    uint64_t number = 42;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        assert_false(str_to_u64(refused[i], &number));
    assert_int_equal(number, 42);
    assert_true(str_to_u64("18446744073709551615", &number));
    assert_true(number == UINT64_MAX);
    assert_true(str_to_u64("007", &number));
    assert_int_equal(number, 7);
}

static void signed_numbers_reach_both_ends(void **state)
{
    (void)state;
    int64_t number = 42;

    assert_false(str_to_i64("9223372036854775808", &number));
    assert_false(str_to_i64("-9223372036854775809", &number));
    assert_false(str_to_i64("--1", &number));
    assert_false(str_to_i64("-", &number));
    assert_int_equal(number, 42);
    assert_true(str_to_i64("-9223372036854775808", &number));
    assert_true(number == INT64_MIN);
    assert_true(str_to_i64("9223372036854775807", &number));
    assert_true(number == INT64_MAX);
    assert_true(str_to_i64("-0", &number));
    assert_int_equal(number, 0);
}

static void reals_are_finite_decimals(void **state)
{
    (void)state;
    static const char *const refused[] = {"",   ".5", "1.",  "inf", "nan",   "0x1p3", " 1",
                                          "+1", "1e", "1e+", "1,5", "1e999", "-",     "1.5x"};
    static const struct {
        const char *text;
        double value;
    } accepted[] = {{"1", 1}, {"-0.5", -0.5}, {"1e3", 1000}, {"2.5E-1", 0.25}, {"1e-999", 0}};
    double number = 42;

    for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
        assert_false(str_to_double(refused[i], &number));
    assert_true(number == 42);
    for (size_t i = 0; i < ARRAY_SIZE(accepted); i++) {
        assert_true(str_to_double(accepted[i].text, &number));
        assert_true(number == accepted[i].value);
    }
}

static void reals_have_a_point_in_every_locale(void **state)
{
    (void)state;
    /* Which of them a machine has is not ours to say; C.UTF-8 alone makes this test trivial. */
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
    double number = 0;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (setlocale(LC_ALL, names[i]) != NULL)
            break;
    }
    assert_true(str_to_double("1.5", &number));
    assert_true(number == 1.5);
    assert_non_null(setlocale(LC_ALL, "C"));
}

static void the_nearest_name_is_near(void **state)
{
    (void)state;
    static const char *const names[] = {"driver", "drivers", "network", "timeout", "env", "id"};
    static const struct {
        const char *text, *nearest;
    } cases[] = {
        {"drivr", "driver"},
        {"dirver", "driver"},
        {"drivers", "drivers"},
        {"netwrok", "network"},
        {"timeout_ms", "timeout"},
        {"evn", "env"},
        {"xyz", NULL},
        {"x", NULL},
        {"", NULL},
        {"di", "id"},
        {"completely_different", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *nearest = str_nearest(cases[i].text, names, ARRAY_SIZE(names));

        if (!str_equal(nearest, cases[i].nearest))
            fail_msg("'%s': '%s'", cases[i].text, nearest == NULL ? "(none)" : nearest);
    }
    char long_text[1000];

    memset(long_text, 'a', sizeof(long_text) - 1);
    long_text[sizeof(long_text) - 1] = '\0';
    assert_null(str_nearest(long_text, names, ARRAY_SIZE(names)));
}

static void a_list_is_an_argv_and_sorts_by_bytes(void **state)
{
    (void)state;
    scoped(str_list_done) struct str_list list = {0};
    scoped(str_list_done) struct str_list copy = {0};

    for (int i = 99; i >= 0; i--)
        str_list_add_take(&list, str_format("%02d", i));
    assert_int_equal(list.count, 100);
    assert_null(list.items[100]);
    str_list_sort(&list);
    assert_string_equal(list.items[0], "00");
    assert_string_equal(list.items[99], "99");
    assert_true(str_list_has(&list, "42"));
    assert_false(str_list_has(&list, "4"));
    str_list_copy(&copy, &list);
    assert_int_equal(copy.count, 100);
    assert_ptr_not_equal(copy.items[7], list.items[7]);
    str_list_add(&copy, "\xc3\xa9");
    str_list_add(&copy, "Z");
    str_list_sort(&copy);
    assert_string_equal(copy.items[100], "Z");
    assert_string_equal(copy.items[101], "\xc3\xa9");
}

static void dates_are_written_in_utc(void **state)
{
    (void)state;
    scoped(mem_freep) char *epoch = clock_format_utc(0);
    scoped(mem_freep) char *later = clock_format_utc(UINT64_C(1796055647123));

    assert_string_equal(epoch, "1970-01-01T00:00:00.000Z");
    assert_string_equal(later, "2026-11-30T16:20:47.123Z");
}

static void the_monotonic_clock_does_not_go_back(void **state)
{
    (void)state;
    uint64_t before = clock_ns();

    assert_true(clock_ns() >= before);
    /* Past 2020, before 2100: the unit is right. */
    assert_in_range(clock_unix_ms(), UINT64_C(1577836800000), UINT64_C(4102444800000));
    assert_true(ns_to_ms(2500000) == 2.5);
}

/* What a log function writes to stderr, with stderr turned into a pipe meanwhile. */
static void logged(void (*say)(void), char text[static 256])
{
    int ends[2], saved = dup(STDERR_FILENO);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    say();
    assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved);
    ssize_t n = read(ends[0], text, 255);

    assert_true(n >= 0);
    text[n] = '\0';
    (void)close(ends[0]);
}

static void say_all(void)
{
    log_warn("w %d", 1);
    log_info("i");
    log_debug("d");
}

static void the_level_says_what_is_logged(void **state)
{
    (void)state;
    static const struct {
        enum log_level level;
        const char *text;
    } cases[] = {
        {LOG_QUIET, ""},
        {LOG_WARN, "closedbook: warning: w 1\n"},
        {LOG_INFO, "closedbook: warning: w 1\nclosedbook: i\n"},
        {LOG_DEBUG, "closedbook: warning: w 1\nclosedbook: i\nclosedbook: debug: d\n"},
    };
    enum log_level before = log_get_level();
    char text[256];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        log_set_level(cases[i].level);
        logged(say_all, text);
        assert_string_equal(text, cases[i].text);
    }
    log_set_level(before);
}

static void encodes_bytes_as_base64(void **state)
{
    (void)state;
    /* RFC 4648, section 10; and a byte above 127. */
    static const char *const pairs[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"},
                                           {"\xff\xfe", "//4="}};

    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
        scoped(buf_done) struct buf buf = {0};

        buf_base64(&buf, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(buf_text(&buf), pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encodes_bytes_as_base64),
        cmocka_unit_test(a_buf_is_a_string_after_every_call),
        cmocka_unit_test(a_buf_keeps_what_fits_below_its_cap),
        cmocka_unit_test(a_buf_grows_to_any_size),
        cmocka_unit_test(a_taken_buf_is_empty_and_keeps_its_cap),
        cmocka_unit_test(memory_of_no_size_is_still_memory),
        cmocka_unit_test(strings_are_compared_and_copied),
        cmocka_unit_test(only_plain_digits_are_a_number),
        cmocka_unit_test(signed_numbers_reach_both_ends),
        cmocka_unit_test(reals_are_finite_decimals),
        cmocka_unit_test(reals_have_a_point_in_every_locale),
        cmocka_unit_test(the_nearest_name_is_near),
        cmocka_unit_test(a_list_is_an_argv_and_sorts_by_bytes),
        cmocka_unit_test(dates_are_written_in_utc),
        cmocka_unit_test(the_monotonic_clock_does_not_go_back),
        cmocka_unit_test(the_level_says_what_is_logged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
