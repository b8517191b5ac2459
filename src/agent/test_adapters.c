#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/agent.h"
#include "base/mem.h"

static void put(struct buf *text, const struct str_list *list, const char *before)
{
    for (size_t i = 0; i < list->count; i++)
        buf_format(text, "%s%s", i == 0 ? before : "|", list->items[i]);
}

/* argv, env and files of a turn in one text; the error's text instead. */
static char *planned(struct task_public *task, const char *session)
{
    struct agent_install install = {0};
    scoped(agent_turn_done) struct agent_turn turn = {0};
    scoped(error_freep) struct error *err = NULL;
    scoped(buf_done) struct buf text = {0};

    str_list_add(&install.argv, "/p");
    const struct agent_place place = {.script_fd = -1,
                                      .install = &install,
                                      .base_url = "http://h:1",
                                      .key = "k",
                                      .session = session};
    int r = agent_adapter_of(task->agent.type)->plan_turn(task, &place, &turn, &err);

    str_list_done(&install.argv);
    if (r < 0) {
        assert_int_equal(error_code_of(err), ERROR_TASK);
        return str_dup(error_message(err));
    }
    assert_null(turn.stdin_text);
    assert_false(turn.events_on_fd3);
    put(&text, &turn.argv, "");
    put(&text, &turn.env, "\n");
    for (size_t i = 0; i < turn.file_count; i++)
        buf_format(&text, "\n%s=%s", turn.files[i].path, turn.files[i].bytes);
    return buf_take(&text);
}

static struct task_public task_of(enum task_agent_type type, const char *model)
{
    static char prompt[] = "do it";
    struct task_public task = {.prompt = prompt, .agent = {.type = type}};

    task.agent.model = model == NULL ? NULL : str_dup(model);
    return task;
}

static void task_done(struct task_public *task)
{
    free(task->agent.model);
    str_list_done(&task->agent.allowed_tools);
    str_list_done(&task->agent.disallowed_tools);
    str_list_done(&task->agent.setting_sources);
    str_list_done(&task->agent.extra_args);
    str_list_done(&task->agent.env);
}

#define CLAUDE_ENV                                                                                 \
    "\nANTHROPIC_BASE_URL=http://h:1|ANTHROPIC_API_KEY=k|"                                         \
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1|CLAUDE_CODE_MAX_RETRIES=2|DISABLE_AUTOUPDATER=1|"  \
    "IS_SANDBOX=1"
#define CODEX_FLAGS                                                                                \
    "--json|--skip-git-repo-check|--dangerously-bypass-approvals-and-sandbox|-m|gpt-5.4|-c|"       \
    "model_provider=\"closedbook\"|-c|analytics.enabled=false|--disable|plugins|--disable|apps|--" \
    "disable|multi_agent|-c|web_search=\"disabled\"|"                                              \
    "-c|model_providers.closedbook={name=\"closedbook\",base_url=\"http://h:1/v1\","               \
    "env_key=\"CLOSEDBOOK_MODEL_KEY\",wire_api=\"responses\"}"

