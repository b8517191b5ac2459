#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "record/testing.h"
#include "report/html.h"
#include "report/progress.h"
#include "report/report.h"
#include "report/samples.h"

static const struct report_options plain = {.ascii = true, .run_path = "runs/r1", .columns = 80};

/* --- totals and exit status ----------------------------------------------------------------- */

static void counts_every_kind_of_trial(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    struct report_totals totals = report_totals(&trials);

    assert_int_equal(totals.trials, 6);
    assert_int_equal(totals.success, 2);
    assert_int_equal(totals.failure, 1);
    assert_int_equal(totals.error, 1);
    assert_int_equal(totals.timeout, 1);
    assert_int_equal(totals.skipped, 1);
    assert_int_equal(totals.compromised, 1);
    assert_int_equal(totals.decided, 4);
    assert_int_equal(totals.passed, 1);
    assert_int_equal(totals.elapsed_ms, 53);
    assert_true(report_pass_rate(&totals) > 0.249 && report_pass_rate(&totals) < 0.251);
}

static void exits_with_the_highest_of_four_three_and_one(void **state)
{
    (void)state;
    static const struct exit_rules run = {
        .grading_expected = true, .min_pass_rate = -1, .max_errors = -1};
    static const struct exit_rules execute = {.min_pass_rate = -1, .max_errors = -1};
    static const struct exit_rules half = {
        .grading_expected = true, .min_pass_rate = 0.5, .max_errors = -1};
    static const struct exit_rules one_error = {
        .grading_expected = true, .min_pass_rate = -1, .max_errors = 1};
    static const struct exit_rules strict = {
        .grading_expected = true, .fail_on_suspect = true, .min_pass_rate = -1, .max_errors = -1};
    static const struct exit_rules steady = {
        .grading_expected = true, .fail_on_unstable = true, .min_pass_rate = -1, .max_errors = -1};
    static const struct exit_rules empty = {
        .allow_empty = true, .min_pass_rate = -1, .max_errors = -1};
    static const struct exit_rules stopped = {
        .interrupted = true, .min_pass_rate = -1, .max_errors = -1};
    static const struct {
        const char *what;
        struct report_totals totals;
        const struct exit_rules *rules;
        int status;
    } cases[] = {
        {"all passed", {.trials = 2, .decided = 2, .passed = 2, .success = 2}, &run, 0},
        {"unstable", {.trials = 2, .decided = 2, .passed = 2, .unstable = 1}, &steady, 1},
        {"unstable, not asked", {.trials = 2, .decided = 2, .passed = 2, .unstable = 1}, &run, 0},
        {"a failure", {.trials = 2, .decided = 2, .passed = 1, .failure = 1}, &run, 1},
        {"turns", {.trials = 1, .decided = 1, .max_turns = 1}, &run, 1},
        {"timeout", {.trials = 1, .decided = 1, .timeout = 1}, &run, 1},
        {"budget", {.trials = 1, .decided = 1, .budget = 1}, &run, 1},
        {"nothing", {.trials = 0}, &run, 2},
        {"only skipped", {.trials = 3, .skipped = 3}, &run, 2},
        {"allowed", {.trials = 3, .skipped = 3}, &empty, 0},
        {"an error", {.trials = 2, .decided = 1, .failure = 1, .error = 1}, &run, 3},
        {"not graded by run", {.trials = 1, .not_graded = 1}, &run, 3},
        {"not graded by execute", {.trials = 1, .not_graded = 1}, &execute, 0},
        {"compromised", {.trials = 3, .failure = 1, .error = 1, .compromised = 1}, &run, 4},
        {"suspect", {.trials = 1, .decided = 1, .passed = 1, .suspect = 1}, &run, 0},
        {"suspect, strict", {.trials = 1, .decided = 1, .passed = 1, .suspect = 1}, &strict, 4},
        {"half is enough", {.trials = 2, .decided = 2, .passed = 1, .failure = 1}, &half, 0},
        {"less is not", {.trials = 3, .decided = 3, .passed = 1, .failure = 2}, &half, 1},
        {"none decided", {.trials = 1, .not_graded = 1}, &half, 3},
        {"an error allowed", {.trials = 2, .decided = 1, .passed = 1, .error = 1}, &one_error, 0},
        {"two are not", {.trials = 2, .error = 2}, &one_error, 3},
        {"failure beside it", {.trials = 2, .decided = 1, .failure = 1, .error = 1}, &one_error, 1},
        {"interrupted", {.trials = 2, .decided = 1, .failure = 1, .compromised = 1}, &stopped, 130},
        {"interrupted early", {.trials = 0}, &stopped, 130},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int status = report_exit_status(&cases[i].totals, cases[i].rules);

        if (status != cases[i].status)
            fail_msg("%s: exit status %d", cases[i].what, status);
    }
}

