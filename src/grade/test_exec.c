#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "grade/exec.h"
#include "grade/test_workspace.h"

#define DESCRIPTION "{\"protocol\":\"closedbook/criterion/1\",\"params\":{}}"

static void says_what_is_wrong_with_a_description(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {DESCRIPTION, ""},
        {" " DESCRIPTION "\n", ""},
        {"", "it printed nothing, one JSON object was expected"},
        {"[]", "it printed array, one JSON object was expected"},
        {"{}", "protocol: 'closedbook/criterion/1' expected, found none"},
        {"{\"protocol\":\"closedbook/criterion/2\",\"params\":{}}",
         "protocol: 'closedbook/criterion/1' expected, found 'closedbook/criterion/2'"},
        {"{\"protocol\":\"closedbook/criterion/1\"}",
         "params: the JSON Schema of the parameters expected, found nothing; {} takes any"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"more\":1}",
         "description: 'more' is not known in closedbook/criterion/1"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":[]}",
         "needs: an object expected"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":{\"model\":true}}",
         "needs: 'model' is not known in closedbook/criterion/1"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":{\"reference\":1}}",
         "needs.reference: true or false expected"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":{\"programs\":\"a\"}}",
         "needs.programs: a list of at most 50 names expected"},
        {"{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":{\"programs\":[\"/"
         "bin/a\"]}}",
         "needs.programs[0]: a program's name expected"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(exec_description_done) struct exec_description is = {0};
        scoped(error_freep) struct error *err = NULL;
        int r = exec_description_parse(cases[i].text, strlen(cases[i].text), &is, &err);

        assert_string_equal(r < 0 ? error_message(err) : "", cases[i].complaint);
        if (r < 0)
            assert_int_equal(error_code_of(err), ERROR_TASK);
    }
}

static void compares_parameters_with_what_was_described(void **state)
{
    (void)state;
    static const char text[] =
        "{\"protocol\":\"closedbook/criterion/1\",\"params\":{\"type\":\"object\",\"required\":"
        "[\"n\"]}}";
    scoped(exec_description_done) struct exec_description is = {0};
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *right = test_json("{\"n\":1}");
    scoped(json_freep) json_t *wrong = test_json("{\"m\":1}");

    assert_int_equal(exec_description_parse(text, strlen(text), &is, NULL), 0);
    assert_int_equal(exec_params_check(&is, right, &err), 0);
    assert_true(exec_params_check(&is, wrong, &err) < 0);
    assert_non_null(strstr(error_message(err), "params: "));
    assert_non_null(strstr(error_message(err), "'n'"));
    assert_true(exec_params_check(&is, NULL, NULL) < 0);
}

static void says_what_is_wrong_with_an_answer(void **state)
{
    (void)state;
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"{\"score\":1}", ""},
        {"{\"score\":0.25,\"details\":\"a\",\"metrics\":{\"n\":2},\"label\":null}\n", ""},
        {"1", "it printed number, one JSON object was expected"},
        {"{}", "score: a number from 0 to 1 expected"},
        {"{\"score\":1.01}", "score: a number from 0 to 1 expected"},
        {"{\"score\":-0.5}", "score: a number from 0 to 1 expected"},
        {"{\"score\":\"1\"}", "score: a number from 0 to 1 expected"},
        {"{\"score\":true}", "score: a number from 0 to 1 expected"},
        {"{\"score\":1,\"passed\":true}", "answer: 'passed' is not known in "
                                          "closedbook/criterion/1"},
        {"{\"score\":1,\"details\":[]}", "details: a text expected"},
        {"{\"score\":1,\"metrics\":{\"n\":\"2\"}}", "metrics: 'n': a number expected"},
        {"{\"score\":1,\"metrics\":[]}", "metrics: an object of at most 100 numbers expected"},
        {"{\"score\":1,\"label\":{\"observed\":\"a\"}}",
         "label: the texts 'observed' and 'expected' expected"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(verdict_done) struct verdict verdict = {0};
        scoped(error_freep) struct error *err = NULL;
        int r = exec_answer_parse(cases[i].text, strlen(cases[i].text), &verdict, &err);

        assert_string_equal(r < 0 ? error_message(err) : "", cases[i].complaint);
        assert_true(r < 0 || (verdict.score >= 0 && verdict.score <= 1));
    }
    scoped(error_freep) struct error *err = NULL;
    scoped(verdict_done) struct verdict verdict = {0};

    assert_true(exec_answer_parse("{\"score\":1}{\"score\":0}", 22, &verdict, &err) < 0);
    assert_true(exec_answer_parse("{\"score\":1,\"score\":0}", 21, &verdict, NULL) < 0);
}

