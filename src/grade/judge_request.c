/* One question in the words of each API. */
#include "base/mem.h"
#include "base/str.h"
#include "grade/judge_wire.h"

static const char *const api_names[JUDGE_API_COUNT] = {
    [JUDGE_ANTHROPIC] = "anthropic",
    [JUDGE_RESPONSES] = "openai-responses",
    [JUDGE_CHAT] = "openai-chat",
    [JUDGE_GEMINI] = "gemini",
};

const char *judge_api_name(enum judge_api api)
{
    ASSERT(api < JUDGE_API_COUNT);
    return api_names[api];
}

bool judge_api_parse(const char *name, enum judge_api *ret)
{
    for (size_t i = 0; i < JUDGE_API_COUNT; i++) {
        if (strcmp(api_names[i], name) == 0) {
            *ret = (enum judge_api)i;
            return true;
        }
    }
    return false;
}

static json_t *text(const char *s)
{
    return json_text(s, strlen(s));
}

static json_t *typed(const char *type)
{
    json_t *object = json_object();

    json_put_text(object, "type", type);
    return object;
}

static const struct shape {
    const char *name, *description; /* of the tool, or the schema */
    const char *properties[3][2];   /* name and type; ends with NULL */
} shapes[] = {
    [JUDGE_VERDICT] = {"verdict",
                       "Report the verdict",
                       {{"score", "number"}, {"rationale", "string"}}},
    [JUDGE_REPLY] = {"reply", "Say this to the assistant", {{"message", "string"}}},
};

/* Strict modes want every property required and no further one. */
static json_t *answer_schema(const struct shape *shape)
{
    json_t *schema = typed("object");
    json_t *properties = json_object();
    json_t *required = json_array();

    for (size_t i = 0; shape->properties[i][0] != NULL; i++) {
        json_put(properties, shape->properties[i][0], typed(shape->properties[i][1]));
        json_push(required, text(shape->properties[i][0]));
    }
    json_put(schema, "properties", properties);
    json_put(schema, "required", required);
    json_put_bool(schema, "additionalProperties", false);
    return schema;
}

static json_t *message(const char *role, const char *content)
{
    json_t *object = json_object();

    json_put_text(object, "role", role);
    json_put(object, "content", text(content));
    return object;
}

static json_t *list_of(json_t *item)
{
    json_t *list = json_array();

    json_push(list, item);
    return list;
}

static void put_temperature(json_t *object, const struct judge_question *question)
{
    if (question->has_temperature)
        json_put_real(object, "temperature", question->temperature);
}

/* --- the four --------------------------------------------------------------------------------- */

static json_t *anthropic(const struct judge_question *question)
{
    json_t *body = json_object();
    json_t *told = typed("text");
    json_t *tool = json_object();
    json_t *choice = typed("tool");
    const struct shape *shape = &shapes[question->shape];

    json_put_text(body, "model", question->model);
    json_put_int(body, "max_tokens", (int64_t)question->max_tokens);
    put_temperature(body, question);
    json_put(told, "text", text(question->instructions));
    json_put(body, "system", list_of(told));
    json_put(body, "messages", list_of(message("user", question->user)));
    json_put_text(tool, "name", shape->name);
    json_put_text(tool, "description", shape->description);
    json_put(tool, "input_schema", answer_schema(shape));
    json_put_bool(tool, "strict", true);
    json_put(body, "tools", list_of(tool));
    json_put_text(choice, "name", shape->name);
    json_put_bool(choice, "disable_parallel_tool_use", true);
    json_put(body, "tool_choice", choice);
    return body;
}

static json_t *developer_and_user(const struct judge_question *question)
{
    json_t *list = list_of(message("developer", question->instructions));

    json_push(list, message("user", question->user));
    return list;
}

/* What both call it, to hold the answer to our schema. */
static void put_answer_schema(json_t *object, const struct judge_question *question)
{
    const struct shape *shape = &shapes[question->shape];

    json_put_text(object, "name", shape->name);
    json_put(object, "schema", answer_schema(shape));
    json_put_bool(object, "strict", true);
}

static json_t *responses(const struct judge_question *question)
{
    json_t *body = json_object();
    json_t *format = typed("json_schema");
    json_t *wrapper = json_object();

    json_put_text(body, "model", question->model);
    put_temperature(body, question);
    json_put(body, "input", developer_and_user(question));
    put_answer_schema(format, question);
    json_put(wrapper, "format", format);
    json_put(body, "text", wrapper);
    json_put_int(body, "max_output_tokens", (int64_t)question->max_tokens);
    json_put_bool(body, "store", false);
    return body;
}

static json_t *chat(const struct judge_question *question)
{
    json_t *body = json_object();
    json_t *format = typed("json_schema");
    json_t *schema = json_object();

    json_put_text(body, "model", question->model);
    put_temperature(body, question);
    json_put(body, "messages", developer_and_user(question));
    put_answer_schema(schema, question);
    json_put(format, "json_schema", schema);
    json_put(body, "response_format", format);
    json_put_int(body, "max_completion_tokens", (int64_t)question->max_tokens);
    return body;
}

static json_t *turn(const char *content)
{
    json_t *object = json_object();
    json_t *part = json_object();

    json_put(part, "text", text(content));
    json_put(object, "parts", list_of(part));
    json_put_text(object, "role", "user");
    return object;
}

static json_t *gemini(const struct judge_question *question)
{
    json_t *body = json_object();
    json_t *config = json_object();

    json_put(body, "contents", list_of(turn(question->user)));
    json_put(body, "systemInstruction", turn(question->instructions));
    put_temperature(config, question);
    json_put_text(config, "responseMimeType", "application/json");
    json_put(config, "responseJsonSchema", answer_schema(&shapes[question->shape]));
    json_put_int(config, "maxOutputTokens", (int64_t)question->max_tokens);
    json_put(body, "generationConfig", config);
    return body;
}

json_t *judge_question_json(const struct judge_question *question)
{
    switch (question->api) {
    case JUDGE_ANTHROPIC:
        return anthropic(question);
    case JUDGE_RESPONSES:
        return responses(question);
    case JUDGE_CHAT:
        return chat(question);
    case JUDGE_GEMINI:
        return gemini(question);
    case JUDGE_API_COUNT:
        break;
    }
    ASSERT(false);
    return NULL;
}

char *judge_question_path(const struct judge_question *question)
{
    switch (question->api) {
    case JUDGE_ANTHROPIC:
        return str_dup("/v1/messages");
    case JUDGE_RESPONSES:
        return str_dup("/v1/responses");
    case JUDGE_CHAT:
        return str_dup("/v1/chat/completions");
    case JUDGE_GEMINI:
        return str_format("/v1beta/models/%s:generateContent", question->model);
    case JUDGE_API_COUNT:
        break;
    }
    ASSERT(false);
    return str_dup("");
}

bool judge_takes_temperature(enum judge_api api, const char *model)
{
    /* Reasoning models of OpenAI answer 400 to it, unless reasoning is switched off. */
    static const char *const refusing[] = {"gpt-5", "gpt-6", "o1", "o3", "o4"};

    if (api != JUDGE_RESPONSES && api != JUDGE_CHAT)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(refusing); i++) {
        if (str_starts(model, refusing[i]))
            return false;
    }
    return true;
}
