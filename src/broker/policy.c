#include "broker/policy.h"

#include "base/mem.h"

#define PART_DEPTH_MAX 4

/* --- paths ------------------------------------------------------------------------------------ */

static const struct fixed_path {
    const char *method, *path;
    struct policy_path what;
} fixed_paths[] = {
    {"POST", "/v1/messages", {POLICY_FORWARD, MODEL_ANTHROPIC, false, false, ""}},
    {"POST", "/v1/messages/count_tokens", {POLICY_FORWARD, MODEL_ANTHROPIC, true, false, ""}},
    {"POST", "/v1/responses", {POLICY_FORWARD, MODEL_OPENAI_RESPONSES, false, false, ""}},
    {"POST", "/v1/chat/completions", {POLICY_FORWARD, MODEL_OPENAI_CHAT, false, false, ""}},
    {"GET", "/v1/responses", {POLICY_UPGRADE, MODEL_OPENAI_RESPONSES, false, false, ""}},
    {"HEAD", "/", {POLICY_HELLO, MODEL_ANTHROPIC, false, false, ""}},
    {"GET", "/", {POLICY_HELLO, MODEL_ANTHROPIC, false, false, ""}},
    {"HEAD", "/api/hello", {POLICY_HELLO, MODEL_ANTHROPIC, false, false, ""}},
};

/* /v1beta/models/MODEL:VERB */
static void gemini_path(const char *path, struct policy_path *ret)
{
    static const char prefix[] = "/v1beta/models/";
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (!str_starts(path, prefix))
        return;
    path += strlen(prefix);
    size_t length = strspn(path, letters);

    if (length == 0 || length >= sizeof(ret->model) || path[length] != ':')
        return;
    const char *verb = path + length + 1;
    bool streams = str_equal(verb, "streamGenerateContent");
    bool counts = str_equal(verb, "countTokens");

    if (!streams && !counts && !str_equal(verb, "generateContent"))
        return;
    *ret = (struct policy_path){
        .answer = POLICY_FORWARD, .api = MODEL_GEMINI, .counts_tokens = counts, .streams = streams};
    memcpy(ret->model, path, length);
}

void policy_path(const char *method, const char *path, struct policy_path *ret)
{
    *ret = (struct policy_path){.answer = POLICY_REFUSE};
    for (size_t i = 0; i < ARRAY_SIZE(fixed_paths); i++) {
        if (str_equal(fixed_paths[i].method, method) && str_equal(fixed_paths[i].path, path))
            *ret = fixed_paths[i].what;
    }
    if (str_equal(method, "POST"))
        gemini_path(path, ret);
}

/* --- bodies ----------------------------------------------------------------------------------- */

static bool has(const json_t *list, const char *word)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        if (str_equal(json_string_value(item), word))
            return true;
    }
    return false;
}

/* Quoted by the writer of the answer. */
static int refuse(struct error **err, const char *what, const char *name)
{
    return error_set(err, ERROR_AGENT, "%s '%.64s' is not allowed here", what, name);
}

static int check_keys(const json_t *allowed, json_t *object, const char *what, struct error **err)
{
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        if (!has(allowed, key))
            return refuse(err, what, key);
    }
    return 0;
}

/* What an endpoint would fetch, or has in store. */
static int check_source(const json_t *table, json_t *part, struct error **err)
{
    json_t *source = json_get_object(part, "source"), *image = json_object_get(part, "image_url");
    const char *key;
    json_t *value;

    if (source != NULL) {
        const char *type = json_get_text(source, "type");

        if (type == NULL || !has(json_get_array(table, "source_types"), type))
            return refuse(err, "a source of type", type == NULL ? "" : type);
    }
    const char *url =
        json_is_object(image) ? json_get_text(image, "url") : json_string_value(image);

    if (image != NULL && (url == NULL || !str_starts(url, "data:")))
        return refuse(err, "an image by URL", url == NULL ? "" : url);
    json_object_foreach (part, key, value) {
        if (has(json_get_array(table, "barred_keys"), key) && !json_is_null(value))
            return refuse(err, "the field", key);
    }
    return 0;
}

static int check_parts(const json_t *table, json_t *parts, unsigned depth, struct error **err);

static int check_part(const json_t *table, json_t *part, unsigned depth, struct error **err)
{
    const json_t *types = json_get_array(table, "part_types");
    const json_t *keys = json_get_array(table, "part_keys");
    const char *type = json_get_text(part, "type");

    if (json_is_string(part))
        return 0;
    if (!json_is_object(part))
        return error_set(err, ERROR_AGENT, "a part that is no object is not allowed here");
    if (json_array_size(types) > 0 && (type == NULL || !has(types, type)))
        return refuse(err, "content of type", type == NULL ? "" : type);
    int r = json_array_size(keys) > 0 ? check_keys(keys, part, "content with", err) : 0;

    if (r == 0)
        r = check_source(table, part, err);
    if (r < 0)
        return r;
    /* What a tool gave back, or a document is made of, holds parts, too. */
    r = check_parts(table, json_object_get(part, "content"), depth + 1, err);
    if (r == 0)
        r = check_parts(table, json_object_get(json_get_object(part, "source"), "content"),
                        depth + 1, err);
    return r < 0 ? r
                 : check_parts(table,
                               json_object_get(json_get_object(part, "functionResponse"), "parts"),
                               depth + 1, err);
}

