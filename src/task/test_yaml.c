/* YAML to nodes: the core rules, marks, and everything that is refused. */
#include "task/test_support.h"
#include "task/yaml.h"

static char *complaints_about(const char *text, size_t length)
{
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    struct origin origin = {.source = "task", .file = "t", .text = text, .length = length};
    const struct node *root = yaml_read(&arena, &origin, &problems);

    /* Accepted xor complained. */
    assert_int_equal(root == NULL, problems.error_count > 0);
    return test_complaints(&problems);
}

static void plain_scalars_follow_the_core_rules(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum node_kind kind;
    } cases[] = {
        {"~", NODE_NULL},          {"null", NODE_NULL},  {"Null", NODE_NULL},
        {"nULL", NODE_TEXT},       {"true", NODE_BOOL},  {"FALSE", NODE_BOOL},
        {"yes", NODE_TEXT},        {"no", NODE_TEXT},    {"on", NODE_TEXT},
        {"Off", NODE_TEXT},        {"12", NODE_INT},     {"-7", NODE_INT},
        {"+7", NODE_INT},          {"012", NODE_INT},    {"0o17", NODE_INT},
        {"0x1F", NODE_INT},        {"0o8", NODE_TEXT},   {"0xg", NODE_TEXT},
        {"0x", NODE_TEXT},         {"1.5", NODE_REAL},   {".5", NODE_REAL},
        {"5.", NODE_REAL},         {"1e3", NODE_REAL},   {"1e", NODE_TEXT},
        {".inf", NODE_REAL},       {"-.Inf", NODE_REAL}, {".nan", NODE_REAL},
        {"-.nan", NODE_TEXT},      {"1_000", NODE_TEXT}, {"1:30", NODE_TEXT},
        {".", NODE_TEXT},          {"1.2.3", NODE_TEXT}, {"\"12\"", NODE_TEXT},
        {"'true'", NODE_TEXT},     {"12 a", NODE_TEXT},  {"99999999999999999999", NODE_REAL},
        {"2001-01-01", NODE_TEXT},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(arena_done) struct arena arena = {0};
        scoped(problems_done) struct problems problems = {0};
        scoped(mem_freep) char *text = str_format("[%s]", cases[i].text);
        struct origin origin = {.text = text, .length = strlen(text)};
        const struct node *root =
            strcmp(cases[i].text, "-") == 0 ? NULL : yaml_read(&arena, &origin, &problems);

        if (root == NULL)
            continue; /* "[-]" is no YAML */
        if (root->items[0]->kind != cases[i].kind)
            fail_msg("%s has kind %d", cases[i].text, (int)root->items[0]->kind);
    }
}

static void numbers_have_their_values(void **state)
{
    (void)state;
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    static const char text[] = "[0o17, 0x1F, -7, 1.5e2, -.5, .inf]";
    struct origin origin = {.text = text, .length = sizeof(text) - 1};
    const struct node *root = yaml_read(&arena, &origin, &problems);

    assert_int_equal(root->items[0]->integer, 15);
    assert_int_equal(root->items[1]->integer, 31);
    assert_int_equal(root->items[2]->integer, -7);
    assert_true(root->items[3]->real > 149.9 && root->items[3]->real < 150.1);
    assert_true(root->items[4]->real < -0.49 && root->items[4]->real > -0.51);
    assert_true(root->items[5]->real > 1e308);
}

static void every_node_knows_its_place(void **state)
{
    (void)state;
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    /* Columns count characters: the umlaut is one. */
    static const char text[] = "\xef\xbb\xbf"
                               "a: 1\nb:\n  - \xc3\xa4: [x, y]\n";
    struct origin origin = {.text = text, .length = sizeof(text) - 1};
    const struct node *root = yaml_read(&arena, &origin, &problems);
    const struct node *item = node_get(root, "b")->items[0];
    const struct node *list = node_get(item, "\xc3\xa4");

    assert_int_equal(node_get(root, "a")->mark.line, 1);
    assert_int_equal(node_get(root, "a")->mark.column, 4);
    assert_int_equal(node_member(root, "b")->mark.line, 2);
    assert_int_equal(item->mark.line, 3);
    assert_int_equal(item->mark.column, 5);
    assert_int_equal(list->items[1]->mark.column, 12);
    assert_ptr_equal(list->mark.origin, &origin);
}

