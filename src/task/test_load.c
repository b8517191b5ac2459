/* From files and folders to a set of tasks, how problems are shown, and the configuration. */
#include <unistd.h>

#include "task/internal.h"
#include "task/test_support.h"

#define TASK(id, tags)                                                                             \
    "task_id: " id "\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\ntags: [" tags "]\n"   \
    "success_criteria: [{type: file_exists, description: d, path: a}]\n"

/* One load: what it is given, what came out. */
struct load {
    struct str_list paths;
    struct task_selection selection;
    struct task_overrides overrides;
    struct test_reader reader;
    struct task_set set;
    struct problems problems;
    int r;
};

static void load(struct load *load, const char *folder, const char *name)
{
    struct task_reader reader = {test_open, &load->reader};
    scoped(error_freep) struct error *err = NULL;
    scoped(mem_freep) char *path = path_join(folder, name);

    str_list_add(&load->paths, path);

    const struct task_query query = {&load->paths, &reader, &load->overrides, &load->selection, 0,
                                     NULL,         NULL};

    load->r = tasks_load(&query, &load->set, &load->problems, &err);
    assert_int_equal(load->r == 0, err == NULL);
    /* Accepted xor complained: no error is told without a problem or a reason of its own. */
    if (load->problems.error_count > 0)
        assert_int_not_equal(load->r, 0);
}

static void load_done(struct load *load)
{
    str_list_done(&load->paths);
    problems_done(&load->problems);
    if (load->r == 0)
        task_set_done(&load->set);
}

/* "a b " for the ids of a set; owned. */
static char *ids_of(const struct task_set *set)
{
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < set->count; i++)
        buf_format(&buf, "%s%s ", task_id(set->tasks[i]),
                   task_skip_reason(set->tasks[i]) == NULL ? "" : "(skipped)");
    return buf_take(&buf);
}

/* The problems as text, the folder's random name left out; owned. */
static char *shown(const struct load *load, const char *folder, bool all, bool github)
{
    scoped(buf_done) struct buf buf = {0}, out = {0};

    problems_format(&load->problems, all, github, &buf);
    for (const char *s = buf_text(&buf); *s != '\0';) {
        if (str_starts(s, folder)) {
            s += strlen(folder) + 1;
            continue;
        }
        buf_char(&out, *s++);
    }
    return buf_take(&out);
}

static void test_folder_freep(char **folder)
{
    test_folder_remove(*folder);
}

static void finds_tasks_at_any_depth_in_order(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};
    scoped(mem_freep) char *link = path_join(folder, "link.yaml");
    scoped(mem_freep) char *pipe = path_join(folder, "pipe.yaml");

    test_write(folder, "z/deep/er/b.yml", TASK("b", ""));
    test_write(folder, "c.yaml", TASK("c", ""));
    test_write(folder, "a/task.yaml", TASK("a", ""));
    test_write(folder, "a/other.yaml", "key: value\n");
    test_write(folder, "a/broken.yaml", "key: [value\n");
    test_write(folder, "a/notes.txt", TASK("x1", ""));
    test_write(folder, ".hidden/t.yaml", TASK("x2", ""));
    test_write(folder, "node_modules/t.yaml", TASK("x3", ""));
    test_write(folder, ".t.yaml", TASK("x4", ""));
    assert_int_equal(symlink("c.yaml", link), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    load(&found, folder, "");
    scoped(mem_freep) char *ids = ids_of(&found.set);
    scoped(mem_freep) char *text = shown(&found, folder, false, false);

    assert_int_equal(found.r, 0);
    assert_string_equal(ids, "a b c ");
    assert_string_equal(text, "link.yaml: note: a symbolic link, not followed\n");
}

static void a_file_given_twice_is_one_task(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};
    scoped(mem_freep) char *file = path_join(folder, "./t.yaml");

    test_write(folder, "t.yaml", TASK("t", ""));
    str_list_add(&found.paths, file);
    str_list_add(&found.paths, file);
    load(&found, folder, "");
    assert_int_equal(found.r, 0);
    assert_int_equal(found.set.count, 1);
}