/* --- the terminal --------------------------------------------------------------------------- */

static void tells_at_a_glance_what_failed_and_why(void **state)
{
    (void)state;
    static const char expected[] =
        "    TRIAL         STATUS   SCORE      TIME\n"
        "  + hello         SUCCESS   1.00    0.31 s\n"
        "  x hidden-tests  FAILURE   0.50    0.31 s  all hidden tests pass (+1 more)\n"
        "  ! json-task     ERROR        -    0.31 s  cannot start the grading cell: Oper~\n"
        "  x slow          TIMEOUT   0.50    60.0 s  turn_timeout after 60.0 s\n"
        "  x thief         SUCCESS   1.00    0.31 s  COMPROMISED: read the reference\n"
        "  o windows-only  SKIPPED      -         -  requires os: windows\n"
        "\n"
        "  x hidden-tests  FAILURE  trials/default/hidden-tests/00\n"
        "    x 2 run_command    all hidden tests pass                         0.00 < 0.90\n"
        "        | exit code 1, expected 0\n"
        "        |     FAILED test 1\n"
        "        |     FAILED test 2\n"
        "        |     FAILED test 3\n"
        "        |     FAILED test 4\n"
        "        |     FAILED test 5\n"
        "        | ~ 9 lines left out (-v shows them)\n"
        "        |     FAILED test 15\n"
        "        |     FAILED test 16\n"
        "        |     FAILED test 17\n"
        "        |     FAILED test 18\n"
        "        |     FAILED test 19\n"
        "        |     FAILED test 20\n"
        "        closedbook cell runs/r1/trials/default/hidden-tests/00 --criterion 2\n"
        "    x 3 file_contains  README names the new option                   0.50 < 0.90\n"
        "        | missing: '--resume'\n"
        "\n"
        "  ! json-task  ERROR (system)  trials/default/json-task/00\n"
        "    | cannot start the grading cell: Operation not permitted\n"
        "\n"
        "  x slow  TIMEOUT  trials/default/slow/00\n"
        "    | turn_timeout after 60.0 s\n"
        "\n"
        "  x thief  SUCCESS  trials/default/thief/00\n"
        "    COMPROMISED\n"
        "    | read the reference\n"
        "\n"
        "  6 trials - 1 passed - 3 failed - 1 error - 1 skipped - 1 unfinished   pass rate 25 %   "
        "0.05 s\n";
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(buf_done) struct buf buf = {0};

    report_terminal(&buf, &trials, &plain);
    assert_string_equal(buf_text(&buf), expected);
}

static void says_little_when_all_is_well(void **state)
{
    (void)state;
    static const char expected[] = "    TRIAL      STATUS   SCORE      TIME\n"
                                   "  + hello #00  SUCCESS   1.00    0.31 s\n"
                                   "  + hello #01  SUCCESS   1.00    0.31 s\n"
                                   "\n"
                                   "  2 trials - 2 passed   pass rate 100 %   0.05 s\n"
                                   "  1 UNPROTECTED (tempdir driver): such a result proves "
                                   "nothing about an agent\n";
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf buf = {0};

    samples_add(&trials, "hello", STATUS_SUCCESS)->integrity = INTEGRITY_UNPROTECTED;
    str_list_add(&trials.records[0].integrity_reasons, "tempdir driver");
    samples_add(&trials, "hello", STATUS_SUCCESS)->replicate = 1;
    report_terminal(&buf, &trials, &plain);
    assert_string_equal(buf_text(&buf), expected);
}

