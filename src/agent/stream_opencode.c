/*
 * opencode: `run --format json`. A step is a turn; a tool's call and result are one line that comes
 * when it ended; figures are per step; the last step's reason is "stop".
 */
#include "agent/stream_internal.h"
#include "base/str.h"

static void take_tool(struct stream *stream, const json_t *part)
{
    const json_t *state = json_get_object(part, "state");
    const json_t *metadata = json_get_object(state, "metadata");
    const json_t *code = json_object_get(metadata, "exit");
    const char *call_id = stream_name(stream, json_object_get(part, "callID"));
    json_t *output = json_object_get(state, "output");

    stream_call(stream, NULL, stream_name(stream, json_object_get(part, "tool")), call_id,
                json_object_get(state, "input"));
    if (stream->complaint != NULL)
        return;

    struct event *event = stream_result(stream, NULL, call_id,
                                        output != NULL ? output : json_object_get(state, "error"));

    event->is_error = str_equal(json_get_text(state, "status"), "error");
    if (json_is_integer(code))
        stream_exit_code(event, json_integer_value(code));
}

static void take_step_end(struct stream *stream, const json_t *part)
{
    const json_t *tokens = json_get_object(part, "tokens");
    const json_t *cache = json_get_object(tokens, "cache");

    if (tokens != NULL)
        stream_use(stream,
                   &(struct stream_tokens){
                       .input = stream_count(tokens, "input"),
                       .cache_read = stream_count(cache, "read"),
                       .cache_write = stream_count(cache, "write"),
                       .output = stream_count(tokens, "output") + stream_count(tokens, "reasoning"),
                       .reasoning = stream_count(tokens, "reasoning"),
                   });
    if (!str_equal(json_get_text(part, "reason"), "tool-calls"))
        stream_finish(stream, false, NULL);
}

static void take_error(struct stream *stream, const json_t *object)
{
    const json_t *error = json_get_object(object, "error");
    const char *message = json_get_text(json_get_object(error, "data"), "message");

    stream_finish(stream, true, message != NULL ? message : json_get_text(error, "name"));
}

static void read_object(struct stream *stream, const json_t *object)
{
    const char *type = json_get_text(object, "type");
    const json_t *part = json_get_object(object, "part");

    stream_keep(&stream->session, stream_name(stream, json_object_get(object, "sessionID")));
    if (str_equal(type, "step_start"))
        stream_turn(stream);
    else if (str_equal(type, "text") && json_get_text(part, "text") != NULL)
        stream_say(stream, NULL, json_get_text(part, "text"));
    else if (str_equal(type, "tool_use"))
        take_tool(stream, part);
    else if (str_equal(type, "step_finish"))
        take_step_end(stream, part);
    else if (str_equal(type, "error"))
        take_error(stream, object);
}

const struct stream_format stream_opencode = {"opencode", read_object, NULL};
