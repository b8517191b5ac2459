/* What a trial may spend, and which calls are of its main thread. */
#include "base/mem.h"
#include "broker/proxy_internal.h"

#define OUTPUT_ASSUMED 32000u /* of a request that names no limit, for what it may cost */
#define ASIDE_FREE 32u        /* calls outside of the main thread, and further ones for each turn */
#define ASIDE_PER_TURN 8u

static const char *list_key(enum model_api api)
{
    return api == MODEL_GEMINI ? "contents" : api == MODEL_OPENAI_RESPONSES ? "input" : "messages";
}

/* Marks of caches move from call to call, and are no part of what was said. */
static json_t *bare(const json_t *value)
{
    json_t *copy, *inner;
    const char *key;
    size_t i;

    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach (value, i, inner)
            json_push(copy, bare(inner));
        return copy;
    }
    if (!json_is_object(value))
        return json_incref((json_t *)(uintptr_t)value);
    copy = json_object();
    json_object_foreach ((json_t *)(uintptr_t)value, key, inner) {
        if (!str_equal(key, "cache_control"))
            json_put(copy, key, bare(inner));
    }
    return copy;
}

/* Its history goes on, block for block, where the recorded one ended. */
static bool extends(const json_t *thread, const json_t *list)
{
    size_t count = json_array_size(thread);

    if (json_array_size(list) <= count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (json_equal(json_array_get(thread, i), json_array_get(list, i)) == 0)
            return false;
    }
    return true;
}

static bool is_same(const json_t *thread, const json_t *list)
{
    return json_equal(thread, list) != 0; /* a call that its client made again */
}

#define LAST_ITEMS 3 /* clients put remarks of their own around what the user said */

/* A conversation that had begun, with tools, and ends with what was to be said next. */
static bool is_expected(const struct proxy *proxy, const json_t *body, const json_t *said)
{
    size_t count = json_array_size(said);

    if (proxy->expects == NULL || count < 2 || json_array_size(json_object_get(body, "tools")) == 0)
        return false;
    for (size_t i = count > LAST_ITEMS ? count - LAST_ITEMS : 0; i < count; i++) {
        scoped(buf_done) struct buf text = {0};

        json_write_line(&text, json_array_get(said, i));
        if (strstr(buf_text(&text), proxy->expects) != NULL)
            return true;
    }
    return false;
}

/* The first conversation that has tools is the main one. */
static bool is_of_main_thread(const struct proxy_request *request, const json_t *body)
{
    struct proxy *proxy = request->proxy;
    const json_t *list = json_object_get(body, list_key(request->path.api));
    scoped(json_freep) json_t *said = list == NULL ? NULL : bare(list);

    if (request->path.counts_tokens || said == NULL)
        return false;
    if (proxy->thread == NULL)
        return json_array_size(json_object_get(body, "tools")) > 0;
    if (extends(proxy->thread, said) || is_same(proxy->thread, said))
        return true;
    if (!is_expected(proxy, body, said))
        return false;
    free(proxy->expects);
    proxy->expects = NULL;
    return true;
}

static uint64_t output_limit(const json_t *body)
{
    static const char *const keys[] = {"max_tokens", "max_completion_tokens", "max_output_tokens"};
    int64_t n = json_get_int(json_get_object(body, "generationConfig"), "maxOutputTokens", 0);

    for (size_t i = 0; i < ARRAY_SIZE(keys) && n <= 0; i++)
        n = json_get_int(body, keys[i], 0);
    return n <= 0 ? OUTPUT_ASSUMED : size_min((size_t)n, USAGE_TOKENS_MAX);
}

static uint64_t counted_input(const struct proxy *proxy)
{
    const struct usage *usage = &proxy->totals.usage;

    return usage->input + (proxy->limits.count_cached_input ? usage->cache_read : 0) +
           (proxy->limits.count_cache_creation ? usage->cache_write : 0);
}

static const char *tokens_used_up(const struct proxy *proxy)
{
    const struct proxy_limits *limits = &proxy->limits;
    uint64_t input = counted_input(proxy), output = proxy->totals.usage.output;

    if (limits->max_input_tokens != 0 && input >= limits->max_input_tokens)
        return "max_input_tokens";
    if (limits->max_output_tokens != 0 && output >= limits->max_output_tokens)
        return "max_output_tokens";
    return limits->max_total_tokens != 0 && input + output >= limits->max_total_tokens
               ? "max_total_tokens"
               : NULL;
}

/* What the answer may cost, and of what is sent a token for every four bytes. */
static uint64_t may_cost(const struct price *price, const struct proxy_request *request,
                         const json_t *body)
{
    const struct usage most = {.input = request->body.size_bytes / 4, .output = output_limit(body)};

    return price_microusd(price, &most);
}

const char *proxy_budget_check(struct proxy_request *request, const json_t *body)
{
    struct proxy *proxy = request->proxy;
    const struct proxy_limits *limits = &proxy->limits;
    struct price price;

    request->is_main = is_of_main_thread(request, body);
    if (request->path.counts_tokens)
        return NULL;
    bool has_price = price_find(models_prices(proxy->models), request->model, &price);

    if (proxy->stopped_by == NULL && request->is_main && limits->max_turns != 0 &&
        proxy->totals.turns - proxy->turns_before >= limits->max_turns)
        proxy->stopped_by = "max_turns";
    /* Helpers of a CLI and its sub-agents ask besides; not without end, else who breaks its own
     * thread at each request has no limit at all. */
    if (proxy->stopped_by == NULL && !request->is_main && limits->max_turns != 0 &&
        proxy->totals.aside - proxy->aside_before >=
            ASIDE_FREE + limits->max_turns * ASIDE_PER_TURN)
        proxy->stopped_by = "max_turns";
    if (proxy->stopped_by == NULL)
        proxy->stopped_by = tokens_used_up(proxy);
    request->reserved_microusd = has_price ? may_cost(&price, request, body) : 0;
    if (proxy->stopped_by == NULL && limits->max_microusd != 0 &&
        (!has_price ||
         proxy->totals.microusd + proxy->totals.reserved_microusd + request->reserved_microusd >
             limits->max_microusd))
        proxy->stopped_by = has_price ? "max_usd" : "price_unknown";
    return proxy->stopped_by;
}

void proxy_budget_begin(struct proxy_request *request, const json_t *body)
{
    struct proxy *proxy = request->proxy;
    const json_t *list = json_object_get(body, list_key(request->path.api));

    request->forwarded = true;
    proxy->totals.forwarded++;
    proxy->totals.in_flight++;
    proxy->totals.reserved_microusd += request->reserved_microusd;
    if (request->path.counts_tokens)
        return;
    if (!request->is_main) {
        proxy->totals.aside++;
        return;
    }
    proxy->totals.turns++;
    json_decref(proxy->thread);
    proxy->thread = bare(list);
}

void proxy_budget_settle(struct proxy_request *request)
{
    struct proxy *proxy = request->proxy;
    const char *model = request->model;
    struct price price;

    if (!request->forwarded || request->settled)
        return;
    request->settled = true;
    proxy->totals.in_flight--;
    proxy->totals.reserved_microusd -= request->reserved_microusd;
    if (!request->usage.usage.known)
        return;
    usage_add(&proxy->totals.usage, &request->usage.usage);
    if (price_find(models_prices(proxy->models), model, &price))
        proxy->totals.microusd += price_microusd(&price, &request->usage.usage);
    else
        proxy->totals.price_missing = true;
    if (request->usage.model != NULL) {
        free(proxy->model);
        proxy->model = str_dup(request->usage.model);
    }
}
