/* Verdicts to score and gate. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/test_workspace.h"

/* What a criterion comes to: a command of the test workspace prints it. */
enum outcome { NONE, ONE, THREE_QUARTERS, ZERO, MISSING_TOOL, STALLED, SELF_REPORTED };

struct part {
    enum outcome outcome;
    double weight, threshold;
};

static const struct {
    enum criterion_kind kind;
    const char *params;
} outcomes[] = {
    [ONE] = {CRITERION_RUN_COMMAND, "{\"command\":\"true\"}"},
    [THREE_QUARTERS] = {CRITERION_RUN_COMMAND,
                        "{\"command\":\"score\",\"score_from_stdout\":true}"},
    [ZERO] = {CRITERION_RUN_COMMAND, "{\"command\":\"false\"}"},
    [MISSING_TOOL] = {CRITERION_RUN_COMMAND, "{\"command\":\"pytest\"}"},
    [STALLED] =
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"aaaa\",\"expected_stdout\":\"(a+)+$\",\"stdout_match\":\"regex\"}"},
    [SELF_REPORTED] = {CRITERION_COMMAND_EXECUTED, "{\"min_count\":0}"},
};

#define PARTS_MAX 4

/* stop_gate: 0, or what is enough of the armed criteria, as the run was stopped early; the first
 * two are armed. */
static int grade(const struct part *parts, double stop_gate, struct grade_result *ret,
                 struct error **err)
{
    static char description[] = "a part";
    struct criterion criteria[PARTS_MAX] = {0};
    struct grade_workspace workspace = test_workspace();
    struct event_log events = {0};
    struct task_private task = {.criteria = criteria, .stop_early_gate = stop_gate};
    struct grade_input input = {
        .stopped_early = stop_gate > 0,
        .task = &task,
        .workspace = &workspace,
        .events = &events,
        .command_timeout_ms = 30000,
    };
    int r;

    for (; task.criterion_count < PARTS_MAX && parts[task.criterion_count].outcome != NONE;
         task.criterion_count++) {
        const struct part *part = &parts[task.criterion_count];

        criteria[task.criterion_count] = (struct criterion){
            .kind = outcomes[part->outcome].kind,
            .type_name = criterion_types[outcomes[part->outcome].kind].name,
            .description = description,
            .weight = part->weight,
            .pass_threshold = part->threshold,
            .armed = task.criterion_count < 2,
            .params = test_json(outcomes[part->outcome].params),
        };
    }
    r = grade_run(&input, ret, err);
    for (size_t i = 0; i < task.criterion_count; i++)
        json_decref(criteria[i].params);
    return r;
}

