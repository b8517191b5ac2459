#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/stream.h"
#include "agent/tools.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define STREAMS "src/agent/streams/"
#define GOLDEN "src/agent/golden/"
#define FILE_BYTES_MAX ((size_t)1 << 20)

/* One capture of a real CLI, and what its run was known to be. */
struct capture {
    const char *name;
    enum stream_kind kind;
    const char *requests; /* what the endpoint logged; NULL: it was not kept */
    unsigned turns, calls;
    bool has_end, is_error;
};

static const struct capture captures[] = {
    {"claude", STREAM_CLAUDE, "claude", 2, 1, true, false},
    {"claude-2.1.332", STREAM_CLAUDE, "claude-2.1.332", 2, 1, true, false},
    {"claude.duplex-2turns", STREAM_CLAUDE, NULL, 4, 2, true, false},
    {"claude.fail-529", STREAM_CLAUDE, NULL, 0, 0, true, true},
    {"claude.partial-messages", STREAM_CLAUDE, NULL, 2, 1, true, false},
    {"claude.resume-turn2", STREAM_CLAUDE, NULL, 2, 1, true, false},
    {"claude.retry-429", STREAM_CLAUDE, NULL, 2, 1, true, false},
    {"claude.sigint", STREAM_CLAUDE, NULL, 1, 1, true, true},
    {"claude.tool-exit3", STREAM_CLAUDE, NULL, 2, 1, true, false},
    {"codex", STREAM_CODEX, "codex", 2, 1, true, false},
    {"codex.fail-401", STREAM_CODEX, NULL, 0, 0, true, true},
    /* The command ran, and the CLI printed nothing about it: why the stream decides nothing. */
    {"codex.readonly-sandbox-no-tool-event", STREAM_CODEX, NULL, 1, 0, true, false},
    {"codex.resume-turn2", STREAM_CODEX, NULL, 2, 1, true, false},
    {"codex.retry-429", STREAM_CODEX, NULL, 2, 1, true, false},
    {"codex.tool-exit3", STREAM_CODEX, NULL, 2, 1, true, false},
    {"gemini", STREAM_GEMINI, "gemini", 2, 1, true, false},
    {"gemini.fail-401", STREAM_GEMINI, NULL, 0, 0, true, true},
    {"gemini.resume-turn2", STREAM_GEMINI, NULL, 2, 1, true, false},
    {"gemini.tool-exit3", STREAM_GEMINI, NULL, 2, 1, true, false},
    {"opencode", STREAM_OPENCODE, "opencode", 2, 1, true, false},
    {"opencode.fail-401", STREAM_OPENCODE, NULL, 0, 0, true, true},
    {"opencode.resume-turn2", STREAM_OPENCODE, NULL, 2, 1, true, false},
    {"opencode.tool-exit3", STREAM_OPENCODE, NULL, 2, 1, true, false},
    {"pi", STREAM_PI, "pi", 2, 1, true, false},
    {"pi.fail-401", STREAM_PI, NULL, 1, 0, true, true},
};

static char *load(const char *folder, const char *name, const char *ending, size_t *ret_size)
{
    scoped(mem_freep) char *path = str_format("%s%s%s", folder, name, ending);
    scoped(buf_done) struct buf buf = {.max_bytes = FILE_BYTES_MAX};

    if (fs_read_file(AT_FDCWD, path, FILE_BYTES_MAX, &buf, NULL) < 0)
        return NULL;
    *ret_size = buf.size_bytes;
    return buf_take(&buf);
}

/* The events of text, with every t_ms 0; piece bytes come at a time. */
static struct stream *read_stream(enum stream_kind kind, const char *text, size_t size,
                                  size_t piece, struct event_log *log)
{
    struct stream *stream = stream_new(kind, stream_kind_name(kind), log, 0);

    for (size_t i = 0; i < size; i += piece)
        stream_feed(stream, text + i, size_min(piece, size - i));
    stream_end(stream);
    for (size_t i = 0; i < log->count; i++)
        log->events[i].t_ms = 0;
    return stream;
}

