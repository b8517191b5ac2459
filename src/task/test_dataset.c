/* Datasets: rows to tasks, samples, what is filled in, what is wrong. */
#include "task/internal.h"
#include "task/test_support.h"

#define TASK                                                                                       \
    "task_id: t\ndescription: d ${row.q}\ninitial_prompt: 'ask ${row.q}'\nagent: {type: nop}\n"    \
    "success_criteria: [{type: file_contains, description: 'on ${row.q}', path: "                  \
    "'${row.id}.txt',\n"                                                                           \
    "  includes: ['${row.a}']}]\n"
#define ROWS(text) TASK "dataset: {rows: [" text "]}\n"

/* A folder with one task, and what loading it gave. */
struct fixture {
    char *folder;
    struct str_list paths, only;
    struct test_reader reader;
    struct task_overrides overrides;
    struct task_selection selection;
    size_t max_tasks;
    struct task_set set;
    struct problems problems;
    int r;
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(1, sizeof(*fixture));

    fixture->folder = test_folder();
    fixture->selection.only = &fixture->only;
    fixture->r = -1;
    *state = fixture;
    return 0;
}

static void forget(struct fixture *fixture)
{
    problems_done(&fixture->problems);
    if (fixture->r == 0)
        task_set_done(&fixture->set);
    fixture->set = (struct task_set){0};
    fixture->r = -1;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    forget(fixture);
    str_list_done(&fixture->paths);
    str_list_done(&fixture->only);
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static void load(struct fixture *fixture, const char *task)
{
    struct task_reader reader = {test_open, &fixture->reader};
    const struct task_query query = {&fixture->paths,
                                     &reader,
                                     &fixture->overrides,
                                     &fixture->selection,
                                     fixture->max_tasks,
                                     NULL,
                                     NULL};

    forget(fixture);
    test_write(fixture->folder, "t.yaml", task);
    if (fixture->paths.count == 0)
        str_list_add(&fixture->paths, fixture->folder);
    fixture->r = tasks_load(&query, &fixture->set, &fixture->problems, NULL);
}

/* "file:line:column message" lines, the file by its last part; owned. */
static char *complaints(const struct fixture *fixture)
{
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < fixture->problems.count; i++) {
        const struct problem *problem = &fixture->problems.items[i];

        buf_format(&buf, "%s:%u:%u %s\n", path_base(problem->file), problem->line, problem->column,
                   problem->message);
    }
    return buf_take(&buf);
}

/* "t/a t/b " for what was loaded; owned. */
static char *ids_of(const struct fixture *fixture)
{
    scoped(buf_done) struct buf buf = {0};

    if (fixture->r < 0) {
        scoped(mem_freep) char *found = complaints(fixture);

        fail_msg("%s", found);
    }
    for (size_t i = 0; i < fixture->set.count; i++)
        buf_format(&buf, "%s ", task_id(fixture->set.tasks[i]));
    return buf_take(&buf);
}

static void each_row_is_a_task_with_its_values_filled_in(void **state)
{
    struct fixture *fixture = *state;

    load(fixture, ROWS("{id: r1, q: one, a: '1', secret: x}, {id: r2, q: 2, a: no, more: [1]}"));

    scoped(mem_freep) char *ids = ids_of(fixture);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(ids, "t/r1 t/r2 ");
    task_split(fixture->set.tasks[0], &open, &secret);
    assert_string_equal(open->prompt, "ask one");
    assert_string_equal(secret->description, "d ${row.q}"); /* not one of the two places */
    assert_string_equal(secret->criteria[0].description, "on one");
    assert_string_equal(json_get_text(secret->criteria[0].params, "path"), "r1.txt");
    task_split(fixture->set.tasks[1], &open, &secret);
    assert_string_equal(open->prompt, "ask 2");
    assert_string_equal(json_string_value(json_array_get(
                            json_get_array(secret->criteria[0].params, "includes"), 0)),
                        "no");
}