static void refuses_what_is_no_task_file(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"", "0:0 empty: no YAML document in it\n"},
        {"# only a remark\n", "0:0 empty: no YAML document in it\n"},
        {"a: 1\n---\nb: 2\n", "2:1 a second document: one file holds one\n"},
        {"a: !x 1\n", "1:4 the tag '!x': tags are not supported\n"},
        {"a: !!str 1\n", "1:4 the tag 'tag:yaml.org,2002:str': tags are not supported\n"},
        {"a: 1\nb: 2\na: 3\n", "3:1 the key 'a' is here twice, first at 1:1\n"},
        {"a: {x: 1, x: 2}\nb: {y: 1, 'y': 2}\n", "1:11 the key 'x' is here twice, first at 1:5\n"
                                                 "2:11 the key 'y' is here twice, first at 2:5\n"},
        {"a: *b\n", "1:4 no anchor 'b' before this alias\n"},
        {"a: &a [*a]\n", "1:8 the alias 'a' is inside its own anchor\n"},
        {"[a]: 1\n", "1:1 a key must be a text\n"},
        {"? {a: 1}\n: 2\n", "1:3 a key must be a text\n"},
        {"a: \"x\\0y\"\n", "1:4 a NUL character in a text\n"},
        {"<<: 3\n", "1:5 '<<' wants a map or a list of maps, found the number 3\n"},
        {"<<: [[a]]\n", "1:6 '<<' wants a map, found a list in a list\n"},
        {"<<: {a: 1}\n<<: {b: 1}\n", "2:1 the key '<<' is here twice\n"},
        {"a: \xff\n", "1:4 not UTF-8: the byte 0xff\n"},
        {"\xc3\xa4\xc3\xa4: \xc3\n", "1:5 not UTF-8: the byte 0xc3\n"},
        {"a: b\x01\n", "1:5 control characters are not allowed (0x01)\n"},
        {"a: b: c\n", "1:5 mapping values are not allowed in this context\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *found = complaints_about(cases[i].text, strlen(cases[i].text));

        assert_string_equal(found, cases[i].complaint);
    }
}

static void a_syntax_error_says_where_it_began(void **state)
{
    (void)state;
    static const char text[] = "a: [1,\nb: 2\n";
    scoped(mem_freep) char *found = complaints_about(text, sizeof(text) - 1);

    assert_non_null(strstr(found, "while parsing a flow sequence that starts at 1:4"));
}

static void refuses_a_nul_byte(void **state)
{
    (void)state;
    scoped(mem_freep) char *found = complaints_about("a: b\0c\n", 7);

    assert_string_equal(found, "1:5 control characters are not allowed (0x00)\n");
}

static void keeps_to_its_depth(void **state)
{
    (void)state;
    static const struct {
        const char *open, *close;
    } shapes[] = {{"[", "]"}, {"{a: ", "}"}, {"[{a: ", "}]"}};

    for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
        int levels = i == 2 ? 2 : 1;
        scoped(buf_done) struct buf fits = {0}, deep = {0}, huge = {0};

        for (int j = 0; j < TASK_DEPTH_MAX / levels - 1; j++)
            buf_text_append(&fits, shapes[i].open);
        for (int j = 0; j < TASK_DEPTH_MAX / levels - 1; j++)
            buf_text_append(&fits, shapes[i].close);
        for (int j = 0; j < TASK_DEPTH_MAX + 1; j++)
            buf_text_append(&deep, shapes[i].open);
        while (huge.size_bytes < 900000)
            buf_text_append(&huge, shapes[i].open);
        scoped(mem_freep) char *accepted = complaints_about(buf_text(&fits), fits.size_bytes);
        scoped(mem_freep) char *refused = complaints_about(buf_text(&deep), deep.size_bytes);
        scoped(mem_freep) char *endless = complaints_about(buf_text(&huge), huge.size_bytes);

        assert_string_equal(accepted, "");
        assert_non_null(strstr(refused, "nested deeper than 32 levels"));
        assert_non_null(strstr(endless, "nested deeper than 32 levels"));
    }
}

static void an_alias_counts_with_its_depth(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {0};

    buf_text_append(&buf, "a: &a [[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]\n");
    buf_text_append(&buf, "b: [[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]\n");
    scoped(mem_freep) char *found = complaints_about(buf_text(&buf), buf.size_bytes);

    assert_string_equal(found, "2:24 nested deeper than 32 levels\n");
}

