/* Experiments: which variants a task gets, what each changes, what is wrong with a file. */
#include "task/internal.h"
#include "task/test_support.h"

#define TASK                                                                                       \
    "task_id: t\ndescription: d\ninitial_prompt: do {it}\nrun_limits: {max_turns: 5}\n"            \
    "sandbox: {template_sources: [{type: starter_files, files: [{path: a, content: a}]}]}\n"       \
    "success_criteria: [{type: file_exists, description: d, path: a}]\n"
#define AGENT "defaults: {agent: {type: nop}}\n"
#define ID "experiment_id: e\n"
#define ONE "variants: [{variant_id: a}]\n"

/* A suite with one task and one experiment, and what loading it gave. */
struct fixture {
    char *folder;
    struct str_list paths, variants;
    struct test_reader reader;
    struct task_overrides overrides;
    struct task_selection selection;
    struct task_set set;
    struct problems problems;
    int r;
};

static int set_up(void **state)
{
    struct fixture *fixture = mem_new(1, sizeof(*fixture));

    fixture->folder = test_folder();
    fixture->overrides.experiment = "e";
    fixture->selection.variants = &fixture->variants;
    test_write(fixture->folder, ".git/HEAD", "");
    test_write(fixture->folder, "tasks/t.yaml", TASK);
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
    str_list_done(&fixture->variants);
    test_folder_remove(fixture->folder);
    free(fixture);
    return 0;
}

static void load(struct fixture *fixture, const char *experiment)
{
    struct task_reader reader = {test_open, &fixture->reader};
    const struct task_query query = {
        &fixture->paths, &reader, &fixture->overrides, &fixture->selection, 0, NULL, NULL};

    if (experiment != NULL)
        test_write(fixture->folder, "experiments/e.yaml", experiment);
    if (fixture->paths.count == 0)
        str_list_add_take(&fixture->paths, path_join(fixture->folder, "tasks"));
    fixture->r = tasks_load(&query, &fixture->set, &fixture->problems, NULL);
}

/* "file:line:column path: message" lines, the file by its last part; owned. */
static char *complaints(const struct fixture *fixture)
{
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < fixture->problems.count; i++) {
        const struct problem *problem = &fixture->problems.items[i];

        buf_format(&buf, "%s:%u:%u %s%s%s\n", path_base(problem->file), problem->line,
                   problem->column, problem->path, problem->path[0] == '\0' ? "" : ": ",
                   problem->message);
    }
    return buf_take(&buf);
}

static const struct task_public *public_of(const struct fixture *fixture, size_t i)
{
    const struct task_public *open;
    const struct task_private *secret;

    if (fixture->r < 0) {
        scoped(mem_freep) char *found = complaints(fixture);

        fail_msg("%s", found);
    }
    assert_true(i < fixture->set.count);
    task_split(fixture->set.tasks[i], &open, &secret);
    return open;
}

static void every_task_is_loaded_once_for_each_variant(void **state)
{
    struct fixture *fixture = *state;

    load(fixture, ID "defaults: {agent: {type: nop}, repeats: 3}\n"
                     "variants: [{variant_id: b}, {variant_id: a, repeats: 2}]\n");
    assert_int_equal(fixture->r, 0);
    assert_int_equal(fixture->set.count, 2);
    assert_int_equal(task_set_ids(&fixture->set), 1);
    assert_string_equal(task_variant(fixture->set.tasks[0]), "b");
    assert_string_equal(task_key(fixture->set.tasks[0]), "b/t");
    assert_string_equal(task_key(fixture->set.tasks[1]), "a/t");
    assert_int_equal(task_repeats(fixture->set.tasks[0]), 3);
    assert_int_equal(task_repeats(fixture->set.tasks[1]), 2);
}

