/* One task from text: what is accepted, what is complained about, what the halves hold. */
#include "task/test_fixture.h"

/* Paths of the test's folder are random: written as FOLDER. */
static char *without_folder(const char *text)
{
    scoped(buf_done) struct buf buf = {0};

    for (const char *s = text; *s != '\0';) {
        if (str_starts(s, folder)) {
            buf_text_append(&buf, "FOLDER");
            s += strlen(folder);
        } else {
            buf_char(&buf, *s++);
        }
    }
    return buf_take(&buf);
}

struct complaint_case {
    const char *text, *complaint;
};

static void check_complaints(const struct complaint_case *cases, size_t count)
{
    static const struct task_overrides none;
    size_t wrong_count = 0;

    for (size_t i = 0; i < count; i++) {
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &none, &found);
        scoped(mem_freep) char *shown = without_folder(found);

        if (strcmp(shown, cases[i].complaint) == 0)
            continue;
        print_error("%s\nfound:\n%sexpected:\n%s\n", cases[i].text, shown, cases[i].complaint);
        wrong_count++;
    }
    assert_int_equal(wrong_count, 0);
}

static void complains_about_the_top_level(void **state)
{
    (void)state;
    static const struct complaint_case cases[] = {
        {WHOLE, ""},
        {"a: 1\n", "0:0 no task_id in it: not a task\n"},
        {"- a\n", "0:0 no task_id in it: not a task\n"},
        {"x\n", "0:0 no task_id in it: not a task\n"},
        {"task_id: t\n" PROMPT NOP CRITERIA,
         "1:1 description: required: a text expected, found nothing\n"},
        {"task_id: [x]\ndescription: d\n" PROMPT NOP CRITERIA,
         "1:10 task_id: 1 to 128 letters, digits, '_', '.' or '-', the first no '.' or '-' "
         "expected, found a list\n"},
        {"task_id: ../x\ndescription: d\n" PROMPT NOP CRITERIA,
         "1:10 task_id: 1 to 128 letters, digits, '_', '.' or '-', the first no '.' or '-' "
         "expected, found the text '../x'\n"},
        {"task_id: 7\ndescription: ' '\n" PROMPT NOP CRITERIA,
         "1:10 task_id: 1 to 128 letters, digits, '_', '.' or '-', the first no '.' or '-' "
         "expected, found the number 7: put it in quotes\n"
         "2:14 description: a text expected, found a blank one\n"},
        {WHOLE "tag: [x]\n", "warning 6:1 tag: unknown key, did you mean 'tags'?\n"},
        {WHOLE "quite_unknown: 1\n", "warning 6:1 quite_unknown: unknown key in task\n"},
        {WHOLE "tags: [a, 'a:b', B, a--b, 'a:b:c', 1]\n",
         "6:18 tags[2]: lower-case words joined by '-', with at most one ':' expected, found the "
         "text 'B'\n"
         "6:21 tags[3]: lower-case words joined by '-', with at most one ':' expected, found the "
         "text 'a--b'\n"
         "6:27 tags[4]: lower-case words joined by '-', with at most one ':' expected, found the "
         "text 'a:b:c'\n"
         "6:36 tags[5]: lower-case words joined by '-', with at most one ':' expected, found the "
         "number 1: put it in quotes\n"},
        {WHOLE "tags: x\n", "6:7 tags: a list of texts expected, found the text 'x'\n"},
        {WHOLE "skip: [x]\n", "6:7 skip: a text or true or false expected, found a list\n"},
        {WHOLE "skip: Yes\n",
         "note 6:7 skip: 'Yes' is read as true: YAML 1.2 wants true or false here\n"},
        {WHOLE "sandbox: [x]\nrun_limits: x\n",
         "6:10 sandbox: a map expected, found a list\n"
         "7:13 run_limits: a map expected, found the text 'x'\n"},
        {WHOLE "max_iterations: 3\nllm_reviewer: {a: 1}\n",
         "warning 6:1 max_iterations: legacy, has no effect: run_limits.max_turns limits a run\n"
         "warning 7:1 llm_reviewer: legacy, has no effect: a criterion of type llm_judge replaces "
         "it\n"},
        {WHOLE "expected_commands: 4\nchecker_context: {api_route: {model: x}}\n", ""},
        {WHOLE "expected_commands: 0\n",
         "6:20 expected_commands: a whole number from 1 to 1000000000 expected, found the number "
         "0\n"},
        {WHOLE "pre_run: [{command: x, runs_in: agnt}]\nsimulation: {enabld: true}\ngrading: "
               "{network: open}\n",
         "6:33 pre_run[0].runs_in: unknown value 'agnt', did you mean 'agent'?\n"
         "7:14 simulation.enabld: unknown key, did you mean 'enabled'?\n"
         "8:11 grading.network: 'network' is not in this version\n"},
        {WHOLE "pre_run: [{command: 'cat $REFERENCE_DIR/x'}]\n",
         "6:21 pre_run[0].command: $REFERENCE_DIR: what runs before the agent has no reference\n"},
        {WHOLE "post_run: [{command: 'cat $REFERENCE_DIR/x'}]\n",
         "6:22 post_run[0].command: $REFERENCE_DIR: the task has no reference\n"},
        {WHOLE "reference: {directory: ref}\npost_run: [{command: 'cat $REFERENCE_DIR/x'}]\n", ""},
        {WHOLE "pre_run: [{command: x, timeout: 301}]\npost_run: [{kommand: x}]\n",
         "6:33 pre_run[0].timeout: a number from 1 to 300 expected, found the number 301\n"
         "7:12 post_run[0].command: required: a text expected, found nothing\n"
         "7:13 post_run[0].kommand: unknown key, did you mean 'command'?\n"},
        {WHOLE "pre_run: []\npost_run: ~\nsimulation: {enabled: false, goal: x}\n", ""},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void complains_about_prompts(void **state)
{
    (void)state;
    static const struct complaint_case cases[] = {
        {HEAD NOP CRITERIA,
         "0:0 initial_prompt: required: this or initial_prompt_file expected, found neither\n"},
        {HEAD NOP CRITERIA "initial_prompt: p\ninitial_prompt_file: prompt.txt\n",
         "6:22 initial_prompt_file: initial_prompt is given as well (line 5): one of the two "
         "expected\n"},
        {HEAD NOP CRITERIA "initial_prompt_file: prompt.txt\n", ""},
        {HEAD NOP CRITERIA "initial_prompt_file: no.txt\n",
         "5:22 initial_prompt_file: 'FOLDER/no.txt' does not exist\n"},
        {HEAD NOP CRITERIA "initial_prompt_file: tpl\n",
         "5:22 initial_prompt_file: 'FOLDER/tpl' is a folder, a file expected\n"},
        {HEAD NOP CRITERIA "initial_prompt_file: empty.txt\n",
         "5:22 initial_prompt_file: 'FOLDER/empty.txt' is empty\n"},
        {HEAD NOP CRITERIA "initial_prompt_file: latin.txt\n",
         "5:22 initial_prompt_file: 'FOLDER/latin.txt' is not UTF-8 text\n"},
        {HEAD PROMPT "agent: {type: none}\n" CRITERIA,
         "3:17 initial_prompt: the agent type 'none' gets no prompt\n"},
        {HEAD "agent: {type: none}\n" CRITERIA, ""},
        {HEAD "agent: {type: none}\nsuccess_criteria: [{type: command_executed, description: d}]\n",
         "4:27 success_criteria[0].type: 'command_executed' looks at what an agent did, and the "
         "agent type is 'none'\n"},
        {HEAD NOP CRITERIA "initial_prompt: read $TASK_DIR and ${REFERENCE_DIR}\n",
         "5:17 initial_prompt: $REFERENCE_DIR: the agent has no such folder, only graders do\n"
         "5:17 initial_prompt: $TASK_DIR: the agent has no such folder, only graders do\n"},
        {HEAD NOP CRITERIA "initial_prompt: read $TASK_DIRS, \\$TASK_DIR and $$TASK_DIR\n", ""},
        {HEAD NOP CRITERIA "initial_prompt: read $INPUT_DIR\n",
         "5:17 initial_prompt: $INPUT_DIR: the task declares no input_dir\n"},
        {HEAD NOP CRITERIA "initial_prompt: read $INPUT_DIR\ninput_dir: in\n", ""},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void complains_about_agents(void **state)
{
    (void)state;
#define AGENT(text) HEAD PROMPT CRITERIA "agent: {" text "}\n"
    static const struct complaint_case cases[] = {
        {HEAD PROMPT CRITERIA, "0:0 agent.type: not set anywhere: name the agent in the task, in "
                               "closedbook.yaml or with -T\n"},
        {AGENT("type: clade-code"),
         "5:15 agent.type: unknown value 'clade-code', did you mean 'claude-code'?\n"},
        {AGENT("type: qwen"), "5:15 agent.type: the agent type 'qwen' is not in this version\n"},
        {AGENT("type: antigravity"),
         "5:15 agent.type: the agent type 'antigravity' is unsupported: use gemini instead\n"},
        {AGENT("type: ./my-agent.yaml"),
         "5:15 agent.type: adapter files and executables ('./my-agent.yaml') are not in this "
         "version\n"},
        {AGENT("type: nop, allowed_tools: [Bash]"),
         "warning 5:20 agent.allowed_tools: has no effect for the agent type 'nop'\n"},
        {AGENT("type: nop, plugins: [{type: local, path: x}]"),
         "5:50 agent.plugins[0].path: 'FOLDER/x' cannot be opened: No such file or directory\n"},
        {AGENT("type: nop, plugins: [{path: $NOT_SET}]"),
         "5:37 agent.plugins[0].path: the variable 'NOT_SET' is not set\n"},
        {AGENT("type: nop, plugins: [{path: ., include: ['$REFERENCE_DIR/x']}]"),
         "5:50 agent.plugins[0].include: $REFERENCE_DIR: the agent has no such folder, only "
         "graders do\n"},
        {AGENT("type: nop, modl: x"), "5:20 agent.modl: unknown key, did you mean 'model'?\n"},
        {AGENT("type: script"),
         "5:15 agent.script: required by the agent type 'script', found nothing\n"},
        {AGENT("type: script, script: no.sh"),
         "5:31 agent.script: 'FOLDER/no.sh' cannot be opened: No such file or directory\n"},
        {AGENT("type: script, script: agent.sh"), ""},
        {AGENT("type: exec"),
         "5:15 agent.command: required by the agent type 'exec', found nothing\n"},
        {AGENT("type: exec, command: [sh, -c, 'cat $TASK_DIR/x']"),
         "5:30 agent.command: $TASK_DIR: the agent has no such folder, only graders do\n"},
        {AGENT("type: exec, command: \"sh 'x\""), "5:30 agent.command: a quote is not closed\n"},
        {AGENT("type: exec, command: []"),
         "5:30 agent.command: at least one item expected, found an empty list\n"},
        {AGENT("type: exec, command: ['']"),
         "5:30 agent.command: a program expected as the first word, found nothing\n"},
        {AGENT("type: nop, env: [GIVEN, A=b, NOT_SET, EMPTY]"),
         "warning 5:38 agent.env: 'NOT_SET' is not set outside, so the agent does not get it\n"},
        {AGENT("type: nop, env: [OPENAI_API_KEY, ANTHROPIC_API_KEY=x, 1X]"),
         "5:26 agent.env: 'OPENAI_API_KEY': the key of a model provider is never given to an "
         "agent\n"
         "5:42 agent.env: 'ANTHROPIC_API_KEY': the key of a model provider is never given to an "
         "agent\n"
         "5:63 agent.env[2]: NAME or NAME=value expected, found the text '1X'\n"},
        {AGENT("type: nop, env: [X=$REFERENCE_DIR]"),
         "5:25 agent.env: $REFERENCE_DIR: the agent has no such folder, only graders do\n"},
        {AGENT("type: oracle"),
         "5:15 agent.type: the agent type 'oracle' needs a reference, the task has none\n"},
        {AGENT("type: oracle") "reference: {directory: ref}\n", ""},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void complains_about_sandboxes(void **state)
{
    (void)state;
#define SANDBOX(text) WHOLE "sandbox: {" text "}\n"
    static const struct complaint_case cases[] = {
        {SANDBOX("drivr: x"), "6:11 sandbox.drivr: unknown key, did you mean 'driver'?\n"},
        {SANDBOX("driver: docker"),
         "6:19 sandbox.driver: the driver 'docker' is not in this version\n"},
        {SANDBOX("driver: natve"),
         "6:19 sandbox.driver: unknown value 'natve', did you mean 'native'?\n"},
        {SANDBOX("python: {}, node: ~, network: none, mock_path_dirs: [], identity: user"), ""},
        {SANDBOX("python: {env_packages: [x]}, node: {}, network: open"),
         "6:35 sandbox.python.env_packages[0]: a package of a registry ('x') is not in this "
         "version, for want of a network policy (sandbox.setup_network): a file or folder of the "
         "package expected, as in ./NAME.whl\n6:59 sandbox.network: the network 'open' is not in "
         "this "
         "version\n"},
        {SANDBOX("limits: {timeout: 0, max_pids: 1.5, max_disk_mb: .inf}"),
         "6:29 sandbox.limits.timeout: a number above 0 and up to 604800 expected, found the "
         "number "
         "0\n"
         "6:42 sandbox.limits.max_pids: a whole number from 1 to 1000000 expected, found the "
         "number "
         "1.5\n"
         "6:60 sandbox.limits.max_disk_mb: a whole number from 1 to 1000000000 expected, found the "
         "number .inf\n"},
        {SANDBOX("limits: {max_memory_mb: 512, max_cpus: 0.5}"), ""},
        {SANDBOX("limits: {max_memory_mb: 0, max_cpus: -1, max_pids: 0, max_inodes: -5}"),
         "6:35 sandbox.limits.max_memory_mb: a whole number from 1 to 1000000000 expected, found "
         "the number 0\n"
         "6:48 sandbox.limits.max_cpus: a number from 0.01 to 100000 expected, found the number "
         "-1\n"
         "6:62 sandbox.limits.max_pids: a whole number from 1 to 1000000 expected, found the "
         "number 0\n"
         "6:77 sandbox.limits.max_inodes: a whole number from 16 to 1000000000 expected, found the "
         "number -5\n"},
        {SANDBOX("limits: {best_effort: on}"),
         "note 6:33 sandbox.limits.best_effort: 'on' is read as true: YAML 1.2 wants true or false "
         "here\n"},
        {SANDBOX("driver: tempdir, limits: {max_memory_mb: 5, max_pids: 7, max_output_mb: 1}"),
         "6:37 sandbox.limits.max_memory_mb: the driver tempdir does not enforce it (best_effort: "
         "true runs without)\n"
         "6:55 sandbox.limits.max_pids: the driver tempdir does not enforce it (best_effort: true "
         "runs without)\n"},
        {SANDBOX("driver: tempdir, limits: {max_cpus: 2, best_effort: true}"),
         "warning 6:37 sandbox.limits.max_cpus: the driver tempdir does not enforce it\n"},
        {SANDBOX("template_sources: [{type: template_dir, path: tpl}]"), ""},
        {SANDBOX("template_sources: [{type: template_dir, path: nowhere}]"),
         "6:57 sandbox.template_sources[0].path: 'FOLDER/nowhere' cannot be opened: No such file "
         "or "
         "directory\n"},
        {SANDBOX("template_sources: [{type: template_dir, path: prompt.txt}]"),
         "6:57 sandbox.template_sources[0].path: 'FOLDER/prompt.txt' is not a folder\n"},
        {SANDBOX("template_sources: [{type: template_dir, path: $NOT_SET/x}]"),
         "6:57 sandbox.template_sources[0].path: the variable 'NOT_SET' is not set\n"},
        {SANDBOX(
             "template_sources: [{type: template_dir, path: tpl, mount_point: ../x}, {path: a}]"),
         "6:75 sandbox.template_sources[0].mount_point: a relative path that stays inside (no "
         "leading '/', no '..') expected, found the text '../x'\n"
         "6:82 sandbox.template_sources[1].type: required: the type of the template source as a "
         "text, found nothing\n"},
        {SANDBOX("template_sources: [{type: repo, url: x}, {type: template, path: x}, x]"),
         "6:30 sandbox.template_sources[0].commit: required: the whole hash of a commit (40 or 64 "
         "lower-case hexadecimal digits) expected, found nothing\n"
         "6:59 sandbox.template_sources[1].type: unknown template source type 'template'\n"
         "6:79 sandbox.template_sources[2]: a map expected, found the text 'x'\n"},
        {SANDBOX("template_sources: [{type: starter_files, files: [{path: /a, content: x}, {path: "
                 "b}]}]"),
         "6:67 sandbox.template_sources[0].files[0].path: a relative path that stays inside (no "
         "leading '/', no '..') expected, found the text '/a'\n"
         "6:84 sandbox.template_sources[0].files[1].content: required: a text expected, found "
         "nothing\n"},
        {SANDBOX("ignore_patterns: ['!', '*.o']"),
         "6:29 sandbox.ignore_patterns: a pattern expected, found '!'\n"},
        {SANDBOX("template_sources: [{type: template_dir, path: .}]"),
         "6:29 sandbox.template_sources: 'FOLDER' holds the task file ('FOLDER/t.yaml'), which the "
         "agent must not get\n"},
        {SANDBOX("template_sources: [{type: template_dir, path: ref}]") "reference_dir: ref\n",
         "6:29 sandbox.template_sources: 'FOLDER/ref' holds the reference ('FOLDER/ref'), which "
         "the "
         "agent must not get\n"},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void complains_about_references_and_limits(void **state)
{
    (void)state;
    static const struct complaint_case cases[] = {
        {WHOLE "input_dir: tpl\ninput_mount: /x\n",
         "7:14 input_mount: a relative path that stays inside (no leading '/', no '..') expected, "
         "found the text '/x'\n"},
        {WHOLE "reference: {directory: ref}\n", ""},
        {WHOLE "reference_dir: ref\n", ""},
        {WHOLE "reference: {directory: empty}\n",
         "6:24 reference.directory: 'FOLDER/empty' is empty: a reference must hold something\n"},
        {WHOLE "reference: {directory: nowhere}\n",
         "6:24 reference.directory: 'FOLDER/nowhere' cannot be opened: No such file or "
         "directory\n"},
        {WHOLE "reference: {file: ref/solution}\n",
         "warning 6:19 reference.file: is legacy: put the file in a folder and name that as "
         "reference.directory\n"},
        {WHOLE "reference: {code: x}\n",
         "6:13 reference.code: 'code' was removed: put the text in a file of a folder and name the "
         "folder as reference.directory\n"},
        {WHOLE "reference: {directory: ref}\nreference_dir: ref\n",
         "7:16 reference: one of reference.directory, reference.file and reference_dir expected, "
         "found 2\n"},
        {WHOLE "run_limits: {max_turns: 0, task_timeout: 29, turn_timeout: 9.5}\n",
         "6:25 run_limits.max_turns: a whole number from 1 to 1000000000 expected, found the "
         "number "
         "0\n"
         "6:42 run_limits.task_timeout: a number from 30 to 604800 expected, found the number 29\n"
         "6:60 run_limits.turn_timeout: a number from 10 to 604800 expected, found the number "
         "9.5\n"},
        {WHOLE "run_limits: {task_timeout: 60, turn_timeout: 60}\n",
         "warning 6:46 run_limits.turn_timeout: never reached: task_timeout is not longer\n"},
        {WHOLE "run_limits: {max_usd: 0, stop_early: false, stop_early_gate_threshold: 1.0}\n",
         "6:23 run_limits.max_usd: a number above 0 and up to 1000000000 expected, found the "
         "number 0\n"},
        {WHOLE "run_limits: {stop_early: true}\n", "6:26 run_limits.stop_early: false, or nothing, "
                                                   "expected: criteria are armed one by one, by "
                                                   "stop_early of their own\n"},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void complains_about_criteria(void **state)
{
    (void)state;
#define ONE(text) HEAD PROMPT NOP "success_criteria: [{" text "}]\n"
#define INSIDE                                                                                     \
    "a relative path that stays inside (no leading '/', no '..') expected, found the text "
    static const struct complaint_case cases[] = {
        {HEAD PROMPT NOP "success_criteria: []\n",
         "5:19 success_criteria: at least one item expected, found an empty list\n"},
        {HEAD PROMPT NOP,
         "1:1 success_criteria: required: a list of maps expected, found nothing\n"},
        {ONE("type: file_exist, path: a, description: d"),
         "5:27 success_criteria[0].type: unknown criterion type 'file_exist', did you mean "
         "'file_exists'?\n"},
        {ONE("type: agent_judge, prompt: a, description: d"),
         "5:27 success_criteria[0].type: the criterion type 'agent_judge' is not in this "
         "version\n"},
        {ONE("type: llm_judge, prompt: a, description: d, n: 16"),
         "5:68 success_criteria[0].n: a whole number from 1 to 15 expected, found the number 16\n"},
        {ONE("type: program_stdout_equals, description: d"),
         "5:27 success_criteria[0].type: the criterion type 'program_stdout_equals' was removed: "
         "use run_command with expected_stdout\n"},
        {ONE("type: file_exists, path: a"),
         "5:20 success_criteria[0].description: required: a text expected, found nothing\n"},
        {ONE("type: file_exists, description: d, path: /etc/passwd"),
         "5:62 success_criteria[0].path: " INSIDE "'/etc/passwd'\n"},
        {ONE("type: json_check, description: d, path: a/../../b"),
         "5:61 success_criteria[0].path: " INSIDE "'a/../../b'\n"},
        {ONE("type: file_check, description: d, path: .., patterns: [{pattern: x, flag: 1}]"),
         "5:61 success_criteria[0].path: " INSIDE "'..'\n"
         "5:89 success_criteria[0].patterns[0].flag: unknown key, did you mean 'flags'?\n"},
        {ONE("type: file_exists, description: d, path: a..b/..c"), ""},
        {ONE("type: file_exists, description: d, path: a, weight: -1, pass_threshold: .nan"),
         "5:73 success_criteria[0].weight: a number from 0 to 1000000000 expected, found the "
         "number "
         "-1\n"
         "5:93 success_criteria[0].pass_threshold: a number from 0 to 1 expected, found the number "
         ".nan\n"},
        {ONE("type: file_exists, description: d, path: a, stop_early: {}"),
         "5:77 success_criteria[0].stop_early: 'file_exists' cannot end a run early: it would look "
         "at "
         "work that is half done; skill_triggered, command_executed and command_not_executed "
         "can\n"},
        {ONE("type: run_command, description: d, command: 'cat $REFERENCE_DIR/x'"),
         "5:65 success_criteria[0].command: $REFERENCE_DIR: the task has no reference\n"},
        {ONE("type: run_command, description: d, command: 'cat $TASK_DIR/x $REFERENCE_DIR_X'"), ""},
        {ONE("type: run_command, description: d, command: 'cat $INPUT_DIR'"),
         "5:65 success_criteria[0].command: $INPUT_DIR: the task declares no input_dir\n"},
        {ONE("type: run_command, description: d, command: a, timeout: 0, stdout_match: glob"),
         "5:77 success_criteria[0].timeout: a number above 0 and up to 604800 expected, found the "
         "number 0\n"
         "5:94 success_criteria[0].stdout_match: one of 'exact', 'contains', 'regex' expected, "
         "found "
         "the text 'glob'\n"},
        {ONE("type: run_command, description: d, command: a, expected_stdout: 42"),
         "5:85 success_criteria[0].expected_stdout: a text expected, found the number 42: put it "
         "in "
         "quotes\n"},
        {ONE("type: command_executed, description: d, min_count: 3, max_count: 2"),
         "5:86 success_criteria[0].max_count: at least min_count (3) expected, found 2\n"},
        {ONE("type: command_not_executed, description: d, min_count: 3"),
         "5:65 success_criteria[0].min_count: unknown key in command_not_executed\n"},
        {ONE("type: json_check, description: d, path: a, assertions: [{expression: a, expected: "
             ".inf}]"),
         "5:103 success_criteria[0].assertions[0].expected: a finite number expected, found "
         ".inf\n"},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void every_mistake_of_a_file_is_told_at_once(void **state)
{
    (void)state;
    static const struct complaint_case cases[] = {
        {"task_id: a/b\ntags: [X]\nsandbox: {x: 1}\nagent: {type: 3}\nsuccess_criteria: [{}, 1]\n",
         "0:0 initial_prompt: required: this or initial_prompt_file expected, found neither\n"
         "1:1 description: required: a text expected, found nothing\n"
         "1:10 task_id: 1 to 128 letters, digits, '_', '.' or '-', the first no '.' or '-' "
         "expected, found the text 'a/b'\n"
         "2:8 tags[0]: lower-case words joined by '-', with at most one ':' expected, found the "
         "text "
         "'X'\n"
         "3:11 sandbox.x: unknown key in sandbox\n"
         "4:15 agent.type: one of 'script', 'exec', 'nop', 'oracle', 'none' ... expected, found "
         "the "
         "number 3\n"
         "5:20 success_criteria[0].type: required: the type of the criterion as a text, found "
         "nothing\n"
         "5:24 success_criteria[1]: a map expected, found the number 1\n"},
    };

    check_complaints(cases, ARRAY_SIZE(cases));
}

static void strict_makes_legacy_an_error(void **state)
{
    (void)state;
    static const struct task_overrides strict = {.strict = true};
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task =
        parse(WHOLE "reference: {file: ref/solution}\n", &strict, &found);

    assert_null(task);
    assert_string_equal(found, "6:19 reference.file: is legacy: put the file in a folder and name "
                               "that as reference.directory\n");
}

static void the_halves_hold_what_the_file_says(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const char text[] = HEAD
        "tags: [a, b]\nskip: later\ninitial_prompt_file: prompt.txt\n"
        "agent: {type: exec, command: \"run '{prompt}' x\", env: [GIVEN, A=b], model: m,\n"
        "        trust_self_reported: yes}\n"
        "run_limits: {task_timeout: 90, turn_timeout: 20.5, max_turns: 7, expected_turns: 3}\n"
        "input_dir: ./in/\ninput_mount: data//x/\nreference: {directory: ref}\n"
        "sandbox:\n  driver: tempdir\n  limits: {timeout: 60, max_pids: 5, max_memory_mb: 300, "
        "max_cpus: 1.5, best_effort: true}\n"
        "  ignore_patterns: ['!dist', '*.o', '!keep.o']\n"
        "  template_sources:\n"
        "    - {type: template_dir, path: '~/../${GIVEN}/../tpl', mount_point: a/./b}\n"
        "    - {type: starter_files, files: [{path: ./c/d, content: \"x\\n\"}]}\n"
        "success_criteria:\n"
        "  - {type: file_contains, description: one, path: a, includes: [x], weight: 2}\n"
        "  - {type: command_not_executed, description: two, command_pattern: rm}\n"
        "  - {type: run_command, description: three, command: a, pass_threshold: 1}\n";
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task = parse(text, &none, &found);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(found,
                        "note 7:30 agent.trust_self_reported: 'yes' is read as true: YAML 1.2 "
                        "wants true or false here\n"
                        "warning 14:25 sandbox.limits.max_pids: the driver tempdir does not "
                        "enforce it\n"
                        "warning 14:38 sandbox.limits.max_memory_mb: the driver tempdir does not "
                        "enforce it\n"
                        "warning 14:58 sandbox.limits.max_cpus: the driver tempdir does not "
                        "enforce it\n");
    task_split(task, &open, &secret);
    assert_string_equal(open->prompt, "do it\n");
    assert_int_equal(open->agent.type, AGENT_EXEC);
    assert_int_equal(open->agent.command.count, 3);
    assert_string_equal(open->agent.command.items[1], "{prompt}");
    assert_string_equal(open->agent.env.items[0], "GIVEN=value");
    assert_string_equal(open->agent.env.items[1], "A=b");
    assert_string_equal(open->agent.model, "m");
    assert_true(open->agent.trust_self_reported);
    assert_int_equal(open->limits.task_timeout_ms, 90000);
    assert_int_equal(open->limits.turn_timeout_ms, 20500);
    assert_int_equal(open->limits.max_turns, 7);
    assert_int_equal(open->limits.expected_turns, 3);
    assert_int_equal(open->limits.command_timeout_ms, 60000);
    assert_int_equal(open->limits.max_memory_mb, 300);
    assert_int_equal(open->limits.max_cpu_millis, 1500);
    assert_true(open->limits.best_effort);
    assert_int_equal(open->limits.max_pids, 5);
    assert_int_equal(open->limits.max_disk_mb, 2048);
    assert_int_equal(open->limits.max_inodes, 200000);
    assert_int_equal(open->limits.max_output_mb, 16);
    assert_int_equal(open->driver, DRIVER_TEMPDIR);
    assert_int_equal(open->source_count, 3);
    scoped(mem_freep) char *tpl = path_join(folder, "tpl");

    assert_string_equal(open->sources[0].path, tpl);
    assert_string_equal(open->sources[0].mount_point, "a/b");
    assert_string_equal(open->sources[1].files[0].path, "c/d");
    assert_string_equal(open->sources[1].files[0].content, "x\n");
    assert_int_equal(open->sources[2].kind, SOURCE_INPUT_DIR);
    assert_string_equal(open->sources[2].mount_point, "data/x");
    assert_false(str_list_has(&open->ignore_patterns, "dist"));
    assert_true(str_list_has(&open->ignore_patterns, "node_modules"));
    assert_true(str_list_has(&open->ignore_patterns, "*.o"));
    assert_true(str_list_has(&open->ignore_patterns, "!keep.o"));
    assert_string_equal(secret->task_id, "t");
    assert_string_equal(secret->task_dir, folder);
    assert_string_equal(secret->suite_root, folder);
    assert_true(str_ends(secret->reference_dir, "/ref"));
    assert_null(secret->reference_file);
    assert_null(secret->skip_reason); /* task_parse() is asked for it by name */
    assert_int_equal(secret->tags.count, 2);
}

static void criteria_have_their_defaults(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const char text[] = HEAD PROMPT NOP
        "success_criteria:\n"
        "  - {type: file_contains, description: one, path: a, weight: 2}\n"
        "  - {type: command_not_executed, description: two, command_pattern: rm}\n"
        "  - {type: run_command, description: three, command: a, pass_threshold: 1}\n"
        "  - {type: json_check, description: four, path: a, json_schema: {a: [1, ~]},\n"
        "     assertions: [{expression: a, expected: ~}, {expression: b, operator: gt,\n"
        "     expected: 1.5}]}\n"
        "  - {type: file_matches_regex, description: five, path: a, pattern: x, flags: im}\n";
    static const char *const params[] = {
        "{\"excludes\":[],\"includes\":[],\"path\":\"a\"}",
        "{\"command_pattern\":\"rm\",\"max_count\":0,\"min_count\":0,\"require_success\":false}",
        "{\"as\":\"grader\",\"command\":\"a\",\"expected_exit_code\":0,\"fresh\":false,"
        "\"read_only\":false,\"score_from_stdout\":false,\"stdout_match\":\"exact\"}",
        "{\"assertions\":[{\"expected\":null,\"expression\":\"a\",\"operator\":\"equals\"},{"
        "\"expected\":1.5,"
        "\"expression\":\"b\",\"operator\":\"gt\"}],\"json_schema\":{\"a\":[1,null]},\"path\":"
        "\"a\"}",
        "{\"flags\":\"im\",\"must_match\":true,\"path\":\"a\",\"pattern\":\"x\"}",
    };
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task = parse(text, &none, &found);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(found, "");
    task_split(task, &open, &secret);
    assert_int_equal(secret->criterion_count, ARRAY_SIZE(params));
    for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
        scoped(buf_done) struct buf buf = {0};

        json_write_canonical(&buf, secret->criteria[i].params);
        assert_string_equal(buf_text(&buf), params[i]);
    }
    assert_true(secret->criteria[0].weight > 1.9 && secret->criteria[1].weight < 1.1);
    assert_true(secret->criteria[0].pass_threshold < 0.91);
    assert_true(secret->criteria[2].pass_threshold > 0.99);
    assert_int_equal(secret->criteria[1].kind, CRITERION_COMMAND_EXECUTED);
    assert_string_equal(secret->criteria[1].type_name, "command_not_executed");
    assert_int_equal(secret->criteria[2].line, 8);
}

static void keys_and_values_may_come_by_merge_keys(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const char text[] =
        HEAD PROMPT NOP "_common: &common {type: file_exists, weight: 3}\n"
                        "success_criteria:\n"
                        "  - {<<: *common, description: one, path: a}\n"
                        "  - {<<: *common, description: two, path: b, weight: 1}\n";
    scoped(mem_freep) char *found = NULL;
    scoped(task_freep) struct task *unused_ok task = parse(text, &none, &found);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(found, "warning 5:1 _common: unknown key in task\n");
    task_split(task, &open, &secret);
    assert_int_equal(secret->criterion_count, 2);
    assert_true(secret->criteria[0].weight > 2.9);
    assert_true(secret->criteria[1].weight < 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(complains_about_the_top_level),
        cmocka_unit_test(complains_about_prompts),
        cmocka_unit_test(complains_about_agents),
        cmocka_unit_test(complains_about_sandboxes),
        cmocka_unit_test(complains_about_references_and_limits),
        cmocka_unit_test(complains_about_criteria),
        cmocka_unit_test(every_mistake_of_a_file_is_told_at_once),
        cmocka_unit_test(strict_makes_legacy_an_error),
        cmocka_unit_test(the_halves_hold_what_the_file_says),
        cmocka_unit_test(criteria_have_their_defaults),
        cmocka_unit_test(keys_and_values_may_come_by_merge_keys),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