static void keeps_what_an_answer_says(void **state)
{
    (void)state;
    static const char text[] = "{\"score\":0.5,\"details\":\"half\",\"metrics\":{\"n\":2.5},"
                               "\"label\":{\"observed\":\"a\",\"expected\":\"b\"}}";
    scoped(verdict_done) struct verdict verdict = {0};

    assert_int_equal(exec_answer_parse(text, strlen(text), &verdict, NULL), 0);
    assert_true(verdict.score > 0.49 && verdict.score < 0.51);
    assert_string_equal(verdict.details, "half");
    assert_string_equal(verdict.observed, "a");
    assert_string_equal(verdict.expected, "b");
    assert_int_equal(json_object_size(verdict.metrics), 1);
}

static void writes_a_request(void **state)
{
    (void)state;
    scoped(event_log_done) struct event_log log = {0};
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *request = NULL;
    scoped(json_freep) json_t *params = test_json("{\"a\":\"\\u00e9\"}");

    (void)event_log_add(&log, EVENT_TEXT, EVENT_SELF_REPORTED);
    (void)event_log_add(&log, EVENT_TEXT, EVENT_SELF_REPORTED);
    exec_request_write(&text, &(struct exec_request){.protocol = EXEC_PROTOCOL,
                                                     .params = params,
                                                     .workspace = "/w",
                                                     .task_dir = "/t",
                                                     .final_message = "bad \xff \"bytes\"\n",
                                                     .events = &log,
                                                     .unknown_member = true});
    request = test_json(buf_text(&text));
    assert_string_equal(json_get_text(request, "protocol"), EXEC_PROTOCOL);
    assert_string_equal(json_get_text(request, "workspace"), "/w");
    assert_true(json_is_null(json_object_get(request, "reference_dir")));
    assert_int_equal(json_array_size(json_get_array(request, "events")), 2);
    assert_int_equal(json_array_size(json_get_array(request, "dialog")), 0);
    assert_non_null(json_get_text(request, "final_message"));
    assert_string_equal(json_get_text(json_get_object(request, "params"), "a"), "\xc3\xa9");
    assert_non_null(json_object_get(request, "x_of_a_later_version"));
}

static void names_a_program_to_the_shell(void **state)
{
    (void)state;
    scoped(mem_freep) char *plain = exec_command("../a b/it's", NULL);
    scoped(mem_freep) char *describe = exec_command("x", "--describe");

    assert_string_equal(plain, "exec \"$TASK_DIR\"/'../a b/it'\\''s'");
    assert_string_equal(describe, "exec \"$TASK_DIR\"/'x' --describe");
}

/* --- the criterion, over a program that is played ----------------------------------------------
 */

struct played {
    const char *description;
    int describe_code, code;
    const char *answer;
    bool timed_out, lacks_program, cut;
    char *input;
    uint64_t timeout_ms; /* that it was given */
};

static int play(void *context, const struct grade_command *command,
                struct grade_command_result *ret, struct error **err)
{
    struct played *played = context;

    (void)err;
    if (strstr(command->command, "--describe") != NULL) {
        /* In a folder where nothing is the agent's, and not for long. */
        assert_non_null(strstr(command->command, "cd / && exec "));
        assert_int_equal(command->timeout_ms, EXEC_DESCRIBE_TIMEOUT_MS);
        assert_int_equal(command->output_max_bytes, EXEC_DESCRIPTION_BYTES_MAX);
        buf_append(&ret->out, "/w\0/t\0\0", 7);
        buf_text_append(&ret->out, played->description);
        ret->exit_code = played->describe_code;
    } else if (strstr(command->command, "command -v") != NULL) {
        ret->exit_code = played->lacks_program;
        buf_text_append(&ret->out, played->lacks_program ? "jq" : "");
    } else {
        assert_non_null(command->input);
        assert_int_equal(command->output_max_bytes, EXEC_ANSWER_BYTES_MAX);
        played->timeout_ms = command->timeout_ms;
        free(played->input);
        played->input = str_ndup(command->input, command->input_bytes);
        ret->exit_code = played->code;
        ret->timed_out = played->timed_out;
        ret->out_cut = played->cut;
        buf_text_append(&ret->out, played->answer);
    }
    return 0;
}