static void briefly_tells_what_did_not_pass_and_the_totals(void **state)
{
    (void)state;
    static const struct report_options brief = {
        .ascii = true, .brief = true, .run_path = "runs/r1", .columns = 80};
    scoped(run_trials_done) struct run_trials all = samples_every_kind(), good = {0};
    scoped(buf_done) struct buf buf = {0}, little = {0};
    size_t lines = 0;

    report_terminal(&buf, &all, &brief);
    for (const char *at = strchr(buf_text(&buf), '\n'); at != NULL; at = strchr(at + 1, '\n'))
        lines++;
    /* A failure, an error, a timeout, a compromised one; a success and a skipped one go unsaid. */
    assert_int_equal(lines, 4 + 1);
    assert_null(strstr(buf_text(&buf), "TRIAL "));
    assert_null(strstr(buf_text(&buf), "SUCCESS   1.00    0.31 s\n"));
    assert_non_null(strstr(buf_text(&buf), "  6 trials - 1 passed"));
    (void)samples_add(&good, "hello", STATUS_SUCCESS);
    report_terminal(&little, &good, &brief);
    assert_string_equal(buf_text(&little), "  1 trial - 1 passed   pass rate 100 %   0.05 s\n");
}

static void add_replicates(struct run_trials *trials, const char *variant, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct trial_record *record = samples_add(trials, "t", STATUS_FAILURE);

        record->replicate = i;
        samples_set(&record->variant_id, variant);
        samples_set(&record->criteria[0].type, "file_exists");
        record->criteria[0].passed = false;
        record->criteria[0].score = 0;
    }
}

static void tells_the_same_failure_of_replicates_once(void **state)
{
    (void)state;
    struct report_options options = plain;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf buf = {0};
    scoped(buf_done) struct buf all = {0};

    add_replicates(&trials, "default", 4);
    trials.records[2].criteria[0].details = str_dup("another one");
    report_terminal(&buf, &trials, &plain);
    assert_non_null(strstr(buf_text(&buf), "  x t #00  FAILURE  trials/default/t/00\n"
                                           "    and in the same way: #01 #03\n"));
    assert_null(strstr(buf_text(&buf), "  x t #01  FAILURE  trials"));
    assert_non_null(strstr(buf_text(&buf), "  x t #02  FAILURE  trials/default/t/00\n    x"));
    assert_null(strstr(buf_text(&buf), "  x t #03  FAILURE  trials"));

    options.verbose = true;
    report_terminal(&all, &trials, &options);
    assert_null(strstr(buf_text(&all), "in the same way"));
    assert_non_null(strstr(buf_text(&all), "  x t #03  FAILURE  trials"));
}

static void puts_variants_side_by_side(void **state)
{
    (void)state;
    static const char expected[] = "    VARIANT  TRIALS  PASSED    RATE   SCORE  ERRORS\n"
                                   "    long          3       1    50 %    0.75       1\n"
                                   "    short         2       0     0 %    0.50       0\n";
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf buf = {0};

    add_replicates(&trials, "long", 3);
    trials.records[0].status = STATUS_SUCCESS;
    trials.records[0].passed = true;
    trials.records[0].score = 1;
    trials.records[1].status = STATUS_ERROR;
    trials.records[1].has_verdict = trials.records[1].has_score = false;
    add_replicates(&trials, "short", 2);
    report_terminal(&buf, &trials, &plain);
    if (strstr(buf_text(&buf), expected) == NULL)
        fail_msg("%s", buf_text(&buf));

    scoped(run_trials_done) struct run_trials one = samples_every_kind();

    buf_clear(&buf);
    report_terminal(&buf, &one, &plain);
    assert_null(strstr(buf_text(&buf), "VARIANT"));
}

static void says_that_there_was_nothing(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf buf = {0};

    report_terminal(&buf, &trials, &plain);
    assert_string_equal(buf_text(&buf), "\n  0 trials\n");
}

