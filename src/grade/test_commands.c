/* run_command, and the commands that an agent is on record with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/test_workspace.h"

static void run_command_asks_for_exit_code_and_output(void **state)
{
    static const struct {
        const char *params;
        double score;
        const char *details; /* "!" in front: errored; "?": errored by the agent */
    } cases[] = {
        {"{\"command\":\"true\"}", 1, "exit code 0, expected 0\nstdout: empty\nstderr: empty"},
        {"{\"command\":\"false\"}", 0, "exit code 1, expected 0\nstdout: empty\nstderr:\nno"},
        {"{\"command\":\"three\",\"expected_exit_code\":3}", 1, "exit code 3, expected 3"},
        {"{\"command\":\"true\",\"expected_exit_code\":3}", 0, "exit code 0, expected 3"},
        {"{\"command\":\"segfault\"}", 0, "ended by signal 11, expected exit code 0"},
        {"{\"command\":\"hello\",\"expected_stdout\":\"hello world\"}", 1, "stdout:\nhello world"},
        {"{\"command\":\"hello\",\"expected_stdout\":\"hello world\\n\\n\\n\"}", 1, ""},
        {"{\"command\":\"hello\",\"expected_stdout\":\"hello\"}", 0,
         "stdout differs, expected exactly 'hello'"},
        {"{\"command\":\"indented\",\"expected_stdout\":\"hello\"}", 0, "stdout differs"},
        {"{\"command\":\"indented\",\"expected_stdout\":\"hello\",\"stdout_match\":\"contains\"}",
         1, ""},
        {"{\"command\":\"hello\",\"expected_stdout\":\"o w\",\"stdout_match\":\"contains\"}", 1,
         ""},
        {"{\"command\":\"hello\",\"expected_stdout\":\"zz\",\"stdout_match\":\"contains\"}", 0,
         "expected contains 'zz'"},
        {"{\"command\":\"hello\",\"expected_stdout\":\"^hel+o\",\"stdout_match\":\"regex\"}", 1,
         ""},
        {"{\"command\":\"hello\",\"expected_stdout\":\"^world\",\"stdout_match\":\"regex\"}", 0,
         "expected regex '^world'"},
        {"{\"command\":\"hello\",\"expected_stdout\":\"d \\\\n\",\"stdout_match\":\"regex\"}", 1,
         ""},
        {"{\"command\":\"silent\",\"expected_stdout\":\"\"}", 1, ""},
        {"{\"command\":\"false\",\"expected_stdout\":\"\"}", 0, "exit code 1"},
        {"{\"command\":\"binary\",\"expected_stdout\":\" ok\",\"stdout_match\":\"contains\"}", 1,
         ""},
        {"{\"command\":\"aaaa\",\"expected_stdout\":\"(a+)+$\",\"stdout_match\":\"regex\"}", 0,
         "?takes too long on this output"},
        {"{\"command\":\"slow\"}", 0, "timed out after 30 s\nstdout:\npartial"},
        {"{\"command\":\"slow\",\"expected_stdout\":\"partial\"}", 0, "timed out"},
        {"{\"command\":\"slow\",\"timeout\":0.25}", 0, "timed out after 0.25 s"},
        {"{\"command\":\"pytest\"}", 0, "!the grading cell has no 'pytest' (exit code 127)"},
        {"{\"command\":\"pytest\",\"expected_exit_code\":127}", 1, "exit code 127, expected 127"},
        {"{\"command\":\"./agent.sh\"}", 0, "exit code 127, expected 0"},
        {"{\"command\":\"flood\"}", 1, "[cut: 6 bytes shown of more than 6]"},
        {"{\"command\":\"score\",\"score_from_stdout\":true}", 0.75, "exit code 0"},
        {"{\"command\":\"score spaces\",\"score_from_stdout\":true}", 1, ""},
        {"{\"command\":\"score fails\",\"score_from_stdout\":true}", 0, "exit code 2, expected 0"},
        {"{\"command\":\"score fails\",\"score_from_stdout\":true,\"expected_exit_code\":2}", 1,
         ""},
        {"{\"command\":\"score high\",\"score_from_stdout\":true}", 0,
         "score: 1.5 is out of range"},
        {"{\"command\":\"score low\",\"score_from_stdout\":true}", 0,
         "score: -0.1 is out of range"},
        {"{\"command\":\"score nan\",\"score_from_stdout\":true}", 0,
         "score: the first line of stdout is 'nan', expected a number"},
        {"{\"command\":\"score text\",\"score_from_stdout\":true}", 0,
         "'passed 3', expected a number"},
        {"{\"command\":\"score empty\",\"score_from_stdout\":true}", 0,
         "score: the first line of stdout is empty"},
        {"{\"command\":\"silent\",\"score_from_stdout\":true}", 0,
         "score: the first line of stdout is empty"},
        {"{\"command\":\"slow\",\"score_from_stdout\":true}", 0, "timed out"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judged_done) struct judged judged = {0};
        const char *details = cases[i].details;
        bool errored = details[0] == '!' || details[0] == '?';

        judge(CRITERION_RUN_COMMAND, cases[i].params, &judged);
        if (judged.verdict.errored != errored ||
            judged.verdict.caused_by_agent != (details[0] == '?') ||
            (!errored && judged.verdict.score != cases[i].score) ||
            strstr(judged.verdict.details, details + errored) == NULL)
            fail_msg("%s: score %f, %s", cases[i].params, judged.verdict.score,
                     judged.verdict.details);
    }
}