static void rows_of_files_are_read_line_by_line(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "data/a.jsonl",
               "{\"id\": \"x\", \"q\": null, \"a\": \"\\u00e4\"}\r\n\n"
               "  {\"id\": 7, \"q\": 1.5, \"a\": true}\n");
    test_write(fixture->folder, "b.jsonl", "{\"id\": \"last\", \"q\": \"z\", \"a\": \"b\"}");
    load(fixture, TASK "dataset: {paths: [data/a.jsonl, b.jsonl]}\n");

    scoped(mem_freep) char *ids = ids_of(fixture);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(ids, "t/x t/7 t/last ");
    task_split(fixture->set.tasks[0], &open, &secret);
    assert_string_equal(open->prompt, "ask ");
    assert_int_equal(secret->private_files.count, 2);
    assert_true(str_ends(secret->private_files.items[0], "/data/a.jsonl"));
    task_split(fixture->set.tasks[1], &open, &secret);
    assert_string_equal(open->prompt, "ask 1.5");
    assert_string_equal(json_string_value(json_array_get(
                            json_get_array(secret->criteria[0].params, "includes"), 0)),
                        "true");
}

static void only_takes_a_task_or_one_of_its_rows(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = ROWS("{id: a, q: 1, a: 1}, {id: b, q: 1, a: 1}");
    static const struct {
        const char *only, *ids;
    } cases[] = {{"t", "t/a t/b "}, {"t/b", "t/b "}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        str_list_done(&fixture->only);
        fixture->only = (struct str_list){0};
        str_list_add(&fixture->only, cases[i].only);
        load(fixture, text);

        scoped(mem_freep) char *ids = ids_of(fixture);

        assert_string_equal(ids, cases[i].ids);
    }
    str_list_add(&fixture->only, "t/c");
    load(fixture, text);

    scoped(mem_freep) char *found = complaints(fixture);

    assert_true(fixture->r < 0);
    assert_true(str_starts(found, "c:0:0 no task has this id"));
}

/* 60 rows in three strata; owned. */
static char *many_rows(void)
{
    scoped(buf_done) struct buf buf = {0};

    buf_text_append(&buf, TASK "dataset:\n  stratify_field: a\n  rows:\n");
    for (int i = 0; i < 60; i++)
        buf_format(&buf, "  - {id: r%d, q: x, a: s%d}\n", i, i % 3);
    return buf_take(&buf);
}

static void samples_are_drawn_by_the_seed_from_each_stratum(void **state)
{
    struct fixture *fixture = *state;
    scoped(mem_freep) char *text = many_rows();
    char *drawn[3] = {0};

    fixture->selection.sample_per_stratum = 4;
    for (size_t i = 0; i < ARRAY_SIZE(drawn); i++) {
        size_t of_stratum[3] = {0};

        fixture->selection.seed = i == 0 ? 1 : 2;
        load(fixture, text);
        drawn[i] = ids_of(fixture);
        assert_int_equal(fixture->set.count, 12);
        for (size_t j = 0; j < 12; j++)
            of_stratum[strtoul(task_id(fixture->set.tasks[j]) + strlen("t/r"), NULL, 10) % 3]++;
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(of_stratum[j], 4);
    }
    assert_string_not_equal(drawn[0], drawn[1]);
    assert_string_equal(drawn[1], drawn[2]);
    for (size_t i = 0; i < ARRAY_SIZE(drawn); i++)
        free(drawn[i]);
}

static void a_flat_sample_counts_rows(void **state)
{
    struct fixture *fixture = *state;
    scoped(mem_freep) char *text = many_rows();

    fixture->selection.sample = 7;
    load(fixture, text);

    scoped(mem_freep) char *ids = ids_of(fixture);

    assert_int_equal(fixture->set.count, 7);
}

