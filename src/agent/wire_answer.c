/* The calls in one answer of a model, in any of the four wire formats. */
#include "agent/lines.h"
#include "agent/wire_calls.h"
#include "base/mem.h"
#include "base/str.h"

/* A call whose input comes in pieces. */
struct open_call {
    int64_t index;
    char *id, *name;
    struct buf input;
    json_t *begun; /* what came with its name; NULL: nothing */
};

#define OPEN_MAX 256

struct reading {
    const struct wire_answer *answer;
    struct wire_calls *calls;
    struct open_call open[OPEN_MAX];
    size_t open_count;
    bool is_cut;
};

/* A shell's command has one name in criteria; Codex has a list, or calls it cmd. */
static void name_command(json_t *input)
{
    json_t *command = json_object_get(input, "command"), *word;
    scoped(buf_done) struct buf joined = {0};
    size_t i;

    if (command == NULL && json_get_text(input, "cmd") != NULL)
        json_put_text(input, "command", json_get_text(input, "cmd"));
    if (!json_is_array(command))
        return;
    /* ["bash", "-lc", "TEXT"] is a shell's TEXT, as those who print it have it. */
    if (json_array_size(command) == 3 &&
        str_starts(json_string_value(json_array_get(command, 1)) != NULL
                       ? json_string_value(json_array_get(command, 1))
                       : "",
                   "-") &&
        json_is_string(json_array_get(command, 2))) {
        json_put(input, "command", json_incref(json_array_get(command, 2)));
        return;
    }
    json_array_foreach (command, i, word)
        buf_format(&joined, "%s%s", i == 0 ? "" : " ",
                   json_is_string(word) ? json_string_value(word) : "");
    json_put_text(input, "command", buf_text(&joined));
}

/* What an input is: an object, or a text that should be one. New. */
static json_t *input_of(struct reading *reading, const json_t *value)
{
    scoped(error_freep) struct error *problem = NULL;
    json_t *input = NULL;

    if (!json_is_string(value))
        return value == NULL ? NULL : json_deep_copy(value);
    if (json_string_length(value) > 0 &&
        json_parse("input", json_string_value(value), json_string_length(value), &input, &problem) <
            0) {
        reading->is_cut = true; /* a CLI may make something of it that we do not */
        return json_incref((json_t *)(uintptr_t)value);
    }
    return input;
}

static void add(struct reading *reading, const char *id, const char *name, const json_t *input)
{
    if (id != NULL && strlen(id) > EVENT_NAME_BYTES_MAX)
        reading->is_cut = true;
    if (name == NULL || strlen(name) > EVENT_NAME_BYTES_MAX) {
        reading->is_cut = true;
        return;
    }
    struct wire_call *call = wire_calls_add(reading->calls);

    if (call == NULL) {
        reading->is_cut = true;
        return;
    }
    call->id = id == NULL || strlen(id) > EVENT_NAME_BYTES_MAX ? NULL : str_dup(id);
    call->name = str_dup(name);
    call->input = input_of(reading, input);
    call->t_ms = reading->answer->t_ms;
    call->is_main = reading->answer->is_main;
    if (json_is_object(call->input))
        name_command(call->input);
}

/* --- calls in pieces ------------------------------------------------------------------------- */

static struct open_call *open_at(struct reading *reading, int64_t index, bool is_new)
{
    for (size_t i = 0; i < reading->open_count; i++) {
        if (reading->open[i].index == index)
            return &reading->open[i];
    }
    if (!is_new)
        return NULL;
    if (reading->open_count == OPEN_MAX) {
        reading->is_cut = true;
        return NULL;
    }
    struct open_call *open = &reading->open[reading->open_count++];

    *open = (struct open_call){.index = index};
    return open;
}

static void keep(char **place, const char *text)
{
    if (text == NULL || text[0] == '\0' || *place != NULL)
        return;
    *place = str_dup(text);
}

static void close_all(struct reading *reading)
{
    for (size_t i = 0; i < reading->open_count; i++) {
        struct open_call *open = &reading->open[i];
        scoped(json_freep) json_t *text =
            open->input.size_bytes > 0 ? json_text(buf_text(&open->input), open->input.size_bytes)
                                       : json_incref(open->begun);

        if (open->name != NULL)
            add(reading, open->id, open->name, text);
        free(open->id);
        free(open->name);
        json_decref(open->begun);
        buf_done(&open->input);
    }
    reading->open_count = 0;
}

/* --- the formats ----------------------------------------------------------------------------- */

static void take_block(struct reading *reading, const json_t *block)
{
    if (str_equal(json_get_text(block, "type"), "tool_use"))
        add(reading, json_get_text(block, "id"), json_get_text(block, "name"),
            json_object_get(block, "input"));
}

static void take_anthropic(struct reading *reading, const json_t *value)
{
    const char *type = json_get_text(value, "type");
    const json_t *block = json_get_object(value, "content_block");
    const json_t *delta = json_get_object(value, "delta");
    int64_t index = json_get_int(value, "index", 0);
    json_t *item;
    size_t i;

    if (str_equal(type, "content_block_start") &&
        str_equal(json_get_text(block, "type"), "tool_use")) {
        struct open_call *open = open_at(reading, index, true);

        if (open == NULL)
            return;
        keep(&open->id, json_get_text(block, "id"));
        keep(&open->name, json_get_text(block, "name"));
        if (open->begun == NULL)
            open->begun = json_incref(json_object_get(block, "input"));
    } else if (str_equal(type, "content_block_delta") &&
               json_get_text(delta, "partial_json") != NULL) {
        struct open_call *open = open_at(reading, index, false);

        if (open != NULL)
            buf_text_append(&open->input, json_get_text(delta, "partial_json"));
    } else if (str_equal(type, "message")) {
        json_array_foreach (json_get_array(value, "content"), i, item)
            take_block(reading, item);
    }
}

