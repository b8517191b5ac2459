#include "broker/usage.h"

#include "base/mem.h"
#include "base/str.h"

#define MILLION UINT64_C(1000000)

void usage_add(struct usage *sum, const struct usage *more)
{
    sum->input += more->input;
    sum->cache_read += more->cache_read;
    sum->cache_write += more->cache_write;
    sum->output += more->output;
    sum->known = sum->known || more->known;
}

json_t *usage_to_json(const struct usage *usage)
{
    json_t *object = json_object();

    json_put_int(object, "input_tokens", (int64_t)usage->input);
    json_put_int(object, "cache_read_tokens", (int64_t)usage->cache_read);
    json_put_int(object, "cache_write_tokens", (int64_t)usage->cache_write);
    json_put_int(object, "output_tokens", (int64_t)usage->output);
    return object;
}

static uint64_t number(const json_t *object, const char *key)
{
    int64_t n = json_get_int(object, key, 0);

    return n < 0 ? 0 : size_min((size_t)n, USAGE_TOKENS_MAX);
}

/* Only what is there replaces what was: a later event repeats but a part. */
static void replace(uint64_t *place, const json_t *object, const char *key)
{
    if (json_is_integer(json_object_get(object, key)))
        *place = number(object, key);
}

static void take_anthropic(struct usage *usage, const json_t *object)
{
    replace(&usage->input, object, "input_tokens");
    replace(&usage->cache_read, object, "cache_read_input_tokens");
    replace(&usage->cache_write, object, "cache_creation_input_tokens");
    replace(&usage->output, object, "output_tokens");
}

/* Here what was cached is a part of the input. */
static void take_openai(struct usage *usage, const json_t *object, bool is_chat)
{
    const json_t *details =
        json_get_object(object, is_chat ? "prompt_tokens_details" : "input_tokens_details");
    uint64_t input = number(object, is_chat ? "prompt_tokens" : "input_tokens");
    uint64_t cached = number(details, "cached_tokens");

    usage->cache_read = cached < input ? cached : input;
    usage->input = input - usage->cache_read;
    usage->output = number(object, is_chat ? "completion_tokens" : "output_tokens");
}

/* Thoughts are billed as output, and are not in the count of candidates. */
static void take_gemini(struct usage *usage, const json_t *object)
{
    uint64_t input = number(object, "promptTokenCount");
    uint64_t cached = number(object, "cachedContentTokenCount");

    usage->cache_read = cached < input ? cached : input;
    usage->input = input - usage->cache_read;
    usage->output = number(object, "candidatesTokenCount") + number(object, "thoughtsTokenCount");
}

/* Where it stands: at the top, or in the message or response that an event is about. */
static const json_t *usage_object(enum model_api api, const json_t *value)
{
    static const char *const inner[] = {"message", "response"};
    const char *key = api == MODEL_GEMINI ? "usageMetadata" : "usage";
    const json_t *object = json_get_object(value, key);

    for (size_t i = 0; i < ARRAY_SIZE(inner) && object == NULL; i++)
        object = json_get_object(json_get_object(value, inner[i]), key);
    return object;
}

void usage_take(struct usage *usage, enum model_api api, const json_t *value)
{
    const json_t *object = usage_object(api, value);

    if (object == NULL)
        return;
    usage->known = true;
    switch (api) {
    case MODEL_ANTHROPIC:
    case MODEL_BEDROCK:
        take_anthropic(usage, object);
        return;
    case MODEL_OPENAI_RESPONSES:
    case MODEL_OPENAI_CHAT:
        take_openai(usage, object, api == MODEL_OPENAI_CHAT);
        return;
    case MODEL_GEMINI:
        take_gemini(usage, object);
        return;
    case MODEL_API_COUNT:
        break;
    }
}

/* --- streams ---------------------------------------------------------------------------------- */

static const char *model_of(const json_t *value)
{
    const char *model = json_get_text(value, "model");

    if (model == NULL)
        model = json_get_text(value, "modelVersion");
    if (model == NULL)
        model = json_get_text(json_get_object(value, "message"), "model");
    return model != NULL ? model : json_get_text(json_get_object(value, "response"), "model");
}

static void take_line(struct usage_reader *reader)
{
    const char *text = buf_text(&reader->line);
    scoped(json_freep) json_t *value = NULL;

    if (!str_starts(text, "data:") || (reader->model != NULL && strcasestr(text, "usage") == NULL))
        return;
    text += strlen("data:");
    if (json_parse("event", text, strlen(text), &value, NULL) < 0)
        return;
    usage_take(&reader->usage, reader->api, value);
    const char *model = model_of(value);

    if (reader->model == NULL && model != NULL)
        reader->model = str_dup(model);
}

void usage_reader_feed(struct usage_reader *reader, const char *bytes, size_t size)
{
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t length = end == NULL ? size : (size_t)(end - bytes);

        if (reader->line.size_bytes + length > USAGE_LINE_BYTES_MAX)
            reader->skips = true;
        if (!reader->skips)
            buf_append(&reader->line, bytes, length);
        if (end == NULL)
            return;
        if (!reader->skips)
            take_line(reader);
        buf_clear(&reader->line);
        reader->skips = false;
        bytes += length + 1;
        size -= length + 1;
    }
}

void usage_reader_done(struct usage_reader *reader)
{
    buf_done(&reader->line);
    free(reader->model);
    *reader = (struct usage_reader){0};
}

/* --- money ------------------------------------------------------------------------------------ */

static uint64_t microusd(const json_t *entry, const char *key)
{
    const json_t *value = json_object_get(entry, key);
    double usd = json_is_number(value) ? json_number_value(value) : 0;

    return usd < 0 || usd > 100000 ? 0 : (uint64_t)(usd * 1e6 + 0.5);
}

bool price_find(const json_t *prices, const char *model, struct price *ret)
{
    json_t *models = json_get_object(prices, "models"), *entry;
    const json_t *found = NULL;
    const char *prefix;
    size_t longest = 0;

    json_object_foreach (models, prefix, entry) {
        if (str_starts(model, prefix) && strlen(prefix) > longest) {
            found = entry;
            longest = strlen(prefix);
        }
    }
    if (found == NULL)
        return false;
    *ret = (struct price){microusd(found, "input"), microusd(found, "cache_read"),
                          microusd(found, "cache_write"), microusd(found, "output")};
    return true;
}

uint64_t price_microusd(const struct price *price, const struct usage *usage)
{
    uint64_t sum = usage->input * price->input + usage->cache_read * price->cache_read +
                   usage->cache_write * price->cache_write + usage->output * price->output;

    return (sum + MILLION - 1) / MILLION;
}
