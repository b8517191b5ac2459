/*
 * Codex: `exec --json`. Items begin and complete; an answer of the model is not marked, so a turn
 * begins with what follows the end of a tool. Usage is of the whole thread, also after a resume.
 */
#include "agent/stream_internal.h"
#include "base/mem.h"
#include "base/str.h"

/* Kinds of items that are calls of a tool. */
static bool is_call(const char *type)
{
    static const char *const types[] = {"command_execution", "file_change", "mcp_tool_call",
                                        "web_search", "todo_list"};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (str_equal(type, types[i]))
            return true;
    }
    return false;
}

/* The tool's input: what the item says beside its own bookkeeping. */
static json_t *input_of(const json_t *item)
{
    static const char *const own[] = {"id",        "type",   "status", "aggregated_output",
                                      "exit_code", "result", "error"};
    json_t *input = json_object();
    const char *key = NULL;
    json_t *value = NULL;
    void *at = json_object_iter((json_t *)(uintptr_t)item);

    for (; at != NULL; at = json_object_iter_next((json_t *)(uintptr_t)item, at)) {
        bool is_own = false;

        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        for (size_t i = 0; i < ARRAY_SIZE(own); i++)
            is_own |= str_equal(key, own[i]);
        if (!is_own)
            json_put(input, key, json_incref(value));
    }
    return input;
}

static void begin_call(struct stream *stream, const json_t *item, const char *type, const char *id)
{
    scoped(json_freep) json_t *input = input_of(item);
    const char *server = json_get_text(item, "server");
    const char *tool = json_get_text(item, "tool");
    scoped(mem_freep) char *name = NULL;

    if (str_equal(type, "mcp_tool_call") && server != NULL && tool != NULL) {
        name = str_format("mcp__%s__%s", server, tool);
        if (strlen(name) > EVENT_NAME_BYTES_MAX) {
            stream->complaint = "the name of a tool is too long";
            return;
        }
    }
    stream_answer(stream);
    stream_call(stream, NULL, name != NULL ? name : type, id, input);
    stream_keep(&stream->message_id, id);
}

static void end_call(struct stream *stream, const json_t *item, const char *id)
{
    json_t *output = json_object_get(item, "aggregated_output");
    json_t *code = json_object_get(item, "exit_code");

    if (output == NULL)
        output = json_object_get(item, "result");
    if (output == NULL || json_is_null(output))
        output = json_object_get(item, "error");

    struct event *event = stream_result(stream, NULL, id, output);

    event->is_error = str_equal(json_get_text(item, "status"), "failed");
    if (json_is_integer(code))
        stream_exit_code(event, json_integer_value(code));
    free(stream->message_id);
    stream->message_id = NULL;
}

/* An item whose beginning was not printed begins here. message_id is the call at hand. */
static void take_item(struct stream *stream, const json_t *item, bool is_completed)
{
    const char *type = json_get_text(item, "type");
    const char *id = stream_name(stream, json_object_get(item, "id"));
    const char *text = json_get_text(item, "text");

    if (is_call(type)) {
        if (!is_completed || !str_equal(id, stream->message_id))
            begin_call(stream, item, type, id);
        if (is_completed && stream->complaint == NULL)
            end_call(stream, item, id);
    } else if (is_completed && str_equal(type, "agent_message") && text != NULL) {
        stream_answer(stream);
        stream_say(stream, NULL, text);
    }
}

static void take_usage(struct stream *stream, const json_t *usage)
{
    int64_t cached = stream_count(usage, "cached_input_tokens");

    if (usage != NULL)
        stream_use_total(stream, &(struct stream_tokens){
                                     .input = stream_count(usage, "input_tokens") - cached,
                                     .cache_read = cached,
                                     .cache_write = stream_count(usage, "cache_write_input_tokens"),
                                     .output = stream_count(usage, "output_tokens"),
                                     .reasoning = stream_count(usage, "reasoning_output_tokens"),
                                 });
}

static void read_object(struct stream *stream, const json_t *object)
{
    const char *type = json_get_text(object, "type");
    const json_t *item = json_get_object(object, "item");

    if (str_equal(type, "thread.started")) {
        stream_keep(&stream->session, stream_name(stream, json_object_get(object, "thread_id")));
    } else if (str_equal(type, "item.started")) {
        take_item(stream, item, false);
    } else if (str_equal(type, "item.completed")) {
        take_item(stream, item, true);
    } else if (str_equal(type, "error")) {
        stream_retry(stream, object);
    } else if (str_equal(type, "turn.completed")) {
        take_usage(stream, json_get_object(object, "usage"));
        stream_finish(stream, false, NULL);
    } else if (str_equal(type, "turn.failed")) {
        stream_finish(stream, true, json_get_text(json_get_object(object, "error"), "message"));
    }
}

const struct stream_format stream_codex = {"codex", read_object, NULL};
