/* The three digests that --resume compares: SHA-256 of canonical JSON, without paths of the host.
 */
#include "base/hash.h"
#include "task/internal.h"

static void put_list(json_t *object, const char *key, const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_push(array, json_text(list->items[i], strlen(list->items[i])));
    json_put(object, key, array);
}

char *digest_text(const void *bytes, size_t size)
{
    struct sha256 digest = sha256_of(bytes, size);
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, text);
    return str_format("sha256:%s", text);
}

static char *digest_json(const json_t *value)
{
    scoped(buf_done) struct buf buf = {0};

    json_write_canonical(&buf, value);
    return digest_text(buf_text(&buf), buf.size_bytes);
}

static json_t *steps_json(const struct task_step *steps, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_t *item = json_object();

        json_put_text(item, "command", steps[i].command);
        json_put_int(item, "timeout_ms", (int64_t)steps[i].timeout_ms);
        json_put_bool(item, "fail_on_error", steps[i].fail_on_error);
        if (steps[i].in_agent)
            json_put_bool(item, "in_agent", true);
        json_push(array, item);
    }
    return array;
}

static json_t *simulation_json(const struct task_simulation *simulation)
{
    json_t *object = json_object();

    json_put(object, "persona", json_text_or_null(simulation->persona));
    json_put(object, "goal", json_text_or_null(simulation->goal));
    put_list(object, "constraints", &simulation->constraints);
    put_list(object, "script", &simulation->script);
    json_put_text(object, "stop_token", simulation->stop_token);
    json_put(object, "model", json_text_or_null(simulation->model));
    json_put_int(object, "max_turns", simulation->max_turns);
    json_put_int(object, "max_total_tokens", (int64_t)simulation->max_total_tokens);
    json_put_bool(object, "share_description", simulation->share_description);
    return object;
}

/* What the agent is given: the prompt's text and the sources as the files name them. */
static json_t *public_json(const struct build *build)
{
    const struct task_public *half = build->task->public_half;
    const struct task_private *secret = build->task->private_half;
    const struct node *sources = node_find(build->root, "sandbox.template_sources");
    const char *input = node_get_text(build->file, "input_dir");
    const char *mount = node_get_text(build->file, "input_mount");
    json_t *object = json_object();

    json_put(object, "prompt", json_text(half->prompt, strlen(half->prompt)));
    json_put(object, "sources", sources == NULL ? json_array() : node_to_json(sources));
    json_put(object, "input_dir", json_text_or_null(input));
    json_put(object, "input_mount", json_text_or_null(mount));
    put_list(object, "ignore_patterns", &half->ignore_patterns);
    if (half->mock_dirs.count > 0)
        put_list(object, "mock_path_dirs", &half->mock_dirs);
    if (half->mocks_sealed)
        json_put_text(object, "mocks", "sealed");
    if (secret->simulation != NULL)
        json_put(object, "simulation", simulation_json(secret->simulation));
    if (secret->pre_run_count > 0)
        json_put(object, "pre_run", steps_json(secret->pre_run, secret->pre_run_count));
    return object;
}

static json_t *graders_json(const struct build *build)
{
    static const char *const names[] = {"reference", "reference_dir"};
    const struct task_private *half = build->task->private_half;
    json_t *object = json_object(), *criteria = json_array();

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        const struct node *node = node_get(build->file, names[i]);

        json_put(object, names[i], node == NULL ? json_null() : node_to_json(node));
    }
    for (size_t i = 0; i < half->criterion_count; i++) {
        const struct criterion *criterion = &half->criteria[i];
        json_t *item = json_object();

        json_put_text(item, "type", criterion->type_name);
        json_put_real(item, "weight", criterion->weight);
        json_put_real(item, "pass_threshold", criterion->pass_threshold);
        json_put(item, "params", json_incref(criterion->params));
        if (criterion->armed) {
            json_put_bool(item, "stops_on_pass", criterion->stops_on_pass);
            json_put_int(item, "decide_within", (int64_t)criterion->decide_within);
        }
        if (criterion->suite_thresholds != NULL)
            json_put(item, "suite_thresholds", json_incref(criterion->suite_thresholds));
        json_push(criteria, item);
    }
    json_put(object, "criteria", criteria);
    if (half->stop_early_gate < 1)
        json_put_real(object, "stop_early_gate", half->stop_early_gate);
    if (half->stop_early_off)
        json_put_bool(object, "stop_early", false);
    put_list(object, "suite_variables", &half->suite_variables);
    if (half->record_cli != NULL)
        json_put(object, "record_cli", json_incref(half->record_cli));
    if (half->post_run_count > 0)
        json_put(object, "post_run", steps_json(half->post_run, half->post_run_count));
    return object;
}

static json_t *script_digest(const struct build *build)
{
    const char *script = build->task->public_half->agent.script;
    scoped(buf_done) struct buf buf = {0};
    scoped(mem_freep) char *wrong = NULL;

    if (script == NULL)
        return json_null();
    /* Past the cap or gone: staging will say so; here it is only another digest. */
    if (source_read(build->loader->reader, script, TASK_SCRIPT_BYTES_MAX, &buf, &wrong) < 0)
        return json_text_or_null(wrong);
    scoped(mem_freep) char *text = digest_text(buf_text(&buf), buf.size_bytes);

    return json_text_or_null(text);
}

static json_t *config_json(const struct build *build)
{
    const struct task_public *half = build->task->public_half;
    const struct node *agent = node_get(build->root, "agent");
    const struct node *driver = node_find(build->root, "sandbox.driver");
    json_t *object = json_object();

    json_put(object, "agent", json_text_or_null(node_get_text(agent, "type")));
    json_put(object, "model", json_text_or_null(half->agent.model));
    json_put(object, "script", script_digest(build));
    put_list(object, "command", &half->agent.command);
    put_list(object, "env", &half->agent.env);
    if (half->agent.plugin_count > 0)
        json_put(object, "plugins", node_to_json(node_get(agent, "plugins")));
    if (half->agent.plugin_ignore.count > 0)
        put_list(object, "plugin_ignore", &half->agent.plugin_ignore);
    for (const struct field *field = agent_block.fields; field->name != NULL; field++) {
        const struct node *value = node_get(agent, field->name);

        if (field->state == FIELD_CLI && task_agent_is_cli(half->agent.type) && value != NULL)
            json_put(object, field->name, node_to_json(value));
    }
    json_put_bool(object, "trust_self_reported", node_get_bool(agent, "trust_self_reported"));
    json_put(object, "run_limits", node_to_json(node_get(build->root, "run_limits")));
    json_put(object, "limits", node_to_json(node_find(build->root, "sandbox.limits")));
    json_put(object, "driver", json_text_or_null(driver->text));
    return object;
}

void build_digests(struct build *build)
{
    json_t *(*const makers[TASK_DIGEST_COUNT])(const struct build *) = {
        [TASK_DIGEST_PUBLIC] = public_json,
        [TASK_DIGEST_GRADERS] = graders_json,
        [TASK_DIGEST_CONFIG] = config_json,
    };

    for (size_t i = 0; i < TASK_DIGEST_COUNT; i++) {
        scoped(json_freep) json_t *value = makers[i](build);

        build->task->digests[i] = digest_json(value);
    }
}
