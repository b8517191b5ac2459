#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"

static char *joined(const struct str_list *list)
{
    struct buf buf = {0};

    for (size_t i = 0; i < list->count; i++)
        buf_format(&buf, "%s%s", i == 0 ? "" : "|", list->items[i]);
    return buf_take(&buf);
}

static int plan(const struct task_public *task, int script_fd, struct agent_turn *ret,
                struct error **err)
{
    return agent_adapter_of(task->agent.type)
        ->plan_turn(task, &(struct agent_place){.script_fd = script_fd}, ret, err);
}

/* A task for tests: the strings are literals, so it is never freed. */
static struct task_public task_of(enum task_agent_type type, const char *prompt)
{
    return (struct task_public){
        .prompt = str_dup(prompt),
        .agent = {.type = type},
    };
}

static void task_done(struct task_public *task)
{
    free(task->prompt);
    free(task->agent.script);
    str_list_done(&task->agent.command);
    str_list_done(&task->agent.env);
}

static void has_a_row_for_each_agent_that_runs_here(void **state)
{
    (void)state;
    static const struct {
        enum task_agent_type type;
        const char *name;
    } cases[] = {
        {AGENT_SCRIPT, "script"}, {AGENT_EXEC, "exec"}, {AGENT_NOP, "nop"},
        {AGENT_NONE, "none"},     {AGENT_ORACLE, NULL}, {AGENT_UNSET, NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct agent_adapter *adapter = agent_adapter_of(cases[i].type);

        assert_true(str_equal(adapter == NULL ? NULL : adapter->name, cases[i].name));
    }
}

static void puts_the_prompt_where_a_command_wants_it(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        const char *argv, *stdin_text;
    } cases[] = {
        {{"agent"}, "agent", "do it"},
        {{"agent", "-p", "{prompt}"}, "agent|-p|do it", NULL},
        {{"agent", "say: {prompt}, {prompt}!"}, "agent|say: do it, do it!", NULL},
        {{"agent", "{prompt", "{}", "prompt}"}, "agent|{prompt|{}|prompt}", "do it"},
        {{"agent", ""}, "agent|", "do it"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(task_done) struct task_public task = task_of(AGENT_EXEC, "do it");
        scoped(agent_turn_done) struct agent_turn turn = {0};

        for (size_t w = 0; w < 4 && cases[i].words[w] != NULL; w++)
            str_list_add(&task.agent.command, cases[i].words[w]);
        assert_int_equal(plan(&task, -1, &turn, NULL), 0);

        scoped(mem_freep) char *argv = joined(&turn.argv);

        assert_string_equal(argv, cases[i].argv);
        assert_true(str_equal(turn.stdin_text, cases[i].stdin_text));
        assert_true(turn.events_on_fd3);
        assert_null(turn.script.target);
    }
}

static void never_expands_a_placeholder_inside_the_prompt(void **state)
{
    (void)state;
    scoped(task_done) struct task_public task = task_of(AGENT_EXEC, "a {prompt} b");
    scoped(agent_turn_done) struct agent_turn turn = {0};

    str_list_add(&task.agent.command, "x{prompt}y");
    assert_int_equal(plan(&task, -1, &turn, NULL), 0);
    assert_string_equal(turn.argv.items[0], "xa {prompt} by");
}

static void refuses_what_the_kernel_would_not_take(void **state)
{
    (void)state;
    static const struct {
        size_t prompt_bytes, words;
        int result;
    } cases[] = {
        {AGENT_ARG_BYTES_MAX, 1, 0},
        {AGENT_ARG_BYTES_MAX + 1, 1, -ERROR_TASK},
        {AGENT_ARG_BYTES_MAX, 7, 0},
        {AGENT_ARG_BYTES_MAX, 8, -ERROR_TASK},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(task_done) struct task_public task = task_of(AGENT_EXEC, "");
        scoped(agent_turn_done) struct agent_turn turn = {0};
        scoped(error_freep) struct error *err = NULL;

        free(task.prompt);
        task.prompt = mem_new(cases[i].prompt_bytes + 1, 1);
        memset(task.prompt, 'p', cases[i].prompt_bytes);
        str_list_add(&task.agent.command, "agent");
        for (size_t w = 0; w < cases[i].words; w++)
            str_list_add(&task.agent.command, "{prompt}");
        assert_int_equal(plan(&task, -1, &turn, &err), cases[i].result);
        assert_int_equal(turn.argv.count, cases[i].result == 0 ? cases[i].words + 1 : 0);
    }
}

static void refuses_a_command_without_a_program(void **state)
{
    (void)state;
    scoped(task_done) struct task_public task = task_of(AGENT_EXEC, "p");
    struct agent_turn turn = {0};

    assert_int_equal(plan(&task, -1, &turn, NULL), -ERROR_TASK);
    str_list_add(&task.agent.command, "");
    assert_int_equal(plan(&task, -1, &turn, NULL), -ERROR_TASK);
}

static void brings_a_script_into_the_cell(void **state)
{
    (void)state;
    static const char program[] = "#!/bin/sh\ncat\n";
    scoped(task_done) struct task_public task = task_of(AGENT_SCRIPT, "do it");
    scoped(agent_turn_done) struct agent_turn turn = {0};
    scoped(fd_closep) int fd = -1;

    task.agent.script = str_dup("/home/somebody/suite/solve.sh");
    str_list_add(&task.agent.env, "HINT=x");
    str_list_add(&task.agent.env, AGENT_EVENTS_ENV "=9");
    assert_int_equal(fs_memfd("script", program, strlen(program), &fd, NULL), 0);
    assert_true(lseek(fd, 5, SEEK_SET) == 5);
    assert_int_equal(plan(&task, fd, &turn, NULL), 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 5);

    scoped(mem_freep) char *argv = joined(&turn.argv);

    assert_string_equal(argv, AGENT_SCRIPT_PATH);
    assert_string_equal(turn.script.target, AGENT_SCRIPT_PATH);
    assert_true(turn.script.executable);
    assert_int_equal(turn.script.size_bytes, strlen(program));
    assert_memory_equal(turn.script.bytes, program, strlen(program));
    assert_string_equal(turn.stdin_text, "do it");
    assert_true(turn.events_on_fd3);

    const struct str_list base = {0};
    scoped(str_list_done) struct str_list env = {0};

    agent_env_merge(&base, &turn.env, &env);

    scoped(mem_freep) char *text = joined(&env);

    assert_string_equal(text, "HINT=x|" AGENT_EVENTS_ENV "=3");
}

static void refuses_a_script_that_is_no_program(void **state)
{
    (void)state;
    static const char *const programs[] = {"", "echo hello\n", "#!"};

    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        scoped(task_done) struct task_public task = task_of(AGENT_SCRIPT, "p");
        scoped(error_freep) struct error *err = NULL;
        scoped(fd_closep) int fd = -1;
        struct agent_turn turn = {0};

        task.agent.script = str_dup("/home/somebody/suite/solve.sh");
        assert_int_equal(fs_memfd("script", programs[i], strlen(programs[i]), &fd, NULL), 0);
        assert_int_equal(plan(&task, fd, &turn, &err), -ERROR_TASK);
        /* The host's path stays out of messages that end up in records. */
        assert_string_equal(error_message(err), "agent.script 'solve.sh' is no program: it starts "
                                                "neither with '#!' nor as an ELF file");
    }
}