static void complains_about_what_cannot_be_loaded(void **state)
{
    (void)state;
    static const struct {
        const char *file, *text, *named, *complaint;
        int r;
    } cases[] = {
        {"a.yaml", TASK("a", ""), "no.yaml",
         "no.yaml: cannot be opened: No such file or directory\n", -ERROR_TASK},
        {"a.yaml", "key: value\n", "a.yaml", "a.yaml: no task_id in it: not a task\n", -ERROR_TASK},
        {"a.yaml", "key: value\n", "", "", -ERROR_USER},
        {"a.yaml", "", "a.yaml", "a.yaml: empty: no YAML document in it\n", -ERROR_TASK},
        {"a.yaml", "task_id: [a\n", "",
         "a.yaml:2:1: did not find expected ',' or ']' (while parsing a flow sequence that starts "
         "at "
         "1:10)\n",
         -ERROR_TASK},
        {"a.yaml", "task_id: a\ntask_id: b\n", "",
         "a.yaml:2:1: the key 'task_id' is here twice, first at 1:1\n"
         "     2 | task_id: b\n"
         "       | ^\n",
         -ERROR_TASK},
        {"a.yaml", "task_id: \xff\n", "a.yaml",
         "a.yaml:1:10: not UTF-8: the byte 0xff\n"
         "     1 | task_id: \\xff\n"
         "       |          ^\n",
         -ERROR_TASK},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(test_folder_freep) char *folder = test_folder();
        scoped(load_done) struct load found = {0};

        test_write(folder, cases[i].file, cases[i].text);
        load(&found, folder, cases[i].named);
        scoped(mem_freep) char *text = shown(&found, folder, false, false);

        assert_string_equal(text, cases[i].complaint);
        assert_int_equal(found.r, cases[i].r);
    }
}

static void what_the_reader_cannot_open_is_an_error_with_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *deny, *complaint;
        int errno_value;
    } cases[] = {
        {"b.yaml", "sub/b.yaml: cannot be opened: Permission denied\n", EACCES},
        {"b.yaml", "sub/b.yaml: cannot be opened: Input/output error\n", EIO},
        {"sub", "sub: cannot be opened: Permission denied\n", EACCES},
        {"closedbook.yaml", "sub/closedbook.yaml: cannot be opened: Permission denied\n", EACCES},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(test_folder_freep) char *folder = test_folder();
        scoped(load_done) struct load found = {
            .reader = {.deny = cases[i].deny, .errno_value = cases[i].errno_value}};

        test_write(folder, "sub/b.yaml", TASK("b", ""));
        load(&found, folder, "");
        scoped(mem_freep) char *text = shown(&found, folder, false, false);

        assert_string_equal(text, cases[i].complaint);
        assert_true(found.r < 0);
    }
}

static void a_huge_file_is_an_error_when_named_and_remarked_on_otherwise(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load named = {0}, found = {0};
    scoped(mem_freep) char *large = mem_new(TASK_BYTES_MAX + 2, 1);

    memset(large, '#', TASK_BYTES_MAX + 1);
    test_write(folder, "large.yaml", large);
    test_write(folder, "t.yaml", TASK("t", ""));
    load(&named, folder, "large.yaml");
    load(&found, folder, "");
    scoped(mem_freep) char *first = shown(&named, folder, false, false);
    scoped(mem_freep) char *second = shown(&found, folder, false, false);

    assert_string_equal(first, "large.yaml: larger than 1048576 bytes\n");
    assert_string_equal(second, "large.yaml: warning: larger than 1048576 bytes\n");
    assert_int_equal(found.r, 0);
}

static void two_tasks_of_one_id_are_an_error_that_names_both(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};

    test_write(folder, "one.yaml", TASK("t", ""));
    test_write(folder, "two.yaml", "\n" TASK("t", ""));
    load(&found, folder, "");
    scoped(mem_freep) char *text = shown(&found, folder, false, false);

    assert_true(str_starts(text, "two.yaml:2:1: task_id: 't' is also the id of "));
    assert_true(str_ends(text, "one.yaml:1\n"));
    assert_int_equal(found.r, -ERROR_TASK);
}