static void the_tasks_own_seed_counts_unless_one_is_given(void **state)
{
    struct fixture *fixture = *state;
    scoped(mem_freep) char *rows = many_rows();
    scoped(mem_freep) char *text =
        str_format("%s  sample_seed: 5\n  sample_per_stratum: 2\n", rows);
    char *drawn[4] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(drawn); i++) {
        fixture->selection.seed = i;
        fixture->selection.seed_given = i >= 2;
        load(fixture, text);
        drawn[i] = ids_of(fixture);
    }
    assert_string_equal(drawn[0], drawn[1]);
    assert_string_not_equal(drawn[2], drawn[3]);
    for (size_t i = 0; i < ARRAY_SIZE(drawn); i++)
        free(drawn[i]);
}

static void rows_come_before_variants(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "e.yaml",
               "experiment_id: e\nvariants: [{variant_id: u}, {variant_id: v, initial_prompt: "
               "'${row.q}'}]\n");
    scoped(mem_freep) char *path = path_join(fixture->folder, "e.yaml");

    fixture->overrides.experiment = path;
    load(fixture, ROWS("{id: a, q: 1, a: 1}, {id: b, q: 2, a: 1}"));

    scoped(mem_freep) char *ids = ids_of(fixture);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(ids, "t/a t/a t/b t/b ");
    assert_int_equal(task_set_ids(&fixture->set), 2);
    task_split(fixture->set.tasks[3], &open, &secret);
    assert_string_equal(open->prompt, "${row.q}"); /* a variant cannot look into rows */
    fixture->overrides.experiment = NULL;
}

static void says_what_is_wrong_with_rows(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {TASK "dataset: {}\n", "t.yaml:7:10 exactly one of rows and paths expected\n"},
        {TASK "dataset: {rows: [{id: a}], paths: [x]}\n",
         "t.yaml:7:10 exactly one of rows and paths expected\n"},
        {TASK "dataset: {rows: []}\n",
         "t.yaml:7:10 exactly one of rows and paths expected\n"
         "t.yaml:7:17 at least one item expected, found an empty list\n"},
        {ROWS("{q: 1, a: 1}"), "t.yaml:7:18 the row has no id: a text in 'id' expected\n"},
        {ROWS("{id: ../x, q: 1, a: 1}"),
         "t.yaml:7:23 the row's id '../x': 1 to 128 letters, digits, '_', '.' or '-', the first no "
         "'.' or '-' expected\n"},
        {ROWS("{id: x, q: 1, a: 1}, {id: x, q: 1, a: 1}"),
         "t.yaml:7:39 'x' is also the id of the row at t.yaml:7\n"},
        {"task_id: t1234567890123456789012345678901234567890123456789012345678901234567890123456789"
         "012345678901234567890123456789012345678901234567\ndescription: d\ninitial_prompt: p\n"
         "agent: {type: nop}\nsuccess_criteria: [{type: file_exists, description: d, path: a}]\n"
         "dataset: {rows: [{id: "
         "r1234567890123456789012345678901234567890123456789012345678901234567"
         "890123456789012345678901234567890123456789012345678901234567}]}\n",
         "t.yaml:6:18 the task's and the row's id together have 256 characters, at most 254 "
         "expected\n"},
        {ROWS("{id: x, q: 1}"),
         "t.yaml:6:14 ${row.a}: the row 'x' has no such field; it has 'id', 'q'\n"},
        {ROWS("{id: x, q: 1, a: [1]}"),
         "t.yaml:6:14 ${row.a}: a text or number expected, in the row 'x' it is a list\n"},
        {TASK "dataset: {paths: [bad.jsonl]}\n",
         "bad.jsonl:2:1 a JSON object expected\n"
         "bad.jsonl:3:7 a JSON object expected: '}' expected near end of file\n"},
        {TASK "dataset: {paths: [gone.jsonl]}\n", NULL},
        {TASK "dataset: {paths: [latin.jsonl]}\n", NULL},
        /* A row that would lead a criterion out of the workspace. */
        {"task_id: t\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\n"
         "success_criteria: [{type: file_exists, description: d, path: '${row.p}'}]\n"
         "dataset: {rows: [{id: a, p: ok}, {id: b, p: ../../etc/passwd}]}\n",
         "t.yaml:5:62 a relative path that stays inside (no leading '/', no '..') expected, found "
         "the text '../../etc/passwd'\n"},
        /* And one that would bring a private folder into the prompt. */
        {"task_id: t\ndescription: d\ninitial_prompt: '${row.p}'\nagent: {type: nop}\n"
         "success_criteria: [{type: file_exists, description: d, path: a}]\n"
         "dataset: {rows: [{id: a, p: $TASK_DIR/x}]}\n",
         "t.yaml:3:17 $TASK_DIR: the agent has no such folder, only graders do\n"},
    };

    test_write(fixture->folder, "bad.jsonl",
               "{\"id\": \"a\", \"q\": 1, \"a\": 1}\n[1]\n{\"a\": 1\n");
    test_write(fixture->folder, "latin.jsonl", "{\"id\": \"\xe4\"}\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        load(fixture, cases[i].text);

        scoped(mem_freep) char *found = complaints(fixture);

        assert_true(fixture->r < 0);
        if (cases[i].complaint != NULL)
            assert_string_equal(found, cases[i].complaint);
        else
            assert_int_equal(fixture->problems.error_count, 1);
    }
}

