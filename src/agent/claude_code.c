/* Claude Code. It asks nothing: the cell is its sandbox. */
#include "agent/internal.h"
#include "base/mem.h"

static const char *api(const struct task_public *task)
{
    (void)task;
    return "anthropic";
}

static void add_options(const struct task_agent *agent, struct agent_turn *turn)
{
    turn_option(turn, "--model", agent->model);
    if (agent->permission_mode == NULL || str_equal(agent->permission_mode, "bypassPermissions"))
        str_list_add(&turn->argv, "--dangerously-skip-permissions");
    else
        turn_option(turn, "--permission-mode", agent->permission_mode);
    turn_option_list(turn, "--allowedTools", &agent->allowed_tools);
    turn_option_list(turn, "--disallowedTools", &agent->disallowed_tools);
    turn_option(turn, agent->system_prompt_replaces ? "--system-prompt" : "--append-system-prompt",
                agent->system_prompt);
    turn_option(turn, "--settings", agent->claude_settings);
    turn_option_list(turn, "--setting-sources", &agent->setting_sources);
}

int claude_code_plan_turn(const struct task_public *task, const struct agent_place *place,
                          struct agent_turn *ret, struct error **err)
{
    static const char *const words[] = {"--output-format", "stream-json", "--verbose", NULL};
    scoped(mem_freep) char *prompt = NULL;
    struct agent_turn turn = {0};
    int r = turn_prompt(task, place, &prompt, err);

    if (r < 0)
        return r;
    turn_begin(place, false, &turn);
    /* The prompt comes first: options that take lists would take it for one more item. */
    turn_option(&turn, "-p", prompt);
    turn_words(&turn, words);
    add_options(&task->agent, &turn);
    for (size_t i = 0; place->plugins != NULL && i < place->plugins->count; i++)
        turn_option(&turn, "--plugin-dir", place->plugins->items[i]);
    turn_option(&turn, "--resume", place->session);
    for (size_t i = 0; i < task->agent.extra_args.count; i++)
        str_list_add(&turn.argv, task->agent.extra_args.items[i]);
    turn_env(&turn, "ANTHROPIC_BASE_URL", place->base_url);
    turn_env(&turn, "ANTHROPIC_API_KEY", place->key);
    turn_env(&turn, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    /* The broker tries again itself; what reaches the CLI is final. */
    turn_env(&turn, "CLAUDE_CODE_MAX_RETRIES", "2");
    turn_env(&turn, "DISABLE_AUTOUPDATER", "1");
    turn_env(&turn, "IS_SANDBOX", "1");
    turn_end(task, &turn);
    *ret = turn;
    return 0;
}

const struct agent_program claude_code_program = {
    .package = "@anthropic-ai/claude-code",
    .bin = "claude",
    .stream = STREAM_CLAUDE,
    .api = api,
};