static void selects_by_id_and_tags(void **state)
{
    (void)state;
    static const struct {
        const char *only, *tags[2], *excluded[2], *ids;
        bool include_skipped;
    } cases[] = {
        {NULL, {NULL}, {NULL}, "a b c s(skipped) ", false},
        {NULL, {NULL}, {NULL}, "a b c s ", true},
        {"b", {NULL}, {NULL}, "b ", false},
        {NULL, {"x"}, {NULL}, "a b ", false},
        {NULL, {"x,y"}, {NULL}, "a b c s(skipped) ", false},
        {NULL, {"x", "y"}, {NULL}, "b ", false},
        {NULL, {"none"}, {NULL}, "", false},
        {NULL, {NULL}, {"y"}, "a ", false},
        {NULL, {NULL}, {"x,y"}, "", false},
        {NULL, {NULL}, {"x", "y"}, "a c s(skipped) ", false},
        {NULL, {"x"}, {"y"}, "a ", false},
    };
    scoped(test_folder_freep) char *folder = test_folder();

    test_write(folder, "a.yaml", TASK("a", "x"));
    test_write(folder, "b.yaml", TASK("b", "x, y"));
    test_write(folder, "c.yaml", TASK("c", "y"));
    test_write(folder, "s.yaml", TASK("s", "y") "skip: broken\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(load_done) struct load found = {0};
        scoped(str_list_done) struct str_list only = {0}, tags = {0}, excluded = {0};

        for (size_t j = 0; j < 2; j++) {
            if (cases[i].tags[j] != NULL)
                str_list_add(&tags, cases[i].tags[j]);
            if (cases[i].excluded[j] != NULL)
                str_list_add(&excluded, cases[i].excluded[j]);
        }
        if (cases[i].only != NULL)
            str_list_add(&only, cases[i].only);
        found.selection = (struct task_selection){.only = &only,
                                                  .tags = &tags,
                                                  .exclude_tags = &excluded,
                                                  .include_skipped = cases[i].include_skipped};
        load(&found, folder, "");
        assert_int_equal(found.r, 0);
        scoped(mem_freep) char *ids = ids_of(&found.set);

        assert_string_equal(ids, cases[i].ids);
    }
}

static void an_unknown_id_is_an_error_with_the_nearest(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};
    scoped(str_list_done) struct str_list only = {0};

    test_write(folder, "a.yaml", TASK("fizzbuzz", ""));
    str_list_add(&only, "fizbuzz");
    found.selection.only = &only;
    load(&found, folder, "");
    scoped(mem_freep) char *text = shown(&found, folder, false, false);

    assert_string_equal(text, "--only fizbuzz: no task has this id, did you mean 'fizzbuzz'?\n");
}

static void mistakes_of_tasks_that_are_not_wanted_do_not_count(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0}, every = {0};
    scoped(str_list_done) struct str_list only = {0};

    test_write(folder, "a.yaml", TASK("a", ""));
    test_write(folder, "b.yaml", TASK("b", "") "sandbox: {drivr: x}\n");
    test_write(folder, "s.yaml", TASK("s", "") "skip: true\nsandbox: {drivr: x}\n");
    test_write(folder, "x.yaml", "task_id: [x\n");
    str_list_add(&only, "a");
    found.selection.only = &only;
    load(&found, folder, "");
    load(&every, folder, "");
    assert_int_equal(found.r, 0);
    assert_int_equal(found.set.count, 1);
    assert_int_equal(every.problems.error_count, 2);
}

static void identical_problems_are_grouped(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};

    for (int i = 0; i < 5; i++) {
        scoped(mem_freep) char *name = str_format("t%d.yaml", i);
        scoped(mem_freep) char *text = str_format(TASK("t%d", "") "max_iterations: 3\n", i);

        test_write(folder, name, text);
    }
    test_write(folder, "z.yaml", TASK("z", "") "sandbox: {drivr: x}\n");
    load(&found, folder, "");
    scoped(mem_freep) char *grouped = shown(&found, folder, false, false);
    scoped(mem_freep) char *all = shown(&found, folder, true, false);
    size_t count = 0;

    assert_string_equal(
        grouped, "warning, 5 times: legacy, has no effect: run_limits.max_turns limits a run\n"
                 "  t0.yaml:7:1: max_iterations\n"
                 "     7 | max_iterations: 3\n"
                 "       | ^\n"
                 "  t1.yaml:7:1: max_iterations\n"
                 "  t2.yaml:7:1: max_iterations\n"
                 "  and 2 more\n"
                 "z.yaml:7:11: sandbox.drivr: unknown key, did you mean 'driver'?\n"
                 "     7 | sandbox: {drivr: x}\n"
                 "       |           ^\n");
    for (const char *s = strstr(all, "legacy"); s != NULL; s = strstr(s + 1, "legacy"))
        count++;
    assert_int_equal(count, 5);
}

static void what_is_shown_cannot_move_the_cursor_or_end_a_command(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};

    /* A direction override, an escape written in YAML, and what a workflow command may not hold. */
    test_write(folder, "a:b,c.yaml",
               TASK("t", "") "sandbox: {\"x\\e[2J%\\n::\": 1, \xe2\x80\xae\xc3\xa4: 1}\n");
    load(&found, folder, "");
    scoped(mem_freep) char *text = shown(&found, folder, true, true);

    assert_null(strchr(text, '\x1b'));
    assert_null(strstr(text, "\xe2\x80\xae\xc3\xa4: 1"));
    assert_non_null(strstr(text, "\\x1b[2J%\\n::"));
    assert_non_null(strstr(text, "\\u{202e}\xc3\xa4"));
    assert_non_null(strstr(text, "a%3Ab%2Cc.yaml,line=7,col=11::sandbox.x%1B[2J%25%0A::: unknown"));
}