static void the_time_of_a_command_is_its_own_or_the_limit(void **state)
{
    static const struct {
        const char *params;
        uint64_t timeout_ms;
    } cases[] = {
        {"{\"command\":\"true\"}", 30000},
        {"{\"command\":\"true\",\"timeout\":null}", 30000},
        {"{\"command\":\"true\",\"timeout\":600}", 600000},
        {"{\"command\":\"true\",\"timeout\":1.5}", 1500},
        {"{\"command\":\"true\",\"timeout\":0.00001}", 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judged_done) struct judged judged = {0};

        judge(CRITERION_RUN_COMMAND, cases[i].params, &judged);
        assert_int_equal(test_timeout_ms, cases[i].timeout_ms);
    }
}

static void a_command_says_where_it_runs(void **state)
{
    static const struct {
        const char *params;
        bool as_candidate, fresh, read_only;
    } cases[] = {
        {"{\"command\":\"true\"}", false, false, false},
        {"{\"command\":\"true\",\"as\":\"grader\",\"fresh\":false}", false, false, false},
        {"{\"command\":\"true\",\"as\":\"candidate\"}", true, false, false},
        {"{\"command\":\"true\",\"fresh\":true}", false, true, false},
        {"{\"command\":\"true\",\"read_only\":true,\"fresh\":true}", false, true, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(judged_done) struct judged judged = {0};

        judge(CRITERION_RUN_COMMAND, cases[i].params, &judged);
        assert_int_equal(test_last_command.as_candidate, cases[i].as_candidate);
        assert_int_equal(test_last_command.fresh, cases[i].fresh);
        assert_int_equal(test_last_command.read_only, cases[i].read_only);
    }
}

static void all_that_a_command_printed_is_kept(void **state)
{
    scoped(judged_done) struct judged judged = {0};
    scoped(judged_done) struct judged slow = {0};

    (void)state;
    judge(CRITERION_RUN_COMMAND, "{\"command\":\"false\"}", &judged);
    assert_string_equal(buf_text(&judged.verdict.output),
                        "$ false\nexit code 1\n--- stdout, 0 bytes ---\n"
                        "--- stderr, 3 bytes ---\nno\n");
    judge(CRITERION_RUN_COMMAND, "{\"command\":\"slow\"}", &slow);
    assert_true(str_starts(buf_text(&slow.verdict.output), "$ slow\ntimed out\n"));
}

static void a_command_that_cannot_start_is_an_error_of_the_system(void **state)
{
    scoped(judged_done) struct judged judged = {0};

    (void)state;
    assert_int_equal(try_judge(CRITERION_RUN_COMMAND, "{\"command\":\"broken\"}", &judged),
                     -ERROR_SYSTEM);
    assert_string_equal(error_message(judged.err), "cannot start 'broken'");
}

static void mistakes_in_commands_are_found_at_load(void **state)
{
    static const struct {
        enum criterion_kind kind;
        const char *params, *complaint; /* NULL: fine */
    } cases[] = {
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"true\",\"timeout\":30,\"expected_stdout\":\"x\",\"stdout_match\":"
         "\"exact\"}",
         NULL},
        {CRITERION_RUN_COMMAND, "{}", "command: expected a command"},
        {CRITERION_RUN_COMMAND, "{\"command\":\" \\n\"}", "command: expected a command"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"x\",\"timeout\":0}",
         "timeout: expected seconds above 0"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"x\",\"timeout\":\"5\"}",
         "timeout: expected seconds above 0"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"x\",\"expected_exit_code\":256}",
         "expected_exit_code"},
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"x\",\"expected_stdout\":\"(\",\"stdout_match\":\"regex\"}",
         "expected_stdout: offset 0: missing"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"x\",\"expected_stdout\":\"(\"}", NULL},
        {CRITERION_RUN_COMMAND, "{\"command\":\"x\",\"expected_stdout\":5}",
         "expected_stdout: expected a text"},
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"x\",\"expected_stdout\":\"a\",\"stdout_match\":\"glob\"}",
         "stdout_match: 'glob' is unknown"},
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"x\",\"expected_stdout\":\"a\",\"score_from_stdout\":true}",
         "has no meaning beside score_from_stdout"},
        {CRITERION_RUN_COMMAND,
         "{\"command\":\"./x \\\"$REFERENCE_DIR/in\\\"\",\"as\":\"candidate\"}",
         "/command: a candidate has no $REFERENCE_DIR"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"sh ${TASK_DIR}/t\",\"as\":\"candidate\"}",
         "/command: a candidate has no $TASK_DIR"},
        {CRITERION_RUN_COMMAND, "{\"command\":\"./x $TASK_DIRS\",\"as\":\"candidate\"}", NULL},
        {CRITERION_RUN_COMMAND, "{\"command\":\"./x $TASK_DIR\",\"as\":\"grader\"}", NULL},
        {CRITERION_COMMAND_EXECUTED, "{}", NULL},
        {CRITERION_COMMAND_EXECUTED, "{\"command_pattern\":\"(\"}", "command_pattern: offset 0"},
        {CRITERION_COMMAND_EXECUTED, "{\"exclude_pattern\":\"[\"}", "exclude_pattern: offset 0"},
        {CRITERION_COMMAND_EXECUTED, "{\"min_count\":2,\"max_count\":1}",
         "max_count: 1 is below min_count, 2"},
        {CRITERION_COMMAND_EXECUTED, "{\"max_count\":0}", "max_count: 0 is below min_count, 1"},
        {CRITERION_COMMAND_EXECUTED, "{\"min_count\":0,\"max_count\":0}", NULL},
        {CRITERION_COMMAND_EXECUTED, "{\"min_count\":-1}", "/min_count: expected a number from 0"},
        {CRITERION_SKILL_TRIGGERED, "{\"skill_name\":\"pdf\"}", NULL},
        {CRITERION_SKILL_TRIGGERED, "{\"skill_name\":\"\"}", "/skill_name: expected the name"},
        {CRITERION_SKILL_TRIGGERED, "{\"skill_name\":\"office:pdf\"}", "without its plugin"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *got = load_complaint(cases[i].kind, cases[i].params);

        if (cases[i].complaint == NULL ? got != NULL
                                       : got == NULL || strstr(got, cases[i].complaint) == NULL)
            fail_msg("%s: %s", cases[i].params, got == NULL ? "(fine)" : got);
    }
}