static void reads_every_capture_as_its_golden_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
        const struct capture *capture = &captures[i];
        size_t size = 0;
        size_t golden_size = 0;
        scoped(mem_freep) char *text = load(STREAMS, capture->name, ".jsonl", &size);
        scoped(event_log_done) struct event_log log = {0};
        scoped(buf_done) struct buf lines = {0};

        assert_non_null(text);
        scoped(stream_freep) struct stream *stream =
            read_stream(capture->kind, text, size, 7, &log);
        event_log_write(&lines, &log);
        if (getenv("CLOSEDBOOK_UPDATE") != NULL) {
            scoped(mem_freep) char *path = str_format(GOLDEN "%s.events.jsonl", capture->name);

            assert_int_equal(fs_write_atomic(AT_FDCWD, path,
                                             &(struct fs_content){lines.data, lines.size_bytes,
                                                                  0644, FS_NO_SYNC},
                                             NULL),
                             0);
        }

        scoped(mem_freep) char *golden = load(GOLDEN, capture->name, ".events.jsonl", &golden_size);

        assert_non_null(golden);
        assert_string_equal(buf_text(&lines), golden);
        assert_int_equal(event_log_turns(&log), capture->turns);
        assert_int_equal(event_log_tool_calls(&log), capture->calls);
        assert_int_equal(stream_outcome(stream)->has_end, capture->has_end);
        assert_int_equal(stream_outcome(stream)->is_error, capture->is_error);
        assert_non_null(stream_session(stream));
    }
}

static int64_t sum_usage(const struct event_log *log, const char *const *keys)
{
    int64_t sum = 0;

    for (size_t i = 0; i < log->count; i++) {
        for (size_t j = 0; log->events[i].usage != NULL && keys[j] != NULL; j++)
            sum += json_get_int(log->events[i].usage, keys[j], 0);
    }
    return sum;
}

/*
 * The scripted endpoint answered 25 tokens a call (Gemini: 5 of thoughts on top) and counted four
 * bytes of the request, as it writes JSON, for a token of the input. A request without tools is for
 * a title or the like: no turn.
 */
static void agrees_with_what_the_endpoint_logged(void **state)
{
    (void)state;
    static const char *const inputs[] = {"input_tokens", "cache_read_tokens", "cache_write_tokens",
                                         NULL};
    static const char *const outputs[] = {"output_tokens", NULL};

    for (size_t i = 0; i < sizeof(captures) / sizeof(captures[0]); i++) {
        const struct capture *capture = &captures[i];
        size_t size = 0;
        size_t log_size = 0;

        if (capture->requests == NULL)
            continue;

        scoped(mem_freep) char *text = load(STREAMS, capture->name, ".jsonl", &size);
        scoped(mem_freep) char *requests =
            load(GOLDEN, capture->requests, ".requests.jsonl", &log_size);
        scoped(event_log_done) struct event_log log = {0};
        int64_t calls = 0;
        int64_t bytes = 0;

        assert_non_null(text);
        assert_non_null(requests);
        scoped(stream_freep) struct stream *stream =
            read_stream(capture->kind, text, size, size, &log);
        for (char *line = requests; *line != 0; line = strchr(line, '\n') + 1) {
            scoped(json_freep) json_t *request = NULL;
            size_t length = strcspn(line, "\n");

            assert_int_equal(json_parse("log", line, length, &request, NULL), 0);
            if (json_get_int(request, "tools", 0) == 0)
                continue;
            calls++;
            bytes += json_get_int(request, "body_bytes", 0);
        }

        int64_t input = sum_usage(&log, inputs);

        assert_int_equal(event_log_turns(&log), calls);
        assert_int_equal(sum_usage(&log, outputs),
                         calls * (capture->kind == STREAM_GEMINI ? 30 : 25));
        assert_in_range(input, bytes / 4 - bytes / 80, bytes / 4 + bytes / 20);
    }
}

/* The only event of a kind. */
static const struct event *only(const struct event_log *log, enum event_kind kind)
{
    const struct event *found = NULL;
    size_t count = 0;

    for (size_t i = 0; i < log->count; i++) {
        if (log->events[i].kind != kind)
            continue;
        found = &log->events[i];
        count++;
    }
    assert_int_equal(count, 1);
    ASSERT(found != NULL);
    return found;
}

