#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/atif.h"
#include "agent/stream.h"
#include "base/mem.h"
#include "base/str.h"

static const struct atif_about about = {
    .agent = "claude-code", .version = "2", .model = "m", .prompt = "do it", .trial = "v/t/00"};

/* The steps of a trajectory in one text: source, message, calls and results of each. */
static char *told(const json_t *trajectory)
{
    scoped(buf_done) struct buf text = {0};
    size_t i = 0, j = 0;
    json_t *step = NULL, *item = NULL;

    json_array_foreach (json_get_array(trajectory, "steps"), i, step) {
        assert_int_equal(json_get_int(step, "step_id", 0), i + 1);
        buf_format(&text, "%s '%s'", json_get_text(step, "source"), json_get_text(step, "message"));
        json_array_foreach (json_get_array(step, "tool_calls"), j, item)
            buf_format(&text, " %s=%s", json_get_text(item, "tool_call_id"),
                       json_get_text(item, "function_name"));
        json_array_foreach (json_get_array(json_get_object(step, "observation"), "results"), j,
                            item)
            buf_format(&text, " %s:%s",
                       json_get_text(item, "source_call_id") == NULL
                           ? "-"
                           : json_get_text(item, "source_call_id"),
                       json_get_text(item, "content"));
        buf_char(&text, '\n');
    }
    return buf_take(&text);
}

static struct event_log events_of(const char *lines)
{
    struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, 0);

    event_reader_feed(reader, lines, strlen(lines));
    event_reader_end(reader);
    return log;
}

static void makes_a_step_of_each_answer_with_its_calls_and_results(void **state)
{
    (void)state;
    scoped(event_log_done) struct event_log log =
        events_of("{\"kind\":\"turn_start\"}\n{\"kind\":\"text\",\"output\":\"I \"}\n"
                  "{\"kind\":\"text\",\"output\":\"look\"}\n"
                  "{\"kind\":\"tool_call\",\"tool\":\"Bash\",\"call_id\":\"a\",\"input\":{"
                  "\"command\":\"ls\"}}"
                  "\n{\"kind\":\"tool_call\",\"tool\":\"Read\",\"call_id\":\"b\",\"input\":\"x\"}\n"
                  "{\"kind\":\"turn_start\"}\n{\"kind\":\"text\",\"output\":\"done\"}\n"
                  "{\"kind\":\"tool_result\",\"call_id\":\"a\",\"output\":\"f\",\"exit_code\":0}\n"
                  "{\"kind\":\"tool_result\",\"call_id\":\"c\",\"output\":{\"k\":1}}\n"
                  "{\"kind\":\"usage\",\"usage\":{\"input_tokens\":5,\"cache_read_tokens\":2,"
                  "\"output_tokens\":3}}\n");
    scoped(json_freep) json_t *json = atif_export(&log, &about);
    scoped(mem_freep) char *steps = told(json);

    assert_string_equal(steps, "user 'do it'\nagent 'I look' a=Bash b=Read a:f\n"
                               "agent 'done' -:{\"k\": 1}\n");
    assert_string_equal(json_get_text(json, "schema_version"), "ATIF-v1.7");

    const json_t *metrics = json_get_object(json, "final_metrics");

    assert_int_equal(json_get_int(metrics, "total_prompt_tokens", -1), 7);
    assert_int_equal(json_get_int(metrics, "total_cached_tokens", -1), 2);
    assert_int_equal(json_get_int(metrics, "total_completion_tokens", -1), 3);
    assert_int_equal(json_get_int(metrics, "total_steps", -1), 3);
    assert_string_equal(json_get_text(json_get_object(json, "extra"), "events"), "self-reported");
}

static void tells_of_a_sub_agent_beside_the_main_thread(void **state)
{
    (void)state;
    static const char text[] =
        "{\"type\":\"assistant\",\"session_id\":\"s\",\"message\":{\"id\":\"m1\",\"content\":[{"
        "\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Agent\",\"input\":{}}]}}\n"
        "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t1\",\"message\":{\"id\":\"m2\","
        "\"content\":[{\"type\":\"text\",\"text\":\"inside\"}]}}\n";
    scoped(event_log_done) struct event_log log = {0};
    scoped(stream_freep) struct stream *stream = stream_new(STREAM_CLAUDE, NULL, &log, 0);

    stream_feed(stream, text, strlen(text));
    stream_end(stream);

    scoped(json_freep) json_t *json = atif_export(&log, &about);
    const json_t *sub = json_array_get(json_get_array(json, "subagent_trajectories"), 0);
    scoped(mem_freep) char *steps = told(json);
    scoped(mem_freep) char *inside = told(sub);

    assert_string_equal(steps, "user 'do it'\nagent '' t1=Task\n");
    assert_string_equal(inside, "agent 'inside'\n");
    assert_string_equal(json_get_text(sub, "trajectory_id"), "t1");
    assert_string_equal(json_get_text(json, "session_id"), "s");
}

static void has_a_step_also_when_nothing_happened(void **state)
{
    (void)state;
    struct event_log log = {0};
    scoped(json_freep) json_t *json =
        atif_export(&log, &(struct atif_about){.agent = "nop", .prompt = "", .trial = "v/t/00"});
    scoped(mem_freep) char *steps = told(json);

    assert_string_equal(steps, "system 'nothing was done'\n");
}

static void adds_up_what_no_sum_could_hold(void **state)
{
    (void)state;
    scoped(event_log_done) struct event_log log =
        events_of("{\"kind\":\"usage\",\"usage\":{\"input_tokens\":9223372036854775807}}\n"
                  "{\"kind\":\"usage\",\"usage\":{\"input_tokens\":9223372036854775807,"
                  "\"output_tokens\":-9223372036854775807}}\n");
    scoped(json_freep) json_t *json = atif_export(&log, &about);

    assert_int_equal(json_get_int(json_get_object(json, "final_metrics"), "total_prompt_tokens", 0),
                     (int64_t)1 << 41);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_a_step_of_each_answer_with_its_calls_and_results),
        cmocka_unit_test(tells_of_a_sub_agent_beside_the_main_thread),
        cmocka_unit_test(has_a_step_also_when_nothing_happened),
        cmocka_unit_test(adds_up_what_no_sum_could_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