/* --- calls on record ------------------------------------------------------------------------- */

/* One call and what came of it. */
struct call {
    const char *tool, *input;
    enum event_source source;
    enum { NOT_ENDED, ENDED_WELL, ENDED_BADLY, ENDED_WITH_CODE } end;
};

static const struct call calls[] = {
    {"Bash", "{\"command\":\"ls -l\"}", EVENT_SELF_REPORTED, ENDED_WELL},
    {"Bash", "{\"command\":\"bash -lc 'git commit -m \\\"a b\\\"'\"}", EVENT_SELF_REPORTED,
     ENDED_WELL},
    {"Bash", "{\"command\":\"git push\"}", EVENT_SELF_REPORTED, ENDED_WITH_CODE},
    {"Bash", "{\"command\":\"make \\\\\\n  test\"}", EVENT_SELF_REPORTED, ENDED_BADLY},
    {"Read", "{\"file_path\":\"/w/a.py\",\"limit\":3}", EVENT_SELF_REPORTED, NOT_ENDED},
    {"Read", "{\"file_path\":\"/w/b.py\"}", EVENT_SELF_REPORTED, ENDED_WELL},
    {"Task", NULL, EVENT_SELF_REPORTED, ENDED_WELL},
    {"Bash", "{\"command\":\"rm -rf forged\"}", EVENT_STREAM, ENDED_WELL},
    {"Bash", "{\"command\":[\"argv\",\"list\"]}", EVENT_SELF_REPORTED, ENDED_WELL},
};