static void only_the_variants_asked_for_are_loaded(void **state)
{
    struct fixture *fixture = *state;
    static const char text[] = ID AGENT "variants: [{variant_id: one}, {variant_id: two}]\n";

    str_list_add(&fixture->variants, "two");
    load(fixture, text);
    assert_int_equal(fixture->set.count, 1);
    assert_string_equal(task_variant(fixture->set.tasks[0]), "two");
    forget(fixture);
    str_list_add(&fixture->variants, "tow");
    load(fixture, text);

    scoped(mem_freep) char *found = complaints(fixture);

    assert_string_equal(found, "--variant tow:0:0 no variant has this id, did you mean 'two'?\n");
}

static void the_layers_are_defaults_task_variant(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "experiments/tpl/f", "x");
    load(fixture, ID "defaults: {agent: {type: nop, model: m}, run_limits: {max_turns: 1,\n"
                     "  task_timeout: 50}, template_sources: [{type: template_dir, path: tpl}]}\n"
                     "variants: [{variant_id: a, run_limits: {max_turns: 9},\n"
                     "  driver: tempdir}, {variant_id: b, agent: {model: n}}]\n");

    const struct task_public *a = public_of(fixture, 0), *b = public_of(fixture, 1);
    scoped(json_freep) json_t *lineage = task_lineage(fixture->set.tasks[0]);
    const json_t *turns = json_object_get(lineage, "run_limits.max_turns");
    const json_t *time = json_object_get(lineage, "run_limits.task_timeout");

    assert_int_equal(a->limits.max_turns, 9);
    assert_int_equal(b->limits.max_turns, 5);
    assert_int_equal(a->limits.task_timeout_ms, 50000);
    assert_int_equal(a->driver, DRIVER_TEMPDIR);
    assert_int_equal(b->driver, DRIVER_NATIVE);
    assert_string_equal(a->agent.model, "m");
    assert_string_equal(b->agent.model, "n");
    assert_int_equal(a->source_count, 2);
    assert_int_equal(a->sources[0].kind, SOURCE_STARTER_FILES);
    assert_true(str_ends(a->sources[1].path, "/experiments/tpl"));
    assert_string_equal(json_get_text(turns, "source"), "variant");
    assert_string_equal(json_get_text(turns, "file"), "experiments/e.yaml");
    assert_int_equal(json_get_int(turns, "line", 0), 4);
    assert_string_equal(json_get_text(time, "source"), "experiment");
}

static void steps_of_the_experiment_enclose_those_of_the_task(void **state)
{
    struct fixture *fixture = *state;
    const struct task_public *open;
    const struct task_private *secret;

    test_write(fixture->folder, "tasks/t.yaml",
               TASK "pre_run: [{command: own, timeout: 5}]\npost_run: [{command: own}]\n");
    load(fixture, ID "defaults: {agent: {type: nop}, pre_run: [{command: shared,\n"
                     "  fail_on_error: false}], post_run: [{command: shared}]}\n" ONE);
    assert_int_equal(public_of(fixture, 0)->limits.max_turns, 5);
    task_split(fixture->set.tasks[0], &open, &secret);
    assert_int_equal(secret->pre_run_count, 2);
    assert_string_equal(secret->pre_run[0].command, "shared");
    assert_false(secret->pre_run[0].fail_on_error);
    assert_int_equal(secret->pre_run[0].timeout_ms, 30000);
    assert_string_equal(secret->pre_run[1].command, "own");
    assert_true(secret->pre_run[1].fail_on_error);
    assert_int_equal(secret->pre_run[1].timeout_ms, 5000);
    assert_int_equal(secret->post_run_count, 2);
    assert_string_equal(secret->post_run[0].command, "own");
    assert_string_equal(secret->post_run[1].command, "shared");
}

static void the_operators_driver_wins_over_the_experiments(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "closedbook.yaml", "driver: native\nexperiment: e\n");
    fixture->overrides.experiment = NULL; /* closedbook.yaml names it */
    load(fixture, ID AGENT "variants: [{variant_id: a, driver: tempdir}]\n");

    scoped(mem_freep) char *found = complaints(fixture);

    assert_int_equal(public_of(fixture, 0)->driver, DRIVER_NATIVE);
    assert_string_equal(found, "e.yaml:3:36 sandbox.driver: closedbook.yaml says 'native', which "
                               "wins over the experiment's 'tempdir'\n");
}

