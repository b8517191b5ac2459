/* Whose a model is, and what it costs. */
#include "grade/judge.h"

#include "base/mem.h"
#include "base/str.h"

#define TOKENS_OF_PRICE 1000000.0
#define MICROUSD_OF_USD 1000000.0

/* What the models of a vendor begin with, which route serves them, and its model for judges. */
static const struct vendor {
    const char *route;
    const char *standard; /* NULL: of another row of this route */
    const char *prefixes[6];
} vendors[] = {
    {"anthropic", "claude-sonnet-5-5", {"claude", "anthropic."}},
    {"openai-responses", "gpt-6.1-terra", {"gpt-", "o1", "o3", "o4", "chatgpt"}},
    {"gemini", "gemini-3.8-flash", {"gemini"}},
};

void judge_route_done(struct judge_route *route)
{
    free(route->name);
    free(route->model);
    free(route->base_url);
    *route = (struct judge_route){0};
}

static const json_t *find_route(const json_t *facts, const char *name, size_t length)
{
    const json_t *item;
    size_t i;

    json_array_foreach (json_get_array(facts, "routes"), i, item) {
        const char *own = json_get_text(item, "name");

        if (own != NULL && strlen(own) == length && memcmp(own, name, length) == 0)
            return item;
    }
    return NULL;
}

static bool is_usable(const json_t *route)
{
    return route != NULL && json_get_bool(route, "has_key", false);
}

static const struct vendor *vendor_of(const char *model)
{
    for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(vendors[i].prefixes); j++) {
            const char *prefix = vendors[i].prefixes[j];

            if (prefix != NULL && str_starts(model, prefix))
                return &vendors[i];
        }
    }
    return NULL;
}

static int take_route(const json_t *route, const char *model, struct judge_route *ret,
                      struct error **err)
{
    const char *name = json_get_text(route, "name"), *api = json_get_text(route, "api");
    const char *base_url = json_get_text(route, "base_url");
    const char *key = json_get_text(route, "key");
    enum judge_api parsed;

    if (!is_usable(route))
        return error_set(err, ERROR_USER,
                         "the judge '%s' is asked by the route '%s', whose key %s is not set: set "
                         "it in the environment, .env or keys.yaml, or name another judge with "
                         "--judge-model",
                         model, name, key == NULL ? "" : key);
    if (api == NULL || !judge_api_parse(api, &parsed))
        return error_set(err, ERROR_USER, "the route '%s' speaks '%s', which judges do not", name,
                         api == NULL ? "" : api);
    *ret = (struct judge_route){
        .name = str_dup(name),
        .model = str_dup(model),
        .base_url = str_dup(base_url == NULL ? "" : base_url),
        .api = parsed,
    };
    return 0;
}

static int take_default(const json_t *facts, struct judge_route *ret, struct error **err)
{
    for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
        const json_t *route = find_route(facts, vendors[i].route, strlen(vendors[i].route));

        if (is_usable(route))
            return take_route(route, vendors[i].standard, ret, err);
    }
    return error_set(err, ERROR_USER,
                     "a judge is needed, and none is configured: set ANTHROPIC_API_KEY, "
                     "OPENAI_API_KEY or GEMINI_API_KEY, or name a judge with --judge-model or "
                     "'judge' in closedbook.yaml");
}

int judge_route_pick(const json_t *facts, const char *model, struct judge_route *ret,
                     struct error **err)
{
    const char *slash = model == NULL ? NULL : strchr(model, '/');
    const json_t *route = NULL;

    if (model == NULL)
        return take_default(facts, ret, err);
    if (slash != NULL)
        route = find_route(facts, model, (size_t)(slash - model));
    if (route != NULL)
        return take_route(route, slash + 1, ret, err);
    const struct vendor *vendor = vendor_of(model);

    if (vendor != NULL)
        route = find_route(facts, vendor->route, strlen(vendor->route));
    if (route == NULL)
        return error_set(err, ERROR_USER,
                         "no route is known for the judge '%s': name it as ROUTE/MODEL, with a "
                         "route of config.yaml",
                         model);
    /* As one cloud names the models of another vendor. */
    if (str_starts(model, "anthropic."))
        model += strlen("anthropic.");
    return take_route(route, model, ret, err);
}

/* --- prices ----------------------------------------------------------------------------------- */

static double part(const json_t *price, const char *key, uint64_t tokens)
{
    return json_get_real(price, key, 0) * (double)tokens / TOKENS_OF_PRICE;
}

/* Of the longest name that the model's begins with. */
static const json_t *price_of(const json_t *models, const char *model)
{
    const json_t *found = NULL;
    json_t *price;
    const char *name;
    size_t longest = 0;

    json_object_foreach ((json_t *)(uintptr_t)models, name, price) {
        if (strlen(name) > longest && str_starts(model, name)) {
            longest = strlen(name);
            found = price;
        }
    }
    return found;
}

bool judge_cost(const struct judge_prices *prices, const char *model,
                const struct judge_usage *usage, uint64_t *ret_microusd)
{
    const json_t *price = price_of(json_get_object(prices->json, "models"), model);

    if (price == NULL)
        return false;
    double usd = part(price, "input", usage->input) + part(price, "cache_read", usage->cache_read) +
                 part(price, "cache_write", usage->cache_write) +
                 part(price, "output", usage->output);

    *ret_microusd = (uint64_t)(usd * MICROUSD_OF_USD + 0.5);
    return true;
}
