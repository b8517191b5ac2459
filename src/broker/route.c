#include "broker/route.h"

#include "base/mem.h"
#include "base/str.h"

const char *const vendor_key_names[] = {
    "ANTHROPIC_API_KEY",    "ANTHROPIC_AUTH_TOKEN",     "OPENAI_API_KEY",
    "GEMINI_API_KEY",       "GOOGLE_API_KEY",           "OPENROUTER_API_KEY",
    "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", NULL,
};

bool is_vendor_key(const char *name)
{
    for (const char *const *key = vendor_key_names; *key != NULL; key++) {
        if (str_equal(*key, name))
            return true;
    }
    return false;
}

/* What the vendor of a wire format has. */
static const struct vendor {
    const char *name, *base_url, *key;
} vendors[MODEL_API_COUNT] = {
    [MODEL_ANTHROPIC] = {"anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"},
    [MODEL_OPENAI_RESPONSES] = {"openai-responses", "https://api.openai.com/v1", "OPENAI_API_KEY"},
    [MODEL_OPENAI_CHAT] = {"openai-chat", "https://api.openai.com/v1", "OPENAI_API_KEY"},
    [MODEL_GEMINI] = {"gemini", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY"},
    [MODEL_BEDROCK] = {"bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com",
                       "AWS_BEARER_TOKEN_BEDROCK"},
};

const char *model_api_name(enum model_api api)
{
    return vendors[api].name;
}

bool model_api_parse(const char *name, enum model_api *ret)
{
    for (size_t i = 0; i < MODEL_API_COUNT; i++) {
        if (str_equal(vendors[i].name, name)) {
            *ret = (enum model_api)i;
            return true;
        }
    }
    return false;
}

static void route_done(struct route *route)
{
    free(route->name);
    free(route->base_url);
    free(route->key);
    *route = (struct route){0};
}

void routes_done(struct routes *routes)
{
    for (size_t i = 0; i < routes->count; i++)
        route_done(&routes->items[i]);
    free(routes->items);
    *routes = (struct routes){0};
}

static struct route *find(const struct routes *routes, const char *name)
{
    for (size_t i = 0; i < routes->count; i++) {
        if (str_equal(routes->items[i].name, name))
            return &routes->items[i];
    }
    return NULL;
}

const struct route *routes_find(const struct routes *routes, const char *name)
{
    return find(routes, name);
}

static struct route *place_for(struct routes *routes, const char *name)
{
    struct route *route = find(routes, name);

    if (route != NULL) {
        route_done(route);
        return route;
    }
    routes->items = mem_resize(routes->items, routes->count + 1, sizeof(*routes->items));
    return &routes->items[routes->count++];
}

static bool is_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return name != NULL && name[0] != '\0' && strlen(name) <= ROUTE_NAME_BYTES_MAX &&
           name[strspn(name, letters)] == '\0';
}

/* http or https, a host, maybe a port and a path; nothing that two parsers could read two ways. */
static bool is_base_url(const char *url)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-:/[]";
    const char *rest = str_starts(url, "https://")  ? url + strlen("https://")
                       : str_starts(url, "http://") ? url + strlen("http://")
                                                    : NULL;

    return rest != NULL && rest[0] != '\0' && rest[0] != '/' &&
           rest[strspn(rest, letters)] == '\0' && strstr(rest, "//") == NULL &&
           strstr(rest, "..") == NULL && !str_ends(rest, "/");
}

static char *without_last_slash(const char *url)
{
    size_t length = strlen(url);

    return str_ndup(url, length - (length > 0 && url[length - 1] == '/'));
}

/* As variables of the environment are called; not what a key itself looks like. */
static bool is_key_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    return is_name(name) && !(name[0] >= '0' && name[0] <= '9') &&
           name[strspn(name, letters)] == '\0';
}

/* A mistyped base_url must not send what is asked to the vendor. */
static int check_keys(const json_t *item, const char *name, struct error **err)
{
    static const char *const known[] = {"name", "api", "base_url", "key"};
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)item, key, value) {
        bool is_known = false;

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
            is_known |= str_equal(key, known[i]);
        if (!is_known)
            return error_set(err, ERROR_USER,
                             "routes.%s.%s: unknown key; name, api, base_url and key are known",
                             name, key);
    }
    return 0;
}

static int read_route(const json_t *item, struct route *ret, struct error **err)
{
    const char *name = json_get_text(item, "name"), *api = json_get_text(item, "api");
    const json_t *key = json_object_get(item, "key");

    if (!is_name(name))
        return error_set(err, ERROR_USER,
                         "routes: a name of letters, digits, '.', '_' and '-' expected, at most %d",
                         ROUTE_NAME_BYTES_MAX);
    if (api == NULL || !model_api_parse(api, &ret->api))
        return error_set(
            err, ERROR_USER,
            "routes.%s.api: %s%s%s; anthropic, openai-responses, openai-chat, gemini or "
            "bedrock expected",
            name, api == NULL ? "nothing" : "'", api == NULL ? "" : api, api == NULL ? "" : "'");
    int r = check_keys(item, name, err);

    if (r < 0)
        return r;
    const struct vendor *vendor = &vendors[ret->api];
    const char *url = json_get_text(item, "base_url");

    ret->base_url = without_last_slash(url == NULL ? vendor->base_url : url);
    if (!is_base_url(ret->base_url))
        return error_set(
            err, ERROR_USER,
            "routes.%s.base_url: '%s'; http:// or https://, a host, and no user, query "
            "or fragment expected",
            name, ret->base_url);
    ret->name = str_dup(name);
    if (key == NULL)
        ret->key = str_dup(vendor->key);
    else if (json_is_string(key))
        ret->key = str_dup(json_string_value(key));
    return ret->key == NULL || is_key_name(ret->key)
               ? 0
               : error_set(
                     err, ERROR_USER,
                     "routes.%s.key: the name of a key expected, as ANTHROPIC_API_KEY; the key "
                     "itself belongs in keys.yaml",
                     name);
}

int routes_add(struct routes *routes, const json_t *list, struct error **err)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        scoped(route_done) struct route route = {0};
        int r = read_route(item, &route, err);

        if (r < 0)
            return r;
        if (routes->count >= ROUTES_MAX && find(routes, route.name) == NULL)
            return error_set(err, ERROR_USER, "more than %d routes", ROUTES_MAX);
        *place_for(routes, route.name) = route;
        route = (struct route){0};
    }
    return 0;
}

void routes_add_defaults(struct routes *routes)
{
    for (size_t i = 0; i < MODEL_API_COUNT; i++) {
        const struct vendor *vendor = &vendors[i];

        if (find(routes, vendor->name) != NULL || routes->count >= ROUTES_MAX)
            continue;
        *place_for(routes, vendor->name) = (struct route){
            .name = str_dup(vendor->name),
            .base_url = str_dup(vendor->base_url),
            .key = str_dup(vendor->key),
            .api = (enum model_api)i,
        };
    }
}

json_t *routes_to_json(const struct routes *routes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < routes->count; i++) {
        const struct route *route = &routes->items[i];
        json_t *item = json_object();

        json_put_text(item, "name", route->name);
        json_put_text(item, "api", model_api_name(route->api));
        json_put_text(item, "base_url", route->base_url);
        json_put(item, "key", json_text_or_null(route->key));
        json_push(list, item);
    }
    return list;
}
