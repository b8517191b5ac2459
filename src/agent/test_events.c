#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/events.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

static struct event_log read_lines(const char *text, size_t size, size_t piece)
{
    struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, clock_ns());

    for (size_t i = 0; i < size; i += piece)
        event_reader_feed(reader, text + i, size_min(piece, size - i));
    event_reader_end(reader);
    for (size_t i = 0; i < log.count; i++)
        log.events[i].t_ms = 0;
    return log;
}

/* What the lines became, without the head of the file. */
static char *events_of(const char *text, size_t size, size_t piece)
{
    scoped(event_log_done) struct event_log log = read_lines(text, size, piece);
    scoped(buf_done) struct buf buf = {0};

    event_log_write(&buf, &log);
    return str_dup(strchr(buf_text(&buf), '\n') + 1);
}

static void takes_the_lines_of_an_agent(void **state)
{
    (void)state;
#define HEAD "{\"seq\": 1, \"t_ms\": 0, \"turn\": 0, \"kind\": "
#define TAIL ", \"source\": \"self-reported\"}\n"
#define WRONG(reason, text)                                                                        \
    HEAD "\"invalid\", \"input\": {\"reason\": \"" reason "\", \"text\": \"" text "\"}" TAIL
    static const struct {
        const char *line, *event;
    } cases[] = {
        {"", ""},
        {"\n \t\r\n", ""},
        {"{\"kind\":\"tool_call\",\"tool\":\"Bash\",\"call_id\":\"1\",\"input\":{\"command\":"
         "\"ls\"}}\n",
         HEAD "\"tool_call\", \"tool\": \"Bash\", \"call_id\": \"1\", \"input\": {\"command\": "
              "\"ls\"}" TAIL},
        {"{\"call_id\":7,\"input\":null,\"tool\":\"bash\",\"more\":[],\"kind\":\"tool_call\"}",
         HEAD "\"tool_call\", \"tool\": \"Bash\", \"call_id\": \"7\"" TAIL},
        {"{\"kind\":\"tool_call\",\"tool\":\"mcp__db__query\"}",
         HEAD "\"tool_call\", \"tool\": \"mcp__db__query\"" TAIL},
        {"{\"kind\":\"tool_result\",\"call_id\":\"1\",\"output\":\"a\",\"exit_code\":2,\"is_"
         "error\":"
         "true}\r\n",
         HEAD "\"tool_result\", \"call_id\": \"1\", \"output\": \"a\", \"exit_code\": 2, "
              "\"is_error\": true" TAIL},
        {"{\"kind\":\"text\",\"output\":\"h\xffi\"}\n",
         HEAD "\"text\", \"output\": \"h\xef\xbf\xbdi\"" TAIL},
        {"{\"kind\":\"usage\",\"usage\":{\"input_tokens\":3}}",
         HEAD "\"usage\", \"usage\": {\"input_tokens\": 3}" TAIL},
        /* What we say ourselves, nobody else does. */
        {"{\"kind\":\"text\",\"seq\":9,\"t_ms\":9,\"turn\":9,\"source\":\"wire\",\"agent\":\"x\"}",
         HEAD "\"text\"" TAIL},
        {"{\"kind\":\"agent_end\"}\n",
         WRONG("kind: not one that an agent may write", "{\\\"kind\\\":\\\"agent_end\\\"}")},
        {"{\"kind\":\"invalid\"}\n",
         WRONG("kind: not one that an agent may write", "{\\\"kind\\\":\\\"invalid\\\"}")},
        {"hello\n", WRONG("not JSON", "hello")},
        {"[1]\n", WRONG("not an object", "[1]")},
        {"{}\n", WRONG("kind: the name of a kind of event expected", "{}")},
        {"{\"kind\":\"tool_call\"}\n", WRONG("tool: missing", "{\\\"kind\\\":\\\"tool_call\\\"}")},
        {"{\"kind\":\"text\",\"kind\":\"text\"}\n",
         WRONG("not JSON", "{\\\"kind\\\":\\\"text\\\",\\\"kind\\\":\\\"text\\\"}")},
        {"{\"kind\":\"tex", WRONG("truncated", "{\\\"kind\\\":\\\"tex")},
        {"{\"kind\":\"text\",\"exit_code\":1.5}\n",
         WRONG("exit_code: a whole number expected", "{\\\"kind\\\":\\\"text\\\",\\\"exit_code"
                                                     "\\\":1.5}")},
        {"{\"kind\":\"text\",\"call_id\":[]}\n",
         WRONG("call_id: a short string expected",
               "{\\\"kind\\\":\\\"text\\\",\\\"call_id\\\":[]}")},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t size = strlen(cases[i].line);
        scoped(mem_freep) char *whole = events_of(cases[i].line, size, size + 1);
        scoped(mem_freep) char *bytewise = events_of(cases[i].line, size, 1);

        assert_string_equal(whole, cases[i].event);
        assert_string_equal(bytewise, cases[i].event);
    }
}

