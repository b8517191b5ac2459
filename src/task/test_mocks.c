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
        {SANDBOX("record_cli: [{tool: uip, responses: [{when: {verb: a, flags: {x: 1}}, stdout: "
                 "y}]}, {tool: id, passthrough: true}]"),
         ""},
        {SANDBOX("record_cli: [{tool: git}, {tool: a/b}, {tool: x}, {tool: x}, {}]"),
         "6:31 sandbox.record_cli[0].tool: 'git' cannot be recorded: too much else runs by it\n"
         "6:44 sandbox.record_cli[1].tool: the bare name of a program expected: letters, digits "
         "and '._+-', at most 63\n"
         "6:68 sandbox.record_cli[3].tool: 'x' is recorded twice\n"
         "6:72 sandbox.record_cli[4].tool: required: a text expected, found nothing\n"},
        {SANDBOX("record_cli: [{tool: x, exit_code: 256, stdot: y}]"),
         "6:45 sandbox.record_cli[0].exit_code: a whole number from 0 to 255 expected, found the "
         "number 256\n"
         "6:50 sandbox.record_cli[0].stdot: unknown key, did you mean 'stdout'?\n"},
        {SANDBOX("record_cli: [{tool: x, responses: [{when: {flags: {a: {matches_regex: b}}}}, "
                 "{passthrough: true, stdout: y}]}]"),
         "6:65 sandbox.record_cli[0].responses[0].when.flags.a: matches_regex in a response is not "
         "in this version: use equals, contains or any_of\n"
         "6:88 sandbox.record_cli[0].responses[1]: either passthrough or stdout and stderr: the "
         "real program says what it says\n"},
        {SANDBOX("driver: tempdir, record_cli: [{tool: x}]"),
         "6:40 sandbox.record_cli: the driver tempdir has no cell outside of which the answers "
         "could be\n"},
        {SANDBOX("mocks: sealed"),
         "6:18 sandbox.mocks: sealed are the folders of mock_path_dirs, and there are none\n"},
        {SANDBOX("mocks: open, mock_path_dirs: [m]"),
         "6:18 sandbox.mocks: one of 'sealed' expected, found the text 'open'\n"},
        {SANDBOX("mocks: sealed, mock_path_dirs: [m, .]"),
         "6:18 sandbox.mocks: the workspace itself cannot be sealed: put the programs in a "
         "folder\n"},
        {SANDBOX("mocks: sealed, mock_path_dirs: [m], driver: tempdir"),
         "6:18 sandbox.mocks: the driver tempdir has no cell beside which the programs could "
         "run\n"},
        {SANDBOX("mocks: sealed, mock_path_dirs: [m], identity: root"),
         "6:18 sandbox.mocks: sealed programs beside an agent that is root (identity: root) are "
         "not in this version\n"},
        {WHOLE "pre_run: [{command: x}]\nsandbox: {mocks: sealed, mock_path_dirs: [m]}\n",
         "7:18 sandbox.mocks: sealed folders together with pre_run steps of the host are not in "
         "this version: use runs_in: agent\n"},
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