static void shows_every_criterion_and_line_when_asked(void **state)
{
    (void)state;
    struct report_options options = plain;
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(buf_done) struct buf buf = {0};

    options.verbose = true;
    report_terminal(&buf, &trials, &options);
    assert_non_null(strstr(buf_text(&buf), "    + 1 run_command    greets"));
    assert_non_null(strstr(buf_text(&buf), "FAILED test 10\n"));
    assert_null(strstr(buf_text(&buf), "left out"));
}

static void quotes_the_command_for_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *run_path, *command;
    } cases[] = {
        {"runs/r1", "closedbook cell runs/r1/trials/default/t/00 --criterion 1\n"},
        {"runs/r1/", "closedbook cell runs/r1/trials/default/t/00 --criterion 1\n"},
        {"my runs", "closedbook cell 'my runs/trials/default/t/00' --criterion 1\n"},
        {"it's", "closedbook cell 'it'\\''s/trials/default/t/00' --criterion 1\n"},
        {"$(id)", "closedbook cell '$(id)/trials/default/t/00' --criterion 1\n"},
        {"-x", "closedbook cell '-x/trials/default/t/00' --criterion 1\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct report_options options = plain;
        scoped(run_trials_done) struct run_trials trials = {0};
        scoped(buf_done) struct buf buf = {0};

        samples_add(&trials, "t", STATUS_FAILURE)->criteria[0].passed = false;
        options.run_path = cases[i].run_path;
        report_terminal(&buf, &trials, &options);
        assert_non_null(strstr(buf_text(&buf), cases[i].command));
    }
}

/* Escape sequences out, so that what is left is what stands on the screen. */
static void strip_colours(const char *text, struct buf *ret)
{
    while (*text != '\0') {
        if (*text == '\033')
            text += strcspn(text, "m") + 1;
        else
            buf_char(ret, *text++);
    }
}

static void colours_change_nothing_but_the_colours(void **state)
{
    (void)state;
    struct report_options options = plain;
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(buf_done) struct buf bare = {0};
    scoped(buf_done) struct buf coloured = {0};
    scoped(buf_done) struct buf stripped = {0};

    report_terminal(&bare, &trials, &options);
    options.colour = true;
    report_terminal(&coloured, &trials, &options);
    strip_colours(buf_text(&coloured), &stripped);
    assert_string_equal(buf_text(&bare), buf_text(&stripped));
    assert_non_null(strstr(buf_text(&coloured), "\033[31mFAILURE\033[0m"));
}

/* --- hostile text --------------------------------------------------------------------------- */

/* An OSC 52 sequence (writes the clipboard), a cursor move, a bidi override, C1, DEL, not UTF-8. */
#define HOSTILE                                                                                    \
    "evil\033]52;c;aGk=\007\033[2J\xe2\x80\xae\xe2\x80\xac\xc2\x9b\x7f\xff\r\nx|<b>&\"'`]]>"

static const char *const raw_bytes[] = {
    "\033", "\007", "\xe2\x80\xae\xe2\x80\xac", "\xc2\x9b", "\x7f", "\xff", "\r", "\xc0"};

static void assert_clean(const char *writer, const struct buf *buf)
{
    for (size_t i = 0; i < ARRAY_SIZE(raw_bytes); i++) {
        if (memmem(buf_text(buf), buf->size_bytes, raw_bytes[i], strlen(raw_bytes[i])) != NULL)
            fail_msg("%s: raw bytes %zu", writer, i);
    }
    if (strstr(buf_text(buf), "evil") == NULL)
        fail_msg("%s: the text is not there at all", writer);
}

