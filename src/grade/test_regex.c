/* Patterns as Python's re reads them, and the limits of a search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/regex.h"

static const char *search(const char *pattern, unsigned flags, const char *subject, size_t size)
{
    scoped(regex_freep) struct regex *regex = NULL;
    scoped(error_freep) struct error *err = NULL;

    if (regex_compile(pattern, flags, &regex, &err) < 0)
        fail_msg("/%s/: %s", pattern, error_message(err));
    switch (regex_search(regex, subject, size)) {
    case REGEX_MATCH:
        return "match";
    case REGEX_NO_MATCH:
        return "none";
    case REGEX_LIMIT:
        return "limit";
    }
    return "?";
}

static void patterns_mean_what_python_means(void **state)
{
    static const struct {
        const char *pattern;
        unsigned flags;
        const char *subject, *outcome;
    } cases[] = {
        {"b", 0, "abc", "match"},
        {"^b", 0, "abc", "none"},
        {"", 0, "", "match"},
        /* Ends of text and of lines. */
        {"c\\Z", 0, "abc\n", "none"},
        {"c$", 0, "abc\n", "match"},
        {"c\\Z", 0, "abc", "match"},
        {"^b$", 0, "a\nb\nc", "none"},
        {"^b$", REGEX_MULTI_LINE, "a\nb\nc", "match"},
        {"^\\Z", REGEX_MULTI_LINE, "a\n", "match"},
        {"a.b", 0, "a\nb", "none"},
        {"a.b", 0, "a\rb", "match"},
        {"a.b", REGEX_DOT_ALL, "a\nb", "match"},
        /* Names, conditions, back references. */
        {"(?P<q>['\"])x(?P=q)", 0, "'x'", "match"},
        {"(?P<q>['\"])x(?P=q)", 0, "'x\"", "none"},
        {"^(<)?a(?(1)>|!)$", 0, "<a>", "match"},
        {"^(?P<o><)?a(?(o)>|!)$", 0, "a!", "match"},
        {"^(?P<o><)?a(?(o)>|!)$", 0, "<a!", "none"},
        {"(a)(b)\\2\\1", 0, "abba", "match"},
        /* Look-around. */
        {"foo(?=bar)", 0, "foobar", "match"},
        {"foo(?!bar)", 0, "foobar", "none"},
        {"(?<=foo)bar", 0, "foobar", "match"},
        {"(?<!foo)bar", 0, "foobar", "none"},
        {"(?=a)b*a", 0, "ab", "match"},
        /* Flags, inline and not. */
        {"ABC", REGEX_IGNORE_CASE, "abc", "match"},
        {"(?i)ABC", 0, "abc", "match"},
        {"ABC(?i)", 0, "abc", "match"},
        {"(?i:A)B", 0, "aB", "match"},
        {"(?i:A)B", 0, "ab", "none"},
        {"(?i)A(?-i:B)", 0, "aB", "match"},
        {"(?i)A(?-i:B)", 0, "ab", "none"},
        {"(?is)a.B", 0, "A\nb", "match"},
        {"(?u:a)", 0, "a", "match"},
        {"a b # note (", REGEX_VERBOSE, "ab", "match"},
        {"(?x) a [ ] b # [note\n c", 0, "a bc", "match"},
        {"(?x: a # n\n)b c", 0, "ab c", "match"},
        {"a\\ b", REGEX_VERBOSE, "a b", "match"},
        {"a(?#note [)b", 0, "ab", "match"},
        /* Unicode is the rule, ASCII the exception. */
        {"^\\w+$", 0, "h\xC3\xA9llo", "match"},
        {"^\\w+$", REGEX_ASCII, "h\xC3\xA9llo", "none"},
        {"(?a)^\\w+$", 0, "h\xC3\xA9llo", "none"},
        {"^.$", 0, "\xC3\xA9", "match"},
        {"\xC3\x89", REGEX_IGNORE_CASE, "\xC3\xA9", "match"},
        {"\\u00e9", 0, "\xC3\xA9", "match"},
        {"[\\u00e0-\\u00ef]", 0, "\xC3\xA9", "match"},
        {"\\U0001F600", 0, "\xF0\x9F\x98\x80", "match"},
        {"\\x41\\101", 0, "AA", "match"},
        /* Escapes and sets that PCRE2 reads otherwise. */
        {"\\v", 0, "\n", "none"},
        {"\\v", 0, "\v", "match"},
        {"[\\v]", 0, "\n", "none"},
        {"[]a]+$", 0, "]a", "match"},
        {"^[^]a]$", 0, "b", "match"},
        {"[[a]", 0, "[", "match"},
        {"[[.a.]", 0, ".", "match"},
        {"^[[:alpha:]]+$", 0, "abc", "match"},
        {"[\\]]", 0, "]", "match"},
        {"[(?i)]", 0, "I", "none"},
        {"\\(?i\\)?x", 0, "ix", "match"},
        {"^a{,2}$", 0, "aa", "match"},
        {"^a{,2}$", 0, "aaa", "none"},
        {"^a{,}$", 0, "aaa", "match"},
        {"^a{x}$", 0, "a{x}", "match"},
        {"^[{,2}]+$", 0, "{,2}", "match"},
        {"\\{,2}", 0, "{,2}", "match"},
        {"(?>a+)b", 0, "aab", "match"},
        {"a++a", 0, "aaa", "none"},
        {"a+?", 0, "a", "match"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *got =
            search(cases[i].pattern, cases[i].flags, cases[i].subject, strlen(cases[i].subject));

        if (!str_equal(got, cases[i].outcome))
            fail_msg("/%s/ in '%s' gives %s", cases[i].pattern, cases[i].subject, got);
    }
}

