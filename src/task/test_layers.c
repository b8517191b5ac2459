/* Flags, configuration and task over each other; what the suite around a task means; digests. */
#include "task/test_fixture.h"

/* --- layers ------------------------------------------------------------------------------------
 */

static void check_flag_complaint(const char *agent, const char *set, const char *second,
                                 const char *complaint)
{
    scoped(str_list_done) struct str_list sets = {0};
    struct task_overrides overrides = {.agent = agent, .sets = &sets};

    if (set != NULL)
        str_list_add(&sets, set);
    if (second != NULL)
        str_list_add(&sets, second);
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task = parse(WHOLE, &overrides, &found);

    assert_string_equal(found, complaint);
}

static void complains_about_flags(void **state)
{
    (void)state;
    static const struct {
        const char *agent, *set, *second, *complaint;
    } cases[] = {
        {NULL, "agent.typ=nop", NULL, "0:0 agent.typ: unknown key, did you mean 'type'?\n"},
        {NULL, "agnt.type=nop", NULL, "0:0 agnt: unknown key, did you mean 'agent'?\n"},
        {NULL, "task_id=x", NULL,
         "0:0 task_id: unknown key in what -D may set (agent, run_limits, sandbox)\n"},
        {NULL, "agent", NULL, "0:0 path=value expected, as in sandbox.limits.timeout=60\n"},
        {NULL, "agent=nop", NULL, "0:0 agent: a map expected, found the text 'nop'\n"},
        {NULL, "agent.model=", NULL, "0:0 empty: no YAML document in it\n"},
        {NULL, "agent.model=~", NULL, "0:0 a value expected, found nothing\n"},
        {NULL, "agent.model=[", NULL, NULL},
        {NULL, "agent..model=x", NULL, "0:0 'agent.' is no path like sandbox.limits.timeout\n"},
        {NULL, "agent.model=x", "agent.model=y",
         "0:0 'agent.model' is already set by '-D agent.model=x'\n"},
        {NULL, "sandbox.limits.timeout=5", "sandbox.limits={timeout: 6}",
         "0:0 'sandbox.limits' is already set by '-D sandbox.limits.timeout=5'\n"},
        {"nop", "agent.type=exec", NULL, "0:0 'agent.type' is already set by '-T nop'\n"},
        {"nop:x", NULL, NULL, "0:0 the agent type 'nop' takes no ':ARG'\n"},
        {"script:", NULL, NULL,
         "0:0 'script:' wants something after the ':'\n"
         "0:0 agent.script: required by the agent type 'script', found nothing\n"},
        {"npo", NULL, NULL, "0:0 agent.type: unknown value 'npo', did you mean 'nop'?\n"},
        {"qwen", NULL, NULL, "0:0 agent.type: the agent type 'qwen' is not in this version\n"},
        {NULL, "run_limits.task_timeout=1", NULL,
         "0:0 run_limits.task_timeout: a number from 30 to 604800 expected, found the number 1\n"},
        {NULL, "sandbox.docker.image=x", NULL,
         "0:0 sandbox.docker: 'docker' is not in this version\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (cases[i].complaint != NULL)
            check_flag_complaint(cases[i].agent, cases[i].set, cases[i].second, cases[i].complaint);
    }
}

/* "value source file line" of a field of the lineage, without quotes; owned. */
static char *origin_of(const struct task *task, const char *path)
{
    scoped(json_freep) json_t *lineage = task_lineage(task);
    const json_t *entry = json_object_get(lineage, path);
    scoped(buf_done) struct buf buf = {0};

    if (entry == NULL)
        return str_dup("absent");
    json_write_line(&buf, json_object_get(entry, "value"));
    const char *file = json_get_text(entry, "file");

    return str_format("%s %s %s %d", buf_text(&buf), json_get_text(entry, "source"),
                      file == NULL ? "-" : file, (int)json_get_int(entry, "line", 0));
}

static void later_layers_win_and_each_value_says_where_it_came_from(void **state)
{
    (void)state;
    static const struct {
        const char *path, *origin;
    } cases[] = {
        {"agent.type", "\"exec\" -T - 0"},
        {"agent.model", "\"suite\" closedbook.yaml closedbook.yaml 2"},
        {"sandbox.limits.timeout", "7 -D - 0"},
        {"sandbox.limits.max_pids", "99 config.yaml home/user.yaml 1"},
        {"sandbox.limits.max_disk_mb", "4096 closedbook.yaml closedbook.yaml 3"},
        {"sandbox.limits.max_inodes", "200000 default - 0"},
        {"run_limits.task_timeout", "120 task t.yaml 6"},
        {"run_limits.turn_timeout", "60 closedbook.yaml closedbook.yaml 4"},
        {"sandbox.driver", "\"tempdir\" --driver - 0"},
        {"sandbox.template_sources[0]", "\"starter_files\" task t.yaml 7"},
        {"sandbox.template_sources[1]", "\"starter_files\" closedbook.yaml closedbook.yaml 5"},
        {"sandbox.template_sources[2]", "\"starter_files\" -D - 0"},
        {"success_criteria[0]", "\"file_exists\" task t.yaml 5"},
    };
    scoped(mem_freep) char *user = path_join(folder, "home/user.yaml");
    scoped(str_list_done) struct str_list sets = {0};
    struct task_overrides overrides = {
        .agent = "exec:a b", .driver = "tempdir", .sets = &sets, .user_config = user};
    scoped(mem_freep) char *found = NULL, *suite = path_join(folder, "closedbook.yaml");

    test_write(folder, "home/user.yaml",
               "sandbox: {limits: {max_pids: 99, timeout: 1}}\nmodel: user\n");
    test_write(
        folder, "closedbook.yaml",
        "agent: nop\nmodel: suite\nlimits: {max_disk_mb: 4096, timeout: 2}\n"
        "run_limits: {task_timeout: 60, turn_timeout: 60}\n"
        "sandbox: {template_sources: [{type: starter_files, files: [{path: b, content: b}]}]}\n");
    str_list_add(&sets, "sandbox.limits.timeout=7");
    str_list_add(
        &sets, "sandbox.template_sources=[{type: starter_files, files: [{path: c, content: c}]}]");
    scoped(task_freep) struct task *unused_ok task = parse(
        WHOLE
        "run_limits: {task_timeout: 120}\n"
        "sandbox: {template_sources: [{type: starter_files, files: [{path: a, content: a}]}]}\n",
        &overrides, &found);

    assert_int_equal(unlink(suite), 0);
    assert_string_equal(found, "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *origin = origin_of(task, cases[i].path);

        assert_string_equal(origin, cases[i].origin);
    }
}

static void an_agent_may_be_left_out_where_none_is_needed(void **state)
{
    (void)state;
    static const struct task_overrides overrides = {.agent_optional = true};
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task =
        parse(HEAD PROMPT CRITERIA, &overrides, &found);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(found, "");
    task_split(task, &open, &secret);
    assert_int_equal(open->agent.type, AGENT_UNSET);
}

static void a_flag_takes_the_place_of_an_agent_that_is_not_here(void **state)
{
    (void)state;
    static const struct task_overrides overrides = {.agent = "nop"};
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task =
        parse(HEAD PROMPT CRITERIA "agent: {type: claude-code, permission_mode: plan}\n",
              &overrides, &found);

    assert_non_null(task);
    assert_string_equal(
        found, "warning 5:28 agent.permission_mode: has no effect for the agent type 'nop'\n");
}

/* --- agents that are programs of the host ---
 */

static void agent_programs_get_what_their_adapters_pass_on(void **state)
{
    (void)state;
#define PROGRAM(text) HEAD PROMPT CRITERIA "agent: {" text "}\n"
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {PROGRAM("type: claude-code"),
         "5:15 agent.model: required by the agent type 'claude-code', found nothing: name one in "
         "the task, in closedbook.yaml or with -m\n"},
        {PROGRAM("type: codex, model: m, permission_mode: plan, extra_args: [-x]"),
         "5:49 agent.permission_mode: the agent type 'codex' does not take it in this version\n"},
        {PROGRAM("type: claude-code, model: m, claude_settings: s.json"),
         "5:55 agent.claude_settings: a path is not in this version: a map expected\n"},
        {PROGRAM("type: pi, model: m") "sandbox: {network: none}\n",
         "6:20 sandbox.network: the agent type 'pi' asks its model through the broker: broker "
         "expected, found 'none'\n"},
        {PROGRAM("type: pi, model: m") "sandbox: {driver: tempdir}\n",
         "6:19 sandbox.driver: the agent type 'pi' needs a native cell: a tempdir has no way to "
         "the broker\n"},
    };
    static const struct task_overrides none;
    const struct task_public *open = NULL;
    const struct task_private *secret = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &none, &found);

        assert_string_equal(found, cases[i].complaint);
    }
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *task = parse(
        PROGRAM("type: claude-code, model: m, permission_mode: plan, system_prompt: s, "
                "system_prompt_mode: replace, allowed_tools: [Bash], claude_settings: {a: 1}"),
        &none, &found);

    assert_string_equal(found, "");
    task_split(task, &open, &secret);
    assert_true(open->network_broker);
    assert_string_equal(open->agent.permission_mode, "plan");
    assert_string_equal(open->agent.system_prompt, "s");
    assert_true(open->agent.system_prompt_replaces);
    assert_string_equal(open->agent.allowed_tools.items[0], "Bash");
    assert_string_equal(open->agent.claude_settings, "{\"a\": 1}");
}

