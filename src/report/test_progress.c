#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "report/progress.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

static const struct progress_trial passed = {
    .trial_id = "hello/00",
    .status = STATUS_SUCCESS,
    .has_verdict = true,
    .passed = true,
    .has_score = true,
    .score = 1.0,
    .duration_ms = 312,
};
static const struct progress_trial failed = {
    .trial_id = "sum/00",
    .status = STATUS_FAILURE,
    .has_verdict = true,
    .has_score = true,
    .score = 0.5,
    .duration_ms = 12840,
    .reason = "hidden tests",
};
static const struct progress_trial errored = {
    .trial_id = "json/00",
    .status = STATUS_ERROR,
    .duration_ms = 5,
    .reason = "no space left on device",
};

static void silence_is_asked_for_and_kept(void **state)
{
    (void)state;
    static const struct {
        bool is_terminal, no_progress, quiet;
        enum progress_mode mode;
    } cases[] = {
        {true, false, false, PROGRESS_LIVE}, {false, false, false, PROGRESS_LINES},
        {true, true, false, PROGRESS_NONE},  {false, true, false, PROGRESS_NONE},
        {true, false, true, PROGRESS_NONE},
    };
    const struct progress_options options = {.mode = PROGRESS_NONE, .total = 1};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(
            progress_mode_of(cases[i].is_terminal, cases[i].no_progress, cases[i].quiet),
            cases[i].mode);
    progress_start(&progress, &options, 0, &buf);
    progress_trial_started(&progress, S, &buf);
    progress_trial_finished(&progress, &passed, 2 * S, &buf);
    assert_int_equal(progress_wait_ms(&progress, 3 * S), -1);
    progress_finish(&progress, &buf);
    assert_int_equal(buf.size_bytes, 0);
    assert_int_equal(progress.passed, 1);
}

static void prints_one_line_a_trial_where_there_is_no_terminal(void **state)
{
    (void)state;
    const struct progress_options options = {.mode = PROGRESS_LINES, .total = 3};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 0, &buf);
    progress_trial_started(&progress, 0, &buf);
    progress_trial_finished(&progress, &passed, S, &buf);
    progress_trial_finished(&progress, &failed, S, &buf);
    progress_trial_finished(&progress, &errored, S, &buf);
    progress_tick(&progress, 9 * S, &buf);
    progress_finish(&progress, &buf);
    assert_string_equal(buf_text(&buf), "SUCCESS hello/00 1.00 0.312 s\n"
                                        "FAILURE sum/00 0.50 12.840 s  hidden tests\n"
                                        "ERROR json/00 - 0.005 s  no space left on device\n");
}

/* The live line after a second in which one trial of each kind ended and one runs. */
static char *live_line(unsigned columns, uint64_t now_ns)
{
    const struct progress_options options = {
        .mode = PROGRESS_LIVE, .ascii = true, .columns = columns, .total = 12};
    struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 0, &buf);
    progress_trial_finished(&progress, &passed, 1, &buf);
    progress_trial_finished(&progress, &failed, 2, &buf);
    progress_trial_finished(&progress, &errored, 3, &buf);
    progress_trial_started(&progress, 4, &buf);
    buf_clear(&buf);
    progress_tick(&progress, now_ns, &buf);
    return buf_take(&buf);
}

static void tells_how_far_the_run_is(void **state)
{
    (void)state;
    static const struct {
        unsigned columns;
        uint64_t now_ns;
        const char *line;
    } cases[] = {
        {100, 1 * S,
         "\r #####...............  3/12  1 running  1 passed  1 failed  1 error  0:01\033[K"},
        {100, 65 * S,
         "\r #####...............  3/12  1 running  1 passed  1 failed  1 error  1:05  about 3:15 "
         "left\033[K"},
        {100, 3600 * S,
         "\r #####...............  3/12  1 running  1 passed  1 failed  1 error  1:00:00  about "
         "3:00:00 left\033[K"},
        /* Where it is narrow the bar goes first, then the estimate, the clock, the counts. */
        {80, 65 * S,
         "\r 3/12  1 running  1 passed  1 failed  1 error  1:05  about 3:15 left\033[K"},
        {60, 65 * S, "\r 3/12  1 running  1 passed  1 failed  1 error  1:05\033[K"},
        {50, 65 * S, "\r 3/12  1 running  1 passed  1 failed  1 error\033[K"},
        {20, 65 * S, "\r 3/12  1 running\033[K"},
        {4, 65 * S, "\r 3/12\033[K"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *line = live_line(cases[i].columns, cases[i].now_ns);

        assert_string_equal(line, cases[i].line);
    }
}

static void redraws_no_more_often_than_eyes_can_follow(void **state)
{
    (void)state;
    const struct progress_options options = {.mode = PROGRESS_LIVE, .ascii = true, .total = 2};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 10 * S, &buf);
    assert_true(buf.size_bytes > 0);
    buf_clear(&buf);
    progress_trial_started(&progress, 10 * S + 99 * MS, &buf);
    assert_int_equal(buf.size_bytes, 0);
    assert_int_equal(progress_wait_ms(&progress, 10 * S + 99 * MS), 1);
    progress_tick(&progress, 10 * S + 100 * MS, &buf);
    assert_non_null(strstr(buf_text(&buf), "1 running"));
    buf_clear(&buf);
    progress_trial_finished(&progress, &passed, 10 * S + 101 * MS, &buf);
    assert_int_equal(buf.size_bytes, 0);
}

static void leaves_the_terminal_as_it_was(void **state)
{
    (void)state;
    const struct progress_options options = {.mode = PROGRESS_LIVE, .total = 1};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 0, &buf);
    buf_clear(&buf);
    progress_finish(&progress, &buf);
    assert_string_equal(buf_text(&buf), "\r\033[K");
    buf_clear(&buf);
    progress_tick(&progress, 9 * S, &buf);
    progress_finish(&progress, &buf);
    assert_int_equal(buf.size_bytes, 0);
}

static void prints_finished_trials_above_the_live_line_when_asked(void **state)
{
    (void)state;
    const struct progress_options options = {
        .mode = PROGRESS_LIVE, .ascii = true, .verbose = true, .columns = 40, .total = 2};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 0, &buf);
    buf_clear(&buf);
    progress_trial_finished(&progress, &passed, 1, &buf);
    assert_string_equal(buf_text(&buf), "\r\033[KSUCCESS hello/00 1.00 0.312 s\n"
                                        "\r 1/2  1 passed  0:00\033[K");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_asked_for_and_kept),
        cmocka_unit_test(prints_one_line_a_trial_where_there_is_no_terminal),
        cmocka_unit_test(tells_how_far_the_run_is),
        cmocka_unit_test(redraws_no_more_often_than_eyes_can_follow),
        cmocka_unit_test(leaves_the_terminal_as_it_was),
        cmocka_unit_test(prints_finished_trials_above_the_live_line_when_asked),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
