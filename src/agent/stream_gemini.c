/*
 * Gemini CLI: `-o stream-json`. An answer of the model is not marked, so a turn begins with what
 * follows the prompt or the end of a tool; a command's exit code is not told.
 */
#include "agent/stream_internal.h"
#include "base/str.h"

static void take_message(struct stream *stream, const json_t *object)
{
    const char *text = json_get_text(object, "content");

    if (!str_equal(json_get_text(object, "role"), "assistant") || text == NULL)
        return;
    stream_answer(stream);
    if (json_get_bool(object, "delta", false))
        stream_say_more(stream, text);
    else
        stream_say(stream, NULL, text);
}

static void take_tool_use(struct stream *stream, const json_t *object)
{
    stream_answer(stream);
    stream_call(stream, NULL, stream_name(stream, json_object_get(object, "tool_name")),
                stream_name(stream, json_object_get(object, "tool_id")),
                json_object_get(object, "parameters"));
}

static void take_tool_result(struct stream *stream, const json_t *object)
{
    json_t *output = json_object_get(object, "output");
    struct event *event =
        stream_result(stream, NULL, stream_name(stream, json_object_get(object, "tool_id")),
                      output != NULL ? output : json_object_get(object, "error"));

    event->is_error = str_equal(json_get_text(object, "status"), "error");
}

/* input_tokens holds the cached ones, and thoughts are in the total alone. */
static void take_result(struct stream *stream, const json_t *object)
{
    const json_t *stats = json_get_object(object, "stats");
    int64_t input = stream_count(stats, "input_tokens");
    int64_t output = stream_count(stats, "output_tokens");
    int64_t cached = stream_count(stats, "cached");
    int64_t total = stream_count(stats, "total_tokens");
    int64_t thoughts = total > input + output ? total - input - output : 0;
    bool is_error = !str_equal(json_get_text(object, "status"), "success");

    if (stats != NULL)
        stream_use(stream, &(struct stream_tokens){
                               .input = input - cached,
                               .cache_read = cached,
                               .output = output + thoughts,
                               .reasoning = thoughts,
                           });
    stream_finish(stream, is_error, json_get_text(json_get_object(object, "error"), "message"));
}

static void read_object(struct stream *stream, const json_t *object)
{
    const char *type = json_get_text(object, "type");

    if (str_equal(type, "init")) {
        stream_keep(&stream->session, stream_name(stream, json_object_get(object, "session_id")));
        stream_keep(&stream->model, stream_name(stream, json_object_get(object, "model")));
    } else if (str_equal(type, "message")) {
        take_message(stream, object);
    } else if (str_equal(type, "tool_use")) {
        take_tool_use(stream, object);
    } else if (str_equal(type, "tool_result")) {
        take_tool_result(stream, object);
    } else if (str_equal(type, "error")) {
        stream_fail(stream, json_get_text(object, "message"));
    } else if (str_equal(type, "result")) {
        take_result(stream, object);
    }
}

const struct stream_format stream_gemini = {"gemini", read_object, NULL};
