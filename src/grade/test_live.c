/* When armed criteria end a run: by events alone, one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "grade/live.h"

/* A criterion: 'p' passes at a call of its word, 'g' is a guard against it; a capital stops on its
 * pass. */
struct armed {
    char kind;
    const char *word;
    double weight;
    uint64_t decide_within;
};

static struct criterion criterion_of(const struct armed *armed)
{
    struct criterion criterion = {.kind = CRITERION_COMMAND_EXECUTED,
                                  .type_name = "command_executed",
                                  .description = str_dup(armed->word),
                                  .weight = armed->weight,
                                  .pass_threshold = 0.9,
                                  .params = json_object(),
                                  .armed = armed->kind != '-',
                                  .stops_on_pass = armed->kind == 'P',
                                  .decide_within = armed->decide_within};

    json_put_text(criterion.params, "command_pattern", armed->word);
    json_put_int(criterion.params, "min_count", armed->kind == 'g' ? 0 : 1);
    if (armed->kind == 'g')
        json_put_int(criterion.params, "max_count", 0);
    return criterion;
}

static void add_call(struct event_log *log, const char *command)
{
    struct event *event = event_log_add(log, EVENT_TOOL_CALL, EVENT_STREAM);

    event->tool = str_dup("Bash");
    event->input = json_object();
    json_put_text(event->input, "command", command);
}

#define CRITERIA_MAX 3
struct live_case {
    double gate;
    struct armed armed[CRITERIA_MAX];
    const char *calls; /* words, a call each */
    enum live_reason reason;
    size_t criterion, at; /* from 1: who decided, at which call */
};

static const struct live_case cases[] = {
    /* A pass stops when it is to, not else. */
    {1, {{'P', "a", 1, 0}}, "x a b", LIVE_PASSED, 1, 2},
    {1, {{'p', "a", 1, 0}}, "x a b", LIVE_GOES_ON, 0, 0},
    {1, {{'-', "a", 1, 0}}, "x a b", LIVE_GOES_ON, 0, 0},
    /* It waits for what could pass besides. */
    {1, {{'P', "a", 1, 0}, {'p', "b", 1, 0}}, "a x b", LIVE_PASSED, 2, 3},
    {1, {{'P', "a", 1, 0}, {'p', "b", 1, 0}}, "a x", LIVE_GOES_ON, 0, 0},
    /* A guard cannot pass before the end, and is not waited for. */
    {1, {{'P', "a", 1, 0}, {'g', "b", 1, 0}}, "a b", LIVE_PASSED, 1, 1},
    /* What is broken stays broken, whatever comes; half of the weight can be enough. */
    {1, {{'g', "b", 1, 0}}, "x b a", LIVE_FAILED, 1, 2},
    {1, {{'g', "b", 1, 0}, {'p', "a", 1, 0}}, "b x", LIVE_GOES_ON, 0, 0},
    {1, {{'g', "b", 1, 0}, {'p', "a", 1, 0}}, "b x a", LIVE_FAILED, 2, 3},
    {0.5, {{'g', "b", 1, 0}, {'P', "a", 1, 0}}, "b x a", LIVE_PASSED, 2, 3},
    {0.5, {{'g', "b", 3, 0}, {'P', "a", 1, 0}}, "b x a", LIVE_FAILED, 2, 3},
    /* So many calls, and no more. */
    {1, {{'p', "a", 1, 2}}, "x y z", LIVE_BUDGET, 1, 2},
    {1, {{'P', "a", 1, 2}}, "x a z", LIVE_PASSED, 1, 2},
    /* What weighs nothing decides nothing. */
    {1, {{'P', "a", 0, 0}}, "a", LIVE_GOES_ON, 0, 0},
};

static void play(const struct live_case *test, size_t piece)
{
    struct criterion criteria[CRITERIA_MAX] = {0};
    struct task_private task = {.criteria = criteria, .stop_early_gate = test->gate};
    struct event_log log = {0};
    scoped(str_list_done) struct str_list words = {0};
    enum live_reason reason = LIVE_GOES_ON;

    for (; task.criterion_count < CRITERIA_MAX && test->armed[task.criterion_count].word != NULL;
         task.criterion_count++)
        criteria[task.criterion_count] = criterion_of(&test->armed[task.criterion_count]);
    struct live *live = live_new(&task, true);

    for (const char *call = test->calls; *call != '\0'; call += 1 + (call[1] == ' '))
        str_list_add_take(&words, str_ndup(call, 1));
    for (size_t i = 0; i < words.count; i++) {
        add_call(&log, words.items[i]);
        if (live != NULL && ((i + 1) % piece == 0 || i + 1 == words.count))
            reason = live_look(live, &log);
    }
    if (reason != test->reason)
        fail_msg("case %zu, pieces of %zu: %d", (size_t)(test - cases), piece, reason);
    scoped(json_freep) json_t *told = live == NULL ? NULL : live_json(live);

    assert_int_equal(told != NULL, test->reason != LIVE_GOES_ON);
    if (told != NULL) {
        assert_int_equal(json_get_int(told, "criterion", 0), test->criterion);
        assert_int_equal(json_get_int(told, "calls", 0), test->at);
    }
    live_free(live);
    for (size_t i = 0; i < task.criterion_count; i++) {
        free(criteria[i].description);
        json_decref(criteria[i].params);
    }
    event_log_done(&log);
}

/* In whatever pieces the output comes. */
static void ends_when_nothing_can_matter_any_more(unused_ok void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (size_t piece = 1; piece <= 3; piece++)
            play(&cases[i], piece);
    }
}

static void is_nothing_where_nothing_is_armed(unused_ok void **state)
{
    struct criterion criterion = {.kind = CRITERION_COMMAND_EXECUTED, .weight = 1, .armed = true};
    struct task_private task = {
        .criteria = &criterion, .criterion_count = 1, .stop_early_off = true};

    assert_null(live_new(&task, true));
    task.stop_early_off = false;
    /* What an agent says of itself is no reason to end its run. */
    assert_null(live_new(&task, false));
    task.criterion_count = 0;
    assert_null(live_new(&task, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_when_nothing_can_matter_any_more),
        cmocka_unit_test(is_nothing_where_nothing_is_armed),
    };

    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