static void runs_true_for_nop_and_nothing_for_none(void **state)
{
    (void)state;
    scoped(task_done) struct task_public nop = task_of(AGENT_NOP, "p");
    scoped(task_done) struct task_public none = task_of(AGENT_NONE, "");
    scoped(agent_turn_done) struct agent_turn turn = {0};

    assert_int_equal(plan(&none, -1, &turn, NULL), 0);
    assert_int_equal(turn.argv.count, 0);
    assert_int_equal(plan(&nop, -1, &turn, NULL), 0);
    assert_int_equal(turn.argv.count, 1);
    assert_string_equal(turn.argv.items[0], "/bin/true");
    assert_null(turn.stdin_text);
    assert_false(turn.events_on_fd3);
}

static void merges_environments_so_that_each_name_is_there_once(void **state)
{
    (void)state;
    static const struct {
        const char *base[3], *additions[3];
        const char *merged;
    } cases[] = {
        {{"A=1", "B=2"}, {"A=3"}, "A=3|B=2"},
        {{"A=1"}, {"AB=2", "A=3", "A=4"}, "A=4|AB=2"},
        {{"A=1"}, {"B", "=x", "C="}, "A=1|C="},
        {{"AB=1"}, {"A=2"}, "AB=1|A=2"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(str_list_done) struct str_list base = {0};
        scoped(str_list_done) struct str_list additions = {0};
        scoped(str_list_done) struct str_list merged = {0};

        for (size_t w = 0; w < 3 && cases[i].base[w] != NULL; w++)
            str_list_add(&base, cases[i].base[w]);
        for (size_t w = 0; w < 3 && cases[i].additions[w] != NULL; w++)
            str_list_add(&additions, cases[i].additions[w]);
        agent_env_merge(&base, &additions, &merged);

        scoped(mem_freep) char *text = joined(&merged);

        assert_string_equal(text, cases[i].merged);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_row_for_each_agent_that_runs_here),
        cmocka_unit_test(puts_the_prompt_where_a_command_wants_it),
        cmocka_unit_test(never_expands_a_placeholder_inside_the_prompt),
        cmocka_unit_test(refuses_what_the_kernel_would_not_take),
        cmocka_unit_test(refuses_a_command_without_a_program),
        cmocka_unit_test(brings_a_script_into_the_cell),
        cmocka_unit_test(refuses_a_script_that_is_no_program),
        cmocka_unit_test(runs_true_for_nop_and_nothing_for_none),
        cmocka_unit_test(merges_environments_so_that_each_name_is_there_once),
    };

    return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
