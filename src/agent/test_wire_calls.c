#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/wire_calls.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define MAIN true

static void add_answer(struct buf *file, const char *api, bool is_main, int status,
                       const char *body)
{
    scoped(json_freep) json_t *line = json_object();

    json_put_int(line, "seq", 2);
    json_put_int(line, "t_ms", 7);
    json_put_text(line, "kind", "response");
    json_put_text(line, "api", api);
    json_put_bool(line, "main", is_main);
    json_put_int(line, "status", status);
    json_put_bool(line, "whole", true);
    json_put_text(line, "body", body);
    json_write_line(file, line);
    buf_char(file, '\n');
}

static int read_file(const struct buf *file, struct wire_calls *ret, struct error **err)
{
    scoped(fd_closep) int fd = -1;

    assert_int_equal(fs_memfd("wire", buf_text(file), file->size_bytes, &fd, NULL), 0);
    return wire_calls_read(fd, ret, err);
}

/* "id name input;" of each. */
static char *text_of(const struct wire_calls *calls)
{
    struct buf text = {0};

    for (size_t i = 0; i < calls->count; i++) {
        const struct wire_call *call = &calls->calls[i];

        buf_format(&text, "%s%s %s ",
                   call->is_main ? "" : "beside: ", call->id == NULL ? "-" : call->id, call->name);
        if (call->input != NULL)
            json_write_canonical(&text, call->input);
        buf_char(&text, ';');
    }
    return buf_take(&text);
}

static void finds_the_calls_of_each_wire_format(void **state)
{
    (void)state;
    static const struct {
        const char *api, *body, *expected;
    } cases[] = {
        {"anthropic",
         "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"tool_"
         "use\",\"id\":\"a\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]}",
         "a Bash {\"command\":\"ls\"};"},
        {"anthropic",
         "event: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"index\":1,"
         "\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Bash\",\"input\":{}}}\r"
         "\n\r\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_"
         "json_delta\",\"partial_json\":\"{\\\"command\\\":\"}}\n\ndata: {\"type\":\"content_block_"
         "delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":"
         "\"\\\"ls\\\"}\"}}\n\n",
         "a Bash {\"command\":\"ls\"};"},
        /* Torn before its input came: it was asked for all the same. */
        {"anthropic",
         "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_"
         "use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{}}}",
         "a Read {};"},
        {"openai-responses",
         "{\"object\":\"response\",\"output\":[{\"type\":\"function_call\",\"call_id\":\"c\","
         "\"name\":\"exec_command\",\"arguments\":\"{\\\"cmd\\\":\\\"ls\\\"}\"}]}",
         "c exec_command {\"cmd\":\"ls\",\"command\":\"ls\"};"},
        {"openai-responses",
         "data: "
         "{\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\",\"call_"
         "id\":\"c\",\"name\":\"shell\",\"arguments\":\"{\\\"command\\\":[\\\"bash\\\",\\\"-lc\\\","
         "\\\"ls -l\\\"]}\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"object\":"
         "\"response\",\"output\":[]}}\n\n",
         "c shell {\"command\":\"ls -l\"};"},
        {"openai-responses",
         "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"custom_tool_call\","
         "\"call_id\":\"c\",\"name\":\"apply_patch\",\"input\":\"*** Begin\"}}\n",
         "c apply_patch {\"input\":\"*** Begin\"};"},
        {"openai-chat",
         "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"t\",\"function\":{\"name\":"
         "\"bash\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}},{\"id\":\"u\",\"function\":{"
         "\"name\":\"read\",\"arguments\":\"\"}}]}}]}",
         "t bash {\"command\":\"ls\"};u read ;"},
        {"openai-chat",
         "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{"
         "\"name\":\"bash\",\"arguments\":\"{\\\"command\\\"\"}}]}}]}\n\ndata: {\"choices\":[{"
         "\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":\\\"ls\\\"}\"}}]}}"
         "]"
         "}\n\ndata: [DONE]\n\n",
         "t bash {\"command\":\"ls\"};"},
        {"gemini",
         "[{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"x\"},{\"functionCall\":{\"name\":"
         "\"run_shell_command\",\"args\":{\"command\":\"ls\"}}}]}}]}]",
         "- run_shell_command {\"command\":\"ls\"};"},
        {"gemini",
         "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"id\":\"g\",\"name\":"
         "\"glob\",\"args\":{}}}]}}]}\n\n",
         "g glob {};"},
        {"gemini", "<html>gateway</html>", ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf file = {0};
        scoped(wire_calls_done) struct wire_calls calls = {0};

        buf_text_append(&file, "{\"seq\": 1, \"t_ms\": 0, \"kind\": \"request\", \"body\": {}}\n");
        add_answer(&file, cases[i].api, MAIN, 200, cases[i].body);
        assert_int_equal(read_file(&file, &calls, NULL), 0);
        scoped(mem_freep) char *text = text_of(&calls);

        assert_string_equal(text, cases[i].expected);
        assert_false(calls.cut);
        assert_false(calls.has_failed);
        assert_int_equal(calls.exchanges, 1);
    }
}

static void concludes_nothing_from_what_it_cannot_read(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "{\"type\":\"message\",\"content\":[",
        "data: {\"type\":\n\n",
        "{\"type\":\"message\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]}",
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_"
        "use\",\"name\":\"Bash\"}}\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
        "\"partial_json\":\"{\\\"command\\\":\"}}\n",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
        scoped(buf_done) struct buf file = {0};
        scoped(wire_calls_done) struct wire_calls calls = {0};

        add_answer(&file, "anthropic", MAIN, 200, bodies[i]);
        assert_int_equal(read_file(&file, &calls, NULL), 0);
        assert_true(calls.cut);
    }
    scoped(buf_done) struct buf torn = {0};
    scoped(wire_calls_done) struct wire_calls calls = {0};

    buf_text_append(&torn, "{\"seq\": 1, \"kind\": \"response\"");
    assert_int_equal(read_file(&torn, &calls, NULL), -ERROR_SYSTEM);
}

