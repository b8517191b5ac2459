/* opencode. All of its configuration is one variable; Claude models go by Anthropic's format. */
#include "agent/internal.h"
#include "base/mem.h"

#define KEY_ENV "CLOSEDBOOK_MODEL_KEY"

static const char *api(const struct task_public *task)
{
    return str_equal(api_of_model(task->agent.model), "anthropic") ? "anthropic" : "openai-chat";
}

static char *config(const struct task_public *task, const struct agent_place *place)
{
    bool is_anthropic = str_equal(api(task), "anthropic");
    scoped(mem_freep) char *url = str_format("%s/v1", place->base_url);
    scoped(json_freep) json_t *top = json_object();
    json_t *provider = json_object(), *named = json_object(), *options = json_object();
    json_t *models = json_object(), *model = json_object(), *limit = json_object();

    json_put_text(options, "baseURL", url);
    json_put_text(options, "apiKey", "{env:" KEY_ENV "}");
    if (!is_anthropic)
        json_put_text(named, "npm", "@ai-sdk/openai-compatible");
    json_put(named, "options", options);
    json_put_int(limit, "context", 200000);
    json_put_int(limit, "output", 32000);
    json_put_text(model, "name", task->agent.model);
    json_put_bool(model, "tool_call", true);
    json_put(model, "limit", limit);
    json_put(models, task->agent.model, model);
    json_put(named, "models", models);
    json_put(provider, is_anthropic ? "anthropic" : "closedbook", named);
    json_put_bool(top, "autoupdate", false);
    json_put_text(top, "share", "disabled");
    json_put(top, "provider", provider);
    return turn_json(top);
}

int opencode_plan_turn(const struct task_public *task, const struct agent_place *place,
                       struct agent_turn *ret, struct error **err)
{
    scoped(mem_freep) char *prompt = NULL;
    struct agent_turn turn = {0};
    int r = turn_needs_model(task, "opencode", err);

    if (r == 0)
        r = turn_prompt(task, place, &prompt, err);
    if (r < 0)
        return r;

    scoped(mem_freep) char *settings = config(task, place);
    scoped(mem_freep) char *model = str_format(
        "%s/%s", str_equal(api(task), "anthropic") ? "anthropic" : "closedbook", task->agent.model);
    static const char *const words[] = {"run", "--format", "json", "--auto", NULL};

    turn_begin(place, false, &turn);
    turn_words(&turn, words);
    turn_option(&turn, "-m", model);
    turn_option(&turn, "-s", place->session);
    for (size_t i = 0; i < task->agent.extra_args.count; i++)
        str_list_add(&turn.argv, task->agent.extra_args.items[i]);
    str_list_add(&turn.argv, prompt);
    turn_env(&turn, "OPENCODE_CONFIG_CONTENT", settings);
    turn_env(&turn, "OPENCODE_DISABLE_MODELS_FETCH", "1");
    turn_env(&turn, "OPENCODE_DISABLE_AUTOUPDATE", "1");
    turn_env(&turn, KEY_ENV, place->key);
    turn_end(task, &turn);
    *ret = turn;
    return 0;
}

const struct agent_program opencode_program = {
    .package = "opencode-ai",
    .bin = "opencode",
    .stream = STREAM_OPENCODE,
    .api = api,
};