static void counts_turns_as_they_start(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"kind\":\"text\"}\n{\"kind\":\"turn_start\"}\n"
        "{\"kind\":\"tool_call\",\"tool\":\"Read\"}\n{\"kind\":\"turn_end\"}\n"
        "{\"kind\":\"turn_start\"}\n{\"kind\":\"text\"}\n";
    static const unsigned turns[] = {0, 1, 1, 1, 2, 2};
    scoped(event_log_done) struct event_log log = read_lines(lines, strlen(lines), 7);

    assert_int_equal(log.count, ARRAY_SIZE(turns));
    for (size_t i = 0; i < log.count; i++) {
        assert_int_equal(log.events[i].turn, turns[i]);
        assert_int_equal(log.events[i].seq, i + 1);
    }
    assert_int_equal(event_log_turns(&log), 2);
    assert_int_equal(event_log_tool_calls(&log), 1);
}

static void cuts_a_line_that_is_too_long_and_goes_on_after_it(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, "{\"kind\":\"text\",\"output\":\"");
    while (text.size_bytes < EVENT_LINE_BYTES_MAX + 10)
        buf_text_append(&text, "0123456789abcdef");
    buf_text_append(&text, "\"}\n{\"kind\":\"text\"}\n");

    scoped(event_log_done) struct event_log log = read_lines(text.data, text.size_bytes, 65536);

    assert_int_equal(log.count, 2);
    assert_int_equal(log.events[0].kind, EVENT_INVALID);
    assert_string_equal(json_get_text(log.events[0].input, "reason"), "too long");
    assert_true(json_get_bool(log.events[0].input, "cut", false));
    assert_true(json_get_int(log.events[0].input, "bytes", 0) > (int64_t)EVENT_LINE_BYTES_MAX);
    assert_true(strlen(json_get_text(log.events[0].input, "text")) == EVENT_INVALID_BYTES_MAX);
    assert_int_equal(log.events[1].kind, EVENT_TEXT);
    assert_false(log.cut);
}

static void takes_a_line_of_exactly_the_longest_size(void **state)
{
    (void)state;
    static const char start[] = "{\"kind\":\"text\",\"output\":\"";
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, start);
    while (text.size_bytes < EVENT_LINE_BYTES_MAX - 2)
        buf_char(&text, 'x');
    buf_text_append(&text, "\"}");

    scoped(event_log_done) struct event_log log = read_lines(text.data, text.size_bytes, 1000);

    assert_int_equal(log.count, 1);
    assert_int_equal(log.events[0].kind, EVENT_TEXT);
}