static void knows_how_the_last_exchange_of_the_main_thread_ended(void **state)
{
    (void)state;
    scoped(buf_done) struct buf file = {0};
    scoped(wire_calls_done) struct wire_calls calls = {0}, more = {0};

    add_answer(&file, "anthropic", MAIN, 200, "{}");
    add_answer(&file, "anthropic", MAIN, 401, "{\"error\":\"no\"}");
    add_answer(&file, "anthropic", !MAIN, 200, "{}");
    assert_int_equal(read_file(&file, &calls, NULL), 0);
    assert_true(calls.has_failed);
    assert_int_equal(calls.last_status, 401);
    assert_string_equal(calls.last_message, "{\"error\":\"no\"}");
    add_answer(&file, "anthropic", MAIN, 200, "{}");
    assert_int_equal(read_file(&file, &more, NULL), 0);
    assert_false(more.has_failed);
    assert_int_equal(more.exchanges, 3);
}

/* --- as one with what was printed ------------------------------------------------------------ */

static void add_wire(struct wire_calls *calls, const char *id, const char *name,
                     const char *command)
{
    struct wire_call *call = wire_calls_add(calls);

    call->id = id == NULL ? NULL : str_dup(id);
    call->name = str_dup(name);
    call->input = json_object();
    json_put_text(call->input, "command", command);
    call->is_main = MAIN;
}

static void add_printed(struct event_log *log, enum event_kind kind, const char *id,
                        const char *command)
{
    struct event *event = event_log_add(log, kind, EVENT_STREAM);

    event->call_id = str_dup(id);
    if (kind != EVENT_TOOL_CALL)
        return;
    event->tool = str_dup("Bash");
    event->input = json_object();
    json_put_text(event->input, "command", command);
}

/* "source id command;" of each call, "result id;" of each result. */
static char *events_text(const struct event_log *log)
{
    struct buf text = {0};

    for (size_t i = 0; i < log->count; i++) {
        const struct event *event = &log->events[i];

        assert_int_equal(event->seq, i + 1);
        if (event->kind == EVENT_TOOL_RESULT)
            buf_format(&text, "result %s;", event->call_id);
        else
            buf_format(&text, "%s %s %s %s;", event_source_name(event->source),
                       event->call_id == NULL ? "-" : event->call_id, event->tool,
                       json_get_text(event->input, "command"));
    }
    return buf_take(&text);
}

static void the_wire_says_what_a_printed_call_was(void **state)
{
    (void)state;
    scoped(wire_calls_done) struct wire_calls calls = {0};
    scoped(event_log_done) struct event_log log = {0};

    add_wire(&calls, "a", "Bash", "not printed");
    add_wire(&calls, "b", "Bash", "real");
    add_wire(&calls, "c", "Bash", "last");
    add_printed(&log, EVENT_TOOL_CALL, "forged", "rm -rf /");
    add_printed(&log, EVENT_TOOL_CALL, "b", "other words");
    add_printed(&log, EVENT_TOOL_RESULT, "b", NULL);
    add_printed(&log, EVENT_TOOL_CALL, "b", "again");
    wire_calls_merge(&calls, STREAM_CLAUDE, &log);
    scoped(mem_freep) char *text = events_text(&log);

    assert_string_equal(text, "stream forged Bash rm -rf /;wire a Bash not printed;"
                              "wire b Bash real;result b;stream b Bash again;wire c Bash last;");
}

static void what_is_beside_the_main_thread_never_counts(void **state)
{
    (void)state;
    scoped(wire_calls_done) struct wire_calls calls = {.cut = true};
    scoped(event_log_done) struct event_log log = {0};

    add_wire(&calls, "a", "Bash", "by hand");
    calls.calls[0].is_main = false;
    wire_calls_merge(&calls, STREAM_CLAUDE, &log);
    scoped(mem_freep) char *text = events_text(&log);

    assert_string_equal(text, "stream a Bash by hand;");
    assert_true(log.cut);
}

static void ids_of_a_programs_own_are_those_of_the_wire(void **state)
{
    (void)state;
    scoped(wire_calls_done) struct wire_calls calls = {0};
    scoped(event_log_done) struct event_log log = {0};

    add_wire(&calls, "call_1", "update_plan", "plan");
    add_wire(&calls, "call_2", "exec_command", "ls");
    add_printed(&log, EVENT_TOOL_CALL, "item_0", "/bin/bash -lc ls");
    add_printed(&log, EVENT_TOOL_RESULT, "item_0", NULL);
    add_printed(&log, EVENT_TOOL_CALL, "item_1", "only printed");
    wire_calls_merge(&calls, STREAM_CODEX, &log);
    scoped(mem_freep) char *text = events_text(&log);

    assert_string_equal(text, "wire call_1 TodoWrite plan;wire call_2 Bash ls;result call_2;"
                              "stream item_1 Bash only printed;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_calls_of_each_wire_format),
        cmocka_unit_test(concludes_nothing_from_what_it_cannot_read),
        cmocka_unit_test(knows_how_the_last_exchange_of_the_main_thread_ended),
        cmocka_unit_test(the_wire_says_what_a_printed_call_was),
        cmocka_unit_test(what_is_beside_the_main_thread_never_counts),
        cmocka_unit_test(ids_of_a_programs_own_are_those_of_the_wire),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
