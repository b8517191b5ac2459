/*
 * pi: `--mode json`. Messages are whole at their end (updates repeat all that came before and are
 * skipped); a failure is the stopReason of the last message, while the exit status stays 0.
 */
#include "agent/stream_internal.h"
#include "base/str.h"

#define EXIT_CODE_MARK "Command exited with code "

static void take_assistant(struct stream *stream, const json_t *message)
{
    const json_t *usage = json_get_object(message, "usage");
    const char *reason = json_get_text(message, "stopReason");
    size_t i = 0;
    json_t *block = NULL;

    stream_keep(&stream->model, stream_name(stream, json_object_get(message, "model")));
    json_array_foreach (json_get_array(message, "content"), i, block) {
        const char *text = json_get_text(block, "text");

        if (str_equal(json_get_text(block, "type"), "text") && text != NULL)
            stream_say(stream, NULL, text);
    }
    if (usage != NULL)
        stream_use(stream, &(struct stream_tokens){
                               .input = stream_count(usage, "input"),
                               .cache_read = stream_count(usage, "cacheRead"),
                               .cache_write = stream_count(usage, "cacheWrite"),
                               .output = stream_count(usage, "output"),
                           });
    /* A later answer that is whole takes back what an earlier one, tried again, had said. */
    stream->outcome.is_error = false;
    if (str_equal(reason, "error") || str_equal(reason, "aborted"))
        stream_fail(stream, json_get_text(message, "errorMessage"));
}

/* The last line that the shell tool adds to the output of a command that failed. */
static void find_exit_code(const json_t *content, struct event *event)
{
    const char *text = json_get_text(json_array_get(content, json_array_size(content) - 1), "text");
    const char *mark = NULL;
    int64_t code = 0;

    for (const char *at = text; at != NULL && (at = strstr(at, EXIT_CODE_MARK)) != NULL; at++)
        mark = at;
    if (mark != NULL && str_to_i64(mark + strlen(EXIT_CODE_MARK), &code))
        stream_exit_code(event, code);
}

static void take_tool_end(struct stream *stream, const json_t *object)
{
    const json_t *result = json_get_object(object, "result");
    json_t *content = json_object_get(result, "content");
    struct event *event =
        stream_result(stream, NULL, stream_name(stream, json_object_get(object, "toolCallId")),
                      content != NULL ? content : json_object_get(object, "result"));

    event->is_error = json_get_bool(object, "isError", false);
    if (!str_equal(json_get_text(object, "toolName"), "bash"))
        return;
    if (event->is_error)
        find_exit_code(content, event);
    else
        stream_exit_code(event, 0);
}

static void read_object(struct stream *stream, const json_t *object)
{
    const char *type = json_get_text(object, "type");
    const json_t *message = json_get_object(object, "message");

    if (str_equal(type, "session"))
        stream_keep(&stream->session, stream_name(stream, json_object_get(object, "id")));
    else if (str_equal(type, "turn_start"))
        stream_turn(stream);
    else if (str_equal(type, "message_end") &&
             str_equal(json_get_text(message, "role"), "assistant"))
        take_assistant(stream, message);
    else if (str_equal(type, "tool_execution_start"))
        stream_call(stream, NULL, stream_name(stream, json_object_get(object, "toolName")),
                    stream_name(stream, json_object_get(object, "toolCallId")),
                    json_object_get(object, "args"));
    else if (str_equal(type, "tool_execution_end"))
        take_tool_end(stream, object);
    else if (str_equal(type, "auto_retry_start"))
        stream_retry(stream, object);
    else if (str_equal(type, "agent_end"))
        stream_finish(stream, false, NULL);
}

static const char *const skipped[] = {"{\"type\":\"message_update\",",
                                      "{\"type\":\"tool_execution_update\",", NULL};

const struct stream_format stream_pi = {"pi", read_object, skipped};
