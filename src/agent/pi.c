/* pi. Where its providers are stands in a file of its HOME. */
#include "agent/internal.h"
#include "base/mem.h"

static const struct provider {
    const char *api, *name, *key_env, *suffix;
} providers[] = {
    {"anthropic", "anthropic", "ANTHROPIC_API_KEY", ""},
    {"gemini", "google", "GEMINI_API_KEY", "/v1beta"},
    {"openai-responses", "openai", "OPENAI_API_KEY", "/v1"},
};

/* It speaks to OpenAI in the format of Responses. */
static const struct provider *provider_of(const struct task_public *task)
{
    const char *api = api_of_model(task->agent.model);

    for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
        if (str_equal(providers[i].api, api))
            return &providers[i];
    }
    return &providers[ARRAY_SIZE(providers) - 1];
}

static const char *api(const struct task_public *task)
{
    return provider_of(task)->api;
}

static char *models(const struct provider *provider, const char *base_url)
{
    scoped(mem_freep) char *url = str_format("%s%s", base_url, provider->suffix);
    scoped(json_freep) json_t *top = json_object();
    json_t *all = json_object(), *one = json_object();

    json_put_text(one, "baseUrl", url);
    json_put(all, provider->name, one);
    json_put(top, "providers", all);
    return turn_json(top);
}

int pi_plan_turn(const struct task_public *task, const struct agent_place *place,
                 struct agent_turn *ret, struct error **err)
{
    static const char *const words[] = {"--mode", "json", "-p", "--offline", NULL};
    const struct task_agent *agent = &task->agent;
    const struct provider *provider = provider_of(task);
    scoped(mem_freep) char *prompt = NULL;
    struct agent_turn turn = {0};
    int r = turn_needs_model(task, "pi", err);

    if (r == 0)
        r = turn_prompt(task, place, &prompt, err);
    if (r < 0)
        return r;
    turn_begin(place, true, &turn);
    turn_words(&turn, words);
    turn_option(&turn, "--provider", provider->name);
    turn_option(&turn, "--model", agent->model);
    turn_option_list(&turn, "--tools", &agent->allowed_tools);
    turn_option(&turn, agent->system_prompt_replaces ? "--system-prompt" : "--append-system-prompt",
                agent->system_prompt);
    turn_option(&turn, "--session", place->session);
    for (size_t i = 0; i < agent->extra_args.count; i++)
        str_list_add(&turn.argv, agent->extra_args.items[i]);
    str_list_add(&turn.argv, prompt);
    turn_env(&turn, provider->key_env, place->key);
    turn_file(&turn, ".pi/agent/models.json", models(provider, place->base_url));
    turn_end(task, &turn);
    *ret = turn;
    return 0;
}

const struct agent_program pi_program = {
    .package = "@mariozechner/pi-coding-agent",
    .bin = "pi",
    .stream = STREAM_PI,
    .api = api,
};