static void starts_each_cli_as_it_was_seen_to_work(void **state)
{
    (void)state;
    static const struct {
        enum task_agent_type type;
        const char *model, *session, *turn;
    } cases[] = {
        {AGENT_CLAUDE_CODE, NULL, NULL,
         "/p|-p|do it|--output-format|stream-json|--verbose|"
         "--dangerously-skip-permissions" CLAUDE_ENV},
        {AGENT_CLAUDE_CODE, "claude-opus-4-8", "s1",
         "/p|-p|do it|--output-format|stream-json|--verbose|--model|claude-opus-4-8|"
         "--dangerously-skip-permissions|--resume|s1" CLAUDE_ENV},
        {AGENT_CODEX, "gpt-5.4", NULL, "/p|exec|" CODEX_FLAGS "|do it\nCLOSEDBOOK_MODEL_KEY=k"},
        {AGENT_CODEX, "gpt-5.4", "t1",
         "/p|exec|resume|" CODEX_FLAGS "|t1|do it\nCLOSEDBOOK_MODEL_KEY=k"},
        {AGENT_PI, "claude-sonnet-4-5", "s1",
         "/run/agent/start|/p|--mode|json|-p|--offline|--provider|anthropic|--model|"
         "claude-sonnet-4-5|--session|s1|do it\nANTHROPIC_API_KEY=k\n"
         ".pi/agent/models.json={\"providers\": {\"anthropic\": {\"baseUrl\": \"http://h:1\"}}}"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct task_public task = task_of(cases[i].type, cases[i].model);
        scoped(mem_freep) char *turn = planned(&task, cases[i].session);

        assert_string_equal(turn, cases[i].turn);
        task_done(&task);
    }
}

static void gives_the_settings_of_a_task_to_claude(void **state)
{
    (void)state;
    static char mode[] = "plan", system_prompt[] = "be brief", settings[] = "{}";
    struct task_public task = task_of(AGENT_CLAUDE_CODE, NULL);

    task.agent.permission_mode = mode;
    task.agent.system_prompt = system_prompt;
    task.agent.claude_settings = settings;
    str_list_add(&task.agent.allowed_tools, "Bash");
    str_list_add(&task.agent.allowed_tools, "Read");
    str_list_add(&task.agent.disallowed_tools, "WebFetch");
    str_list_add(&task.agent.setting_sources, "project");
    str_list_add(&task.agent.extra_args, "--bare");
    str_list_add(&task.agent.env, "A=b");
    scoped(mem_freep) char *turn = planned(&task, NULL);

    assert_string_equal(turn,
                        "/p|-p|do it|--output-format|stream-json|--verbose|--permission-mode|plan|"
                        "--allowedTools|Bash,Read|--disallowedTools|WebFetch|"
                        "--append-system-prompt|be brief|--settings|{}|--setting-sources|project|"
                        "--bare" CLAUDE_ENV "|A=b");
    task.agent.system_prompt_replaces = true;
    scoped(mem_freep) char *replaced = planned(&task, NULL);

    assert_non_null(strstr(replaced, "|--system-prompt|be brief|"));
    task_done(&task);
}

static void asks_for_a_model_by_the_format_of_its_vendor(void **state)
{
    (void)state;
    static const struct {
        enum task_agent_type type;
        const char *model, *api;
    } cases[] = {
        {AGENT_CLAUDE_CODE, NULL, "anthropic"},
        {AGENT_CODEX, "gpt-5.4", "openai-responses"},
        {AGENT_GEMINI, "gemini-2.5-pro", "gemini"},
        {AGENT_PI, "claude-sonnet-4-5", "anthropic"},
        {AGENT_PI, "gemini-2.5-pro", "gemini"},
        {AGENT_PI, "gpt-5.4", "openai-responses"},
        {AGENT_OPENCODE, "claude-sonnet-4-5", "anthropic"},
        {AGENT_OPENCODE, "qwen3-coder", "openai-chat"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct task_public task = task_of(cases[i].type, cases[i].model);

        assert_string_equal(agent_adapter_of(cases[i].type)->program->api(&task), cases[i].api);
        task_done(&task);
    }
}

static void refuses_what_a_cli_could_not_be_started_with(void **state)
{
    (void)state;
    static const enum task_agent_type types[] = {AGENT_CODEX, AGENT_GEMINI, AGENT_OPENCODE,
                                                 AGENT_PI};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct task_public task = task_of(types[i], NULL);
        scoped(mem_freep) char *complaint = planned(&task, NULL);

        assert_non_null(strstr(complaint, "agent.model: required by the agent type"));
    }

    struct task_public task = task_of(AGENT_CLAUDE_CODE, NULL);
    scoped(mem_freep) char *prompt = mem_new(AGENT_ARG_BYTES_MAX + 2, 1);

    memset(prompt, 'x', AGENT_ARG_BYTES_MAX + 1);
    task.prompt = prompt;
    scoped(mem_freep) char *complaint = planned(&task, NULL);

    assert_non_null(strstr(complaint, "more than the 131071 that an argument"));
}

static void keeps_a_prompt_from_being_an_option_or_a_file(void **state)
{
    (void)state;
    static char prompts[][8] = {"--help", "@file", "/clear"};

    for (size_t i = 0; i < ARRAY_SIZE(prompts); i++) {
        struct task_public task = task_of(AGENT_PI, "gpt-5.4");
        scoped(mem_freep) char *wanted = str_format("|\n%s\n", prompts[i]);

        task.prompt = prompts[i];
        scoped(mem_freep) char *turn = planned(&task, NULL);

        assert_non_null(strstr(turn, wanted));
        task_done(&task);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_each_cli_as_it_was_seen_to_work),
        cmocka_unit_test(gives_the_settings_of_a_task_to_claude),
        cmocka_unit_test(asks_for_a_model_by_the_format_of_its_vendor),
        cmocka_unit_test(refuses_what_a_cli_could_not_be_started_with),
        cmocka_unit_test(keeps_a_prompt_from_being_an_option_or_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
