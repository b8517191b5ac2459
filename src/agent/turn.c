/* What the adapters of CLIs have in common: words, variables and files of a turn. */
#include "agent/internal.h"
#include "base/mem.h"

const char agent_start_script[] = "#!/bin/sh\n"
                                  "# Puts the settings of the agent where it looks for them.\n"
                                  "cp -R " AGENT_HOME_PATH "/. \"$HOME\"/ && exec \"$@\"\n";

void turn_begin(const struct agent_place *place, bool has_files, struct agent_turn *turn)
{
    if (has_files)
        str_list_add(&turn->argv, AGENT_START_PATH);
    for (size_t i = 0; i < place->install->argv.count; i++)
        str_list_add(&turn->argv, place->install->argv.items[i]);
}

void turn_words(struct agent_turn *turn, const char *const *words)
{
    for (; *words != NULL; words++)
        str_list_add(&turn->argv, *words);
}

void turn_option(struct agent_turn *turn, const char *name, const char *value)
{
    if (value == NULL)
        return;
    str_list_add(&turn->argv, name);
    str_list_add(&turn->argv, value);
}

void turn_option_list(struct agent_turn *turn, const char *name, const struct str_list *values)
{
    scoped(buf_done) struct buf joined = {0};

    for (size_t i = 0; i < values->count; i++)
        buf_format(&joined, "%s%s", i == 0 ? "" : ",", values->items[i]);
    if (values->count > 0)
        turn_option(turn, name, buf_text(&joined));
}

void turn_env(struct agent_turn *turn, const char *name, const char *value)
{
    str_list_add_take(&turn->env, str_format("%s=%s", name, value));
}

void turn_file(struct agent_turn *turn, const char *path, char *bytes)
{
    ASSERT(turn->file_count < AGENT_FILES_MAX);
    turn->files[turn->file_count++] = (struct agent_file){str_dup(path), bytes};
}

char *turn_json(const json_t *value)
{
    scoped(buf_done) struct buf text = {0};

    json_write_line(&text, value);
    return buf_take(&text);
}

int turn_prompt(const struct task_public *task, const struct agent_place *place, char **ret,
                struct error **err)
{
    const char *prompt = place->prompt != NULL ? place->prompt : task->prompt;
    bool is_taken_otherwise = prompt[0] == '-' || prompt[0] == '@' || prompt[0] == '/';
    scoped(mem_freep) char *word = str_format("%s%s", is_taken_otherwise ? "\n" : "", prompt);

    if (strlen(word) > AGENT_ARG_BYTES_MAX)
        return error_set(err, ERROR_TASK,
                         "the prompt has %zu bytes, more than the %zu that an argument of a "
                         "program can have",
                         strlen(word), AGENT_ARG_BYTES_MAX);
    *ret = take(word);
    return 0;
}

int turn_needs_model(const struct task_public *task, const char *agent, struct error **err)
{
    if (task->agent.model != NULL)
        return 0;
    return error_set(err, ERROR_TASK,
                     "agent.model: required by the agent type '%s', found nothing; name one in "
                     "the task or with -m",
                     agent);
}

void turn_end(const struct task_public *task, struct agent_turn *turn)
{
    for (size_t i = 0; i < task->agent.env.count; i++)
        str_list_add(&turn->env, task->agent.env.items[i]);
}

const char *api_of_model(const char *model)
{
    if (model != NULL && (strstr(model, "claude") != NULL || strstr(model, "anthropic") != NULL))
        return "anthropic";
    if (model != NULL && str_starts(model, "gemini"))
        return "gemini";
    return "openai-chat";
}