static void no_writer_passes_a_raw_byte_on(void **state)
{
    (void)state;
    const struct report_options options = {.run_path = HOSTILE, .columns = 200, .verbose = true};
    scoped(run_trials_done) struct run_trials trials = samples_hostile(HOSTILE);
    scoped(json_freep) json_t *json = report_json(&trials, HOSTILE);
    scoped(buf_done) struct buf terminal = {0};
    scoped(buf_done) struct buf markdown = {0};
    scoped(buf_done) struct buf junit = {0};
    scoped(buf_done) struct buf text = {0};

    report_terminal(&terminal, &trials, &options);
    assert_clean("terminal", &terminal);
    report_markdown(&markdown, &trials, &options);
    assert_clean("markdown", &markdown);
    report_junit(&junit, &trials, HOSTILE);
    assert_clean("junit", &junit);
    report_json_write(&text, json);
    assert_clean("json", &text);
    buf_clear(&text);
    report_jsonl(&text, &trials);
    assert_clean("jsonl", &text);
    buf_clear(&text);
    report_csv(&text, &trials);
    /* A line ends as RFC 4180 says. */
    for (char *end = text.data; (end = strstr(end, "\r\n")) != NULL;)
        *end = ' ';
    assert_clean("csv", &text);
    buf_clear(&text);
    report_html(&text, &trials, &(struct html_run){HOSTILE, HOSTILE, HOSTILE, HOSTILE});
    assert_clean("html", &text);
}

static void no_progress_line_passes_a_raw_byte_on(void **state)
{
    (void)state;
    const struct progress_options options = {.mode = PROGRESS_LINES, .total = 1};
    const struct progress_trial trial = {.trial_id = HOSTILE, .reason = HOSTILE};
    scoped(buf_done) struct buf buf = {0};
    struct progress progress;

    progress_start(&progress, &options, 0, &buf);
    progress_trial_finished(&progress, &trial, 0, &buf);
    assert_clean("progress", &buf);
}

static void keeps_the_value_of_json_that_it_escapes(void **state)
{
    (void)state;
    static const char text[] = "a\xe2\x80\xae z \xf0\x9f\x98\x80 \xf3\xa0\x80\x81 \xc3\xa9\n\x7f";
    scoped(json_freep) json_t *value = json_pack("{s:s}", text, text);
    scoped(json_freep) json_t *again = NULL;
    scoped(buf_done) struct buf buf = {0};

    report_json_write(&buf, value);
    assert_non_null(strstr(buf_text(&buf), "a\\u202e z \xf0\x9f\x98\x80 \\udb40\\udc01 \xc3\xa9"));
    assert_int_equal(json_parse("j", buf.data, buf.size_bytes, &again, NULL), 0);
    assert_true(json_equal(value, again));
}

