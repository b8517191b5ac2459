#include "agent/agent.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "run/session.h"

#define BASE_URL "http://127.0.0.1:1"
#define KEY "placeholder"

struct values {
    bool json;
    const char *model, *prompt, *base_url;
};

static const struct values defaults = {.prompt = "PROMPT", .base_url = BASE_URL};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .short_name = 'm',
     .long_name = "model",
     .value = "MODEL",
     .offset = offsetof(struct values, model),
     .help = "with NAME and --json: also how it would be started to ask for this model"},
    {.kind = OPTION_TEXT,
     .long_name = "prompt",
     .value = "TEXT",
     .offset = offsetof(struct values, prompt),
     .help = "what it would be asked; default: PROMPT"},
    {.kind = OPTION_TEXT,
     .long_name = "base-url",
     .value = "URL",
     .offset = offsetof(struct values, base_url),
     .help = "where it would look for its model; default: " BASE_URL},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON"},
};

static json_t *texts(const struct str_list *list)
{
    json_t *json = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_push(json, json_text(list->items[i], strlen(list->items[i])));
    return json;
}

static json_t *turn_to_json(const struct agent_turn *turn)
{
    json_t *json = json_object();
    json_t *files = json_object();

    for (size_t i = 0; i < turn->file_count; i++)
        json_put_text(files, turn->files[i].path, turn->files[i].bytes);
    json_put(json, "argv", texts(&turn->argv));
    json_put(json, "env", texts(&turn->env));
    json_put(json, "files", files);
    return json;
}

/* How it would be started, a placeholder for its key; a new reference. */
static int add_command(const struct values *values, const struct agent_adapter *adapter,
                       const struct agent_install *install, json_t *json, struct error **err)
{
    scoped(agent_turn_done) struct agent_turn turn = {0};
    scoped(mem_freep) char *model = str_dup(values->model);
    scoped(mem_freep) char *prompt = str_dup(values->prompt);
    const struct task_public task = {.prompt = prompt,
                                     .agent = {.type = adapter->type, .model = model}};
    int r = adapter->plan_turn(
        &task,
        &(struct agent_place){
            .script_fd = -1, .install = install, .base_url = values->base_url, .key = KEY},
        &turn, err);

    if (r == 0)
        json_put(json, "command", turn_to_json(&turn));
    return r;
}

static int add(const struct values *values, const struct session *session,
               const struct agent_adapter *adapter, json_t *list, struct error **err)
{
    scoped(agent_install_done) struct agent_install install = {0};
    scoped(error_freep) struct error *missing = NULL;
    const char *search = getenv("PATH");
    json_t *json = json_object();
    int r = agent_install_find(adapter->program, search == NULL ? "" : search, &session->reader,
                               &install, &missing);

    json_push(list, json);
    json_put_text(json, "name", adapter->name);
    json_put_text(json, "program", adapter->program->bin);
    json_put_text(json, "package", adapter->program->package);
    json_put_bool(json, "installed", r == 0);
    if (r < 0) {
        json_put_text(json, "missing", error_message(missing));
        return 0;
    }
    json_put(json, "version", json_text_or_null(install.version));
    json_put_text(json, "path", install.path);
    json_put(json, "start", texts(&install.argv));
    json_put(json, "expose", texts(&install.expose));
    return values->model == NULL ? 0 : add_command(values, adapter, &install, json, err);
}

static void write_lines(struct buf *text, const json_t *list)
{
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        bool is_installed = json_get_bool(item, "installed", false);
        const char *version = json_get_text(item, "version");
        const char *what = is_installed ? version == NULL ? "?" : version : "-";
        const char *where = json_get_text(item, is_installed ? "path" : "missing");
        scoped(buf_done) struct buf line = {0};

        buf_format(&line, "%-12s %-10s %s", json_get_text(item, "name"), what, where);
        term_quote(text, line.data, line.size_bytes, TERM_ONE_LINE);
        buf_char(text, '\n');
    }
}

static int list_all(const struct arguments *arguments, const struct session *session,
                    struct error **err)
{
    const struct values *values = arguments->values;
    const char *name = arguments->operand_count == 0 ? NULL : arguments->operands[0];
    scoped(json_freep) json_t *list = json_array();
    scoped(buf_done) struct buf text = {0};
    const struct agent_adapter *adapter = NULL;
    int r = 0;

    for (size_t i = 0; r == 0 && (adapter = agent_adapter_at(i)) != NULL; i++) {
        if (adapter->program != NULL && (name == NULL || str_equal(name, adapter->name)))
            r = add(values, session, adapter, list, err);
    }
    if (r < 0)
        return r;
    if (json_array_size(list) == 0)
        return error_set(err, ERROR_USER,
                         "'%s' is no agent that is installed; 'closedbook agents' lists them",
                         name);
    if (values->json)
        return output_json(list, err);
    write_lines(&text, list);
    return print_out(&text, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {0};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : list_all(arguments, &session, err);
}

const struct command command_agents = {
    .name = "agents",
    .summary = "list the agent programs that are installed here",
    .operands = "[NAME]",
    .description = "Programs are looked for along PATH; none is run. An agent's cell shows the "
                   "node_modules folder that its program lies in, else the file alone, read-only.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 1,
    .run = run,
};