static void tells_the_exit_code_where_the_cli_does(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum stream_kind kind;
        int exit_code; /* -1: not told */
    } cases[] = {
        {"claude", STREAM_CLAUDE, 0},
        {"claude.tool-exit3", STREAM_CLAUDE, 3},
        {"claude.sigint", STREAM_CLAUDE, -1},
        {"codex", STREAM_CODEX, 0},
        {"codex.tool-exit3", STREAM_CODEX, 3},
        {"gemini.tool-exit3", STREAM_GEMINI, -1},
        {"opencode", STREAM_OPENCODE, 0},
        {"opencode.tool-exit3", STREAM_OPENCODE, 3},
        {"pi", STREAM_PI, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t size = 0;
        scoped(mem_freep) char *text = load(STREAMS, cases[i].name, ".jsonl", &size);
        scoped(event_log_done) struct event_log log = {0};

        assert_non_null(text);
        scoped(stream_freep) struct stream *stream =
            read_stream(cases[i].kind, text, size, size, &log);

        const struct event *call = only(&log, EVENT_TOOL_CALL);
        const struct event *result = only(&log, EVENT_TOOL_RESULT);

        assert_string_equal(call->tool, "Bash");
        assert_non_null(json_get_text(call->input, "command"));
        assert_string_equal(call->call_id, result->call_id);
        assert_int_equal(result->has_exit_code ? result->exit_code : -1, cases[i].exit_code);
    }
}

static void takes_off_what_a_resumed_session_had_used_before(void **state)
{
    (void)state;
    static const char first[] =
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":100,\"cached_input_tokens\":40,"
        "\"output_tokens\":7,\"reasoning_output_tokens\":2}}\n";
    static const char second[] =
        "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":250,\"cached_input_tokens\":120,"
        "\"output_tokens\":9,\"reasoning_output_tokens\":2}}\n";
    scoped(event_log_done) struct event_log log = {0};
    scoped(stream_freep) struct stream *stream = stream_new(STREAM_CODEX, NULL, &log, 0);

    stream_feed(stream, first, strlen(first));
    stream_end(stream);
    stream_feed(stream, second, strlen(second));
    stream_end(stream);
    assert_int_equal(log.count, 2);
    assert_int_equal(json_get_int(log.events[0].usage, "input_tokens", -1), 60);
    assert_int_equal(json_get_int(log.events[0].usage, "output_tokens", -1), 7);
    assert_int_equal(json_get_int(log.events[1].usage, "input_tokens", -1), 70);
    assert_int_equal(json_get_int(log.events[1].usage, "cache_read_tokens", -1), 80);
    assert_int_equal(json_get_int(log.events[1].usage, "output_tokens", -1), 2);
    assert_int_equal(json_get_int(log.events[1].usage, "reasoning_tokens", -1), 0);
    assert_int_equal(log.events[1].raw_offset, 0);
}

static void nests_what_a_sub_agent_does(void **state)
{
    (void)state;
    static const char text[] =
        "{\"type\":\"assistant\",\"parent_tool_use_id\":null,\"session_id\":\"s\",\"message\":"
        "{\"id\":\"m1\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Agent\","
        "\"input\":{}}]}}\n"
        "{\"type\":\"assistant\",\"parent_tool_use_id\":\"t1\",\"session_id\":\"s\",\"message\":"
        "{\"id\":\"m2\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"Bash\","
        "\"input\":{\"command\":\"ls\"}}]}}\n"
        "{\"type\":\"user\",\"parent_tool_use_id\":\"t1\",\"session_id\":\"s\",\"message\":"
        "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"a\"}]}}\n"
        "{\"type\":\"user\",\"parent_tool_use_id\":null,\"session_id\":\"s\",\"message\":"
        "{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"b\"}]}}\n";
    scoped(event_log_done) struct event_log log = {0};

    scoped(stream_freep) struct stream *stream =
        read_stream(STREAM_CLAUDE, text, strlen(text), 1, &log);
    assert_int_equal(log.count, 5);
    assert_int_equal(event_log_turns(&log), 1);
    assert_string_equal(log.events[1].tool, "Task");
    assert_null(log.events[1].parent);
    assert_string_equal(log.events[2].parent, "t1");
    assert_string_equal(log.events[3].parent, "t1");
    assert_null(log.events[4].parent);
}