static void prompts_are_mutated_in_order(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *defaults, *variant, *prompt;
    } cases[] = {
        {"[]", "", "do {it}"},
        {"[{type: prefix, content: A}, {type: suffix, content: B, separator: '-'}]", "",
         "A\n\ndo {it}-B"},
        {"[{type: suffix, content: x, separator: ''}]",
         "prompt_mutations: [{type: replace, pattern: o, replacement: '0'}]", "d0 {it}x"},
        {"[]", "prompt_mutations: [{type: replace, pattern: 'o '}]", "d{it}"},
        {"[]", "prompt_mutations: [{type: template, variables: {it: '{do}', do: 7}}]", "do {do}"},
        {"[]", "prompt_mutations: [{type: template, variables: {other: 1}}]", "do {it}"},
        {"[{type: suffix, content: '!', separator: ''}]", "initial_prompt: mine", "mine!"},
        {"[]", "initial_prompt_file: p.txt", "from a file\n"},
    };

    test_write(fixture->folder, "experiments/p.txt", "from a file\n");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *text =
            str_format(ID "defaults: {agent: {type: nop}, prompt_mutations: %s}\n"
                          "variants:\n  - variant_id: a\n    %s\n",
                       cases[i].defaults, cases[i].variant);

        forget(fixture);
        load(fixture, text);
        assert_string_equal(public_of(fixture, 0)->prompt, cases[i].prompt);
    }
}

static void says_what_is_wrong_with_an_experiment(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"- a\n", "e.yaml:1:1 a map expected, found a list\n"},
        {AGENT ONE, "e.yaml:1:1 experiment_id: required: lower-case words joined by '-' expected, "
                    "found nothing\n"},
        {"experiment_id: E_1\n" AGENT ONE,
         "e.yaml:1:16 experiment_id: lower-case words joined by '-' expected, found the text "
         "'E_1'\n"},
        {ID AGENT, "e.yaml:1:1 variants: required: a list of maps expected, found nothing\n"},
        {ID AGENT "variants: []\n",
         "e.yaml:3:11 variants: at least one item expected, found an empty list\n"},
        {ID AGENT "variants: [{variant_id: a}, {variant_id: a}]\n",
         "e.yaml:3:42 variants[1].variant_id: 'a' is also the id of an earlier variant\n"},
        {ID AGENT "variants: [{variant_id: ../a}]\n",
         "e.yaml:3:25 variants[0].variant_id: 1 to 128 letters, digits, '_', '.' or '-', the "
         "first no '.' or '-' expected, found the text '../a'\n"},
        {ID AGENT "variants: [{variant_id: a, agnet: {}}]\n",
         "e.yaml:3:28 variants[0].agnet: unknown key, did you mean 'agent'?\n"},
        {ID AGENT "variants: [{variant_id: a, initial_prompt: x, prompt_mutations:\n"
                  " [{type: prefix, content: y}]}]\n",
         "e.yaml:4:2 variants[0].prompt_mutations: 'initial_prompt' is given as well: at most one "
         "of the two expected\n"},
        {ID AGENT "variants: [{variant_id: a, prompt_mutations: [{type: rephrase}]}]\n",
         "e.yaml:3:54 variants[0].prompt_mutations[0].type: unknown prompt mutation type "
         "'rephrase', "
         "did you mean 'replace'?\n"},
        {ID AGENT "variants: [{variant_id: a, prompt_mutations:\n"
                  " [{type: replace, pattern: a, regex: maybe}]}]\n",
         "e.yaml:4:38 variants[0].prompt_mutations[0].regex: true or false expected, found the "
         "text "
         "'maybe'\n"},
        {ID AGENT "variants: [{variant_id: a, prompt_mutations:\n"
                  " [{type: template, variables: {x: [1]}}]}]\n",
         "e.yaml:4:35 variants[0].prompt_mutations[0].variables.x: a text expected\n"},
        {ID AGENT "variants: [{variant_id: a, repeats: 0}]\n",
         "e.yaml:3:37 variants[0].repeats: a whole number from 1 to 65535 expected, found the "
         "number 0\n"},
        {ID AGENT "variants: [{variant_id: a, initial_prompt: see $REFERENCE_DIR/x}]\n",
         "e.yaml:3:44 initial_prompt: $REFERENCE_DIR: the agent has no such folder, only graders "
         "do\n"},
        {ID AGENT "variants: [{variant_id: a, prompt_mutations:\n"
                  " [{type: suffix, content: 'in $TASK_DIR'}]}]\n",
         "e.yaml:4:27 prompt_mutations: $TASK_DIR: the agent has no such folder, only graders "
         "do\n"},
        /* What parts make together is found, too; said at the prompt. */
        {ID AGENT "variants: [{variant_id: a, prompt_mutations:\n"
                  " [{type: replace, pattern: 'do {it}', replacement: '$TASK_'},\n"
                  "  {type: suffix, separator: '', content: DIR}]}]\n",
         "t.yaml:3:17 initial_prompt: $TASK_DIR: the agent has no such folder, only graders do\n"},
        {ID AGENT "variants: [{variant_id: a, initial_prompt_file: gone}]\n", NULL},
        {ID "variants: [{variant_id: a}, {variant_id: b}]\n",
         "t.yaml:0:0 agent.type: not set anywhere: name the agent in the task, in closedbook.yaml "
         "or "
         "with -T\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        forget(fixture);
        load(fixture, cases[i].text);

        scoped(mem_freep) char *found = complaints(fixture);

        assert_int_not_equal(fixture->r, 0);
        if (cases[i].complaint != NULL)
            assert_string_equal(found, cases[i].complaint);
        else
            assert_int_equal(fixture->problems.error_count, 1);
    }
}