static void take_item(struct reading *reading, const json_t *item)
{
    const char *type = json_get_text(item, "type");
    const char *name = json_get_text(item, "name");
    const json_t *input = json_object_get(item, "arguments");

    if (str_equal(type, "custom_tool_call"))
        input = json_object_get(item, "input");
    else if (str_equal(type, "local_shell_call"))
        input = json_object_get(item, "action");
    else if (!str_equal(type, "function_call"))
        return;
    /* What a tool of the model's own choice of words gets is a text, and no JSON. */
    scoped(json_freep) json_t *wrapped = str_equal(type, "custom_tool_call")
                                             ? json_object()
                                             : json_incref((json_t *)(uintptr_t)input);

    if (str_equal(type, "custom_tool_call"))
        json_put(wrapped, "input",
                 input == NULL ? json_null() : json_incref((json_t *)(uintptr_t)input));
    add(reading, json_get_text(item, "call_id"),
        str_equal(type, "local_shell_call") ? "local_shell" : name, wrapped);
}

static void take_responses(struct reading *reading, const json_t *value)
{
    const json_t *output = json_get_array(value, "output");
    json_t *item;
    size_t i;

    if (str_equal(json_get_text(value, "type"), "response.output_item.done"))
        take_item(reading, json_get_object(value, "item"));
    else if (str_equal(json_get_text(value, "object"), "response"))
        json_array_foreach (output, i, item)
            take_item(reading, item);
}

static void take_chat_call(struct reading *reading, const json_t *call, int64_t at)
{
    const json_t *function = json_get_object(call, "function");
    struct open_call *open = open_at(reading, json_get_int(call, "index", at), true);

    if (open == NULL)
        return;
    keep(&open->id, json_get_text(call, "id"));
    keep(&open->name, json_get_text(function, "name"));
    if (json_get_text(function, "arguments") != NULL)
        buf_text_append(&open->input, json_get_text(function, "arguments"));
}

static void take_chat(struct reading *reading, const json_t *value)
{
    json_t *choice, *call;
    size_t i, j;

    json_array_foreach (json_get_array(value, "choices"), i, choice) {
        const json_t *said = json_get_object(choice, "delta");

        if (said == NULL)
            said = json_get_object(choice, "message");
        json_array_foreach (json_get_array(said, "tool_calls"), j, call)
            take_chat_call(reading, call, (int64_t)j);
    }
}

static void take_gemini(struct reading *reading, const json_t *value)
{
    json_t *candidate, *part;
    size_t i, j;

    json_array_foreach (json_get_array(value, "candidates"), i, candidate) {
        const json_t *content = json_get_object(candidate, "content");

        json_array_foreach (json_get_array(content, "parts"), j, part) {
            const json_t *call = json_get_object(part, "functionCall");

            if (call != NULL)
                add(reading, json_get_text(call, "id"), json_get_text(call, "name"),
                    json_object_get(call, "args"));
        }
    }
}

static void take_value(struct reading *reading, const json_t *value)
{
    const char *api = reading->answer->api;

    if (str_equal(api, "openai-responses"))
        take_responses(reading, value);
    else if (str_equal(api, "openai-chat"))
        take_chat(reading, value);
    else if (str_equal(api, "gemini"))
        take_gemini(reading, value);
    else
        take_anthropic(reading, value);
}

/* --- whole answers and streams --------------------------------------------------------------- */

static bool take_line(void *context, const struct line *line)
{
    struct reading *reading = context;
    const char *text = line->text;
    size_t size = line->size;
    json_t *value = NULL;

    if (size < strlen("data:") || memcmp(text, "data:", strlen("data:")) != 0)
        return true;
    text += strlen("data:");
    size -= strlen("data:");
    while (size > 0 && (text[0] == ' ' || text[0] == '\t')) {
        text++;
        size--;
    }
    while (size > 0 && (text[size - 1] == '\r' || text[size - 1] == ' '))
        size--;
    if (size == 0 || (size == strlen("[DONE]") && memcmp(text, "[DONE]", size) == 0))
        return true;
    if (json_parse("event", text, size, &value, NULL) < 0) {
        reading->is_cut = true;
        return true;
    }
    take_value(reading, value);
    json_decref(value);
    return true;
}

bool wire_answer_read(const struct wire_answer *answer, struct wire_calls *calls)
{
    struct reading reading = {.answer = answer, .calls = calls};
    scoped(json_freep) json_t *value = NULL;
    const char *at = answer->body;
    json_t *item;
    size_t i;

    while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
        at++;
    if (*at == '{' || *at == '[') {
        if (json_parse("answer", answer->body, answer->size, &value, NULL) < 0)
            return false;
        if (json_is_array(value)) {
            json_array_foreach (value, i, item)
                take_value(&reading, item);
        } else {
            take_value(&reading, value);
        }
    } else {
        struct line_cutter cutter = {.line.max_bytes = answer->size + 1};

        line_cutter_feed(&cutter, answer->body, answer->size, take_line, &reading);
        line_cutter_end(&cutter, take_line, &reading);
        line_cutter_done(&cutter);
    }
    close_all(&reading);
    return !reading.is_cut;
}
