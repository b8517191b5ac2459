#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "run/run_plan.h"

/* A folder with tasks "a" and "b"; b is skipped. */
struct suite {
    char *root;
    struct str_list paths;
};

static const char task_a[] = "task_id: a\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\n"
                             "success_criteria:\n"
                             "  - {type: file_exists, description: e, path: x}\n";
static const char task_a_regraded[] =
    "task_id: a\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\n"
    "success_criteria:\n"
    "  - {type: file_exists, description: e, path: y}\n";
static const char task_a_reprompted[] =
    "task_id: a\ndescription: d\ninitial_prompt: other\nagent: {type: nop}\n"
    "success_criteria:\n"
    "  - {type: file_exists, description: e, path: x}\n";
static const char task_b[] = "task_id: b\ndescription: d\ninitial_prompt: p\nagent: {type: nop}\n"
                             "skip: not now\nsuccess_criteria:\n"
                             "  - {type: file_exists, description: e, path: x}\n";

static int open_plain(void *context, const char *path, int flags)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);

    (void)context;
    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {.open = open_plain};

static void write_task(const struct suite *suite, const char *name, const char *text)
{
    scoped(mem_freep) char *path = path_join(suite->root, name);

    assert_int_equal(fs_write_atomic(AT_FDCWD, path,
                                     &(struct fs_content){text, strlen(text), 0600, FS_NO_SYNC},
                                     NULL),
                     0);
}

static int set_up(void **state)
{
    struct suite *suite = mem_new(1, sizeof(*suite));
    char name[] = "/tmp/test_run_plan.XXXXXX";

    suite->root = str_dup(mkdtemp(name));
    str_list_add(&suite->paths, suite->root);
    write_task(suite, "a.yaml", task_a);
    write_task(suite, "b.yaml", task_b);
    *state = suite;
    return 0;
}

static int tear_down(void **state)
{
    struct suite *suite = *state;

    assert_int_equal(fs_remove_tree(AT_FDCWD, suite->root, NULL), 0);
    str_list_done(&suite->paths);
    free(suite->root);
    free(suite);
    return 0;
}

static void load(const struct suite *suite, unsigned repeats, struct run_plan *ret)
{
    const struct task_overrides overrides = {0};
    const struct task_selection selection = {0};
    const struct task_query query = {&suite->paths, &reader, &overrides, &selection, 0, NULL, NULL};
    scoped(problems_done) struct problems problems = {0};
    struct task_set set = {0};

    assert_int_equal(tasks_load(&query, &set, &problems, NULL), 0);
    run_plan_make(&set, repeats, ret);
}

static json_t *record(const struct suite *suite, const struct run_plan *plan)
{
    const struct task_overrides overrides = {.agent = "script:x.sh"};
    const struct task_selection selection = {0};
    const struct plan_inputs inputs = {
        .paths = &suite->paths, .overrides = &overrides, .selection = &selection, .grading = true};

    return run_plan_json(plan, &inputs);
}

static void plans_each_task_as_often_as_asked_and_skipped_ones_never(void **state)
{
    scoped(run_plan_done) struct run_plan plan = {0};

    load(*state, 2, &plan);
    assert_int_equal(plan.tasks.count, 2);
    assert_int_equal(plan.trial_count, 2);
    assert_string_equal(plan.trials[0].path, "trials/default/a/00");
    assert_string_equal(plan.trials[1].id, "default/a/01");
}

static void records_paths_that_hold_from_any_folder(void **state)
{
    scoped(run_plan_done) struct run_plan plan = {0};

    load(*state, 1, &plan);

    scoped(json_freep) json_t *json = record(*state, &plan);
    const json_t *inputs = json_get_object(json, "inputs");
    const char *agent = json_get_text(inputs, "agent");

    assert_string_equal(json_get_text(json, "schema"), "closedbook/plan/1");
    assert_int_equal(json_array_size(json_get_array(json, "trials")), 1);
    assert_true(str_starts(agent, "script:/") && str_ends(agent, "/x.sh"));
}

static void names_what_changed_since_the_run_began(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {task_a, NULL},
        {task_a_regraded, "task 'a': the graders changed since the run began"},
        {task_a_reprompted, "task 'a': what the agent gets changed since the run began"},
    };
    scoped(run_plan_done) struct run_plan before = {0};

    load(*state, 1, &before);

    scoped(json_freep) json_t *recorded = record(*state, &before);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(run_plan_done) struct run_plan now = {0};
        scoped(error_freep) struct error *err = NULL;

        write_task(*state, "a.yaml", cases[i].text);
        load(*state, 1, &now);
        assert_int_equal(run_plan_compare(&now, recorded, &err),
                         cases[i].part == NULL ? 0 : -ERROR_USER);
        if (cases[i].part != NULL)
            assert_true(str_starts(error_message(err), cases[i].part));
    }
}

static void refuses_another_number_of_repeats(void **state)
{
    scoped(run_plan_done) struct run_plan before = {0};
    scoped(run_plan_done) struct run_plan more = {0};
    scoped(error_freep) struct error *err = NULL;

    load(*state, 1, &before);
    load(*state, 2, &more);

    scoped(json_freep) json_t *recorded = record(*state, &before);

    assert_int_equal(run_plan_compare(&more, recorded, &err), -ERROR_USER);
    assert_true(str_starts(error_message(err), "task 'a': 1 trial of it planned, 2 now"));
}

static void names_a_task_that_came_or_went(void **state)
{
    struct suite *suite = *state;
    scoped(run_plan_done) struct run_plan before = {0};
    scoped(run_plan_done) struct run_plan after = {0};
    scoped(error_freep) struct error *gone = NULL;
    scoped(error_freep) struct error *came = NULL;
    scoped(mem_freep) char *path = path_join(suite->root, "b.yaml");

    load(suite, 1, &before);
    assert_int_equal(unlink(path), 0);
    load(suite, 1, &after);

    scoped(json_freep) json_t *recorded = record(suite, &before);
    scoped(json_freep) json_t *smaller = record(suite, &after);

    assert_int_equal(run_plan_compare(&after, recorded, &gone), -ERROR_USER);
    assert_true(str_starts(error_message(gone), "task 'b' of the run is gone"));
    assert_int_equal(run_plan_compare(&before, smaller, &came), -ERROR_USER);
    assert_true(str_starts(error_message(came), "task 'b' was not part of the run"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plans_each_task_as_often_as_asked_and_skipped_ones_never,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(records_paths_that_hold_from_any_folder, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_what_changed_since_the_run_began, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refuses_another_number_of_repeats, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_a_task_that_came_or_went, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
