#include <limits.h>

#include "agent/event_json.h"
#include "agent/stream_internal.h"
#include "agent/tools.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

static const struct stream_format *const formats[STREAM_KIND_COUNT] = {
    [STREAM_CLAUDE] = &stream_claude, [STREAM_CODEX] = &stream_codex,
    [STREAM_GEMINI] = &stream_gemini, [STREAM_OPENCODE] = &stream_opencode,
    [STREAM_PI] = &stream_pi,
};

const char *stream_kind_name(enum stream_kind kind)
{
    ASSERT((size_t)kind < STREAM_KIND_COUNT);
    return formats[kind]->name;
}

struct stream *stream_new(enum stream_kind kind, const char *agent, struct event_log *log,
                          uint64_t start_ns)
{
    struct stream *stream = mem_new(1, sizeof(*stream));

    ASSERT((size_t)kind < STREAM_KIND_COUNT);
    *stream = (struct stream){
        .kind = kind,
        .log = log,
        .start_ns = start_ns,
        .lines.line.max_bytes = STREAM_LINE_BYTES_MAX,
        .agent = agent == NULL ? NULL : str_dup(agent),
        .fresh = true,
    };
    return stream;
}

static void outcome_clear(struct stream_outcome *outcome)
{
    free(outcome->message);
    *outcome = (struct stream_outcome){0};
}

void stream_free(struct stream *stream)
{
    if (stream == NULL)
        return;
    line_cutter_done(&stream->lines);
    buf_done(&stream->text);
    outcome_clear(&stream->outcome);
    free(stream->agent);
    free(stream->session);
    free(stream->model);
    free(stream->message_id);
    free(stream);
}

void stream_freep(struct stream **stream)
{
    stream_free(*stream);
    *stream = NULL;
}

const struct stream_outcome *stream_outcome(const struct stream *stream)
{
    return &stream->outcome;
}

const char *stream_session(const struct stream *stream)
{
    return stream->session;
}

/* --- what readers say ------------------------------------------------------------------------ */

int64_t stream_count(const json_t *object, const char *key)
{
    int64_t count = json_get_int(object, key, 0);

    return count < 0 ? 0 : count > STREAM_TOKENS_MAX ? STREAM_TOKENS_MAX : count;
}

const char *stream_name(struct stream *stream, const json_t *value)
{
    if (!json_is_string(value))
        return NULL;
    if (json_string_length(value) > EVENT_NAME_BYTES_MAX) {
        stream->complaint = "a name, or the id of a call or session, is too long";
        return NULL;
    }
    return json_string_value(value);
}

void stream_keep(char **place, const char *text)
{
    if (text == NULL || str_equal(*place, text))
        return;
    free(*place);
    *place = str_dup(text);
}

static struct event *add(struct stream *stream, enum event_kind kind, uint64_t offset)
{
    struct event *event = event_log_add(stream->log, kind, EVENT_STREAM);
    uint64_t now_ns = clock_ns();

    event->turn = stream->turn;
    event->agent = stream->agent == NULL ? NULL : str_dup(stream->agent);
    event->session = stream->session == NULL ? NULL : str_dup(stream->session);
    event->t_ms = now_ns > stream->start_ns ? (now_ns - stream->start_ns) / 1000000 : 0;
    event->raw_offset = offset;
    event->has_raw = true;
    return event;
}

/* The pieces so far become an event before anything else does. */
static void flush_text(struct stream *stream)
{
    if (stream->text.size_bytes == 0)
        return;
    add(stream, EVENT_TEXT, stream->text_offset)->output =
        json_text(stream->text.data, stream->text.size_bytes);
    buf_clear(&stream->text);
}

struct event *stream_add(struct stream *stream, enum event_kind kind, const char *parent)
{
    flush_text(stream);

    struct event *event = add(stream, kind, stream->offset);

    event->parent = parent == NULL ? NULL : str_dup(parent);
    return event;
}

void stream_turn(struct stream *stream)
{
    flush_text(stream);
    stream->turn++;
    stream->answering = true;
    stream_add(stream, EVENT_TURN_START, NULL);
}

void stream_answer(struct stream *stream)
{
    if (!stream->answering)
        stream_turn(stream);
}

void stream_say(struct stream *stream, const char *parent, const char *text)
{
    if (text[0] != 0)
        stream_add(stream, EVENT_TEXT, parent)->output = json_text(text, strlen(text));
}

void stream_say_more(struct stream *stream, const char *text)
{
    if (stream->text.size_bytes == 0)
        stream->text_offset = stream->offset;
    buf_text_append(&stream->text, text);
}

void stream_call(struct stream *stream, const char *parent, const char *tool, const char *call_id,
                 json_t *input)
{
    if (tool == NULL) {
        stream->complaint = "a tool call without the name of its tool";
        return;
    }

    struct event *event = stream_add(stream, EVENT_TOOL_CALL, parent);

    event->tool = str_dup(tool_canonical(stream->kind, tool));
    event->call_id = call_id == NULL ? NULL : str_dup(call_id);
    event->input = json_is_null(input) ? NULL : json_incref(input);
}

/* Blocks of text become one text, so that a grader finds the same from every CLI. New. */
static json_t *plain_output(json_t *output)
{
    scoped(buf_done) struct buf text = {0};
    size_t i = 0;
    json_t *block = NULL;

    if (output == NULL || json_is_null(output))
        return NULL;
    if (!json_is_array(output))
        return json_incref(output);
    json_array_foreach (output, i, block) {
        if (!str_equal(json_get_text(block, "type"), "text") ||
            json_get_text(block, "text") == NULL)
            return json_incref(output);
        buf_text_append(&text, json_get_text(block, "text"));
    }
    return json_text(text.data, text.size_bytes);
}