static void markdown_takes_nothing_as_markup(void **state)
{
    (void)state;
    static const struct {
        const char *text, *row;
    } cases[] = {
        {"a|b", "| a\\|b |"},
        {"<img src=x>", "| \\<img src=x\\> |"},
        {"[x](http://y)", "| \\[x\\](http\\://y) |"},
        {"www.x.org", "| www\\.x.org |"},
        {"*a* _b_ `c` ~d~ #1 \\", "| \\*a\\* \\_b\\_ \\`c\\` \\~d\\~ \\#1 \\\\ |"},
        {"&lt;", "| \\&lt; |"},
        {"two\nlines", "| two\\\\nlines |"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(run_trials_done) struct run_trials trials = {0};
        scoped(buf_done) struct buf buf = {0};

        (void)samples_add(&trials, cases[i].text, STATUS_SUCCESS); /* as it is */
        report_markdown(&buf, &trials, &plain);
        if (strstr(buf_text(&buf), cases[i].row) == NULL)
            fail_msg("no %s in %s", cases[i].row, buf_text(&buf));
    }
}

static void a_fence_cannot_be_closed_from_inside(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf buf = {0};
    struct trial_record *record = samples_add(&trials, "t", STATUS_FAILURE);

    record->criteria[0].passed = false;
    record->criteria[0].details = str_dup("x\n````\n# out\n```");
    report_markdown(&buf, &trials, &plain);
    assert_non_null(strstr(buf_text(&buf), "\n`````text\nx\n````\n# out\n```\n`````\n"));
}

/* What gates nothing must not look like what the trial failed by, in no report. */
static void an_informational_criterion_says_so_everywhere(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf markdown = {0};
    scoped(buf_done) struct buf junit = {0};
    struct trial_record *record = samples_add(&trials, "t", STATUS_FAILURE);

    record->criteria[0].passed = record->criteria[0].gating = false;
    record->criteria[0].score = 0;
    report_markdown(&markdown, &trials, &plain);
    report_junit(&junit, &trials, "r");
    assert_non_null(strstr(buf_text(&markdown), " (informational)\n"));
    assert_non_null(strstr(buf_text(&junit), " (informational)\n"));
}

/* --- JUnit ---------------------------------------------------------------------------------- */

static void writes_a_suite_of_trials_and_one_of_integrity(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "<testsuites name=\"r1\" tests=\"11\" failures=\"4\" errors=\"1\" skipped=\"5\"",
        "  <testsuite name=\"trials\" tests=\"6\" failures=\"3\" errors=\"1\" skipped=\"1\"",
        "    <testcase classname=\"default\" name=\"hello\" time=\"0.310\"/>\n",
        "      <failure type=\"FAILURE\" message=\"all hidden tests pass (+1 more)\">2. ",
        "      <error type=\"ERROR\" message=\"cannot start the grading cell: ",
        "      <failure type=\"TIMEOUT\" message=\"turn_timeout after 60.0 s\"",
        "      <skipped message=\"requires os: windows\"/>\n",
        "  <testsuite name=\"integrity\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"4\"",
        "      <failure type=\"COMPROMISED\" message=\"COMPROMISED: read the reference\"/>\n",
        "      <skipped message=\"not evaluated\"/>\n",
    };
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(buf_done) struct buf buf = {0};
    const char *at = NULL;

    report_junit(&buf, &trials, "r1");
    at = buf_text(&buf);
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
        const char *found = strstr(at, pieces[i]);

        if (found == NULL)
            fail_msg("no '%s' after byte %td", pieces[i], at - buf_text(&buf));
        else if (i != 8)
            at = found;
    }
}

static void reports_totals_and_trials_as_json(void **state)
{
    (void)state;
    scoped(run_trials_done) struct run_trials trials = samples_every_kind();
    scoped(json_freep) json_t *json = report_json(&trials, "r1");
    const json_t *totals = json_get_object(json, "totals");
    const json_t *first = json_array_get(json_get_array(json, "trials"), 0);

    assert_string_equal(json_get_text(json, "schema"), "closedbook/report/1");
    assert_int_equal(json_get_int(totals, "trials", 0), 6);
    assert_int_equal(json_get_int(totals, "unfinished", 0), 1);
    assert_string_equal(json_get_text(first, "path"), "trials/default/hello/00");
    assert_string_equal(json_get_text(first, "status"), "SUCCESS");
    assert_null(json_object_get(first, "lineage"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_every_kind_of_trial),
        cmocka_unit_test(exits_with_the_highest_of_four_three_and_one),
        cmocka_unit_test(tells_at_a_glance_what_failed_and_why),
        cmocka_unit_test(says_little_when_all_is_well),
        cmocka_unit_test(briefly_tells_what_did_not_pass_and_the_totals),
        cmocka_unit_test(tells_the_same_failure_of_replicates_once),
        cmocka_unit_test(puts_variants_side_by_side),
        cmocka_unit_test(says_that_there_was_nothing),
        cmocka_unit_test(shows_every_criterion_and_line_when_asked),
        cmocka_unit_test(quotes_the_command_for_a_shell),
        cmocka_unit_test(colours_change_nothing_but_the_colours),
        cmocka_unit_test(no_writer_passes_a_raw_byte_on),
        cmocka_unit_test(no_progress_line_passes_a_raw_byte_on),
        cmocka_unit_test(keeps_the_value_of_json_that_it_escapes),
        cmocka_unit_test(markdown_takes_nothing_as_markup),
        cmocka_unit_test(a_fence_cannot_be_closed_from_inside),
        cmocka_unit_test(an_informational_criterion_says_so_everywhere),
        cmocka_unit_test(writes_a_suite_of_trials_and_one_of_integrity),
        cmocka_unit_test(reports_totals_and_trials_as_json),
    };

    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