/* --- the suite ---------------------------------------------------------------------------------
 */

static void variables_of_the_suite_are_for_graders_only(void **state)
{
    (void)state;
    char *variables[] = {str_format("SUITE=%s", folder),
                         str_format("INSIDE=%s/tpl/../in", folder),
                         str_format("PWD=%s", folder),
                         str_format("NEAR=%s-2", folder),
                         str_dup("OTHER=/usr"),
                         str_dup("UNUSED=/"),
                         NULL};
    struct task_overrides overrides = {.environment = variables};
    scoped(mem_freep) char *found = NULL, *denied = NULL;
    scoped(task_freep) struct task *unused_ok task =
        parse(HEAD PROMPT NOP "success_criteria: [{type: run_command, description: d, command:\n"
                              "  'cat $SUITE/a ${INSIDE} $PWD $NEAR $OTHER SUITES'}]\n",
              &overrides, &found);
    scoped(task_freep) struct task *unused_ok other =
        parse(HEAD NOP CRITERIA "initial_prompt: look into ${INSIDE}/x and $OTHER\n", &overrides,
              &denied);
    const struct task_public *open;
    const struct task_private *secret;

    for (size_t i = 0; variables[i] != NULL; i++)
        free(variables[i]);
    assert_non_null(task);
    task_split(task, &open, &secret);
    assert_int_equal(secret->suite_variables.count, 2);
    assert_string_equal(secret->suite_variables.items[0], "INSIDE");
    assert_string_equal(secret->suite_variables.items[1], "SUITE");
    assert_string_equal(denied,
                        "5:17 initial_prompt: $INSIDE leads into the suite, which the agent "
                        "never sees: declare the fixture as input_dir\n");
}