static int check_parts(const json_t *table, json_t *parts, unsigned depth, struct error **err)
{
    size_t i;
    json_t *part;

    if (depth > PART_DEPTH_MAX)
        return error_set(err, ERROR_AGENT, "content in content, %u deep, is not allowed here",
                         depth);
    /* Some endpoints take one part where a list is due, so it must not pass as an empty one. */
    if (parts != NULL && !json_is_null(parts) && !json_is_string(parts) && !json_is_array(parts))
        return error_set(err, ERROR_AGENT,
                         "content that is neither a text nor a list is not allowed here");
    json_array_foreach (parts, i, part) {
        int r = check_part(table, part, depth, err);

        if (r < 0)
            return r;
    }
    return 0;
}

static int check_item(const json_t *table, json_t *item, struct error **err)
{
    const json_t *types = json_get_array(table, "items");
    const char *type = json_get_text(item, "type");

    if (!json_is_object(item))
        return error_set(err, ERROR_AGENT, "a message that is no object is not allowed here");
    /* Without a type it may be a message, or stand for one that the endpoint has in store. */
    if (json_array_size(types) > 0 &&
        (type == NULL ? json_get_text(item, "role") == NULL : !has(types, type)))
        return refuse(err, "an item of type", type == NULL ? "" : type);
    int r = check_source(table, item, err);

    if (r == 0)
        r = check_parts(table, json_object_get(item, json_get_text(table, "parts")), 0, err);
    /* What a tool gave back. */
    return r < 0 ? r : check_parts(table, json_object_get(item, "output"), 1, err);
}

/* One that the endpoint runs itself, with a network of its own, is no tool of the cell's. */
static int check_environment(const json_t *tool, const char *type, struct error **err)
{
    const json_t *environment = json_object_get(tool, "environment");
    const char *where = json_get_text(environment, "type");

    if ((environment == NULL && !str_equal(type, "shell")) || str_equal(where, "local"))
        return 0;
    return refuse(err, "a tool in an environment of type", where == NULL ? "" : where);
}

static int check_tools(const json_t *table, const json_t *body, struct error **err)
{
    const json_t *types = json_get_array(table, "tools"),
                 *keys = json_get_array(table, "tool_keys");
    json_t *tools = json_object_get(body, "tools"), *tool;
    size_t i;

    if (tools != NULL && !json_is_null(tools) && !json_is_array(tools))
        return error_set(err, ERROR_AGENT, "tools that are no list are not allowed here");
    json_array_foreach (tools, i, tool) {
        const char *type = json_get_text(tool, "type");
        int r = check_environment(tool, type, err);

        if (r < 0)
            return r;
        if (!json_is_object(tool))
            return error_set(err, ERROR_AGENT, "a tool that is no object is not allowed here");
        if (json_array_size(keys) > 0)
            r = check_keys(keys, tool, "a tool of kind", err);
        else if (!has(types, type == NULL ? "custom" : type))
            r = refuse(err, "a tool of type", type == NULL ? "custom" : type);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What the model is told before the list. */
static int check_system(const json_t *table, const json_t *body, struct error **err)
{
    json_t *told = json_object_get(body, "systemInstruction"); /* as an item of the list */
    int r = check_parts(table, json_object_get(body, "system"), 0, err);

    return r < 0 || told == NULL || json_is_null(told) ? r : check_item(table, told, err);
}

int policy_check(const json_t *policy, enum model_api api, const json_t *body, struct error **err)
{
    const json_t *table = json_get_object(json_get_object(policy, "apis"), model_api_name(api));
    json_t *list, *item;
    size_t i;

    if (table == NULL)
        return error_set(err, ERROR_AGENT, "requests of %s are not allowed here",
                         model_api_name(api));
    if (!json_is_object(body))
        return error_set(err, ERROR_AGENT, "a request that is no JSON object");
    json_t *fields = json_incref((json_t *)(uintptr_t)body);
    int r = check_keys(json_get_array(table, "fields"), fields, "the field", err);

    json_decref(fields);
    if (r == 0)
        r = check_tools(table, body, err);
    if (r == 0)
        r = check_system(table, body, err);
    if (r < 0)
        return r;
    list = json_object_get(body, json_get_text(table, "list"));
    if (!json_is_array(list) && !json_is_string(list))
        return error_set(err, ERROR_AGENT, "a request without '%s'", json_get_text(table, "list"));
    json_array_foreach (list, i, item) {
        r = check_item(table, item, err);
        if (r < 0)
            return r;
    }
    return json_is_true(json_object_get(body, "store"))
               ? error_set(err, ERROR_AGENT, "a conversation that is stored is not allowed here")
               : 0;
}
