/* Gemini CLI. Which key it uses, and that it tells nobody, stands in a file of its HOME only. */
#include "agent/internal.h"
#include "base/mem.h"

static const char settings[] =
    "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}},\n"
    " \"privacy\": {\"usageStatisticsEnabled\": false},\n"
    " \"general\": {\"enableAutoUpdate\": false},\n"
    " \"telemetry\": {\"enabled\": false}}\n";

static const char *api(const struct task_public *task)
{
    (void)task;
    return "gemini";
}

int gemini_plan_turn(const struct task_public *task, const struct agent_place *place,
                     struct agent_turn *ret, struct error **err)
{
    static const char *const words[] = {"-o", "stream-json", "--yolo", "--skip-trust", NULL};
    scoped(mem_freep) char *prompt = NULL;
    struct agent_turn turn = {0};
    int r = turn_needs_model(task, "gemini", err);

    if (r == 0)
        r = turn_prompt(task, place, &prompt, err);
    if (r < 0)
        return r;
    turn_begin(place, true, &turn);
    turn_option(&turn, "-m", task->agent.model);
    turn_option(&turn, "-p", prompt);
    turn_words(&turn, words);
    if (place->session != NULL)
        turn_option(&turn, "--resume", "latest");
    for (size_t i = 0; i < task->agent.extra_args.count; i++)
        str_list_add(&turn.argv, task->agent.extra_args.items[i]);
    turn_env(&turn, "GOOGLE_GEMINI_BASE_URL", place->base_url);
    turn_env(&turn, "GEMINI_API_KEY", place->key);
    turn_file(&turn, ".gemini/settings.json", str_dup(settings));
    turn_end(task, &turn);
    *ret = turn;
    return 0;
}

const struct agent_program gemini_program = {
    .package = "@google/gemini-cli",
    .bin = "gemini",
    .stream = STREAM_GEMINI,
    .api = api,
};