static void add_event(struct event_log *log, const struct event *event)
{
    log->events = mem_resize(log->events, log->count + 1, sizeof(*log->events));
    log->events[log->count++] = *event;
}

static void fill_log(struct event_log *log)
{
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        struct event call = {
            .kind = EVENT_TOOL_CALL,
            .source = calls[i].source,
            .tool = str_dup(calls[i].tool),
            .call_id = str_format("call-%zu", i),
            .input = calls[i].input == NULL ? NULL : test_json(calls[i].input),
        };
        struct event result = {
            .kind = EVENT_TOOL_RESULT,
            .source = calls[i].source,
            .call_id = str_format("call-%zu", i),
            .is_error = calls[i].end == ENDED_BADLY,
            .has_exit_code = calls[i].end == ENDED_WITH_CODE,
            .exit_code = 1,
        };

        add_event(log, &call);
        if (calls[i].end == NOT_ENDED)
            free(result.call_id);
        else
            add_event(log, &result);
    }
}

static void empty_log(struct event_log *log)
{
    for (size_t i = 0; i < log->count; i++) {
        free(log->events[i].tool);
        free(log->events[i].call_id);
        json_decref(log->events[i].input);
    }
    free(log->events);
}

static void judge_events(enum criterion_kind kind, const char *params, const struct event_log *log,
                         bool trusted, struct verdict *ret)
{
    struct criterion criterion = {.kind = kind, .params = test_json(params)};
    struct grade_input input = {.events = log, .events_trusted = trusted};

    assert_int_equal(criterion_types[kind].evaluate(&criterion, &input, ret, NULL), 0);
    json_decref(criterion.params);
}

static void judge_calls(const char *params, const struct event_log *log, bool trusted,
                        struct verdict *ret)
{
    judge_events(CRITERION_COMMAND_EXECUTED, params, log, trusted, ret);
}