static void mistakes_are_found_at_their_place_in_the_pattern_as_written(void **state)
{
    static const struct {
        const char *pattern, *complaint;
    } cases[] = {
        {"(", "offset 0: missing closing parenthesis"},
        {"a)", "offset 1: unmatched closing parenthesis"},
        {"[a", "offset 1: missing terminating ]"},
        {"*a", "offset 0: quantifier does not follow"},
        {"\\Z\\Z\\Z(", "offset 6: missing closing parenthesis"},
        {"\\u12", "offset 0: \\u wants four hexadecimal digits"},
        {"a\\U0001F60", "offset 1: \\U wants eight hexadecimal digits"},
        {"\\N{BULLET}", "offset 0: \\N{name} is not supported"},
        {"a\\", "offset 1: nothing after the backslash"},
        {"(?#open", "offset 0: the comment is not closed"},
        {"(?P=none)", "offset 4: reference to non-existent subpattern"},
        {"(?<=a+)b", "lookbehind assertion is not fixed length"},
        {"(?q)", "offset 0: unknown flag"},
        {"(?a:b)", "offset 2: the flags a and L are not supported"},
        {"x{3,2}", "offset 5: numbers out of order"},
        {"\\C", "using \\C is disabled"},
        {"\xFF", "UTF-8 error"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(regex_freep) struct regex *regex = NULL;
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(regex_compile(cases[i].pattern, 0, &regex, &err), -ERROR_TASK);
        assert_null(regex);
        if (strstr(error_message(err), cases[i].complaint) == NULL)
            fail_msg("/%s/: %s, expected %s", cases[i].pattern, error_message(err),
                     cases[i].complaint);
    }
}

static void patterns_have_limits_of_size_and_nesting(void **state)
{
    static const struct {
        char c;
        size_t count;
    } cases[] = {{'a', REGEX_PATTERN_BYTES_MAX + 1}, {'(', 300}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *pattern = mem_new(cases[i].count + 1, 1);
        scoped(regex_freep) struct regex *regex = NULL;
        scoped(error_freep) struct error *err = NULL;

        memset(pattern, cases[i].c, cases[i].count);
        assert_int_equal(regex_compile(pattern, 0, &regex, &err), -ERROR_LIMIT);
    }
}

static void flags_are_letters_or_pythons_number(void **state)
{
    static const struct {
        const char *json;
        int flags; /* -1: an error */
    } cases[] = {
        {"null", 0},  {"0", 0},       {"2", 2},       {"26", 26},
        {"\"\"", 0},  {"\"is\"", 18}, {"\"xm\"", 72}, {"\"aimsux\"", 378},
        {"378", 378}, {"4", -1},      {"128", -1},    {"1", -1},
        {"-2", -1},   {"\"z\"", -1},  {"2.5", -1},    {"[2]", -1},
        {"true", -1}, {"512", -1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(json_freep) json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        unsigned flags = 12345;
        int r = regex_flags_parse(value, &flags, NULL);

        assert_int_equal(r < 0 ? -1 : (int)flags, cases[i].flags);
        if (r < 0)
            assert_int_equal(flags, 12345);
    }
    unsigned flags = 1;

    assert_int_equal(regex_flags_parse(NULL, &flags, NULL), 0);
    assert_int_equal(flags, 0);
}

static void invalid_utf8_is_read_as_replacement_characters(void **state)
{
    (void)state;
    assert_string_equal(search("^a\xEF\xBF\xBD\xEF\xBF\xBD"
                               "b$",
                               0,
                               "a\xFF\xC3"
                               "b",
                               4),
                        "match");
    assert_string_equal(search("\\0", 0, "a\0b", 3), "match");
    assert_string_equal(search("b$", 0, "a\0b", 3), "match");
}

/* Patterns that would take for ever; with the work they are allowed they end within a second or
 * two. */
static void hostile_searches_end_at_a_limit(void **state)
{
    static const struct {
        const char *pattern, *unit, *last;
        size_t count;
    } cases[] = {
        {"(a+)+$", "a", "b", 100},
        {"(a|a)*$", "a", "b", 100},
        {"(?s)x.*.*.*.*[yz]", "x", "", 20000},
        {"x.*x.*x.*[yz]", "x", "", 100000},
        {"(?:x?){50}x{50}[yz]", "x", "", 60},
        {"(\\w+\\s?)*[;,]$", "word ", "!", 100},
        /* Few steps from each of very many places: only the count of all steps stops it. */
        {"x.*[yz]", "x", "", 1000000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf subject = {0};
        uint64_t start_ns = clock_ns();

        for (size_t n = 0; n < cases[i].count; n++)
            buf_text_append(&subject, cases[i].unit);
        buf_text_append(&subject, cases[i].last);
        const char *got = search(cases[i].pattern, 0, buf_text(&subject), subject.size_bytes);

        if (!str_equal(got, "limit"))
            fail_msg("/%s/ gives %s", cases[i].pattern, got);
        print_message("/%s/: %.0f ms\n", cases[i].pattern, ns_to_ms(clock_ns() - start_ns));
    }
}

static void a_large_file_is_no_reason_to_give_up(void **state)
{
    static const struct {
        const char *pattern, *outcome;
    } cases[] = {
        {"needle", "none"},         {"\\bword\\b", "match"},  {"\\d{4}-\\d\\d", "none"},
        {"(?i)needle", "none"},     {"^needle$", "none"},     {"\\w+@\\w+", "none"},
        {"(?:.|\\n)*END", "match"}, {"(?s).*needle", "none"}, {"word(?= END)", "match"},
    };
    scoped(buf_done) struct buf subject = {0};

    (void)state;
    while (subject.size_bytes < (size_t)1 << 20)
        buf_text_append(&subject, "a word of a line\n");
    buf_text_append(&subject, "word END");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t start_ns = clock_ns();
        const char *got =
            search(cases[i].pattern, REGEX_MULTI_LINE, buf_text(&subject), subject.size_bytes);

        if (!str_equal(got, cases[i].outcome))
            fail_msg("/%s/ gives %s", cases[i].pattern, got);
        print_message("/%s/: %.1f ms\n", cases[i].pattern, ns_to_ms(clock_ns() - start_ns));
    }
}

static void the_work_of_all_searches_with_a_pattern_adds_up(void **state)
{
    scoped(regex_freep) struct regex *regex = NULL;
    char subject[10001];
    size_t searches = 0;

    (void)state;
    memset(subject, 'a', 10000);
    subject[10000] = '\0';
    assert_int_equal(regex_compile("a*[bc]", 0, &regex, NULL), 0);
    while (searches < 1000 && regex_search(regex, subject, 10000) == REGEX_NO_MATCH)
        searches++;
    assert_in_range(searches, 1, 999);
}

static void matches_are_replaced_as_python_does(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text, *replacement, *expected; /* "!": the error */
    } cases[] = {
        {"a", "banana", "o", "bonono"},
        {"a(.)", "banana", "<\\1>", "b<n><n>a"},
        {"(?P<x>n)a", "banana", "\\g<x>\\g<1>", "bannnn"},
        {"x*", "abxd", "-", "-a-b--d-"},
        {"", "ab", "-", "-a-b-"},
        {"(a)|(b)", "ab", "[\\1\\2]", "[a][b]"},
        {"^", "a\nb", ">", ">a\nb"},
        {"(?m)^", "a\nb", ">", ">a\n>b"},
        {"(?i)GR.SSE", "Gr\xc3\xbcsse!", "x", "x!"},
        {"\xc3\xbc*", "\xc3\xa4", ".", ".\xc3\xa4."},
        {"b", "abc", "\\n\\\\\\.", "a\n\\\\.c"},
        {"z", "abc", "y", "abc"},
        {"a", "", "y", ""},
        {"(", "a", "b", "!offset 0: missing closing parenthesis"},
        {"a", "a", "\\2", "!replacement: the pattern has no group '2'"},
        {"a", "a", "\\g<n>", "!replacement: the pattern has no group 'n'"},
        {"a", "a", "\\q", "!replacement: unknown escape '\\q'"},
        {"a", "a", "\\", "!replacement: unknown escape '\\'"},
        {"(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "x",
         "!the pattern takes too long on this text"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = NULL;
        scoped(error_freep) struct error *err = NULL;
        const char *expected = cases[i].expected;
        int r = regex_replace(cases[i].pattern, cases[i].text, cases[i].replacement, &got, &err);

        if (r < 0 ? expected[0] != '!' || strcmp(error_message(err), expected + 1) != 0
                  : strcmp(got, expected) != 0)
            fail_msg("/%s/ in '%s': %s", cases[i].pattern, cases[i].text,
                     r < 0 ? error_message(err) : got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_replaced_as_python_does),
        cmocka_unit_test(patterns_mean_what_python_means),
        cmocka_unit_test(mistakes_are_found_at_their_place_in_the_pattern_as_written),
        cmocka_unit_test(patterns_have_limits_of_size_and_nesting),
        cmocka_unit_test(flags_are_letters_or_pythons_number),
        cmocka_unit_test(invalid_utf8_is_read_as_replacement_characters),
        cmocka_unit_test(hostile_searches_end_at_a_limit),
        cmocka_unit_test(a_large_file_is_no_reason_to_give_up),
        cmocka_unit_test(the_work_of_all_searches_with_a_pattern_adds_up),
    };

    return cmocka_run_group_tests_name("grade_regex", tests, NULL, NULL);
}