static void refuses_a_line_of_too_many_values(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    buf_text_append(&text, "{\"kind\":\"text\",\"output\":[0");
    for (size_t i = 0; i < EVENT_LINE_NODES_MAX; i++)
        buf_text_append(&text, ",0");
    buf_text_append(&text, "]}\n{\"kind\":\"text\",\"output\":\"");
    /* The same characters in a string are one value. */
    for (size_t i = 0; i < EVENT_LINE_NODES_MAX; i++)
        buf_text_append(&text, ",\\\"");
    buf_text_append(&text, "\"}\n");

    scoped(event_log_done) struct event_log log = read_lines(text.data, text.size_bytes, 4096);

    assert_int_equal(log.count, 2);
    assert_string_equal(json_get_text(log.events[0].input, "reason"), "too many values");
    assert_int_equal(log.events[1].kind, EVENT_TEXT);
}

static void stops_at_the_limit_of_events_and_says_so(void **state)
{
    (void)state;
    struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, 0);

    for (size_t i = 0; i < EVENTS_MAX; i++)
        event_reader_feed(reader, "x\n", 2);
    assert_false(log.cut);
    event_reader_feed(reader, "x\nx\n", 4);
    event_reader_end(reader);
    assert_int_equal(log.count, EVENTS_MAX);
    assert_true(log.cut);
    /* Our own still go in. */
    assert_int_equal(event_log_add(&log, EVENT_AGENT_END, EVENT_SELF_REPORTED)->seq,
                     EVENTS_MAX + 1);
    event_log_done(&log);
}

static void stops_at_the_limit_of_bytes_and_says_so(void **state)
{
    (void)state;
    scoped(mem_freep) char *flood = mem_new(1 << 20, 1);
    struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, 0);

    memset(flood, 'x', 1 << 20);
    for (size_t i = 0; i < EVENTS_BYTES_MAX >> 20; i++)
        event_reader_feed(reader, flood, 1 << 20);
    event_reader_feed(reader, "\n", 1);
    assert_false(log.cut);
    event_reader_feed(reader, "{\"kind\":\"text\"}\n", 16);
    event_reader_end(reader);
    assert_true(log.cut);
    assert_int_equal(log.count, 1);
    event_log_done(&log);
}

static void stops_at_the_limit_of_values_and_says_so(void **state)
{
    (void)state;
    scoped(buf_done) struct buf line = {0};
    struct event_log log = {0};
    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&log, EVENT_SELF_REPORTED, 0);
    size_t lines = EVENTS_NODES_MAX / EVENT_LINE_NODES_MAX + 2;

    buf_text_append(&line, "{\"kind\":\"text\",\"output\":[0");
    for (size_t i = 4; i < EVENT_LINE_NODES_MAX; i++)
        buf_text_append(&line, ",0");
    buf_text_append(&line, "]}\n");
    for (size_t i = 0; i < lines; i++)
        event_reader_feed(reader, line.data, line.size_bytes);
    event_reader_end(reader);
    assert_true(log.cut);
    assert_int_equal(log.events[0].kind, EVENT_TEXT);
    assert_int_equal(log.count, lines - 1);
    event_log_done(&log);
}

static void reads_its_own_file_back(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"kind\":\"turn_start\",\"session\":\"s\"}\n"
        "{\"kind\":\"tool_call\",\"tool\":\"Bash\",\"input\":{\"a\":[1,2]}}\n"
        "no event\n{\"kind\":\"usage\",\"usage\":{}}\n"
        "{\"kind\":\"tool_result\",\"output\":{},\"exit_code\":-1}\n";
    scoped(event_log_done) struct event_log log = read_lines(lines, strlen(lines), 100);
    scoped(event_log_done) struct event_log again = {0};
    scoped(buf_done) struct buf first = {0};
    scoped(buf_done) struct buf second = {0};
    scoped(error_freep) struct error *err = NULL;
    struct event *start = event_log_add(&log, EVENT_AGENT_END, EVENT_WIRE);

    start->agent = str_dup("script");
    start->t_ms = 12;
    log.cut = true;
    event_log_write(&first, &log);
    assert_int_equal(event_log_read("e", first.data, first.size_bytes, &again, &err), 0);
    event_log_write(&second, &again);
    assert_string_equal(first.data, second.data);
    assert_true(again.cut);
}

