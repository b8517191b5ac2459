/* The tables themselves: rows that hold together, and what is made from them. */
#include <regex.h>

#include "task/internal.h"
#include "task/test_support.h"

/* --- rows --------------------------------------------------------------------------------------
 */

#define SEEN_MAX 64

/* Blocks that have been looked at, so that circles end. */
struct seen {
    const struct block *blocks[SEEN_MAX];
    size_t count;
};

static void check_block(const struct block *block, struct seen *seen);

static void check_default(const struct field *field)
{
    scoped(arena_done) struct arena arena = {0};
    scoped(problems_done) struct problems problems = {0};
    struct loader_context context = {&arena, &problems};
    struct field rows[2] = {*field, {0}};
    struct block block = {.title = "one", .fields = rows};
    struct origin origin = {.source = "test"};
    struct mark mark = {.origin = &origin};
    struct node *map = node_new(&arena, NODE_MAP, mark);
    struct member member = {.key = field->name, .mark = mark};

    rows[0].state = FIELD_HERE;
    rows[0].flags &= ~(unsigned)FIELD_REQUIRED;
    member.value = schema_value(&arena, field->standard, mark);
    node_put(&arena, map, &member);
    (void)schema_load(&context, &block, map, NULL); /* what matters is the complaints */
    if (problems.error_count > 0)
        fail_msg("%s: the default '%s' is refused", field->name, field->standard);
}

static void check_field(const struct field *field, struct seen *seen)
{
    bool has_block = (field->types & TYPE_BLOCK) != 0 || (field->items & TYPE_BLOCK) != 0;
    bool has_kinds = (field->types & TYPE_UNION) != 0 || (field->items & TYPE_UNION) != 0;

    if (field->doc == NULL || field->types == 0)
        fail_msg("%s: no type or no doc", field->name);
    if (((field->types & TYPE_LIST) != 0) != (field->items != 0))
        fail_msg("%s: a list without items, or items without a list", field->name);
    if (has_block != (field->block != NULL) || has_kinds != (field->kinds != NULL))
        fail_msg("%s: a block is missing or without use", field->name);
    if (field->state == FIELD_REMOVED || field->state == FIELD_LEGACY)
        assert_non_null(field->hint);
    if (field->standard != NULL)
        check_default(field);
    if (field->block != NULL)
        check_block(field->block, seen);
}

static void check_fields(const struct field *fields, struct seen *seen)
{
    for (const struct field *field = fields; field->name != NULL; field++) {
        check_field(field, seen);
        for (const struct field *other = fields; other != field; other++)
            assert_string_not_equal(field->name, other->name);
    }
}

static void check_block(const struct block *block, struct seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->blocks[i] == block)
            return;
    }
    assert_true(seen->count < SEEN_MAX);
    seen->blocks[seen->count++] = block;
    check_fields(block->fields, seen);
}

static void rows_hold_together(void **state)
{
    (void)state;
    const struct kinds *const unions[] = {&source_kinds, &criterion_kinds};
    struct seen seen = {0};

    check_block(&task_block, &seen);
    check_block(&set_block, &seen);
    check_block(&config_block, &seen);
    for (size_t i = 0; i < ARRAY_SIZE(unions); i++) {
        check_fields(unions[i]->common, &seen);
        for (const struct kind *kind = unions[i]->kinds; kind->name != NULL; kind++) {
            if (kind->state == FIELD_REMOVED)
                assert_non_null(kind->hint);
            else
                check_block(kind->block, &seen);
        }
    }
}

static void every_agent_name_is_a_choice(void **state)
{
    (void)state;
    size_t count = 0;

    for (const struct agent_name *name = agent_names; name->name != NULL; name++) {
        assert_string_equal(agent_type_choices[count++], name->name);
        assert_int_equal(name->state == FIELD_REMOVED, name->hint != NULL);
    }
    assert_null(agent_type_choices[count]);
}

/* --- forms -------------------------------------------------------------------------------------
 */

static bool fits_regex(const char *pattern, const char *text)
{
    regex_t regex;

    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    bool fits = regexec(&regex, text, 0, NULL, 0) == 0;

    regfree(&regex);
    return fits;
}

#define HALF "0123456789abcdef0123456789abcdef"