static void the_caret_stands_below_its_place(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};

    /* Wide characters take two columns; a long line is cut around the place. */
    test_write(folder, "t.yaml",
               TASK("t", "") "sandbox: {\xe6\x97\xa5\xe6\x9c\xac: 1, drivr: 1}\n"
                             "run_limits: {                                     "
                             "                                                  "
                             "                    z: 1}\n");
    load(&found, folder, "");
    scoped(mem_freep) char *out = shown(&found, folder, true, false);

    assert_non_null(strstr(out, "     7 | sandbox: {\xe6\x97\xa5\xe6\x9c\xac: 1, drivr: 1}\n"
                                "       |                    ^\n"));
    scoped(mem_freep) char *cut = str_format("     8 | ...%60sz: 1}\n       | %63s^\n", "", "");

    assert_non_null(strstr(out, cut));
}

static void problems_stop_at_their_cap_and_count_on(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, TASK("t", "") "sandbox: {");
    for (int i = 0; i < TASK_PROBLEMS_MAX + 500; i++)
        buf_format(&text, "x%d: 1, ", i);
    buf_text_append(&text, "}\n");
    test_write(folder, "t.yaml", buf_text(&text));
    load(&found, folder, "");
    scoped(mem_freep) char *out = shown(&found, folder, false, false);

    assert_int_equal(found.problems.count, TASK_PROBLEMS_MAX);
    assert_int_equal(found.problems.error_count, TASK_PROBLEMS_MAX + 500);
    assert_true(str_ends(out, "and 500 more problems that are not listed\n"));
}

static void remarks_do_not_crowd_out_an_error(void **state)
{
    (void)state;
    scoped(problems_done) struct problems problems = {0};
    struct mark nowhere = {0};
    scoped(buf_done) struct buf buf = {0};

    for (int i = 0; i < TASK_PROBLEMS_MAX; i++)
        problems_warning(&problems, nowhere, NULL, "remark %d", i % 10);
    problems_error(&problems, nowhere, NULL, "mistake");
    problems_format(&problems, false, false, &buf);
    assert_non_null(strstr(buf_text(&buf), "mistake"));
    assert_int_equal(problems.error_count, 1);
}

static void problems_have_a_form_for_programs(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};

    test_write(folder, "t.yaml", TASK("t", "") "max_iterations: 3\n");
    load(&found, folder, "");
    scoped(json_freep) json_t *array = problems_to_json(&found.problems);
    const json_t *first = json_array_get(array, 0);

    assert_int_equal(json_array_size(array), 1);
    assert_string_equal(json_get_text(first, "level"), "warning");
    assert_string_equal(json_get_text(first, "path"), "max_iterations");
    assert_int_equal(json_get_int(first, "line", 0), 7);
}

/* The suite root of the one task in a folder that a mark was put in; owned. */
static char *root_with(const char *mark, const char *given)
{
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {0};
    scoped(mem_freep) char *root = given == NULL ? NULL : path_join(folder, given);
    const struct task_public *open;
    const struct task_private *secret;

    test_write(folder, "suite/tests/a/t.yaml", TASK("t", ""));
    if (mark != NULL)
        test_write(folder, mark, "");
    found.overrides.suite_root = root;
    load(&found, folder, "");
    assert_int_equal(found.r, 0);
    task_split(found.set.tasks[0], &open, &secret);
    assert_true(path_is_below(secret->task_dir, secret->suite_root));
    return str_dup(secret->suite_root + strlen(folder));
}