static void calls_are_counted_by_tool_pattern_and_success(void **state)
{
    static const struct {
        const char *params;
        double score;
        const char *details; /* "?" in front: errored by the agent */
    } cases[] = {
        {"{}", 1, "8 calls, expected at least 1"},
        {"{\"tool_name\":\"Bash\"}", 1, "5 calls, expected at least 1, tool_name Bash"},
        {"{\"tool_name\":\"Write\"}", 0, "0 calls, expected at least 1"},
        {"{\"tool_name\":\"bash\"}", 0, "0 calls"},
        {"{\"tool_name\":\"Bash\",\"min_count\":8}", 0.625, "5 calls, expected at least 8"},
        {"{\"min_count\":0,\"tool_name\":\"Write\"}", 1, "0 calls, expected at least 0"},
        {"{\"command_pattern\":\"^ls\"}", 1,
         "1 call, expected at least 1, command_pattern ^ls\nfor example: 'ls -l'"},
        {"{\"command_pattern\":\"^git commit -m a b$\"}", 1, "1 call"},
        {"{\"command_pattern\":\"'git commit -m \\\"a b\\\"'\"}", 1, "1 call"},
        {"{\"command_pattern\":\"make.*test\"}", 1, "1 call"},
        {"{\"command_pattern\":\"^make test$\"}", 1, "1 call"},
        {"{\"command_pattern\":\"git\",\"exclude_pattern\":\"push\"}", 1,
         "1 call, expected at least 1, command_pattern git, exclude_pattern push"},
        {"{\"command_pattern\":\"git\",\"exclude_pattern\":\"commit -m a\"}", 1, "1 call"},
        {"{\"command_pattern\":\"git\",\"require_success\":true}", 1,
         "1 call, expected at least 1, command_pattern git, succeeded"},
        {"{\"command_pattern\":\"push\",\"require_success\":true}", 0, "0 calls"},
        {"{\"command_pattern\":\"make\",\"require_success\":true}", 0, "0 calls"},
        {"{\"tool_name\":\"Read\",\"require_success\":true}", 1, "1 call"},
        {"{\"tool_name\":\"Read\",\"command_pattern\":\"\\\"file_path\\\": \\\"/w/a.py\\\", "
         "\\\"limit\\\": 3\"}",
         1, "for example: Read '{\"file_path\""},
        {"{\"tool_name\":\"Task\",\"command_pattern\":\"^\\\\{\\\\}$\"}", 1, "1 call"},
        {"{\"command_pattern\":\"\\\\[\\\"argv\\\", \\\"list\\\"\\\\]\"}", 1, "1 call"},
        {"{\"tool_name\":\"Bash\",\"min_count\":2,\"max_count\":6}", 1, "5 calls, expected 2 to 6"},
        {"{\"tool_name\":\"Read\",\"min_count\":1,\"max_count\":1}", 0, "2 calls, expected 1"},
        {"{\"tool_name\":\"Read\",\"min_count\":3,\"max_count\":9}", 0, "2 calls, expected 3 to 9"},
        {"{\"command_pattern\":\"curl\",\"min_count\":0,\"max_count\":0}", 1,
         "0 calls, expected 0, command_pattern curl"},
        {"{\"command_pattern\":\"ls\",\"min_count\":0,\"max_count\":0}", 0, "1 call, expected 0"},
        /* What only the agent's own output shows never counts, and a guard cannot rest on it. */
        {"{\"command_pattern\":\"forged\"}", 0,
         "not counted: 1 that only the agent's output shows"},
        {"{\"command_pattern\":\"forged\",\"min_count\":0,\"max_count\":0}", 0,
         "?the agent's output shows calls that its traffic does not"},
        {"{\"tool_name\":\"Bash\",\"min_count\":0,\"max_count\":9}", 1, "5 calls"},
    };
    struct event_log log = {0};

    (void)state;
    fill_log(&log);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};
        bool errored = cases[i].details[0] == '?';

        judge_calls(cases[i].params, &log, true, &verdict);
        if (verdict.errored != errored || verdict.caused_by_agent != errored ||
            verdict.informational || verdict.score != cases[i].score ||
            strstr(verdict.details, cases[i].details + errored) == NULL)
            fail_msg("%s: score %f, %s", cases[i].params, verdict.score, verdict.details);
    }
    empty_log(&log);
}

static void self_reported_calls_inform_only(void **state)
{
    scoped(verdict_done) struct verdict verdict = {0};
    struct event_log log = {0};

    (void)state;
    fill_log(&log);
    judge_calls("{\"command_pattern\":\"ls\"}", &log, false, &verdict);
    assert_true(verdict.informational);
    assert_true(verdict.score == 1);
    assert_non_null(strstr(verdict.details, "informational"));
    empty_log(&log);
}

static void a_cut_record_cannot_clear_a_guard(void **state)
{
    static const struct {
        const char *params;
        bool errored;
        double score;
    } cases[] = {
        {"{\"command_pattern\":\"curl\",\"min_count\":0,\"max_count\":0}", true, 0},
        {"{\"command_pattern\":\"ls\",\"min_count\":0,\"max_count\":0}", false, 0},
        {"{\"command_pattern\":\"ls\"}", false, 1},
    };
    struct event_log log = {.cut = true};

    (void)state;
    fill_log(&log);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};

        judge_calls(cases[i].params, &log, true, &verdict);
        assert_int_equal(verdict.errored, cases[i].errored);
        assert_true(verdict.score == cases[i].score);
    }
    empty_log(&log);
}

