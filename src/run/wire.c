#include "run/wire.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/call_frame.h"
#include "broker/route.h"
#include "run/mocks.h"
#include "task/task_private.h"

#define LOG_NAME "wire.jsonl"

static const struct task_public *public_of(const struct trial_job *job)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    return public_half;
}

bool wire_is_on(const struct trial_job *job)
{
    return job->broker_fd >= 0 && public_of(job)->network_broker;
}

int wire_fill_cell(const struct trial_job *job, struct cell_spec *spec, struct error **err)
{
    if (!wire_is_on(job))
        return 0;
    if (monitor_facts(job->monitor)->driver != CELL_NATIVE)
        return error_set(err, ERROR_SYSTEM,
                         "network: broker needs a cell with namespaces, and this machine has tier "
                         "%s",
                         cell_tier_name(monitor_facts(job->monitor)->tier));
    for (size_t i = 0; i < spec->mount_count; i++) {
        if (str_equal(spec->mounts[i].target, CALL_PROGRAM_PATH))
            return 0; /* recorded programs brought it */
    }
    if (spec->mount_count >= CELL_MOUNTS_MAX)
        return error_set(err, ERROR_LIMIT, "no room for the listener in the agent's cell");
    spec->mounts[spec->mount_count++] =
        (struct cell_mount){.fd = job->mock_fd, .target = CALL_PROGRAM_PATH};
    return 0;
}

void wire_env(const struct trial_job *job, const char *key, struct str_list *env)
{
    static const char *const urls[] = {
        "CLOSEDBOOK_MODEL_URL=" WIRE_URL, "ANTHROPIC_BASE_URL=" WIRE_URL,
        "OPENAI_BASE_URL=" WIRE_URL "/v1", "GOOGLE_GEMINI_BASE_URL=" WIRE_URL};
    static const char *const keys[] = {"CLOSEDBOOK_MODEL_KEY", "ANTHROPIC_API_KEY",
                                       "OPENAI_API_KEY", "GEMINI_API_KEY"};
    struct str_list additions = {0}, merged = {0};

    for (size_t i = 0; i < ARRAY_SIZE(urls); i++)
        str_list_add(&additions, urls[i]);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        str_list_add_take(&additions, str_format("%s=%s", keys[i], key));
    str_list_add_take(&additions, str_format("CLOSEDBOOK_MODEL=%s", public_of(job)->agent.model));
    agent_env_merge(env, &additions, &merged);
    str_list_done(&additions);
    str_list_done(env);
    *env = merged;
}

/* Every route that has its key: the agent's client says by its path which format it speaks. */
static int usable_routes(const struct trial_job *job, json_t **ret, struct error **err)
{
    scoped(json_freep) json_t *facts = NULL;
    int r = broker_facts(job->broker_fd, &facts, err);

    if (r < 0)
        return r;
    json_t *names = json_array(), *route;
    size_t i;

    json_array_foreach (json_get_array(facts, "routes"), i, route) {
        if (json_get_bool(route, "has_key", false))
            json_push(names, json_incref(json_object_get(route, "name")));
    }
    *ret = names;
    return 0;
}

static json_t *spec_of(const struct trial_job *job, const char *key, json_t *routes)
{
    const struct task_public *half = public_of(job);
    json_t *spec = json_object(), *models = json_array();

    json_push(models, json_text(half->agent.model, strlen(half->agent.model)));
    json_put(spec, "routes", routes);
    json_put(spec, "models", models);
    json_put_text(spec, "placeholder", key);
    json_put_int(spec, "max_turns", (int64_t)half->limits.max_turns);
    json_put_int(spec, "max_input_tokens", (int64_t)half->limits.max_input_tokens);
    json_put_int(spec, "max_output_tokens", (int64_t)half->limits.max_output_tokens);
    json_put_int(spec, "max_total_tokens", (int64_t)half->limits.max_total_tokens);
    json_put_int(spec, "max_microusd", (int64_t)half->limits.max_microusd);
    json_put_bool(spec, "count_cached_input", half->limits.count_cached_input);
    json_put_bool(spec, "count_cache_creation", half->limits.count_cache_creation);
    return spec;
}