static void the_programs_fault_is_never_the_agents(void **state)
{
    (void)state;
    static const struct {
        struct played played;
        bool errored, by_agent;
        const char *details;
    } cases[] = {
        {{.description = DESCRIPTION, .answer = "{\"score\":1,\"details\":\"fine\"}"},
         false,
         false,
         "fine"},
        {{.description = "{}", .answer = ""}, true, false, "--describe: protocol"},
        {{.description = "", .describe_code = 127}, true, false, "--describe: exit code 127"},
        {{.description = "{\"protocol\":\"closedbook/criterion/1\",\"params\":{\"type\":"
                         "\"object\",\"required\":[\"n\"]}}",
          .answer = ""},
         true,
         false,
         "params: "},
        {{.description = "{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":"
                         "{\"programs\":[\"jq\"]}}",
          .lacks_program = true},
         true,
         false,
         "it needs the program 'jq'"},
        {{.description = "{\"protocol\":\"closedbook/criterion/1\",\"params\":{},\"needs\":"
                         "{\"reference\":true}}"},
         true,
         false,
         "it needs a reference"},
        {{.description = DESCRIPTION, .answer = "", .code = 3}, true, true, "exit code 3"},
        {{.description = DESCRIPTION, .answer = "", .timed_out = true},
         true,
         true,
         "it ran longer than 5 s"},
        {{.description = DESCRIPTION, .answer = "{\"score\":1}", .cut = true},
         true,
         true,
         "it printed more than 11 bytes"},
        {{.description = DESCRIPTION, .answer = "score: 1"}, true, true, "it printed no JSON"},
        {{.description = DESCRIPTION, .answer = "{\"score\":2}"}, true, true, "score: "},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct played played = cases[i].played;
        struct grade_workspace workspace = {.context = &played, .run = play};
        struct grade_input input = {.workspace = &workspace,
                                    .command_timeout_ms = 5000,
                                    .final_message = "done",
                                    .dialog = "[]\n"};
        scoped(json_freep) json_t *params = test_json("{\"program\":\"g\",\"params\":{}}");
        struct criterion criterion = {.kind = CRITERION_EXEC, .params = params};
        scoped(verdict_done) struct verdict verdict = {0};

        assert_int_equal(
            criterion_types[CRITERION_EXEC].evaluate(&criterion, &input, &verdict, NULL), 0);
        assert_int_equal(verdict.errored, cases[i].errored);
        assert_int_equal(verdict.caused_by_agent, cases[i].by_agent);
        if (strstr(verdict.details, cases[i].details) == NULL)
            fail_msg("'%s' expected in '%s'", cases[i].details, verdict.details);
        assert_true(played.input == NULL || played.timeout_ms == input.command_timeout_ms);
        free(played.input);
    }
}

static void a_timeout_of_its_own_wins(void **state)
{
    (void)state;
    struct played played = {.description = DESCRIPTION, .answer = "{\"score\":1}"};
    struct grade_workspace workspace = {.context = &played, .run = play};
    struct grade_input input = {.workspace = &workspace, .command_timeout_ms = 5000};
    scoped(json_freep) json_t *params = test_json("{\"program\":\"g\",\"timeout\":0.5}");
    struct criterion criterion = {.kind = CRITERION_EXEC, .params = params};
    scoped(verdict_done) struct verdict verdict = {0};

    assert_int_equal(criterion_types[CRITERION_EXEC].evaluate(&criterion, &input, &verdict, NULL),
                     0);
    assert_int_equal(played.timeout_ms, 501);
    free(played.input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_wrong_with_a_description),
        cmocka_unit_test(compares_parameters_with_what_was_described),
        cmocka_unit_test(says_what_is_wrong_with_an_answer),
        cmocka_unit_test(keeps_what_an_answer_says),
        cmocka_unit_test(writes_a_request),
        cmocka_unit_test(names_a_program_to_the_shell),
        cmocka_unit_test(the_programs_fault_is_never_the_agents),
        cmocka_unit_test(a_timeout_of_its_own_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
