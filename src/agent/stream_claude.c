/*
 * Claude Code: `-p --output-format stream-json --verbose`. Lines of one answer of the model share
 * its message's id; "result" is per prompt, and its subtype is "success" also when the model could
 * not be reached: is_error decides.
 */
#include "agent/stream_internal.h"
#include "base/mem.h"
#include "base/str.h"

#define EXIT_CODE_MARK "Exit code "

static const char *parent_of(struct stream *stream, const json_t *object)
{
    return stream_name(stream, json_object_get(object, "parent_tool_use_id"));
}

static void take_block(struct stream *stream, const json_t *block, const char *parent)
{
    const char *type = json_get_text(block, "type");

    if (str_equal(type, "text") && json_get_text(block, "text") != NULL)
        stream_say(stream, parent, json_get_text(block, "text"));
    else if (str_equal(type, "tool_use"))
        stream_call(stream, parent, stream_name(stream, json_object_get(block, "name")),
                    stream_name(stream, json_object_get(block, "id")),
                    json_object_get(block, "input"));
}

static void take_assistant(struct stream *stream, const json_t *object)
{
    const json_t *message = json_get_object(object, "message");
    const char *parent = parent_of(stream, object);
    const char *id = stream_name(stream, json_object_get(message, "id"));
    const char *model = stream_name(stream, json_object_get(message, "model"));
    /* What the CLI itself says in the model's place, such as why it could not be reached. */
    bool is_own = str_equal(model, "<synthetic>");
    size_t i = 0;
    json_t *block = NULL;

    if (parent == NULL && !is_own && (id == NULL || !str_equal(id, stream->message_id))) {
        stream_keep(&stream->message_id, id);
        stream_keep(&stream->model, model);
        stream_turn(stream);
    }
    json_array_foreach (json_get_array(message, "content"), i, block)
        take_block(stream, block, parent);
}

/*
 * Only a foreground command of the shell has an exit code: its text begins with it when it failed,
 * and a structured result that tells nothing unusual stands for 0.
 */
static void find_exit_code(const json_t *object, const json_t *block, struct event *event)
{
    const char *text = json_get_text(block, "content");
    const json_t *details = json_get_object(object, "tool_use_result");
    int64_t code = 0;

    if (event->is_error && text != NULL && str_starts(text, EXIT_CODE_MARK)) {
        const char *digits = text + strlen(EXIT_CODE_MARK);
        scoped(mem_freep) char *number = str_ndup(digits, strspn(digits, "0123456789"));

        if (str_to_i64(number, &code))
            stream_exit_code(event, code);
        return;
    }
    if (!event->is_error && json_get_text(details, "stdout") != NULL &&
        !json_get_bool(details, "interrupted", false) &&
        json_object_get(details, "backgroundTaskId") == NULL &&
        json_object_get(details, "returnCodeInterpretation") == NULL)
        stream_exit_code(event, 0);
}

static void take_user(struct stream *stream, const json_t *object)
{
    const char *parent = parent_of(stream, object);
    size_t i = 0;
    json_t *block = NULL;

    json_array_foreach (json_get_array(json_get_object(object, "message"), "content"), i, block) {
        if (!str_equal(json_get_text(block, "type"), "tool_result"))
            continue;

        struct event *event = stream_result(
            stream, parent, stream_name(stream, json_object_get(block, "tool_use_id")),
            json_object_get(block, "content"));

        event->is_error = json_get_bool(block, "is_error", false);
        find_exit_code(object, block, event);
    }
}

static void take_result(struct stream *stream, const json_t *object)
{
    const json_t *usage = json_get_object(object, "usage");
    const char *message = json_get_text(object, "result");
    bool is_error = json_get_bool(object, "is_error", false);

    if (usage != NULL)
        stream_use(stream, &(struct stream_tokens){
                               .input = stream_count(usage, "input_tokens"),
                               .cache_read = stream_count(usage, "cache_read_input_tokens"),
                               .cache_write = stream_count(usage, "cache_creation_input_tokens"),
                               .output = stream_count(usage, "output_tokens"),
                           });
    stream_finish(stream, is_error, message != NULL ? message : json_get_text(object, "subtype"));
}

static void read_object(struct stream *stream, const json_t *object)
{
    const char *type = json_get_text(object, "type");

    stream_keep(&stream->session, stream_name(stream, json_object_get(object, "session_id")));
    if (str_equal(type, "assistant"))
        take_assistant(stream, object);
    else if (str_equal(type, "user"))
        take_user(stream, object);
    else if (str_equal(type, "result"))
        take_result(stream, object);
    else if (str_equal(type, "system") && str_equal(json_get_text(object, "subtype"), "api_retry"))
        stream_retry(stream, object);
}

static const char *const skipped[] = {"{\"type\":\"stream_event\",", NULL};

const struct stream_format stream_claude = {"claude", read_object, skipped};
