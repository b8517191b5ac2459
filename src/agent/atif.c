#include "agent/atif.h"

#include "base/mem.h"
#include "base/str.h"

#define TOKENS_MAX ((int64_t)1 << 40) /* of one event: sums of such stay numbers */

/* One trajectory while it grows. step is borrowed from steps. */
struct growing {
    json_t *steps;
    json_t *step;         /* the agent's at hand, NULL: the next event begins one */
    struct buf step_text; /* its message so far */
    json_t *calls;        /* id of each call to the latest step that has it */
};

static json_t *text_json(const char *text)
{
    return json_text(text, strlen(text));
}

static json_t *member(json_t *object, const char *key, json_t *fresh)
{
    json_t *value = json_object_get(object, key);

    if (value != NULL) {
        json_decref(fresh);
        return value;
    }
    json_put(object, key, fresh);
    return fresh;
}

static json_t *add_step(struct growing *growing, const char *source, const char *message)
{
    json_t *step = json_object();

    json_push(growing->steps, step);
    json_put_int(step, "step_id", (int64_t)json_array_size(growing->steps));
    json_put_text(step, "source", source);
    json_put(step, "message", text_json(message));
    return step;
}

static void end_step(struct growing *growing)
{
    if (growing->step != NULL)
        json_put(growing->step, "message",
                 json_text(buf_text(&growing->step_text), growing->step_text.size_bytes));
    buf_clear(&growing->step_text);
    growing->step = NULL;
}

static json_t *step_at_hand(struct growing *growing)
{
    if (growing->step == NULL)
        growing->step = add_step(growing, "agent", "");
    return growing->step;
}

/* The id of a call, which the format demands; owned. */
static char *call_id_of(const struct event *event)
{
    return event->call_id != NULL ? str_dup(event->call_id)
                                  : str_format("event-%ju", (uintmax_t)event->seq);
}

static void add_call(struct growing *growing, const struct event *event)
{
    scoped(mem_freep) char *id = call_id_of(event);
    json_t *call = json_object();
    json_t *arguments = event->input;

    json_push(member(step_at_hand(growing), "tool_calls", json_array()), call);
    json_put(call, "tool_call_id", text_json(id));
    json_put(call, "function_name", text_json(event->tool));
    json_put(growing->calls, id, json_incref(growing->step));
    if (json_is_object(arguments)) {
        json_put(call, "arguments", json_incref(arguments));
        return;
    }
    json_t *wrapped = json_object();

    if (arguments != NULL)
        json_put(wrapped, "input", json_incref(arguments));
    json_put(call, "arguments", wrapped);
}

static json_t *content_of(const json_t *output)
{
    scoped(buf_done) struct buf text = {0};

    if (json_is_string(output))
        return json_text(json_string_value(output), json_string_length(output));
    json_write_line(&text, output);
    return json_text(text.data, text.size_bytes);
}

static void add_result(struct growing *growing, const struct event *event)
{
    json_t *step = event->call_id == NULL ? NULL : json_object_get(growing->calls, event->call_id);
    bool is_known = step != NULL;
    json_t *observation =
        member(is_known ? step : step_at_hand(growing), "observation", json_object());
    json_t *result = json_object();
    json_t *extra = json_object();

    json_push(member(observation, "results", json_array()), result);
    if (is_known)
        json_put(result, "source_call_id", text_json(event->call_id));
    else if (event->call_id != NULL)
        json_put(extra, "call_id", text_json(event->call_id));
    if (event->output != NULL)
        json_put(result, "content", content_of(event->output));
    if (event->has_exit_code)
        json_put_int(extra, "exit_code", event->exit_code);
    if (event->is_error)
        json_put_bool(extra, "is_error", true);
    json_put(result, "extra", extra);
}

static void note(struct growing *growing, const struct event *event)
{
    json_t *extra = member(step_at_hand(growing), "extra", json_object());
    json_t *item = json_object();

    json_push(member(extra, event_kind_name(event->kind), json_array()), item);
    json_put_int(item, "seq", (int64_t)event->seq);
    if (event->output != NULL)
        json_put(item, "output", content_of(event->output));
}

static void grow(struct growing *growing, const struct event *event)
{
    switch (event->kind) {
    case EVENT_TURN_START:
        end_step(growing);
        (void)step_at_hand(growing); /* a turn is a step, also when nothing comes of it */
        break;
    case EVENT_TEXT:
        (void)step_at_hand(growing); /* the text is put in when the step ends */
        if (json_is_string(event->output))
            buf_append(&growing->step_text, json_string_value(event->output),
                       json_string_length(event->output));
        break;
    case EVENT_TOOL_CALL:
        add_call(growing, event);
        break;
    case EVENT_TOOL_RESULT:
        add_result(growing, event);
        break;
    case EVENT_USER:
        end_step(growing);
        if (json_is_string(event->output))
            (void)add_step(growing, "user", json_string_value(event->output));
        break;
    case EVENT_RETRY:
    case EVENT_ERROR:
        note(growing, event);
        break;
    case EVENT_AGENT_START:
    case EVENT_AGENT_END:
    case EVENT_TURN_END:
    case EVENT_USAGE: /* some are of one turn and some of many: the whole alone is told */
    case EVENT_INVALID:
    case EVENT_KIND_COUNT:
        break;
    }
}