static void the_suite_root_is_the_nearest_that_is_marked(void **state)
{
    (void)state;
    static const struct {
        const char *mark, *given, *root;
    } cases[] = {
        {NULL, NULL, "/suite/tests/a"},
        {"suite/.git/HEAD", NULL, "/suite"},
        {"suite/.git", NULL, "/suite"},
        {"suite/.claude-plugin/plugin.json", NULL, "/suite"},
        {"suite/tests/.claude-plugin/marketplace.json", NULL, "/suite/tests"},
        {"suite/plugin.json", NULL, "/suite/tests/a"},
        {"suite/.git", "suite/tests/", "/suite/tests"},
        {"suite/.git", "", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *root = root_with(cases[i].mark, cases[i].given);

        assert_string_equal(root, cases[i].root);
    }
}

static void a_task_outside_the_suite_root_is_an_error(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(load_done) struct load found = {.overrides = {.suite_root = "/usr/lib"}};

    test_write(folder, "t.yaml", TASK("t", ""));
    load(&found, folder, "");
    scoped(mem_freep) char *text = shown(&found, folder, false, false);

    assert_string_equal(text, "t.yaml: the task is not inside the suite root '/usr/lib'\n");
}

static void the_configuration_says_where_each_value_came_from(void **state)
{
    (void)state;
    scoped(test_folder_freep) char *folder = test_folder();
    scoped(mem_freep) char *user = path_join(folder, "config.yaml");
    scoped(config_freep) struct config *config = NULL;
    scoped(problems_done) struct problems problems = {0};
    struct test_reader files = {0};
    struct task_reader reader = {test_open, &files};

    test_write(folder, "closedbook.yaml", "agent: {type: nop}\nlimits: {max_pids: 9}\n");
    test_write(folder, "config.yaml", "driver: tempdir\n");
    assert_int_equal(config_load(folder, user, &reader, &config, &problems, NULL), 0);
    scoped(json_freep) json_t *array = config_to_json(config);
    scoped(buf_done) struct buf seen = {0};
    size_t i;
    json_t *item;

    json_array_foreach (array, i, item) {
        if (strcmp(json_get_text(item, "source"), "default") != 0)
            buf_format(&seen, "%s %s %d\n", json_get_text(item, "path"),
                       json_get_text(item, "source"), (int)json_get_int(item, "line", 0));
    }
    assert_string_equal(buf_text(&seen), "agent.type closedbook.yaml 1\n"
                                         "sandbox.driver config.yaml 1\n"
                                         "sandbox.limits.max_pids closedbook.yaml 2\n");
}

static void complains_about_the_configuration(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"agnt: nop\n", "1:1 agnt: unknown key, did you mean 'agent'?\n"},
        {"agent: npo\n", "1:8 agent.type: unknown value 'npo', did you mean 'nop'?\n"},
        {"driver: qemu\n", "1:9 sandbox.driver: one of 'native', 'docker', 'podman', 'tempdir' "
                           "expected, found the text 'qemu'\n"},
        {"limits: {timeout: x}\n",
         "1:19 limits.timeout: a number above 0 and up to 604800 expected, "
         "found the text 'x'\n"},
        {"routes: {a: b}\n", "1:9 routes: a list of maps expected, found a map\n"},
        {"routes: [{name: a}]\n",
         "1:9 routes: endpoints and their keys are the user's: name them in config.yaml\n"},
        {"", "0:0 empty: no YAML document in it\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(test_folder_freep) char *folder = test_folder();
        scoped(config_freep) struct config *config = NULL;
        scoped(problems_done) struct problems problems = {0};
        struct test_reader files = {0};
        struct task_reader reader = {test_open, &files};

        test_write(folder, "closedbook.yaml", cases[i].text);
        assert_int_equal(config_load(folder, NULL, &reader, &config, &problems, NULL), -ERROR_USER);
        scoped(mem_freep) char *found = test_complaints(&problems);

        assert_string_equal(found, cases[i].complaint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_tasks_at_any_depth_in_order),
        cmocka_unit_test(a_file_given_twice_is_one_task),
        cmocka_unit_test(complains_about_what_cannot_be_loaded),
        cmocka_unit_test(what_the_reader_cannot_open_is_an_error_with_its_name),
        cmocka_unit_test(a_huge_file_is_an_error_when_named_and_remarked_on_otherwise),
        cmocka_unit_test(two_tasks_of_one_id_are_an_error_that_names_both),
        cmocka_unit_test(selects_by_id_and_tags),
        cmocka_unit_test(an_unknown_id_is_an_error_with_the_nearest),
        cmocka_unit_test(mistakes_of_tasks_that_are_not_wanted_do_not_count),
        cmocka_unit_test(identical_problems_are_grouped),
        cmocka_unit_test(what_is_shown_cannot_move_the_cursor_or_end_a_command),
        cmocka_unit_test(the_caret_stands_below_its_place),
        cmocka_unit_test(problems_stop_at_their_cap_and_count_on),
        cmocka_unit_test(remarks_do_not_crowd_out_an_error),
        cmocka_unit_test(problems_have_a_form_for_programs),
        cmocka_unit_test(the_suite_root_is_the_nearest_that_is_marked),
        cmocka_unit_test(a_task_outside_the_suite_root_is_an_error),
        cmocka_unit_test(the_configuration_says_where_each_value_came_from),
        cmocka_unit_test(complains_about_the_configuration),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