static void no_path_of_the_private_half_is_in_the_agents_environment(void **state)
{
    (void)state;
    char *variables[] = {str_format("A=x:%s/ref", folder), str_format("B=%s-2", folder), NULL};
    struct task_overrides overrides = {.environment = variables};
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task =
        parse(HEAD PROMPT CRITERIA "agent: {type: nop, env: [A, B]}\n", &overrides, &found);

    free(variables[0]);
    free(variables[1]);
    assert_string_equal(found,
                        "5:25 agent.env: the value of 'A' holds a path of the task's private "
                        "half\n");
}

/* --- digests -----------------------------------------------------------------------------------
 */

static void the_digests_tell_what_changed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *agent;
        bool same[TASK_DIGEST_COUNT]; /* public, graders, configuration */
    } cases[] = {
        {WHOLE, NULL, {true, true, true}},
        {"# a remark\n" WHOLE, NULL, {true, true, true}},
        {HEAD "initial_prompt: q\n" NOP CRITERIA, NULL, {false, true, true}},
        {HEAD PROMPT NOP "success_criteria: [{type: file_exists, description: d, path: b}]\n",
         NULL,
         {true, false, true}},
        {WHOLE "reference: {directory: ref}\n", NULL, {true, false, true}},
        {WHOLE "run_limits: {max_turns: 3}\n", NULL, {true, true, false}},
        {WHOLE "input_dir: in\n", NULL, {false, true, true}},
        {WHOLE, "exec:true", {true, true, false}},
    };
    char *first[TASK_DIGEST_COUNT] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct task_overrides overrides = {.agent = cases[i].agent};
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &overrides, &found);

        for (enum task_digest j = 0; j < TASK_DIGEST_COUNT; j++) {
            if (i == 0)
                first[j] = str_dup(task_digest(task, j));
            assert_int_equal(strcmp(first[j], task_digest(task, j)) == 0, cases[i].same[j]);
        }
    }
    for (size_t i = 0; i < TASK_DIGEST_COUNT; i++)
        free(first[i]);
}

