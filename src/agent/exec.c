#include "agent/internal.h"
#include "base/buf.h"

static const char placeholder[] = "{prompt}";

/* Appends word with every placeholder replaced. Returns whether there was one. */
static bool expand(const char *word, const char *prompt, struct buf *buf)
{
    bool replaced = false;

    for (const char *at = strstr(word, placeholder); at != NULL; at = strstr(word, placeholder)) {
        buf_append(buf, word, (size_t)(at - word));
        buf_text_append(buf, prompt);
        word = at + strlen(placeholder);
        replaced = true;
    }
    buf_text_append(buf, word);
    return replaced;
}

static int expand_words(const struct task_public *task, const char *prompt, struct agent_turn *turn,
                        bool *ret_replaced, struct error **err)
{
    size_t total = 0;

    for (size_t i = 0; i < task->agent.command.count; i++) {
        scoped(buf_done) struct buf word = {.max_bytes = AGENT_ARG_BYTES_MAX};

        if (expand(task->agent.command.items[i], prompt, &word))
            *ret_replaced = true;
        total += word.size_bytes + 1;
        if (word.overflowed || total > CELL_ARGS_BYTES_MAX)
            return error_set(err, ERROR_TASK,
                             "agent.command: word %zu is too long for an argument (%zu bytes each, "
                             "%zu in all): leave {prompt} out to get the prompt on standard input",
                             i + 1, AGENT_ARG_BYTES_MAX, CELL_ARGS_BYTES_MAX);
        str_list_add(&turn->argv, buf_text(&word));
    }
    return 0;
}

int exec_plan_turn(const struct task_public *task, const struct agent_place *place,
                   struct agent_turn *ret, struct error **err)
{
    scoped(agent_turn_done) struct agent_turn turn = {0};
    const char *prompt = place->prompt != NULL ? place->prompt : task->prompt;
    bool replaced = false;

    if (task->agent.command.count == 0 || task->agent.command.items[0][0] == '\0')
        return error_set(err, ERROR_TASK, "agent.command: no program given");

    int r = expand_words(task, prompt, &turn, &replaced, err);

    if (r < 0)
        return r;
    if (!replaced)
        turn.stdin_text = str_dup(prompt);
    turn_offer_events(task, &turn);
    *ret = turn;
    turn = (struct agent_turn){0};
    return 0;
}
