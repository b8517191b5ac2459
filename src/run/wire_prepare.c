/* The broker of a session that speaks with model endpoints for agents. */
#include "run/wire.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/keys.h"
#include "broker/route.h"
#include "run/replay.h"
#include "run/session.h"
#include "task/task_public.h"

#define NAMES_MAX (KEYS_MAX + ROUTES_MAX + 1)
#define TABLE_BYTES_MAX ((size_t)1 << 20)

static bool is_needed(const struct task_set *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct task_public *public_half = NULL;
        const struct task_private *private_half = NULL;

        task_split(tasks->tasks[i], &public_half, &private_half);
        if (public_half->network_broker && task_skip_reason(tasks->tasks[i]) == NULL)
            return true;
    }
    return false;
}

static int open_file(const struct session *session, const char *path)
{
    int fd = path == NULL ? -1 : session->reader.open(session->reader.context, path, 0);

    return fd < 0 ? -1 : fd;
}

/* In share/ of the installation that this program belongs to, or of its source tree's build. */
static int load_table(const struct session *session, const char *name, json_t **ret,
                      struct error **err)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length <= 0)
        return error_set(err, ERROR_SYSTEM, "cannot read /proc/self/exe");
    self[length] = '\0';
    scoped(mem_freep) char *folder = path_dir(self);
    scoped(mem_freep) char *installed =
        str_format("%s/../share/closedbook/models/%s", folder, name);
    scoped(mem_freep) char *built = str_format("%s/../../share/models/%s", folder, name);
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = open_file(session, installed);

    if (fd < 0)
        fd = open_file(session, built);
    if (fd < 0)
        return error_set(err, ERROR_SYSTEM,
                         "share/closedbook/models/%s was not found near '%s'; install closedbook "
                         "whole",
                         name, self);
    int r = fs_read_fd(fd, name, TABLE_BYTES_MAX, &text, err);

    return r < 0 ? r : json_parse(name, buf_text(&text), text.size_bytes, ret, err);
}

/* The vendors' names and those of the configuration. */
static void name_keys(const json_t *routes, const char *names[static NAMES_MAX])
{
    size_t count = 0, i;
    const json_t *route;

    for (; vendor_key_names[count] != NULL && count < KEYS_MAX; count++)
        names[count] = vendor_key_names[count];
    json_array_foreach (routes, i, route) {
        const char *name = json_get_text(route, "key");

        if (name != NULL && count + 1 < NAMES_MAX)
            names[count++] = name;
    }
    names[count] = NULL;
}

static int make_setup(const struct session *session, const json_t *config, json_t **ret,
                      struct error **err)
{
    scoped(routes_done) struct routes routes = {0};
    json_t *policy = NULL, *prices = NULL;
    int r = config == NULL ? 0 : routes_add(&routes, config, err);

    if (r == 0)
        r = load_table(session, "policy.json", &policy, err);
    if (r == 0)
        r = load_table(session, "prices.json", &prices, err);
    if (r < 0) {
        json_decref(policy);
        return r;
    }
    if (!replay_answers(session->replay))
        routes_add_defaults(&routes);
    *ret = json_object();
    json_put(*ret, "routes", routes_to_json(&routes));
    json_put(*ret, "policy", policy);
    json_put(*ret, "prices", prices);
    return 0;
}

static int start(struct session *session, const struct wire_setup *setup, struct error **err)
{
    const char *names[NAMES_MAX];
    scoped(mem_freep) char *folder =
        setup->user_config == NULL ? NULL : path_dir(setup->user_config);
    scoped(mem_freep) char *yaml = folder == NULL ? NULL : path_join(folder, "keys.yaml");
    scoped(fd_closep) int dotenv_fd = open_file(session, ".env");
    scoped(fd_closep) int yaml_fd = open_file(session, yaml);
    scoped(json_freep) json_t *json = NULL;
    scoped(json_freep) json_t *recorded = NULL;
    bool answers = replay_answers(session->replay);
    int r = answers ? replay_routes(session->replay, REPLAY_AGENT, &recorded, err) : 0;

    if (r == 0)
        r = make_setup(session, answers ? recorded : setup->routes, &json, err);
    name_keys(setup->routes, names);
    if (r == 0)
        r = session_env_keys(session, names, err);
    if (r < 0)
        return r;
    const struct broker_options options = {
        .program = session->broker_program,
        .setup = json,
        .env_keys_fd = answers ? -1 : session->env_keys_fd,
        .dotenv_fd = answers ? -1 : dotenv_fd,
        .keys_yaml_fd = answers ? -1 : yaml_fd,
    };

    return broker_start_upstream(&options, &session->broker, err);
}

/* The route of this name that the configuration has, NULL: it has none. */
static const json_t *configured(const json_t *routes, const char *name)
{
    const json_t *route;
    size_t i;

    json_array_foreach (routes, i, route) {
        if (str_equal(json_get_text(route, "name"), name))
            return route;
    }
    return NULL;
}

/*
 * Some endpoint has its key, and each that the configuration names has: else what was meant for
 * one would go to the next.
 */
static int check(struct session *session, const json_t *routes, struct error **err)
{
    bool any = false;
    scoped(json_freep) json_t *facts = NULL;
    scoped(fd_closep) int connection = -1;
    int r = broker_connect(session->broker, &connection, err);
    json_t *route;
    size_t i;

    if (r == 0)
        r = broker_facts(connection, &facts, err);
    if (r < 0 || replay_answers(session->replay))
        return r;
    replay_note(session->replay, REPLAY_AGENT, facts);
    json_array_foreach (json_get_array(facts, "routes"), i, route) {
        const char *name = json_get_text(route, "name");

        if (json_get_bool(route, "has_key", false))
            any = true;
        else if (configured(routes, name) != NULL)
            return error_set(err, ERROR_USER,
                             "the route '%s' of config.yaml has no key here: set it in the "
                             "environment or in keys.yaml, or take the route out",
                             name);
    }
    if (any)
        return 0;
    return error_set(err, ERROR_USER,
                     "no model endpoint has its key: set ANTHROPIC_API_KEY, OPENAI_API_KEY or "
                     "GEMINI_API_KEY, or name a route in config.yaml and its key in keys.yaml");
}

static bool names_the_same(const char *assignment, const char *name)
{
    size_t length = strlen(name);

    return strncmp(assignment, name, length) == 0 && assignment[length] == '=';
}

/* What opens an endpoint is never an agent's, whatever it is called. */
static int check_env(const struct task *task, const json_t *routes, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const json_t *route;
    size_t i;

    task_split(task, &public_half, &private_half);
    json_array_foreach (routes, i, route) {
        const char *key = json_get_text(route, "key");

        for (size_t j = 0; key != NULL && j < public_half->agent.env.count; j++) {
            if (names_the_same(public_half->agent.env.items[j], key))
                return error_set(err, ERROR_USER,
                                 "task '%s': agent.env: '%s' is the key of the route '%s' of "
                                 "config.yaml, which is never given to an agent",
                                 task_id(task), key, json_get_text(route, "name"));
        }
    }
    return 0;
}

int wire_prepare(struct session *session, const struct task_set *tasks,
                 const struct wire_setup *setup, struct error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tasks->count; i++)
        r = check_env(tasks->tasks[i], setup->routes, err);
    if (r < 0 || session->broker != NULL || !is_needed(tasks))
        return r;
    r = start(session, setup, err);
    if (r == 0)
        r = check(session, setup->routes, err);
    return r < 0 ? error_wrap(err, r, "network: broker") : 0;
}