struct event *stream_result(struct stream *stream, const char *parent, const char *call_id,
                            json_t *output)
{
    struct event *event = stream_add(stream, EVENT_TOOL_RESULT, parent);

    event->call_id = call_id == NULL ? NULL : str_dup(call_id);
    event->output = plain_output(output);
    if (parent == NULL)
        stream->answering = false;
    return event;
}

void stream_exit_code(struct event *event, int64_t code)
{
    if (code < INT_MIN || code > INT_MAX)
        return;
    event->exit_code = (int)code;
    event->has_exit_code = true;
}

void stream_use(struct stream *stream, const struct stream_tokens *tokens)
{
    const struct {
        const char *key;
        int64_t count;
    } parts[] = {
        {"input_tokens", tokens->input},
        {"cache_read_tokens", tokens->cache_read},
        {"cache_write_tokens", tokens->cache_write},
        {"output_tokens", tokens->output},
        {"reasoning_tokens", tokens->reasoning},
    };
    json_t *usage = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        json_put_int(usage, parts[i].key, parts[i].count < 0 ? 0 : parts[i].count);
    if (stream->model != NULL)
        json_put(usage, "model", json_text(stream->model, strlen(stream->model)));
    stream_add(stream, EVENT_USAGE, NULL)->usage = usage;
}

/* What a figure that only grows grew by; one that shrank began anew. */
static int64_t growth(int64_t before, int64_t now)
{
    return now >= before && before >= 0 ? now - before : now;
}

void stream_use_total(struct stream *stream, const struct stream_tokens *tokens)
{
    const struct stream_tokens *before = &stream->total;

    stream_use(stream, &(struct stream_tokens){
                           .input = growth(before->input, tokens->input),
                           .cache_read = growth(before->cache_read, tokens->cache_read),
                           .cache_write = growth(before->cache_write, tokens->cache_write),
                           .output = growth(before->output, tokens->output),
                           .reasoning = growth(before->reasoning, tokens->reasoning),
                       });
    stream->total = *tokens;
}

void stream_retry(struct stream *stream, const json_t *details)
{
    stream_add(stream, EVENT_RETRY, NULL)->output = json_incref((json_t *)(uintptr_t)details);
}

static void keep_message(struct stream *stream, const char *message)
{
    free(stream->outcome.message);
    stream->outcome.message =
        message == NULL ? NULL
                        : str_ndup(message, size_min(strlen(message), STREAM_MESSAGE_BYTES_MAX));
}

void stream_fail(struct stream *stream, const char *message)
{
    struct event *event = stream_add(stream, EVENT_ERROR, NULL);

    event->is_error = true;
    event->output = message == NULL ? NULL : json_text(message, strlen(message));
    keep_message(stream, message);
    stream->outcome.is_error = true;
}

void stream_finish(struct stream *stream, bool is_error, const char *message)
{
    if (is_error)
        stream_fail(stream, message == NULL ? "the agent says that it failed" : message);
    flush_text(stream);
    stream->outcome.has_end = true;
    stream->answering = false;
}

/* --- lines ----------------------------------------------------------------------------------- */

static bool is_skipped(const struct stream_format *format, const struct line *line)
{
    for (size_t i = 0; format->skipped != NULL && format->skipped[i] != NULL; i++) {
        size_t length = strlen(format->skipped[i]);

        if (line->size >= length && memcmp(line->text, format->skipped[i], length) == 0)
            return true;
    }
    return false;
}

/* Returns what is wrong with the line, NULL when nothing is. */
static const char *read_line(struct stream *stream, const struct line *line)
{
    const char *reason = NULL;
    size_t nodes = 0;
    size_t before = stream->log->count;
    scoped(json_freep) json_t *object = line_parse(line, STREAM_LINE_NODES_MAX, &nodes, &reason);

    stream->bytes += line->bytes;
    if (object == NULL)
        return reason;
    if (!json_is_object(object))
        return "not an object";
    stream->complaint = NULL;
    formats[stream->kind]->read(stream, object);
    stream->taken_bytes += stream->log->count > before ? line->bytes : 0;
    return stream->complaint;
}

static bool on_line(void *context, const struct line *line)
{
    struct stream *stream = context;
    struct event_log *log = stream->log;

    if (line_is_blank(line) || is_skipped(formats[stream->kind], line))
        return true;
    if (stream->bytes > STREAM_BYTES_MAX || stream->taken_bytes > EVENTS_BYTES_MAX ||
        log->count >= EVENTS_MAX)
        log->cut = true;
    if (log->cut)
        return false;
    stream->offset = line->offset;

    const char *reason = read_line(stream, line);

    if (reason != NULL)
        stream_add(stream, EVENT_INVALID, NULL)->input = line_invalid(line, reason);
    return true;
}

void stream_feed(struct stream *stream, const char *bytes, size_t size)
{
    if (stream->fresh) {
        outcome_clear(&stream->outcome);
        stream->fresh = false;
    }
    if (!stream->log->cut)
        line_cutter_feed(&stream->lines, bytes, size, on_line, stream);
}

void stream_end(struct stream *stream)
{
    if (!stream->log->cut)
        line_cutter_end(&stream->lines, on_line, stream);
    flush_text(stream);
    stream->lines.offset = 0;
    stream->fresh = true;
    stream->answering = false;
    free(stream->message_id);
    stream->message_id = NULL;
}