static void an_unknown_experiment_is_an_error_that_lists_those_there_are(void **state)
{
    struct fixture *fixture = *state;

    test_write(fixture->folder, "experiments/two.yaml", ID);
    fixture->overrides.experiment = "f";
    load(fixture, ID ONE);

    scoped(mem_freep) char *found = complaints(fixture);
    scoped(mem_freep) char *wanted = str_format(
        "-e f:0:0 no experiment '%s/experiments/f.yaml': it holds 'e', 'two'\n", fixture->folder);

    assert_int_not_equal(fixture->r, 0);
    assert_string_equal(found, wanted);
}

static void the_digests_of_variants_differ_where_the_variants_do(void **state)
{
    struct fixture *fixture = *state;

    load(fixture,
         ID AGENT "variants: [{variant_id: a}, {variant_id: b},\n"
                  " {variant_id: c, agent: {model: m}}, {variant_id: d, initial_prompt: x}]\n");
    assert_int_equal(fixture->r, 0);

    static const bool same[][2] = {{true, true}, {true, true}, {true, false}, {false, true}};

    for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
        const struct task *first = fixture->set.tasks[0], *other = fixture->set.tasks[i];

        assert_int_equal(strcmp(task_digest(first, TASK_DIGEST_PUBLIC),
                                task_digest(other, TASK_DIGEST_PUBLIC)) == 0,
                         same[i][0]);
        assert_int_equal(strcmp(task_digest(first, TASK_DIGEST_CONFIG),
                                task_digest(other, TASK_DIGEST_CONFIG)) == 0,
                         same[i][1]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_task_is_loaded_once_for_each_variant),
        TEST(only_the_variants_asked_for_are_loaded),
        TEST(the_layers_are_defaults_task_variant),
        TEST(steps_of_the_experiment_enclose_those_of_the_task),
        TEST(the_operators_driver_wins_over_the_experiments),
        TEST(prompts_are_mutated_in_order),
        TEST(says_what_is_wrong_with_an_experiment),
        TEST(an_unknown_experiment_is_an_error_that_lists_those_there_are),
        TEST(the_digests_of_variants_differ_where_the_variants_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
