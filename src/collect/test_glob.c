#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "collect/glob.h"
#include "collect/tree.h"

static void names_match_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"*", "", true},
        {"*", ".hidden", true},
        {"*.py", "a.py", true},
        {"*.py", "a.pyc", false},
        {"a*b*c", "axxbyyc", true},
        {"a*b*c", "axxbyy", false},
        {"?", "a", true},
        {"?", "\xc3\xa9", true},
        {"?", "ab", false},
        {"?", "\xff", true},
        {"[abc]", "b", true},
        {"[!abc]", "b", false},
        {"[^abc]", "d", true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[]]", "]", true},
        {"[!]]", "]", false},
        {"[a", "[a", true},
        {"[a", "a", false},
        {"[\xc3\xa0-\xc3\xaf]", "\xc3\xa9", true},
        {"a\\*", "a*", false},
        {"", "", true},
        {"", "a", false},
        {"**", "anything", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (glob_name_match(cases[i].pattern, cases[i].name) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
}

static void paths_match_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *path;
        enum glob_relation relation;
    } cases[] = {
        {"a/b", "a", GLOB_ABOVE},       {"a/b", "a/b", GLOB_WITHIN}, {"a/b", "a/b/c", GLOB_WITHIN},
        {"a/b", "b", GLOB_APART},       {"**/x", "x", GLOB_WITHIN},  {"**/x", "a/b/x", GLOB_WITHIN},
        {"a/**/x", "a/x", GLOB_WITHIN}, {"a/**", "a", GLOB_ABOVE},   {"a/**", "a/b/c", GLOB_WITHIN},
        {"./a//b", "a/b", GLOB_WITHIN}, {"*/b", "a/c", GLOB_APART},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct glob glob;

        assert_true(glob_parse(cases[i].pattern, &glob));
        if (glob_relate(&glob, cases[i].path) != cases[i].relation)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].path);
        glob_done(&glob);
    }
}

static void patterns_that_lead_out_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {"/a", "..", "a/../b", "", ".", "./"};
    struct glob glob;
    char deep[2 * GLOB_PARTS_MAX + 4];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(glob_parse(bad[i], &glob));
    for (size_t i = 0; i < sizeof(deep) - 1; i++)
        deep[i] = i % 2 == 0 ? 'a' : '/';
    deep[sizeof(deep) - 1] = '\0';
    assert_false(glob_parse(deep, &glob));
}

static void a_pattern_of_many_stars_ends_soon(void **state)
{
    (void)state;
    struct glob glob;

    assert_false(glob_name_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b",
                                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
    assert_true(glob_parse("**/**/**/**/**/**/**/**/**/**/**/b", &glob));
    assert_int_equal(glob_relate(&glob, "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a"), GLOB_ABOVE);
    glob_done(&glob);
}

static void the_last_ignore_pattern_that_matches_decides(void **state)
{
    (void)state;
    static const struct {
        const char *patterns[3];
        const char *path;
        bool is_dir, ignored;
    } cases[] = {
        {{"node_modules"}, "a/node_modules", true, true},
        {{"*.log"}, "x/y.log", false, true},
        {{"*.log", "!keep.log"}, "x/keep.log", false, false},
        {{"*.log", "!keep.log", "x/*"}, "x/keep.log", false, true},
        {{"build/"}, "build", false, false},
        {{"build/"}, "build", true, true},
        {{"/top"}, "top", false, true},
        {{"/top"}, "a/top", false, false},
        {{"a/b"}, "a/b/c", false, true},
        {{"!x"}, "x", false, false},
        {{""}, "x", false, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct str_list patterns = {0};
        struct tree_rules rules = {.ignore = &patterns};

        for (size_t j = 0; j < 3 && cases[i].patterns[j] != NULL; j++)
            str_list_add(&patterns, cases[i].patterns[j]);
        if (tree_is_ignored(&rules, cases[i].path, cases[i].is_dir) != cases[i].ignored)
            fail_msg("case %zu: '%s'", i, cases[i].path);
        str_list_done(&patterns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_patterns),
        cmocka_unit_test(paths_match_patterns),
        cmocka_unit_test(patterns_that_lead_out_are_none),
        cmocka_unit_test(a_pattern_of_many_stars_ends_soon),
        cmocka_unit_test(the_last_ignore_pattern_that_matches_decides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
