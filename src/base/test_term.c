/* term_quote() and UTF-8: nothing from outside moves the cursor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/term.h"

static void controls_are_shown_not_obeyed(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *shown;
    } cases[] = {
        {"plain", "plain"},
        {"\x1b[31mred", "\\x1b[31mred"},
        {"a\tb\nc\r", "a\\tb\\nc\\x0d"},
        {"\x07\x08\x7f", "\\x07\\x08\\x7f"},
        {"\xc2\x85\xc2\x9b\x31m", "\\u{0085}\\u{009b}1m"},
        {"\xc2\xa0", "\xc2\xa0"},
        /* Bidirectional embeddings, overrides, isolates and marks. */
        {"\xe2\x80\xaa\xe2\x80\xae", "\\u{202a}\\u{202e}"},
        {"\xe2\x81\xa6\xe2\x81\xa9", "\\u{2066}\\u{2069}"},
        {"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u{200e}\\u{200f}\\u{061c}"},
        /* Zero width. */
        {"a\xe2\x80\x8b"
         "b\xe2\x80\x8c\xe2\x80\x8d\xef\xbb\xbf\xe2\x81\xa0",
         "a\\u{200b}b\\u{200c}\\u{200d}\\u{feff}\\u{2060}"},
        {"\xe2\x80\xa8\xe2\x80\xa9", "\\u{2028}\\u{2029}"},
        {"\xf3\xa0\x81\x81", "\\u{e0041}"},
        /* Invalid: lone continuation, overlong, surrogate, too large, cut short. */
        {"\x80\xff", "\\x80\\xff"},
        {"\xc0\x9b", "\\xc0\\x9b"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xe2\x82", "\\xe2\\x82"},
        /* Text of any script passes. */
        {"\xe2\x82\xac \xe6\x97\xa5 \xd7\xa9 \xf0\x9f\x99\x82 e\xcc\x81",
         "\xe2\x82\xac \xe6\x97\xa5 \xd7\xa9 \xf0\x9f\x99\x82 e\xcc\x81"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *shown = term_quoted(cases[i].bytes);

        assert_string_equal(shown, cases[i].shown);
    }
}

static void every_c0_and_c1_control_is_shown(void **state)
{
    (void)state;
    for (unsigned rune = 0; rune < 0xa0; rune = rune == 0x1f ? 0x7f : rune + 1) {
        scoped(buf_done) struct buf shown = {0};
        char bytes[2] = {(char)(rune < 0x80 ? rune : 0xc2), (char)rune};

        term_quote(&shown, bytes, rune < 0x80 ? 1 : 2, TERM_ONE_LINE);
        assert_int_equal(shown.data[0], '\\');
    }
}

static void every_direction_mark_is_shown(void **state)
{
    (void)state;
    static const uint32_t runes[] = {0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d,
                                     0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x061c};

    for (size_t i = 0; i < ARRAY_SIZE(runes); i++) {
        char bytes[4] = {(char)(0xe0 | runes[i] >> 12), (char)(0x80 | (runes[i] >> 6 & 0x3f)),
                         (char)(0x80 | (runes[i] & 0x3f)), '\0'};

        if (runes[i] < 0x800) {
            bytes[0] = (char)(0xc0 | runes[i] >> 6);
            bytes[1] = (char)(0x80 | (runes[i] & 0x3f));
            bytes[2] = '\0';
        }
        scoped(mem_freep) char *shown = term_quoted(bytes);

        assert_int_equal(shown[0], '\\');
    }
}

static void lines_pass_when_asked_for(void **state)
{
    (void)state;
    scoped(buf_done) struct buf shown = {0};

    term_quote(&shown, "a\n\tb\r\x1b", 6, TERM_LINES);
    assert_string_equal(buf_text(&shown), "a\n\tb\\x0d\\x1b");
}

static void a_nul_is_shown(void **state)
{
    (void)state;
    scoped(buf_done) struct buf shown = {0};

    term_quote(&shown, "a\0b", 3, TERM_ONE_LINE);
    assert_string_equal(buf_text(&shown), "a\\x00b");
}

static void utf8_is_checked_strictly(void **state)
{
    (void)state;
    static const char *const invalid[] = {
        "\x80",         "\xc0\x80",         "\xc1\xbf",         "\xc2",
        "\xe0\x9f\xbf", "\xed\xbf\xbf",     "\xef\xbf",         "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x99", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "a\xff",
    };
    static const struct {
        const char *text;
        uint32_t rune;
    } valid[] = {
        {"a", 'a'},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
    };

    for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
        assert_false(utf8_valid(invalid[i], strlen(invalid[i])));
    for (size_t i = 0; i < ARRAY_SIZE(valid); i++) {
        uint32_t rune = 0;

        assert_int_equal(utf8_next(valid[i].text, strlen(valid[i].text), &rune),
                         strlen(valid[i].text));
        assert_int_equal(rune, valid[i].rune);
        assert_true(utf8_valid(valid[i].text, strlen(valid[i].text)));
    }
    assert_true(utf8_valid("a\0b", 3));
    assert_true(utf8_valid("", 0));
}

static void columns_are_those_of_a_terminal(void **state)
{
    (void)state;
    assert_int_equal(utf8_columns(""), 0);
    assert_int_equal(utf8_columns("abc"), 3);
    assert_int_equal(utf8_columns("\xe6\x97\xa5\xe6\x9c\xac"), 4);
    assert_int_equal(utf8_columns("e\xcc\x81"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_are_shown_not_obeyed),
        cmocka_unit_test(every_c0_and_c1_control_is_shown),
        cmocka_unit_test(every_direction_mark_is_shown),
        cmocka_unit_test(lines_pass_when_asked_for),
        cmocka_unit_test(a_nul_is_shown),
        cmocka_unit_test(utf8_is_checked_strictly),
        cmocka_unit_test(columns_are_those_of_a_terminal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