static void keeps_what_is_no_line_of_its_format(void **state)
{
    (void)state;
    static const struct {
        const char *line, *reason; /* NULL: nothing is kept */
    } cases[] = {
        {"npm warn something\n", "not JSON"},
        {"[1]\n", "not an object"},
        {"{\"type\":\"tool_use\",\"part\":{}}\n", "a tool call without the name of its tool"},
        {"{\"type\":\"step_start\"", "truncated"},
        {"{\"type\":\"of a later version\",\"a\":[1]}\n", NULL},
        {"{\"type\":7}\n", NULL},
        {"\n \n", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scoped(event_log_done) struct event_log log = {0};

        scoped(stream_freep) struct stream *stream =
            read_stream(STREAM_OPENCODE, cases[i].line, strlen(cases[i].line), 3, &log);
        assert_int_equal(log.count, cases[i].reason == NULL ? 0 : 1);
        if (cases[i].reason == NULL)
            continue;
        assert_int_equal(log.events[0].kind, EVENT_INVALID);
        assert_string_equal(json_get_text(log.events[0].input, "reason"), cases[i].reason);
    }
}

static void takes_long_lines_and_bytes_that_are_no_text(void **state)
{
    (void)state;
    scoped(buf_done) struct buf text = {0};
    scoped(event_log_done) struct event_log log = {0};
    size_t long_size = (size_t)3 << 20;

    /* Keys in another order than any version printed. */
    buf_text_append(&text, "{\"output\":\"\xff");
    for (size_t i = 0; i < long_size; i++)
        buf_char(&text, 'x');
    buf_text_append(&text,
                    "\",\"status\":\"success\",\"tool_id\":\"t\",\"type\":\"tool_result\"}\n");
    scoped(stream_freep) struct stream *stream =
        read_stream(STREAM_GEMINI, buf_text(&text), text.size_bytes, 65536, &log);
    assert_int_equal(log.count, 1);
    assert_int_equal(log.events[0].kind, EVENT_TOOL_RESULT);
    assert_int_equal(json_string_length(log.events[0].output), long_size + 3);
}

static void stops_at_a_line_longer_than_any(void **state)
{
    (void)state;
    scoped(event_log_done) struct event_log log = {0};
    scoped(stream_freep) struct stream *stream = stream_new(STREAM_PI, NULL, &log, 0);
    static char piece[1 << 16];

    memset(piece, 'x', sizeof(piece));
    for (size_t i = 0; i <= STREAM_LINE_BYTES_MAX / sizeof(piece); i++)
        stream_feed(stream, piece, sizeof(piece));
    stream_feed(stream, "\n{\"type\":\"turn_start\"}\n", 23);
    stream_end(stream);
    assert_int_equal(log.count, 2);
    assert_string_equal(json_get_text(log.events[0].input, "reason"), "too long");
    assert_int_equal(log.events[1].kind, EVENT_TURN_START);
}

static void calls_tools_by_the_names_of_criteria(void **state)
{
    (void)state;
    assert_string_equal(tool_canonical(STREAM_GEMINI, "run_shell_command"), "Bash");
    assert_string_equal(tool_canonical(STREAM_GEMINI, "replace"), "Edit");
    assert_string_equal(tool_canonical(STREAM_CODEX, "exec_command"), "Bash");
    assert_string_equal(tool_canonical(STREAM_CODEX, "command_execution"), "Bash");
    assert_string_equal(tool_canonical(STREAM_OPENCODE, "todowrite"), "TodoWrite");
    assert_string_equal(tool_canonical(STREAM_PI, "bash"), "Bash");
    assert_string_equal(tool_canonical(STREAM_CLAUDE, "Agent"), "Task");
    assert_string_equal(tool_canonical(STREAM_CLAUDE, "mcp__a__b"), "mcp__a__b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_capture_as_its_golden_events),
        cmocka_unit_test(agrees_with_what_the_endpoint_logged),
        cmocka_unit_test(tells_the_exit_code_where_the_cli_does),
        cmocka_unit_test(takes_off_what_a_resumed_session_had_used_before),
        cmocka_unit_test(nests_what_a_sub_agent_does),
        cmocka_unit_test(keeps_what_is_no_line_of_its_format),
        cmocka_unit_test(takes_long_lines_and_bytes_that_are_no_text),
        cmocka_unit_test(stops_at_a_line_longer_than_any),
        cmocka_unit_test(calls_tools_by_the_names_of_criteria),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