static void reads_an_empty_file_and_the_example_of_the_format(void **state)
{
    (void)state;
    scoped(event_log_done) struct event_log empty = {0};
    scoped(event_log_done) struct event_log example = {0};
    scoped(buf_done) struct buf text = {0};
    scoped(buf_done) struct buf again = {0};

    assert_int_equal(event_log_read("e", "", 0, &empty, NULL), 0);
    assert_int_equal(empty.count, 0);
    assert_int_equal(
        fs_read_file(AT_FDCWD, "docs/formats/examples/events.jsonl", 1 << 20, &text, NULL), 0);
    assert_int_equal(event_log_read("e", text.data, text.size_bytes, &example, NULL), 0);
    event_log_write(&again, &example);
    assert_string_equal(text.data, again.data);
}

static void takes_every_line_of_the_example_for_agents(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};

    assert_int_equal(
        fs_read_file(AT_FDCWD, "docs/formats/examples/agent-events.jsonl", 1 << 20, &text, NULL),
        0);

    scoped(event_log_done) struct event_log log = read_lines(text.data, text.size_bytes, 64);

    assert_int_equal(log.count, 6);
    for (size_t i = 0; i < log.count; i++)
        assert_int_not_equal(log.events[i].kind, EVENT_INVALID);
}

static void says_which_line_of_a_file_is_wrong(void **state)
{
    (void)state;
#define FILE_HEAD "{\"schema\": \"closedbook/events/1\", \"cut\": false}\n"
    static const struct {
        const char *text, *complaint;
    } cases[] = {
        {"{\"kind\":\"text\"}\n", "e:1: schema: 'closedbook/events/1' expected"},
        {FILE_HEAD "{\"seq\": 1", "e:2: torn line"},
        {FILE_HEAD "x\n", "e:2: no JSON object"},
        {FILE_HEAD "{\"kind\":\"text\"}\n", "e:2: seq: the number of the line expected"},
        {FILE_HEAD "{\"kind\":\"text\",\"seq\":1,\"turn\":0,\"source\":\"wire\"}\n",
         "e:2: t_ms: a number from 0 expected"},
        {FILE_HEAD "{\"kind\":\"text\",\"seq\":1,\"t_ms\":0,\"turn\":0,\"source\":\"me\"}\n",
         "e:2: source: 'wire', 'stream' or 'self-reported' expected"},
        {FILE_HEAD "{\"kind\":\"song\",\"seq\":1,\"t_ms\":0,\"turn\":0,\"source\":\"wire\"}\n",
         "e:2: kind: the name of a kind of event expected"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(error_freep) struct error *err = NULL;
        struct event_log log = {0};

        assert_int_equal(event_log_read("e", cases[i].text, strlen(cases[i].text), &log, &err),
                         -ERROR_SYSTEM);
        assert_string_equal(error_message(err), cases[i].complaint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_the_lines_of_an_agent),
        cmocka_unit_test(counts_turns_as_they_start),
        cmocka_unit_test(cuts_a_line_that_is_too_long_and_goes_on_after_it),
        cmocka_unit_test(takes_a_line_of_exactly_the_longest_size),
        cmocka_unit_test(refuses_a_line_of_too_many_values),
        cmocka_unit_test(stops_at_the_limit_of_events_and_says_so),
        cmocka_unit_test(stops_at_the_limit_of_bytes_and_says_so),
        cmocka_unit_test(stops_at_the_limit_of_values_and_says_so),
        cmocka_unit_test(reads_its_own_file_back),
        cmocka_unit_test(reads_an_empty_file_and_the_example_of_the_format),
        cmocka_unit_test(takes_every_line_of_the_example_for_agents),
        cmocka_unit_test(says_which_line_of_a_file_is_wrong),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