static void forms_are_what_their_regexes_say(void **state)
{
    (void)state;
    static const enum text_form forms[] = {FORM_TASK_ID, FORM_TAG, FORM_ENV, FORM_VERSIONS,
                                           FORM_COMMIT};
    static const char *const texts[] = {
        "",
        "a",
        "A",
        "_",
        "-",
        ".",
        "a-b",
        "a--b",
        "-a",
        "a-",
        "a:b",
        "a:b:c",
        ":a",
        "a:",
        "a-b:c-d",
        "a.b",
        "a/b",
        "..",
        "a b",
        "a\n",
        "\xc3\xa4",
        "A_1",
        "1A",
        "A=b",
        "A=",
        "=a",
        "A=\n",
        "a1-2b",
        "a\tb",
        "A-B=c",
        "a:-b",
        "a-:b",
        "9",
        "a@b",
        "$A",
        "~",
        ">= 1.2",
        "> 1, <2",
        "1.2.3",
        "1.",
        ">",
        "=< 1",
        "1,",
        " == 10.0 ",
        ">=1 <2",
        "==",
        ".1",
        /* Whole hashes, and what is nearly one. */
        HALF "01234567",
        HALF "0123456",
        HALF "0123456g",
        HALF "0123456A",
        HALF HALF,
        HALF HALF "0",
    };

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(texts); j++) {
            if (form_accepts(forms[i], texts[j]) != fits_regex(form_regex(forms[i]), texts[j]))
                fail_msg("form %d and its regex disagree about '%s'", (int)forms[i], texts[j]);
        }
    }
    char id[130];

    memset(id, 'a', sizeof(id));
    id[128] = '\0';
    assert_true(form_accepts(FORM_TASK_ID, id));
    id[128] = 'a';
    id[129] = '\0';
    assert_false(form_accepts(FORM_TASK_ID, id));
}

static void a_path_inside_has_no_way_out(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        bool inside;
    } cases[] = {
        {"a", true},       {"a/b", true},   {".", true},       {"./a", true},    {"a/", true},
        {"a//b", true},    {"..a", true},   {"a..", true},     {"...", true},    {"a/..b/c", true},
        {"**/*.py", true}, {"", false},     {"/", false},      {"/a", false},    {"..", false},
        {"../a", false},   {"a/..", false}, {"a/../b", false}, {"a//..", false}, {"./..", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (form_accepts(FORM_INSIDE, cases[i].path) != cases[i].inside)
            fail_msg("wrong about '%s'", cases[i].path);
    }
}

/* --- what is made from the tables ---------------------------------------------------------------
 */

/* Compares with a file of the source tree; CLOSEDBOOK_UPDATE writes it instead. */
static void compare_file(const char *path, const struct buf *text)
{
    scoped(buf_done) struct buf known = {0};

    if (getenv("CLOSEDBOOK_UPDATE") != NULL)
        assert_int_equal(fs_write_atomic(AT_FDCWD, path,
                                         &(struct fs_content){buf_text(text), text->size_bytes,
                                                              0644, FS_NO_SYNC},
                                         NULL),
                         0);
    assert_int_equal(fs_read_file(AT_FDCWD, path, TASK_BYTES_MAX, &known, NULL), 0);
    if (strcmp(buf_text(&known), buf_text(text)) != 0)
        fail_msg("%s is out of date: run this test with CLOSEDBOOK_UPDATE=1", path);
}

static void the_reference_is_up_to_date(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    task_schema_markdown(&text);
    compare_file("docs/formats/task.md", &text);
}

static void the_json_schema_is_up_to_date(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *schema = task_schema_json();

    json_write_pretty(&text, schema);
    compare_file("schema/task.schema.json", &text);
}

static void the_json_schema_has_the_fields_of_the_tables(void **state)
{
    (void)state;
    scoped(json_freep) json_t *schema = task_schema_json();
    const json_t *properties = json_get_object(schema, "properties");
    const json_t *agent = json_get_object(json_get_object(properties, "agent"), "properties");
    const json_t *criteria = json_get_object(properties, "success_criteria");
    const json_t *kinds = json_get_array(json_get_object(criteria, "items"), "oneOf");

    for (const struct field *field = task_block.fields; field->name != NULL; field++)
        assert_non_null(json_object_get(properties, field->name));
    for (const struct field *field = agent_block.fields; field->name != NULL; field++)
        assert_non_null(json_object_get(agent, field->name));
    assert_int_equal(json_array_size(json_get_array(schema, "required")), 3);
    assert_int_equal(json_array_size(kinds), 17);
    assert_int_equal(json_get_int(criteria, "minItems", 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_hold_together),
        cmocka_unit_test(every_agent_name_is_a_choice),
        cmocka_unit_test(forms_are_what_their_regexes_say),
        cmocka_unit_test(a_path_inside_has_no_way_out),
        cmocka_unit_test(the_reference_is_up_to_date),
        cmocka_unit_test(the_json_schema_is_up_to_date),
        cmocka_unit_test(the_json_schema_has_the_fields_of_the_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
