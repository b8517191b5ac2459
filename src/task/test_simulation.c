/* The simulated user: what is wrong with one, what comes of one. */
#include "task/test_fixture.h"

static void complains_about_users(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {WHOLE "simulation: {enabled: false, goal: x}\n", ""},
        {WHOLE "simulation: {enabled: true, persona: p, goal: g}\n", ""},
        {HEAD NOP CRITERIA "simulation: {enabled: true, script: [hello]}\n", ""},
        {HEAD NOP CRITERIA "simulation: {enabled: false, script: [hello]}\n",
         "0:0 initial_prompt: required: this or initial_prompt_file expected, found neither\n"},
        {WHOLE "simulation: {enabled: true, goal: x, goul: y, max_turns: 0}\n",
         "6:23 simulation.persona: required: a text expected, found nothing (or a 'script' of what "
         "the user says)\n"
         "6:38 simulation.goul: unknown key, did you mean 'goal'?\n"
         "6:58 simulation.max_turns: a whole number from 1 to 100 expected, found the number 0\n"},
        {WHOLE "simulation: {enabled: true, script: [see $REFERENCE_DIR/x], stop_on_criteria_pass: "
               "true, check_criteria: both}\n",
         "6:38 simulation.script[0]: $REFERENCE_DIR: the agent has no such folder, only graders "
         "do\n"
         "6:61 simulation.stop_on_criteria_pass: 'stop_on_criteria_pass' is not in this version\n"
         "6:90 simulation.check_criteria: 'check_criteria' is not in this version\n"},
        {HEAD "agent: {type: none}\n" CRITERIA "simulation: {enabled: true, script: [x]}\n",
         "5:23 simulation: the agent type 'none' talks to nobody\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *found = NULL;
        scoped(task_freep) struct task *unused_ok task = parse(cases[i].text, &none, &found);

        assert_string_equal(found, cases[i].complaint);
    }
}

static void a_user_is_of_the_private_half(void **state)
{
    (void)state;
    static const struct task_overrides none;
    static const struct task_overrides flag = {.simulator_model = "route/model"};
    static const char text[] =
        WHOLE "simulation: {enabled: true, persona: p, goal: g, constraints: [c, d], n_trials: 3,\n"
              "  max_turns: 6, max_total_tokens: 9000, share_description: false, model: own}\n";
    scoped(mem_freep) char *found = NULL;
    scoped(mem_freep) char *found_again = NULL;
    scoped(task_freep) struct task *task = parse(text, &none, &found);
    scoped(task_freep) struct task *flagged = parse(text, &flag, &found_again);
    const struct task_public *open;
    const struct task_private *secret;

    assert_string_equal(found, "");
    task_split(task, &open, &secret);
    assert_non_null(secret->simulation);
    assert_string_equal(secret->simulation->persona, "p");
    assert_string_equal(secret->simulation->stop_token, "<<<END>>>");
    assert_string_equal(secret->simulation->model, "own");
    assert_int_equal(secret->simulation->constraints.count, 2);
    assert_int_equal(secret->simulation->max_turns, 6);
    assert_int_equal(secret->simulation->max_total_tokens, 9000);
    assert_false(secret->simulation->share_description);
    assert_int_equal(task_repeats(task), 3);
    assert_null(secret->simulator_model);
    task_split(flagged, &open, &secret);
    assert_string_equal(secret->simulator_model, "route/model");
    /* Who the user is, is what the agent is asked: a resumed run must not change it. */
    scoped(mem_freep) char *found_other = NULL;
    scoped(task_freep) struct task *other = parse(WHOLE, &none, &found_other);

    assert_string_not_equal(task_digest(task, TASK_DIGEST_PUBLIC),
                            task_digest(other, TASK_DIGEST_PUBLIC));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(complains_about_users, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_user_is_of_the_private_half, make_folder, remove_folder),
    };

    return cmocka_run_group_tests_name("task_simulation", tests, NULL, NULL);
}