static void efficiency_is_the_expected_calls_by_those_made(void **state)
{
    static const struct {
        const char *params;
        double score;
    } cases[] = {
        {"{\"expected_commands\":4}", 0.5},
        {"{\"expected_commands\":8}", 1},
        {"{\"expected_commands\":100}", 1},
    };
    struct event_log log = {0}, own = {0};

    (void)state;
    fill_log(&log);
    /* All but the one that only the agent's output shows. */
    for (size_t i = 0; i < log.count; i++)
        if (log.events[i].source != EVENT_STREAM)
            add_event(&own, &log.events[i]);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};

        judge_events(CRITERION_COMMANDS_EFFICIENCY, cases[i].params, &own, true, &verdict);
        assert_true(verdict.score == cases[i].score);
        assert_non_null(strstr(verdict.details, "8 calls, expected"));
    }
    scoped(verdict_done) struct verdict forged = {0}, told = {0};

    judge_events(CRITERION_COMMANDS_EFFICIENCY, cases[0].params, &log, true, &forged);
    assert_true(forged.errored && forged.caused_by_agent);
    judge_events(CRITERION_COMMANDS_EFFICIENCY, cases[0].params, &own, false, &told);
    assert_true(told.informational);
    free(own.events);
    empty_log(&log);
}

static void a_call_made_to_stall_a_pattern_is_not_passed(void **state)
{
    scoped(verdict_done) struct verdict verdict = {0};
    char id[] = "x", tool[] = "Bash";
    struct event event = {
        .kind = EVENT_TOOL_CALL,
        .source = EVENT_WIRE,
        .call_id = id,
        .tool = tool,
        .input = test_json("{\"command\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"}"),
    };
    struct event_log log = {.events = &event, .count = 1};

    (void)state;
    judge_calls("{\"command_pattern\":\"(a+)+$\"}", &log, true, &verdict);
    assert_true(verdict.errored);
    assert_true(verdict.caused_by_agent);
    json_decref(event.input);
}

/* --- skills ---------------------------------------------------------------------------------- */

static void judge_skill(const char *params, const struct event *call, bool cut, struct verdict *ret)
{
    struct criterion criterion = {.kind = CRITERION_SKILL_TRIGGERED, .params = test_json(params)};
    struct event copy = *call;
    struct event_log log = {.events = &copy, .count = 1, .cut = cut};
    struct grade_input input = {.events = &log, .events_trusted = true};

    assert_int_equal(
        criterion_types[CRITERION_SKILL_TRIGGERED].evaluate(&criterion, &input, ret, NULL), 0);
    json_decref(criterion.params);
}

