/* Mocks, and the steps that run in the agent's cell. */
#include "task/test_fixture.h"

static void complains_about_steps_and_mocks(void **state)
{
    (void)state;
#define SANDBOX(text) WHOLE "sandbox: {" text "}\n"
    static const struct task_overrides none;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {WHOLE "pre_run: [{command: x}, {command: x, runs_in: agent}]\n", ""},
        {WHOLE "pre_run: [{command: x, runs_in: agent}, {command: y}]\n",
         "6:41 pre_run[1].runs_in: a step of the host after one of the agent's is not in this "
         "version; put it before that\n"},
        {WHOLE "pre_run: [{command: 'cat $TASK_DIR/x', runs_in: agent}]\n",
         "6:21 pre_run[0].command: $TASK_DIR: the agent has no such folder, only graders do\n"},
        {SANDBOX("mock_path_dirs: [m, ./bin/]"), ""},
        {SANDBOX("mock_path_dirs: [../m, 'a:b']"),
         "6:28 sandbox.mock_path_dirs[0]: a relative path that stays inside (no leading '/', no "
         "'..') expected, found the text '../m'\n"
         "6:34 sandbox.mock_path_dirs: a path without ':' expected, which would be two on PATH\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &none, &found);

        assert_string_equal(found, cases[i].complaint);
    }
}

static void folders_of_mocks_are_normal_paths_in_their_order(void **state)
{
    static const struct task_overrides none;
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *task =
        parse(SANDBOX("mock_path_dirs: [z/, ./a//b]"), &none, &found);

    (void)state;
    assert_string_equal(found, "");
    assert_int_equal(task->public_half->mock_dirs.count, 2);
    assert_string_equal(task->public_half->mock_dirs.items[0], "z");
    assert_string_equal(task->public_half->mock_dirs.items[1], "a/b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complains_about_steps_and_mocks),
        cmocka_unit_test(folders_of_mocks_are_normal_paths_in_their_order),
    };

    return cmocka_run_group_tests_name("task_mocks", tests, make_folder, remove_folder);
}