static void refuses_a_bomb_of_aliases(void **state)
{
    (void)state;
    scoped(buf_done) struct buf lists = {0}, maps = {0};

    buf_text_append(&lists, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    buf_text_append(&maps, "a0: &a0 {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8}\n");
    for (int i = 1; i < 12; i++) {
        buf_format(&lists, "a%d: &a%d [", i, i);
        buf_format(&maps, "a%d: &a%d {", i, i);
        for (int j = 0; j < 10; j++) {
            buf_format(&lists, "%s*a%d", j == 0 ? "" : ", ", i - 1);
            buf_format(&maps, "%sk%d: *a%d", j == 0 ? "" : ", ", j, i - 1);
        }
        buf_text_append(&lists, "]\n");
        buf_text_append(&maps, "}\n");
    }
    scoped(mem_freep) char *found = complaints_about(buf_text(&lists), lists.size_bytes);
    scoped(mem_freep) char *other = complaints_about(buf_text(&maps), maps.size_bytes);

    assert_non_null(strstr(found, "more than 200000 values (aliases counted where used)"));
    assert_non_null(strstr(other, "more than 200000 values (aliases counted where used)"));
}

static void refuses_a_bomb_of_merge_keys(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {0};

    buf_text_append(&buf, "big: &big {");
    for (int i = 0; i < 2000; i++)
        buf_format(&buf, "%sk%d: 1", i == 0 ? "" : ", ", i);
    buf_text_append(&buf, "}\n");
    for (int i = 0; i < 200; i++)
        buf_format(&buf, "m%d: {<<: *big}\n", i);
    scoped(mem_freep) char *found = complaints_about(buf_text(&buf), buf.size_bytes);

    assert_non_null(strstr(found, "more than 200000 values"));
}

static void refuses_too_many_bytes_and_anchors(void **state)
{
    (void)state;
    scoped(mem_freep) char *large = mem_new(TASK_BYTES_MAX + 1, 1);
    scoped(buf_done) struct buf anchors = {0};

    memset(large, 'a', TASK_BYTES_MAX + 1);
    for (int i = 0; i < YAML_ANCHORS_MAX + 1; i++)
        buf_format(&anchors, "- &a%d x\n", i);
    scoped(mem_freep) char *found = complaints_about(large, TASK_BYTES_MAX + 1);
    scoped(mem_freep) char *other = complaints_about(buf_text(&anchors), anchors.size_bytes);

    assert_string_equal(found, "0:0 larger than 1048576 bytes\n");
    assert_string_equal(other, "1001:3 more than 1000 anchors\n");
}

static void merge_keys_give_way_to_explicit_ones(void **state)
{
    (void)state;
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    static const char text[] = "x: &x {a: 1, b: 2}\n"
                               "y: &y {b: 3, c: 4}\n"
                               "one: {b: 9, <<: *x}\n"
                               "two: {<<: [*x, *y], d: 5}\n"
                               "text: {'<<': 1}\n";
    struct origin origin = {.text = text, .length = sizeof(text) - 1};
    const struct node *root = yaml_read(&arena, &origin, &problems);
    const struct node *one = node_get(root, "one"), *two = node_get(root, "two");

    assert_int_equal(node_get(one, "a")->integer, 1);
    assert_int_equal(node_get(one, "b")->integer, 9);
    assert_int_equal(one->count, 2);
    assert_int_equal(node_get(two, "b")->integer, 2);
    assert_int_equal(node_get(two, "c")->integer, 4);
    assert_int_equal(two->count, 4);
    assert_int_equal(node_get(node_get(root, "text"), "<<")->integer, 1);
}

static void a_map_of_many_keys_takes_no_square_of_time(void **state)
{
    (void)state;
    scoped(buf_done) struct buf buf = {0};

    for (int i = 0; i < 90000; i++)
        buf_format(&buf, "k%d: 1\n", i);
    buf_text_append(&buf, "k7: 2\n");
    scoped(mem_freep) char *found = complaints_about(buf_text(&buf), buf.size_bytes);

    assert_string_equal(found, "90001:1 the key 'k7' is here twice, first at 8:1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_follow_the_core_rules),
        cmocka_unit_test(numbers_have_their_values),
        cmocka_unit_test(every_node_knows_its_place),
        cmocka_unit_test(refuses_what_is_no_task_file),
        cmocka_unit_test(a_syntax_error_says_where_it_began),
        cmocka_unit_test(refuses_a_nul_byte),
        cmocka_unit_test(keeps_to_its_depth),
        cmocka_unit_test(an_alias_counts_with_its_depth),
        cmocka_unit_test(refuses_a_bomb_of_aliases),
        cmocka_unit_test(refuses_a_bomb_of_merge_keys),
        cmocka_unit_test(refuses_too_many_bytes_and_anchors),
        cmocka_unit_test(merge_keys_give_way_to_explicit_ones),
        cmocka_unit_test(a_map_of_many_keys_takes_no_square_of_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