static void a_skill_is_triggered_by_its_call_or_a_path_into_it(void **state)
{
    static const struct {
        const char *tool, *input;
        bool triggered;
    } cases[] = {
        {"Skill", "{\"skill\":\"pdf\"}", true},
        {"Skill", "{\"skill\":\"office:pdf\"}", true},
        {"Skill", "{\"command\":\"office:pdf\"}", true},
        {"Skill", "{\"skill\":\"pdf-forms\"}", false},
        {"Skill", "{\"skill\":\"pdf:forms\"}", false},
        {"Skill", "{}", false},
        {"Other", "{\"skill\":\"pdf\"}", false},
        {"Bash", "{\"command\":\"cat .claude/skills/pdf/SKILL.md\"}", true},
        {"Bash", "{\"command\":\"cat '.claude/skills'/pdf/SKILL.md\"}", true},
        {"Bash", "{\"command\":\"type skills\\\\pdf\\\\SKILL.md\"}", true},
        {"Bash", "{\"command\":\"ls skills/skills/pdf/\"}", true},
        {"Bash", "{\"command\":\"ls skills/pdf\"}", false},
        {"Bash", "{\"command\":\"ls skills/pdf-forms/x\"}", false},
        {"Bash", "{\"command\":\"ls skillspdf/x\"}", false},
        {"Read", "{\"file_path\":\"/p/skills/pdf/SKILL.md\"}", true},
        {"Edit", "{\"edits\":[{\"path\":\"/p/skills/pdf/SKILL.md\"}]}", true},
        {"Read", "{\"skills/pdf/\":1}", false},
        {"Read", NULL, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict wanted = {0};
        scoped(verdict_done) struct verdict unwanted = {0};
        scoped(mem_freep) char *tool = str_dup(cases[i].tool);
        scoped(json_freep) json_t *input =
            cases[i].input == NULL ? NULL : test_json(cases[i].input);
        struct event call = {
            .kind = EVENT_TOOL_CALL, .source = EVENT_WIRE, .tool = tool, .input = input};

        judge_skill("{\"skill_name\":\"pdf\"}", &call, false, &wanted);
        judge_skill("{\"skill_name\":\"pdf\",\"expected_skill\":\"docx\"}", &call, false,
                    &unwanted);
        if (wanted.score != (cases[i].triggered ? 1 : 0) || wanted.score + unwanted.score != 1)
            fail_msg("%s %s: %f, %f, %s", cases[i].tool,
                     cases[i].input == NULL ? "" : cases[i].input, wanted.score, unwanted.score,
                     wanted.details);
        call.kind = EVENT_TOOL_RESULT;
        verdict_done(&wanted);
        judge_skill("{\"skill_name\":\"pdf\"}", &call, false, &wanted);
        assert_true(wanted.score == 0);
    }
}

static void only_a_whole_and_witnessed_record_clears_a_skill(void **state)
{
    static const struct {
        const char *params;
        enum event_source source;
        bool cut, errored;
        double score;
    } cases[] = {
        {"{\"skill_name\":\"pdf\",\"expected_skill\":\"pdf\"}", EVENT_WIRE, true, false, 1},
        {"{\"skill_name\":\"pdf\",\"expected_skill\":\"pdf\"}", EVENT_STREAM, false, false, 0},
        {"{\"skill_name\":\"pdf\",\"expected_skill\":\"\"}", EVENT_WIRE, true, false, 0},
        {"{\"skill_name\":\"pdf\",\"expected_skill\":\"\"}", EVENT_STREAM, false, true, 0},
        {"{\"skill_name\":\"docx\",\"expected_skill\":\"\"}", EVENT_WIRE, true, true, 0},
        {"{\"skill_name\":\"docx\",\"expected_skill\":\"\"}", EVENT_WIRE, false, false, 1},
    };
    char tool[] = "Skill";

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};
        struct event call = {.kind = EVENT_TOOL_CALL,
                             .source = cases[i].source,
                             .tool = tool,
                             .input = test_json("{\"skill\":\"pdf\"}")};

        judge_skill(cases[i].params, &call, cases[i].cut, &verdict);
        if (verdict.errored != cases[i].errored || verdict.caused_by_agent != cases[i].errored ||
            verdict.score != cases[i].score)
            fail_msg("%zu: %f, %s", i, verdict.score, verdict.details);
        json_decref(call.input);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_command_asks_for_exit_code_and_output),
        cmocka_unit_test(the_time_of_a_command_is_its_own_or_the_limit),
        cmocka_unit_test(a_command_says_where_it_runs),
        cmocka_unit_test(all_that_a_command_printed_is_kept),
        cmocka_unit_test(a_command_that_cannot_start_is_an_error_of_the_system),
        cmocka_unit_test(mistakes_in_commands_are_found_at_load),
        cmocka_unit_test(calls_are_counted_by_tool_pattern_and_success),
        cmocka_unit_test(self_reported_calls_inform_only),
        cmocka_unit_test(a_cut_record_cannot_clear_a_guard),
        cmocka_unit_test(efficiency_is_the_expected_calls_by_those_made),
        cmocka_unit_test(a_call_made_to_stall_a_pattern_is_not_passed),
        cmocka_unit_test(a_skill_is_triggered_by_its_call_or_a_path_into_it),
        cmocka_unit_test(only_a_whole_and_witnessed_record_clears_a_skill),
    };

    return cmocka_run_group_tests_name("grade_commands", tests, NULL, NULL);
}