static void the_gate_is_a_strict_and_and_the_score_a_weighted_mean(void **state)
{
    static const struct {
        struct part parts[PARTS_MAX];
        bool gate, has_score, nothing_gates;
        double score;
        const char *error; /* a part of it */
    } cases[] = {
        {{{ONE, 1, 0.9}}, true, true, false, 1, NULL},
        {{{ZERO, 1, 0.9}}, false, true, false, 0, NULL},
        {{{ONE, 3, 0.9}, {ZERO, 1, 0.9}}, false, true, false, 0.75, NULL},
        {{{THREE_QUARTERS, 1, 0.75}}, true, true, false, 0.75, NULL},
        {{{THREE_QUARTERS, 1, 0.76}}, false, true, false, 0.75, NULL},
        {{{ONE, 1, 1}, {THREE_QUARTERS, 3, 0.7}}, true, true, false, 0.8125, NULL},
        /* A threshold of 0 never fails, but counts for the score. */
        {{{ZERO, 1, 0}, {ONE, 1, 1}}, true, true, false, 0.5, NULL},
        /* Weight 0 informs: neither score nor gate, not even as an error. */
        {{{ZERO, 0, 0.9}, {ONE, 2, 0.9}}, true, true, false, 1, NULL},
        {{{MISSING_TOOL, 0, 0.9}, {ONE, 2, 0.9}}, true, true, false, 1, NULL},
        {{{ZERO, 0, 0.9}}, false, false, true, 0, NULL},
        {{{0}}, false, false, true, 0, NULL},
        /* What the agent reported itself neither scores nor gates. */
        {{{SELF_REPORTED, 1, 0.9}}, false, false, true, 0, NULL},
        {{{SELF_REPORTED, 9, 0.9}, {THREE_QUARTERS, 1, 0.5}}, true, true, false, 0.75, NULL},
        /* Our failure is an error of the whole; the agent's is not passed. */
        {{{ONE, 1, 0.9}, {MISSING_TOOL, 1, 0.9}},
         false,
         false,
         false,
         0,
         "run_command 'a part': the grading cell has no 'pytest'"},
        {{{MISSING_TOOL, 1, 0}}, false, false, false, 0, "pytest"},
        {{{ONE, 1, 0.9}, {STALLED, 1, 0.9}}, false, true, false, 0.5, NULL},
        {{{STALLED, 1, 0}}, false, true, false, 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(grade_result_done) struct grade_result result = {0};

        print_message("case %zu\n", i);
        assert_int_equal(grade(cases[i].parts, 0, &result, NULL), 0);
        assert_int_equal(result.gate, cases[i].gate);
        assert_int_equal(result.has_score, cases[i].has_score);
        assert_int_equal(result.nothing_gates, cases[i].nothing_gates);
        assert_true(fabs(result.score - cases[i].score) < 1e-12);
        assert_int_equal(result.error != NULL, cases[i].error != NULL);
        if (cases[i].error != NULL)
            assert_non_null(strstr(result.error, cases[i].error));
        for (size_t n = 0; n < result.count; n++)
            assert_non_null(result.verdicts[n].details);
    }
}

/* Only armed criteria count then, and they alone can be the reason of an error. */
static void after_an_early_stop_the_armed_criteria_decide(void **state)
{
    static const struct {
        double gate;
        struct part parts[PARTS_MAX];
        bool passes, nothing_gates, has_error;
    } cases[] = {
        {1, {{ONE, 1, 0.9}, {ONE, 1, 0.9}, {ZERO, 5, 0.9}}, true, false, false},
        {1, {{ONE, 1, 0.9}, {ZERO, 1, 0.9}, {ONE, 5, 0.9}}, false, false, false},
        {0.5, {{ONE, 1, 0.9}, {ZERO, 1, 0.9}, {ZERO, 5, 0.9}}, true, false, false},
        {0.6, {{ONE, 1, 0.9}, {ZERO, 1, 0.9}}, false, false, false},
        /* Each is passed or not: three quarters below the threshold are nothing. */
        {0.5, {{THREE_QUARTERS, 9, 0.8}, {ONE, 1, 0.9}}, false, false, false},
        /* Work that is half done breaks what is not armed. */
        {1, {{ONE, 1, 0.9}, {ONE, 1, 0.9}, {MISSING_TOOL, 1, 0.9}}, true, false, false},
        {1, {{ONE, 1, 0.9}, {MISSING_TOOL, 1, 0.9}}, false, false, true},
        /* What the agent reported itself ends nothing well. */
        {1, {{SELF_REPORTED, 1, 0.9}, {SELF_REPORTED, 1, 0.9}, {ONE, 1, 0.9}}, false, true, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(grade_result_done) struct grade_result result = {0};
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(grade(cases[i].parts, cases[i].gate, &result, &err), 0);
        if (result.gate != cases[i].passes || result.nothing_gates != cases[i].nothing_gates ||
            (result.error != NULL) != cases[i].has_error)
            fail_msg("case %zu: gate %d, error %s", i, result.gate,
                     result.error == NULL ? "none" : result.error);
    }
}

static void a_failing_system_ends_the_grading_and_says_where(void **state)
{
    static char description[] = "the first";
    struct criterion criterion = {
        .kind = CRITERION_RUN_COMMAND,
        .type_name = "run_command",
        .description = description,
        .weight = 1,
        .params = test_json("{\"command\":\"broken\"}"),
    };
    struct task_private task = {.criteria = &criterion, .criterion_count = 1};
    struct grade_workspace workspace = test_workspace();
    struct event_log events = {0};
    struct grade_input input = {.task = &task, .workspace = &workspace, .events = &events};
    struct grade_result result = {0};
    scoped(error_freep) struct error *err = NULL;

    (void)state;
    assert_int_equal(grade_run(&input, &result, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err),
                        "cannot evaluate run_command 'the first': cannot start 'broken'");
    assert_null(result.verdicts);
    json_decref(criterion.params);
}

static void every_kind_has_its_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < CRITERION_COUNT; i++) {
        assert_int_equal(criterion_types[i].kind, i);
        assert_non_null(criterion_types[i].name);
        assert_non_null(criterion_types[i].check_config);
        assert_non_null(criterion_types[i].evaluate);
        assert_true(criterion_types[i].needs_workspace != criterion_types[i].needs_events);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gate_is_a_strict_and_and_the_score_a_weighted_mean),
        cmocka_unit_test(after_an_early_stop_the_armed_criteria_decide),
        cmocka_unit_test(a_failing_system_ends_the_grading_and_says_where),
        cmocka_unit_test(every_kind_has_its_row),
    };

    return cmocka_run_group_tests_name("grade_verdicts", tests, NULL, NULL);
}
