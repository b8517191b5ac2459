#include "agent/event_json.h"

#include <limits.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const kind_names[EVENT_KIND_COUNT] = {
    [EVENT_AGENT_START] = "agent_start",
    [EVENT_AGENT_END] = "agent_end",
    [EVENT_TURN_START] = "turn_start",
    [EVENT_TURN_END] = "turn_end",
    [EVENT_TEXT] = "text",
    [EVENT_TOOL_CALL] = "tool_call",
    [EVENT_TOOL_RESULT] = "tool_result",
    [EVENT_USAGE] = "usage",
    [EVENT_RETRY] = "retry",
    [EVENT_ERROR] = "error",
    [EVENT_USER] = "user",
    [EVENT_INVALID] = "invalid",
};

static const char *const source_names[EVENT_SOURCE_COUNT] = {
    [EVENT_WIRE] = "wire",
    [EVENT_STREAM] = "stream",
    [EVENT_SELF_REPORTED] = "self-reported",
};

/* The names that criteria use, docs/formats/events.md. */
static const char *const tools[] = {
    "Bash",  "Read", "Write",    "Edit",      "Glob",      "Grep",
    "Skill", "Task", "WebFetch", "WebSearch", "TodoWrite", "AskUserQuestion",
};

const char *event_kind_name(enum event_kind kind)
{
    ASSERT((size_t)kind < EVENT_KIND_COUNT);
    return kind_names[kind];
}

bool event_kind_parse(const char *name, enum event_kind *ret)
{
    for (size_t i = 0; i < EVENT_KIND_COUNT; i++) {
        if (strcmp(name, kind_names[i]) != 0)
            continue;
        *ret = (enum event_kind)i;
        return true;
    }
    return false;
}

const char *event_source_name(enum event_source source)
{
    ASSERT((size_t)source < EVENT_SOURCE_COUNT);
    return source_names[source];
}

bool event_source_parse(const char *name, enum event_source *ret)
{
    for (size_t i = 0; i < EVENT_SOURCE_COUNT; i++) {
        if (strcmp(name, source_names[i]) != 0)
            continue;
        *ret = (enum event_source)i;
        return true;
    }
    return false;
}

const char *event_tool_canonical(const char *tool)
{
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        if (strcasecmp(tool, tools[i]) == 0)
            return tools[i];
    }
    return tool;
}

void event_done(struct event *event)
{
    free(event->agent);
    free(event->session);
    free(event->tool);
    free(event->call_id);
    free(event->parent);
    json_decref(event->input);
    json_decref(event->output);
    json_decref(event->usage);
    *event = (struct event){0};
}

/* --- from JSON ------------------------------------------------------------------------------ */

/* A short text: a string, or a number where agents count their calls. False when it is neither. */
static bool fill_name(const json_t *value, char **ret)
{
    if (value == NULL || json_is_null(value))
        return true;
    if (json_is_integer(value)) {
        *ret = str_format("%jd", (intmax_t)json_integer_value(value));
        return true;
    }
    if (!json_is_string(value) || json_string_length(value) > EVENT_NAME_BYTES_MAX)
        return false;
    *ret = str_dup(json_string_value(value));
    return true;
}

static json_t *fill_any(json_t *value)
{
    return json_is_null(value) ? NULL : json_incref(value);
}

static const char *fill_result(const json_t *object, struct event *ret)
{
    const json_t *exit_code = json_object_get(object, "exit_code");
    const json_t *is_error = json_object_get(object, "is_error");

    if (exit_code != NULL && !json_is_null(exit_code)) {
        if (!json_is_integer(exit_code) || json_integer_value(exit_code) < INT_MIN ||
            json_integer_value(exit_code) > INT_MAX)
            return "exit_code: a whole number expected";
        ret->exit_code = (int)json_integer_value(exit_code);
        ret->has_exit_code = true;
    }
    if (is_error != NULL && !json_is_null(is_error) && !json_is_boolean(is_error))
        return "is_error: true or false expected";
    ret->is_error = json_is_true(is_error);
    return NULL;
}

static const char *fill_names(const json_t *object, struct event *ret)
{
    if (!fill_name(json_object_get(object, "call_id"), &ret->call_id))
        return "call_id: a short string expected";
    if (!fill_name(json_object_get(object, "session"), &ret->session))
        return "session: a short string expected";

    const json_t *tool = json_object_get(object, "tool");

    if (json_is_integer(tool) || !fill_name(tool, &ret->tool))
        return "tool: a short string expected";
    if (ret->tool != NULL) {
        char *canonical = str_dup(event_tool_canonical(ret->tool));

        free(ret->tool);
        ret->tool = canonical;
    }
    return NULL;
}

const char *event_fill(const json_t *object, struct event *ret)
{
    const char *kind = json_get_text(object, "kind");
    json_t *usage = json_object_get(object, "usage");

    if (!json_is_object(object))
        return "not an object";
    if (kind == NULL || !event_kind_parse(kind, &ret->kind))
        return "kind: the name of a kind of event expected";

    const char *reason = fill_names(object, ret);

    if (reason == NULL)
        reason = fill_result(object, ret);
    if (reason != NULL)
        return reason;
    if (ret->kind == EVENT_TOOL_CALL && ret->tool == NULL)
        return "tool: missing";
    if (usage != NULL && !json_is_null(usage) && !json_is_object(usage))
        return "usage: an object expected";
    ret->input = fill_any(json_object_get(object, "input"));
    ret->output = fill_any(json_object_get(object, "output"));
    ret->usage = fill_any(usage);
    return NULL;
}

/* --- to JSON -------------------------------------------------------------------------------- */

static void put_text(json_t *object, const char *key, const char *text)
{
    if (text != NULL)
        json_put(object, key, json_text_or_null(text));
}

static void put_any(json_t *object, const char *key, json_t *value)
{
    if (value != NULL)
        json_put(object, key, json_incref(value));
}

json_t *event_json(const struct event *event)
{
    json_t *object = json_object();

    json_put_int(object, "seq", (int64_t)event->seq);
    json_put_int(object, "t_ms", (int64_t)event->t_ms);
    put_text(object, "agent", event->agent);
    put_text(object, "session", event->session);
    json_put_int(object, "turn", event->turn);
    json_put_text(object, "kind", event_kind_name(event->kind));
    put_text(object, "parent", event->parent);
    put_text(object, "tool", event->tool);
    put_text(object, "call_id", event->call_id);
    put_any(object, "input", event->input);
    put_any(object, "output", event->output);
    if (event->has_exit_code)
        json_put_int(object, "exit_code", event->exit_code);
    if (event->is_error)
        json_put_bool(object, "is_error", true);
    put_any(object, "usage", event->usage);
    json_put_text(object, "source", event_source_name(event->source));
    if (event->has_raw)
        json_put_int(object, "raw", (int64_t)event->raw_offset);
    return object;
}
