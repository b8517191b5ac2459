/* The one rule for $REFERENCE_DIR, $INPUT_DIR and $TASK_DIR, and splitting command lines. */
#include "task/internal.h"
#include "task/test_support.h"

static void a_token_is_whole_and_not_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool found;
    } cases[] = {
        {"$TASK_DIR", true},
        {"${TASK_DIR}", true},
        {"'$TASK_DIR'", true},
        {"\"${TASK_DIR}/x\"", true},
        {"a$TASK_DIR/b", true},
        {"$TASK_DIR.x", true},
        {"$TASK_DIR-x", true},
        {"$TASK_DIR_X", false},
        {"$TASK_DIRX", false},
        {"$TASK_DIR2", false},
        {"$XTASK_DIR", false},
        {"\\$TASK_DIR", false},
        {"\\\\$TASK_DIR", true},
        {"\\\\\\$TASK_DIR", false},
        {"$$TASK_DIR", false},
        {"$$$TASK_DIR", true},
        {"$\\$TASK_DIR", false},
        {"TASK_DIR", false},
        {"${TASK_DIR", false},
        {"${TASK_DIR:-x}", false},
        {"${ TASK_DIR}", false},
        {"$ TASK_DIR", false},
        {"$", false},
        {"", false},
        {"\\", false},
        {"$$", false},
        {"${}$TASK_DIR", true},
        {"$X $TASK_DIR", true},
        {"$1TASK_DIR", false},
        {"$task_dir", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (token_is_in(cases[i].text, TOKEN_TASK_DIR) != cases[i].found)
            fail_msg("wrong about %s", cases[i].text);
        assert_false(token_is_in(cases[i].text, TOKEN_INPUT_DIR));
    }
}

static void tokens_come_in_order_with_their_places(void **state)
{
    (void)state;
    const char *text = "a $INPUT_DIR b ${REFERENCE_DIR}c";
    size_t position = 0;
    struct token token;

    assert_true(token_next(text, &position, &token));
    assert_int_equal(token.kind, TOKEN_INPUT_DIR);
    assert_int_equal(token.start, 2);
    assert_int_equal(token.length, 10);
    assert_true(token_next(text, &position, &token));
    assert_int_equal(token.kind, TOKEN_REFERENCE_DIR);
    assert_int_equal(token.start, 15);
    assert_int_equal(token.length, 16);
    assert_false(token_next(text, &position, &token));
}

static void replaces_only_the_kind_asked_for(void **state)
{
    (void)state;
    scoped(mem_freep) char *text =
        token_replace("$INPUT_DIR/a ${INPUT_DIR} \\$INPUT_DIR $TASK_DIR", TOKEN_INPUT_DIR, "/w");

    assert_string_equal(text, "/w/a /w \\$INPUT_DIR $TASK_DIR");
}

static void splits_words_as_a_shell_would(void **state)
{
    (void)state;
    static const struct {
        const char *text, *joined;
    } cases[] = {
        {"a b  c", "a|b|c|"},
        {" a\t'b c' ", "a|b c|"},
        {"a\"b c\"d", "ab cd|"},
        {"a\\ b", "a b|"},
        {"'a\\'", "a\\|"},
        {"\"a\\\"b\"", "a\"b|"},
        {"''", "|"},
        {"", ""},
        {"{prompt} '{prompt}'", "{prompt}|{prompt}|"},
        {"a\\", "a\\|"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(str_list_done) struct str_list words = {0};
        scoped(buf_done) struct buf joined = {0};

        assert_true(words_split(cases[i].text, &words));
        for (size_t j = 0; j < words.count; j++)
            buf_format(&joined, "%s|", words.items[j]);
        assert_string_equal(buf_text(&joined), cases[i].joined);
    }
}

static void an_open_quote_is_told(void **state)
{
    (void)state;
    scoped(str_list_done) struct str_list words = {0};

    assert_false(words_split("a 'b", &words));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_whole_and_not_escaped),
        cmocka_unit_test(tokens_come_in_order_with_their_places),
        cmocka_unit_test(replaces_only_the_kind_asked_for),
        cmocka_unit_test(splits_words_as_a_shell_would),
        cmocka_unit_test(an_open_quote_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
