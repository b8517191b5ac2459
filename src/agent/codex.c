/*
 * Codex. It ignores OPENAI_BASE_URL, so the broker is a provider of its own; its sandbox is off, as
 * the cell is one and what it denies would not be in its events.
 */
#include "agent/internal.h"
#include "base/mem.h"

#define KEY_ENV "CLOSEDBOOK_MODEL_KEY"

static const char *api(const struct task_public *task)
{
    (void)task;
    return "openai-responses";
}

int codex_plan_turn(const struct task_public *task, const struct agent_place *place,
                    struct agent_turn *ret, struct error **err)
{
    scoped(mem_freep) char *prompt = NULL;
    scoped(mem_freep) char *provider = str_format(
        "model_providers.closedbook={name=\"closedbook\",base_url=\"%s/v1\",env_key=\"" KEY_ENV
        "\",wire_api=\"responses\"}",
        place->base_url);
    static const char *const before[] = {"--json", "--skip-git-repo-check",
                                         "--dangerously-bypass-approvals-and-sandbox", NULL};
    static const char *const after[] = {
        "-c", "model_provider=\"closedbook\"", "-c", "analytics.enabled=false", "--disable",
        "plugins", "--disable", "apps",
        /* Tools that the broker refuses: agents of its own, and the search of the endpoint. */
        "--disable", "multi_agent", "-c", "web_search=\"disabled\"", NULL};
    struct agent_turn turn = {0};
    int r = turn_needs_model(task, "codex", err);

    if (r == 0)
        r = turn_prompt(task, place, &prompt, err);
    if (r < 0)
        return r;
    turn_begin(place, false, &turn);
    str_list_add(&turn.argv, "exec");
    if (place->session != NULL)
        str_list_add(&turn.argv, "resume");
    turn_words(&turn, before);
    turn_option(&turn, "-m", task->agent.model);
    turn_words(&turn, after);
    turn_option(&turn, "-c", provider);
    for (size_t i = 0; i < task->agent.extra_args.count; i++)
        str_list_add(&turn.argv, task->agent.extra_args.items[i]);
    if (place->session != NULL)
        str_list_add(&turn.argv, place->session);
    str_list_add(&turn.argv, prompt);
    turn_env(&turn, KEY_ENV, place->key);
    turn_end(task, &turn);
    *ret = turn;
    return 0;
}

const struct agent_program codex_program = {
    .package = "@openai/codex",
    .bin = "codex",
    .stream = STREAM_CODEX,
    .api = api,
};
