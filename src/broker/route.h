#pragma once
/*
 * route: which model endpoint a request goes to: its wire format, its base URL, the name of its
 * key.
 *
 * Holds no secret: a key's name is not the key. Immutable once made. Depends on: base.
 * Limits: ROUTES_MAX.
 */

#include "base/error.h"
#include "base/json.h"

#define ROUTES_MAX 32
#define ROUTE_NAME_BYTES_MAX 64

/* Wire formats. A base URL is what the vendor's own clients take for one, without a last slash. */
enum model_api {
    MODEL_ANTHROPIC,        /* https://api.anthropic.com      + /v1/messages */
    MODEL_OPENAI_RESPONSES, /* https://api.openai.com/v1      + /responses */
    MODEL_OPENAI_CHAT,      /* https://api.openai.com/v1      + /chat/completions */
    MODEL_GEMINI,           /* https://generativelanguage...  + /v1beta/models/M:generateContent */
    MODEL_BEDROCK,          /* https://bedrock-runtime...     + /model/M/invoke */
    MODEL_API_COUNT,
};
const char *model_api_name(enum model_api api); /* "openai-chat" */
must_check bool model_api_parse(const char *name, enum model_api *ret) nonnull(1, 2);

struct route {
    char *name, *base_url;
    char *key; /* its name, as "ANTHROPIC_API_KEY"; NULL: the endpoint wants none */
    enum model_api api;
};

struct routes {
    struct route *items;
    size_t count;
};

/*
 * Adds what a list of {name, api, base_url, key} says; a route of the same name is replaced. A
 * base_url or key that is left out is the vendor's; a key that is null is none. ERROR_USER says
 * which route is wrong.
 */
must_check int routes_add(struct routes *routes, const json_t *list, struct error **err)
    nonnull(1, 2);
/* The route of each vendor, named after the wire format, unless there is one of that name. */
void routes_add_defaults(struct routes *routes) nonnull(1);
/* NULL when there is none. */
const struct route *routes_find(const struct routes *routes, const char *name) nonnull(1, 2);
json_t *routes_to_json(const struct routes *routes) nonnull(1); /* as routes_add() takes it */
void routes_done(struct routes *routes) nonnull(1);

/* What the environment calls the vendors' keys; NULL-terminated. No cell is ever given one. */
extern const char *const vendor_key_names[];
bool is_vendor_key(const char *name) nonnull(1);
