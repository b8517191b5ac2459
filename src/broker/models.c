#include "broker/models.h"

#include <sys/random.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/upstream.h"

#define SETUP_BYTES_MAX ((size_t)8 << 20)
#define TIMEOUT_MAX_MS (UINT64_C(24) * 3600 * 1000)

struct models {
    struct keys keys;
    struct routes routes;
    struct upstream *upstream;
    json_t *policy, *prices; /* NULL: none */
};

/* --- life ------------------------------------------------------------------------------------- */

static void models_freep(struct models **models)
{
    models_free(*models);
}

void models_free(struct models *models)
{
    if (models == NULL)
        return;
    upstream_free(models->upstream);
    routes_done(&models->routes);
    keys_done(&models->keys);
    json_decref(models->policy);
    json_decref(models->prices);
    free(models);
}

/* The environment comes before files, the nearer file before the farther one. */
static int read_keys(struct keys *keys, const struct models_sources *sources, struct error **err)
{
    int r = keys_read(keys, KEYS_ENV, "the environment", sources->env_keys_fd, err);

    if (r == 0)
        r = keys_read(keys, KEYS_ENV, ".env", sources->dotenv_fd, err);
    return r < 0 ? r : keys_read(keys, KEYS_YAML, "keys.yaml", sources->keys_yaml_fd, err);
}

static bool needs_tls(const struct routes *routes)
{
    for (size_t i = 0; i < routes->count; i++) {
        if (str_starts(routes->items[i].base_url, "https:"))
            return true;
    }
    return false;
}

static int read_json(int fd, const char *name, size_t max_bytes, json_t **ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = fs_read_fd(fd, name, max_bytes, &text, err);

    return r < 0 ? r : json_parse(name, buf_text(&text), text.size_bytes, ret, err);
}

int models_new(const struct models_sources *sources, struct models **ret, struct error **err)
{
    scoped(models_freep) struct models *models = mem_new(1, sizeof(*models));
    scoped(json_freep) json_t *setup = NULL;
    struct upstream_options options = {.keys = &models->keys};
    int r = read_json(sources->setup_fd, "the setup", SETUP_BYTES_MAX, &setup, err);

    if (r == 0 && json_get_array(setup, "routes") == NULL)
        r = error_set(err, ERROR_BUG, "the setup of the broker has no routes");
    if (r == 0)
        r = routes_add(&models->routes, json_get_array(setup, "routes"), err);
    if (r == 0)
        r = read_keys(&models->keys, sources, err);
    if (r < 0)
        return r;
    models->policy = json_incref(json_get_object(setup, "policy"));
    models->prices = json_incref(json_get_object(setup, "prices"));
    options.ca_file = json_get_text(setup, "ca_file");
    options.proxy = json_get_text(setup, "proxy");
    options.needs_tls = needs_tls(&models->routes);
    if (getrandom(&options.seed, sizeof(options.seed), 0) != (ssize_t)sizeof(options.seed))
        options.seed = clock_ns();
    r = upstream_new(&options, &models->upstream, err);
    if (r < 0)
        return r;
    *ret = take(models);
    return 0;
}

static uint16_t port_of(const char *base_url)
{
    bool is_tls = str_starts(base_url, "https:");
    const char *host = strstr(base_url, "://") + strlen("://");
    size_t length = strcspn(host, "/");
    scoped(mem_freep) char *authority = str_ndup(host, length);
    const char *colon = strrchr(authority, ':');
    uint64_t port = 0;

    /* Not one inside of [..]. */
    if (colon != NULL && strchr(colon, ']') == NULL && str_to_u64(colon + 1, &port) &&
        port <= UINT16_MAX)
        return (uint16_t)port;
    return is_tls ? 443 : 80;
}

size_t models_ports(const struct models *models, uint16_t ret[static MODELS_PORTS_MAX])
{
    for (size_t i = 0; i < models->routes.count; i++)
        ret[i] = port_of(models->routes.items[i].base_url);
    return models->routes.count;
}

struct upstream *models_upstream(struct models *models)
{
    return models->upstream;
}

const struct route *models_route(const struct models *models, const char *name)
{
    return routes_find(&models->routes, name);
}

const json_t *models_policy(const struct models *models)
{
    return models->policy;
}

const json_t *models_prices(const struct models *models)
{
    return models->prices;
}

int models_fd(const struct models *models)
{
    return upstream_fd(models->upstream);
}

int models_timeout_ms(const struct models *models)
{
    return upstream_timeout_ms(models->upstream);
}

void models_run(struct models *models)
{
    upstream_run(models->upstream);
}