static void the_digest_of_the_configuration_covers_the_script(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const char text[] = HEAD PROMPT CRITERIA "agent: {type: script, script: changing.sh}\n";
    scoped(mem_freep) char *found = NULL, *again = NULL;

    test_write(folder, "changing.sh", "one");
    scoped(task_freep) struct task *before = parse(text, &none, &found);

    test_write(folder, "changing.sh", "two");
    scoped(task_freep) struct task *after = parse(text, &none, &again);

    assert_string_not_equal(task_digest(before, TASK_DIGEST_CONFIG),
                            task_digest(after, TASK_DIGEST_CONFIG));
    assert_string_equal(task_digest(before, TASK_DIGEST_PUBLIC),
                        task_digest(after, TASK_DIGEST_PUBLIC));
}

static void the_digest_of_the_graders_covers_a_criterions_program(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const char text[] =
        HEAD PROMPT NOP "success_criteria: [{type: 'exec:judge.sh', description: d}]\n";
    scoped(mem_freep) char *found = NULL, *again = NULL, *path = path_join(folder, "judge.sh");

    test_write(folder, "judge.sh", "one");
    assert_int_equal(chmod(path, 0755), 0);
    scoped(task_freep) struct task *before = parse(text, &none, &found);

    test_write(folder, "judge.sh", "two");
    assert_int_equal(chmod(path, 0755), 0);
    scoped(task_freep) struct task *after = parse(text, &none, &again);

    assert_string_equal(found, "");
    assert_string_not_equal(task_digest(before, TASK_DIGEST_GRADERS),
                            task_digest(after, TASK_DIGEST_GRADERS));
    assert_string_equal(task_digest(before, TASK_DIGEST_PUBLIC),
                        task_digest(after, TASK_DIGEST_PUBLIC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complains_about_flags),
        cmocka_unit_test(agent_programs_get_what_their_adapters_pass_on),
        cmocka_unit_test(later_layers_win_and_each_value_says_where_it_came_from),
        cmocka_unit_test(an_agent_may_be_left_out_where_none_is_needed),
        cmocka_unit_test(a_flag_takes_the_place_of_an_agent_that_is_not_here),
        cmocka_unit_test(variables_of_the_suite_are_for_graders_only),
        cmocka_unit_test(no_path_of_the_private_half_is_in_the_agents_environment),
        cmocka_unit_test(the_digests_tell_what_changed),
        cmocka_unit_test(the_digest_of_the_configuration_covers_the_script),
        cmocka_unit_test(the_digest_of_the_graders_covers_a_criterions_program),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
