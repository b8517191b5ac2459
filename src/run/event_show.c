#include "run/event_show.h"

#include "base/mem.h"
#include "base/term.h"

static void add_text(struct buf *line, const char *text, size_t size)
{
    if (size == 0)
        return;
    buf_char(line, ' ');
    term_quote(line, text, size_min(size, EVENT_SHOW_BYTES_MAX), TERM_ONE_LINE);
    if (size > EVENT_SHOW_BYTES_MAX)
        buf_text_append(line, "...");
}

static void add_value(struct buf *line, const json_t *value)
{
    scoped(buf_done) struct buf text = {.max_bytes = EVENT_SHOW_BYTES_MAX * 8};

    if (value == NULL)
        return;
    if (json_is_string(value)) {
        add_text(line, json_string_value(value), json_string_length(value));
        return;
    }
    json_write_line(&text, value);
    add_text(line, buf_text(&text), text.size_bytes);
}

void event_show_line(const char *trial, const struct event *event, struct buf *ret)
{
    buf_char(ret, '[');
    term_quote(ret, trial, strlen(trial), TERM_ONE_LINE);
    buf_format(ret, "] %llu.%03llus %s", (unsigned long long)(event->t_ms / 1000),
               (unsigned long long)(event->t_ms % 1000), event_kind_name(event->kind));
    if (event->tool != NULL)
        add_text(ret, event->tool, strlen(event->tool));
    add_value(ret, event->input);
    add_value(ret, event->output);
    if (event->kind == EVENT_USAGE)
        add_value(ret, event->usage);
    if (event->has_exit_code)
        buf_format(ret, " (exit %d)", event->exit_code);
    if (event->is_error)
        buf_text_append(ret, " (error)");
    buf_char(ret, '\n');
}

void event_show_new(struct event_show *show)
{
    scoped(buf_done) struct buf line = {0};

    if (show->trial == NULL)
        return;
    for (; show->shown < show->log->count; show->shown++) {
        buf_clear(&line);
        event_show_line(show->trial, &show->log->events[show->shown], &line);
        /* It is for who looks; the trial goes on without. */
        (void)!write(STDERR_FILENO, buf_text(&line), line.size_bytes);
    }
}