json_t *models_facts(const struct models *models)
{
    json_t *facts = json_object(), *routes = routes_to_json(&models->routes), *item;
    size_t i;

    json_array_foreach (routes, i, item) {
        const char *key = json_get_text(item, "key");

        json_put_bool(item, "has_key", key == NULL || keys_get(&models->keys, key) != NULL);
    }
    json_put(facts, "routes", routes);
    return facts;
}

int models_seal(const json_t *value, int *ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, value);
    return fs_memfd("answer", buf_text(&text), text.size_bytes, ret, err);
}

/* --- questions -------------------------------------------------------------------------------- */

struct ask {
    struct upstream_exchange *exchange;
    struct ask_end end;
};

static json_t *attempts_json(const struct upstream_answer *answer)
{
    json_t *list = json_array();

    for (size_t i = 0; i < answer->attempt_count; i++) {
        const struct upstream_attempt *attempt = &answer->attempts[i];
        json_t *item = json_object();

        json_put_int(item, "status", attempt->status);
        json_put_int(item, "duration_ms", (int64_t)attempt->duration_ms);
        json_put_int(item, "wait_ms", (int64_t)attempt->wait_ms);
        json_put(item, "error", json_text(attempt->error, strlen(attempt->error)));
        json_push(list, item);
    }
    return list;
}

static void end_question(void *context, const struct upstream_answer *answer)
{
    struct ask *ask = context;
    scoped(json_freep) json_t *text = json_object();
    json_t *headers = json_array();

    for (size_t i = 0; i < answer->headers.count; i++)
        json_push(headers, json_text(answer->headers.items[i], strlen(answer->headers.items[i])));
    json_put_text(text, "end", upstream_end_name(answer->end));
    json_put_int(text, "status", answer->status);
    json_put(text, "error", json_text(answer->error, strlen(answer->error)));
    json_put(text, "headers", headers);
    json_put(text, "body", json_text(buf_text(&answer->body), answer->body.size_bytes));
    json_put(text, "attempts", attempts_json(answer));
    ask->end.answered(ask->end.context, text);
    free(ask);
}

static void fill_request(const json_t *question, struct upstream_request *request)
{
    int64_t attempts = json_get_int(question, "attempts_max", 1);
    int64_t bytes = json_get_int(question, "answer_max_bytes", 1);
    int64_t timeout_ms = json_get_int(question, "timeout_ms", 1);

    request->method = "POST";
    request->path = json_get_text(question, "path");
    request->attempts_max =
        attempts < 1 ? 1 : (unsigned)size_min((size_t)attempts, UPSTREAM_ATTEMPTS_MAX);
    request->answer_max_bytes = bytes < 1 ? 1 : size_min((size_t)bytes, BROKER_ANSWER_BYTES_MAX);
    request->deadline_ns =
        clock_ns() +
        (timeout_ms < 1 ? 1 : size_min((size_t)timeout_ms, TIMEOUT_MAX_MS)) * UINT64_C(1000000);
}

static int start_question(struct models *models, const json_t *question, struct ask *ask,
                          struct error **err)
{
    scoped(str_list_done) struct str_list headers = {0};
    scoped(buf_done) struct buf body = {0};
    const char *name = json_get_text(question, "route");
    const json_t *lines = json_get_array(question, "headers"), *line;
    struct upstream_request request = {
        .route = name == NULL ? NULL : routes_find(&models->routes, name),
        .headers = &headers,
        .recording = ask->end.recording,
        .on_end = end_question,
        .context = ask,
    };
    size_t i;

    if (request.route == NULL)
        return error_set(err, ERROR_USER, "there is no route '%s' (config.yaml, routes)",
                         name == NULL ? "" : name);
    fill_request(question, &request);
    if (request.path == NULL || json_object_get(question, "body") == NULL)
        return error_set(err, ERROR_BUG, "a question has no path or no body");
    json_array_foreach (lines, i, line) {
        if (json_is_string(line))
            str_list_add(&headers, json_string_value(line));
    }
    json_write_line(&body, json_object_get(question, "body"));
    request.body = buf_text(&body);
    request.body_size = body.size_bytes;
    return upstream_start(models->upstream, &request, &ask->exchange, err);
}

int models_ask(struct models *models, int fd, const struct ask_end *end, struct ask **ret,
               struct error **err)
{
    scoped(json_freep) json_t *question = NULL;
    int r = read_json(fd, "a question", BROKER_QUESTION_BYTES_MAX, &question, err);

    if (r < 0)
        return r;
    struct ask *ask = mem_new(1, sizeof(*ask));

    ask->end = *end;
    r = start_question(models, question, ask, err);
    if (r < 0) {
        free(ask);
        return r;
    }
    *ret = ask;
    return 0;
}

void models_cancel(struct ask *ask)
{
    upstream_cancel(ask->exchange);
    free(ask);
}