int wire_open(const struct trial_job *job, struct cell *cell, const char *key, struct error **err)
{
    scoped(json_freep) json_t *spec = NULL;
    scoped(fd_closep) int listener = -1;
    json_t *routes = NULL;

    if (!wire_is_on(job) || key == NULL)
        return 0;
    scoped(fd_closep) int log_fd =
        openat(job->dir_fd, LOG_NAME, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

    if (log_fd < 0)
        return error_errno(err, errno, "cannot make " LOG_NAME);
    int r = usable_routes(job, &routes, err);

    if (r < 0)
        return r;
    spec = spec_of(job, key, routes);
    r = mocks_listen_port(cell, WIRE_PORT, &listener, err);
    if (r < 0)
        return error_wrap(err, r, "network: broker");
    const struct broker_models models = {.spec = spec, .listener = listener, .log_fd = log_fd};

    return broker_models_open(job->broker_fd, &models, err);
}

int wire_next(const struct trial_job *job, const char *prompt, struct error **err)
{
    scoped(json_freep) json_t *sums = NULL;

    return wire_is_on(job) ? broker_models_next(job->broker_fd, prompt, &sums, err) : 0;
}

int wire_used(const struct trial_job *job, uint64_t *ret_tokens, bool *ret_stopped,
              struct error **err)
{
    static const char *const keys[] = {"input_tokens", "cache_read_tokens", "cache_write_tokens",
                                       "output_tokens"};
    scoped(json_freep) json_t *sums = NULL;

    *ret_tokens = 0;
    *ret_stopped = false;
    if (!wire_is_on(job))
        return 0;
    int r = broker_models_next(job->broker_fd, NULL, &sums, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        *ret_tokens += (uint64_t)json_get_int(json_get_object(sums, "usage"), keys[i], 0);
    *ret_stopped = json_get_text(sums, "stopped_by") != NULL;
    return 0;
}

static void note_attempts(struct trial_record *record, const json_t *result)
{
    int64_t refused = json_get_int(result, "refused", 0),
            unheard = json_get_int(result, "unheard", 0);

    if (refused + unheard == 0)
        return;
    str_list_add_take(&record->integrity_reasons,
                      str_format("attempt: the broker refused %lld requests to models and dropped "
                                 "%lld connections that sent none (" LOG_NAME ")",
                                 (long long)refused, (long long)unheard));
}

int wire_close(const struct trial_job *job, struct trial_record *record, struct error **err)
{
    scoped(json_freep) json_t *result = NULL;

    if (!wire_is_on(job))
        return 0;
    int r = broker_models_close(job->broker_fd, &result, err);

    if (r == 0)
        r = broker_recording_check(job->broker_fd, err);
    if (r < 0)
        return r;
    if (!json_get_bool(result, "recorded", false))
        return error_set(err, ERROR_SYSTEM,
                         LOG_NAME
                         " could not be written to its end, so what the agent asked models "
                         "is not known");
    const char *stopped_by = json_get_text(result, "stopped_by");

    if (str_equal(stopped_by, "price_unknown"))
        return error_set(err, ERROR_USER,
                         "run_limits.max_usd is set, and share/models/prices.json has no price of "
                         "the model '%s': add it, or take the limit out",
                         public_of(job)->agent.model);
    record->agent.turns = (unsigned)json_get_int(result, "turns", 0);
    note_attempts(record, result);
    /* A time limit that was reached later is what ended it. */
    bool timed_out =
        record->agent.stopped_by != NULL && str_ends(record->agent.stopped_by, "_timeout");

    if (stopped_by != NULL && !timed_out) {
        free(record->agent.stopped_by);
        record->agent.stopped_by = str_dup(stopped_by);
    }
    json_put_text(result, "source", "wire");
    json_decref(record->usage);
    record->usage = take(result);
    return 0;
}