/* The steps of one thread; a new reference. */
static json_t *steps_of(const struct event_log *log, const char *parent, const char *prompt)
{
    struct growing growing = {.steps = json_array(), .calls = json_object()};

    if (prompt != NULL && prompt[0] != '\0')
        (void)add_step(&growing, "user", prompt); /* whole as it is */
    for (size_t i = 0; i < log->count; i++) {
        if (str_equal(log->events[i].parent, parent))
            grow(&growing, &log->events[i]);
    }
    end_step(&growing);
    /* The format knows no trajectory without a step. */
    if (json_array_size(growing.steps) == 0)
        (void)add_step(&growing, "system", "nothing was done");
    buf_done(&growing.step_text);
    json_decref(growing.calls);
    return growing.steps;
}

static json_t *agent_json(const struct atif_about *about)
{
    json_t *agent = json_object();

    json_put(agent, "name", text_json(about->agent));
    json_put(agent, "version", text_json(about->version == NULL ? "unknown" : about->version));
    if (about->model != NULL)
        json_put(agent, "model_name", text_json(about->model));
    return agent;
}

static int64_t tokens(const json_t *usage, const char *key)
{
    int64_t count = json_get_int(usage, key, 0);

    return count < 0 ? 0 : count > TOKENS_MAX ? TOKENS_MAX : count;
}

static json_t *metrics_json(const struct event_log *log, size_t step_count)
{
    int64_t input = 0, cached = 0, output = 0;
    json_t *metrics = json_object();
    bool is_known = false;

    for (size_t i = 0; i < log->count; i++) {
        const json_t *usage = log->events[i].usage;

        is_known |= usage != NULL;
        input += tokens(usage, "input_tokens") + tokens(usage, "cache_write_tokens");
        cached += tokens(usage, "cache_read_tokens");
        output += tokens(usage, "output_tokens");
    }
    if (is_known) {
        json_put_int(metrics, "total_prompt_tokens", input + cached);
        json_put_int(metrics, "total_cached_tokens", cached);
        json_put_int(metrics, "total_completion_tokens", output);
    }
    json_put_int(metrics, "total_steps", (int64_t)step_count);
    return metrics;
}

static json_t *trajectory(json_t *steps, const struct atif_about *about)
{
    json_t *root = json_object();

    json_put_text(root, "schema_version", ATIF_SCHEMA);
    json_put(root, "agent", agent_json(about));
    json_put(root, "steps", steps);
    return root;
}

/* A trajectory for each call that has a sub-agent, named after the call. */
static void add_sub_agents(const struct event_log *log, const struct atif_about *about,
                           json_t *root)
{
    struct str_list parents = {0};

    for (size_t i = 0; i < log->count && parents.count < ATIF_SUB_AGENTS_MAX; i++) {
        const char *parent = log->events[i].parent;

        if (parent == NULL || str_list_has(&parents, parent))
            continue;
        str_list_add(&parents, parent);

        json_t *sub = trajectory(steps_of(log, parent, NULL), about);

        json_put(sub, "trajectory_id", text_json(parent));
        json_push(member(root, "subagent_trajectories", json_array()), sub);
    }
    str_list_done(&parents);
}

json_t *atif_export(const struct event_log *log, const struct atif_about *about)
{
    json_t *steps = steps_of(log, NULL, about->prompt);
    size_t step_count = json_array_size(steps);
    json_t *root = trajectory(steps, about);
    json_t *extra = json_object();
    const char *session = NULL;
    const char *source = NULL;

    for (size_t i = 0; i < log->count; i++) {
        if (session == NULL)
            session = log->events[i].session;
        if (source == NULL && log->events[i].kind != EVENT_AGENT_START)
            source = event_source_name(log->events[i].source);
    }
    if (session != NULL)
        json_put(root, "session_id", text_json(session));
    json_put(root, "trajectory_id", text_json(about->trial));
    json_put(root, "final_metrics", metrics_json(log, step_count));
    add_sub_agents(log, about, root);
    json_put(extra, "events", json_text_or_null(source));
    json_put_bool(extra, "cut", log->cut);
    json_put(root, "extra", extra);
    return root;
}