static void rows_times_variants_are_limited(void **state)
{
    struct fixture *fixture = *state;
    scoped(buf_done) struct buf rows = {0};
    scoped(buf_done) struct buf variants = {0};

    for (int i = 0; i < 11; i++)
        buf_format(&rows, "{\"id\": \"r%d\", \"q\": 1, \"a\": 1}\n", i);
    buf_text_append(&variants, "experiment_id: e\nvariants:\n");
    for (int i = 0; i < 10; i++)
        buf_format(&variants, "  - {variant_id: v%d}\n", i);
    test_write(fixture->folder, "rows.jsonl", buf_text(&rows));
    test_write(fixture->folder, "e.yaml", buf_text(&variants));
    scoped(mem_freep) char *path = path_join(fixture->folder, "e.yaml");

    fixture->overrides.experiment = path;
    fixture->max_tasks = 110;
    load(fixture, TASK "dataset: {paths: [rows.jsonl]}\n");
    assert_int_equal(fixture->r, 0);
    fixture->max_tasks = 100;
    load(fixture, TASK "dataset: {paths: [rows.jsonl]}\n");
    fixture->overrides.experiment = NULL;

    scoped(mem_freep) char *found = complaints(fixture);

    assert_true(fixture->r < 0);
    assert_string_equal(found, "t.yaml:0:0 more than 100 tasks, with those of rows and variants\n");
}

static void a_template_may_not_hold_the_rows(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "tpl/rows.jsonl", "{\"id\": \"a\", \"q\": 1, \"a\": 1}\n");
    load(fixture, TASK "dataset: {paths: [tpl/rows.jsonl]}\ninput_dir: tpl\n");

    scoped(mem_freep) char *found = complaints(fixture);

    assert_true(fixture->r < 0);
    assert_non_null(
        strstr(found, "tpl/rows.jsonl', of the experiment, dataset or a criterion, which the agent "
                      "must not get"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_row_is_a_task_with_its_values_filled_in),
        TEST(rows_of_files_are_read_line_by_line),
        TEST(only_takes_a_task_or_one_of_its_rows),
        TEST(samples_are_drawn_by_the_seed_from_each_stratum),
        TEST(a_flat_sample_counts_rows),
        TEST(the_tasks_own_seed_counts_unless_one_is_given),
        TEST(rows_come_before_variants),
        TEST(says_what_is_wrong_with_rows),
        TEST(rows_times_variants_are_limited),
        TEST(a_template_may_not_hold_the_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
