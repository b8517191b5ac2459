#include "run/trial_agent.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "agent/atif.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "run/agent_program.h"
#include "run/limits.h"
#include "run/mocks.h"
#include "run/mocks_sealed.h"
#include "run/oracle.h"
#include "run/services.h"
#include "run/steps.h"
#include "run/wire.h"
#include "stage/plugins.h"
#include "task/task_public.h"
#include "task/tokens.h"

#define CUT_MARK "\n[closedbook: output cut here, limit reached]\n"

/* The pipes of one agent: ours to read, the cell's to write. Index 3 carries event lines. */
struct agent_pipes {
    int read[4], write[4];
};

static void pipes_init(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < ARRAY_SIZE(pipes->read); i++)
        pipes->read[i] = pipes->write[i] = -1;
}

static void pipes_done(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < ARRAY_SIZE(pipes->read); i++) {
        fd_closep(&pipes->read[i]);
        fd_closep(&pipes->write[i]);
    }
}

static void pipes_close_write(struct agent_pipes *pipes)
{
    for (size_t i = 0; i < ARRAY_SIZE(pipes->write); i++)
        fd_closep(&pipes->write[i]);
}

static int pipes_open(struct agent_pipes *pipes, const struct agent_turn *turn, struct error **err)
{
    for (size_t i = 1; i < ARRAY_SIZE(pipes->read); i++) {
        int ends[2];

        if (i == 3 && !turn->events_on_fd3)
            continue;
        if (pipe2(ends, O_CLOEXEC) != 0)
            return error_errno(err, errno, "cannot make a pipe");
        pipes->read[i] = ends[0];
        pipes->write[i] = ends[1];
    }
    if (turn->stdin_text == NULL)
        return 0;
    return fs_memfd("prompt", turn->stdin_text, strlen(turn->stdin_text), &pipes->write[0], err);
}

static void feed_events(void *context, const char *bytes, size_t size)
{
    event_reader_feed(context, bytes, size);
}

static void feed_stream(void *context, const char *bytes, size_t size)
{
    stream_feed(context, bytes, size);
}

static int add_text(const struct cell_text *text, struct cell_spec *spec, struct error **err)
{
    if (spec->text_count >= CELL_TEXTS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d texts in an agent cell", CELL_TEXTS_MAX);
    spec->texts[spec->text_count++] = *text;
    return 0;
}

/* The script of a script agent; the files of an agent program, and what puts them into its HOME.
 * targets owns the names, which the spec borrows. */
static int add_script(const struct agent_turn *turn, struct str_list *targets,
                      struct cell_spec *spec, struct error **err)
{
    int r = turn->script.target == NULL ? 0 : add_text(&turn->script, spec, err);

    for (size_t i = 0; i < turn->file_count; i++)
        str_list_add_take(targets, str_format(AGENT_HOME_PATH "/%s", turn->files[i].path));
    for (size_t i = 0; r == 0 && i < turn->file_count; i++)
        r = add_text(&(struct cell_text){.target = targets->items[i],
                                         .bytes = turn->files[i].bytes,
                                         .size_bytes = strlen(turn->files[i].bytes)},
                     spec, err);
    if (r == 0 && turn->file_count > 0)
        r = add_text(&(struct cell_text){.target = AGENT_START_PATH,
                                         .bytes = agent_start_script,
                                         .size_bytes = strlen(agent_start_script),
                                         .executable = true},
                     spec, err);
    return r;
}

static int run_services(const struct trial_job *job, struct cell *cell, const char *const *envp,
                        struct error **err)
{
    const struct task_public *half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &half, &private_half);
    const struct services services = {
        .items = half->services,
        .count = half->service_count,
        .shell = "/bin/sh",
        .envp = envp,
        .stop = job->stop,
    };

    return services_start(cell, &services, err);
}

static int run_agent_steps(const struct trial_job *job, struct trial_record *record,
                           struct cell *cell, const char *const *envp, struct error **err)
{
    struct steps_place place = {.cell = cell, .envp = envp};
    int r = 0;

    if (!steps_are_in_agent(job))
        return 0;
    r = grade_cell_shell(job->view, CELL_AGENT, &place.shell, err);
    return r < 0 ? r : steps_in_agent(job, record, &place, err);
}

/*
 * Where something comes before the agent the cell begins without a program: steps first, as they
 * may make what a service needs; the agent's program when all are ready.
 */
static int start_in_order(const struct trial_job *job, struct trial_record *record,
                          struct cell_spec *spec, struct agent_run *run, struct error **err)
{
    const struct task_public *half = NULL;
    const struct task_private *private_half = NULL;
    const struct cell_command command = spec->command;

    task_split(job->task, &half, &private_half);
    bool has_services = half->service_count > 0 && command.argv != NULL;

    if (command.argv == NULL || has_services || steps_are_in_agent(job) ||
        view_mock_tools(job->view) >= 0 || wire_is_on(job))
        spec->command = (struct cell_command){0};
    int r = cell_start(job->monitor, spec, &run->cell, err);

    if (r == 0)
        r = mocks_open(job, run->cell, err);
    if (r == 0)
        r = mocks_sealed_open(job, run->cell, &run->mocks, err);
    if (r == 0)
        r = wire_open(job, run->cell, run->placeholder, err);
    if (r == 0)
        r = run_agent_steps(job, record, run->cell, command.envp, err);
    if (r == 0 && has_services)
        r = run_services(job, run->cell, command.envp, err);
    if (r < 0 || command.argv == NULL || spec->command.argv != NULL)
        return r;
    return cell_exec(run->cell, &command, &run->process, err);
}

static int start_cell(const struct trial_job *job, struct trial_record *record,
                      const struct agent_turn *turn, const struct agent_pipes *pipes,
                      struct agent_run *run, struct error **err)
{
    scoped(str_list_done) struct str_list base = {0};
    scoped(str_list_done) struct str_list env = {0};
    scoped(str_list_done) struct str_list targets = {0};
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    int r = view_fill_cell(job->view, job->monitor, CELL_AGENT, &spec, err);

    if (r == 0)
        r = mocks_fill_cell(job, &spec, err);
    if (r == 0)
        r = wire_fill_cell(job, &spec, err);
    if (r == 0)
        r = add_script(turn, &targets, &spec, err);
    if (r < 0)
        return r;
    task_split(job->task, &public_half, &private_half);
    view_env(job->view, CELL_AGENT, &base, &spec.command.cwd);
    if (run->before != NULL)
        spec.workspace = (struct cell_workspace){.kind = CELL_WORKSPACE_KEEP,
                                                 .keep_cell_id = cell_id(run->before)};
    limits_env(&public_half->limits, &base);
    agent_env_merge(&base, &turn->env, &env);
    mocks_on_path(public_half, &env);
    if (wire_is_on(job))
        wire_env(job, run->placeholder, &env);
    spec.command.envp = (const char *const *)env.items;
    if (turn->argv.count > 0) {
        spec.command.argv = (const char *const *)turn->argv.items;
        for (size_t i = 0; i < ARRAY_SIZE(pipes->write); i++)
            spec.command.fds[i] = pipes->write[i];
        spec.command.fd_count = turn->events_on_fd3 ? 4 : 3;
    }
    return start_in_order(job, record, &spec, run, err);
}

/* The earlier of turn and task timeout; *ret_name says which. 0: none. */
static uint64_t deadline_of(const struct task_limits *limits, uint64_t start_ns,
                            const char **ret_name)
{
    uint64_t turn_ms = limits->turn_timeout_ms;
    uint64_t task_ms = limits->task_timeout_ms;
    bool turn_first = turn_ms != 0 && (task_ms == 0 || turn_ms < task_ms);
    uint64_t ms = turn_first ? turn_ms : task_ms;

    *ret_name = turn_first ? "turn_timeout" : "task_timeout";
    return ms == 0 ? 0 : start_ns + ms * 1000000u;
}

static int save_output(int dir_fd, const char *name, const struct buf *buf, uint64_t seen,
                       struct error **err)
{
    scoped(buf_done) struct buf whole = {0};

    if (seen == 0)
        return 0;
    buf_append(&whole, buf->data, buf->size_bytes);
    if (seen > buf->size_bytes)
        buf_text_append(&whole, CUT_MARK);
    return fs_write_atomic(
        dir_fd, name, &(struct fs_content){whole.data, whole.size_bytes, 0600, FS_NO_SYNC}, err);
}

struct agent_output {
    struct buf out, err;
    struct cell_capture captures[3];
};

static void output_init(struct agent_output *output, const struct trial_job *job,
                        struct agent_pipes *pipes, struct event_reader *reader,
                        struct stream *stream)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    output->out.max_bytes = output->err.max_bytes = (size_t)public_half->limits.max_output_mb << 20;
    output->captures[0] = (struct cell_capture){.fd = pipes->read[1], .buf = &output->out};
    if (stream != NULL) {
        output->captures[0].on_bytes = feed_stream;
        output->captures[0].context = stream;
    }
    output->captures[1] = (struct cell_capture){.fd = pipes->read[2], .buf = &output->err};
    output->captures[2] =
        (struct cell_capture){.fd = pipes->read[3], .on_bytes = feed_events, .context = reader};
}

/* cell_wait() closes what reached its end and says so in the captures. */
static void output_sync(const struct agent_output *output, struct agent_pipes *pipes)
{
    for (size_t i = 0; i < ARRAY_SIZE(output->captures); i++)
        pipes->read[i + 1] = output->captures[i].fd;
}

static void note_end(struct trial_record *record, enum cell_wait_result end,
                     const struct cell_exit *status, const char *deadline_name)
{
    const char *why = deadline_name;

    if (end == CELL_EXITED)
        why = status->term_signal != 0 ? "signal" : "exit";
    if (end == CELL_STOPPED)
        why = "interrupt";
    record->agent.stopped_by = str_dup(why);
    if (end == CELL_EXITED) {
        record->agent.exit_code = status->term_signal != 0 ? -1 : status->exit_code;
        record->agent.signal = status->term_signal != 0 ? status->term_signal : -1;
    }
}

/* In place of what the record began with. */
static void note_used(struct trial_record *record, enum cell_wait_result end,
                      const struct cell_receipt *receipt)
{
    json_decref(record->cell.used);
    record->cell.used = limits_used_json(receipt);
    if (end != CELL_EXITED || record->agent.signal != SIGKILL || receipt->oom_kills == 0)
        return;
    free(record->agent.stopped_by);
    record->agent.stopped_by = str_dup("oom");
}

static int wait_agent(const struct trial_job *job, struct trial_record *record,
                      struct agent_run *run, struct agent_output *output, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const char *deadline_name = NULL;
    enum cell_wait_result end = CELL_EXITED;
    struct cell_exit status = {0};
    struct cell_receipt receipt = {0};
    uint64_t start_ns = clock_ns();

    task_split(job->task, &public_half, &private_half);

    uint64_t deadline_ns = deadline_of(&public_half->limits, start_ns, &deadline_name);
    int r = cell_wait(run->cell, run->process,
                      &(struct cell_patience){output->captures, 3, deadline_ns, job->stop}, &end,
                      &status, err);

    if (r == 0) {
        note_end(record, end, &status, deadline_name);
        run->interrupted = end == CELL_STOPPED;
        record->agent.duration_ms = (clock_ns() - start_ns) / 1000000u;
        record->timing_ms.agent = ns_to_ms(clock_ns() - start_ns);
        r = cell_end(run->cell, &receipt, err);
    }
    if (r < 0)
        return r;
    /* Before the broker's word, which outranks a want of memory. */
    note_used(record, end, &receipt);
    record->cell.kill_processes = receipt.processes;
    record->cell.kill_ms = ns_to_ms(receipt.kill_ns);
    record->timing_ms.kill = record->cell.kill_ms;
    r = mocks_close(job, record, err);
    if (r == 0)
        r = wire_close(job, record, err);
    return r < 0 ? r : mocks_sealed_close(job, run->mocks, record, err);
}

/* The same events in the form that other harnesses read. */
static int save_trajectory(const struct trial_job *job, const struct trial_record *record,
                           const struct event_log *events, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);

    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = atif_export(events, &(struct atif_about){
                                                              .agent = record->agent.type,
                                                              .model = record->agent.model,
                                                              .prompt = public_half->prompt,
                                                              .trial = job->trial_id,
                                                          });

    json_write_pretty(&text, json);
    return fs_write_atomic(job->dir_fd, "trajectory.json",
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

static int save_agent(const struct trial_job *job, struct trial_record *record,
                      struct agent_run *run, const struct agent_output *output, struct error **err)
{
    scoped(buf_done) struct buf lines = {0};
    const struct cell_capture *captures = output->captures;
    int r = save_output(job->dir_fd, "agent.stdout", &output->out, captures[0].bytes_seen, err);

    if (r == 0)
        r = save_output(job->dir_fd, "agent.stderr", &output->err, captures[1].bytes_seen, err);
    if (r < 0)
        return r;
    record->agent.output_bytes = captures[0].bytes_seen + captures[1].bytes_seen;
    record->agent.output_cut = captures[0].bytes_seen > output->out.size_bytes ||
                               captures[1].bytes_seen > output->err.size_bytes;
    if (!wire_is_on(job)) /* else the wire has said */
        record->agent.turns = event_log_turns(&run->events);
    record->agent.tool_calls = event_log_tool_calls(&run->events);
    event_log_write(&lines, &run->events);
    r = fs_write_atomic(job->dir_fd, "events.jsonl",
                        &(struct fs_content){buf_text(&lines), lines.size_bytes, 0600, FS_NO_SYNC},
                        err);
    return r < 0 ? r : save_trajectory(job, record, &run->events, err);
}

static void output_done(struct agent_output *output)
{
    buf_done(&output->out);
    buf_done(&output->err);
}

/* An agent that cannot even be started is the task's mistake, not something that it did. */
static int start_failed(const struct trial_job *job, const struct error *problem,
                        struct error **err)
{
    enum error_code code = error_code_of(problem);
    bool lacks_shell =
        code == ERROR_AGENT && root_shell(view_system(job->view, CELL_AGENT)) == NULL;

    return error_errno_of(problem) == EPIPE
               ? error_errno(err, EPIPE, "agent cell")
               : error_set(err, code == ERROR_AGENT ? ERROR_TASK : code, "agent cell: %s%s",
                           error_message(problem),
                           lacks_shell ? " (the cell's root has no /bin/sh)" : "");
}

static int run_program(const struct trial_job *job, struct trial_record *record,
                       const struct agent_turn *turn, struct agent_run *run, struct error **err)
{
    scoped(pipes_done) struct agent_pipes pipes;
    uint64_t start_ns = clock_ns();

    pipes_init(&pipes);

    int r = pipes_open(&pipes, turn, err);

    scoped(error_freep) struct error *problem = NULL;

    if (r < 0)
        return r;
    if (start_cell(job, record, turn, &pipes, run, &problem) < 0)
        return start_failed(job, problem, err);
    pipes_close_write(&pipes);
    record->timing_ms.launch = ns_to_ms(clock_ns() - start_ns);

    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&run->events, EVENT_SELF_REPORTED, clock_ns());
    scoped(output_done) struct agent_output output = {0};

    run->stream = agent_program_stream(job, &run->events);
    output_init(&output, job, &pipes, reader, run->stream);
    r = wait_agent(job, record, run, &output, err);
    output_sync(&output, &pipes);
    event_reader_end(reader);
    if (r == 0 && run->stream != NULL)
        r = agent_program_end(job, run, record, err);
    if (r == 0)
        r = save_agent(job, record, run, &output, err);
    return r < 0 || run->stream == NULL ? r : agent_program_check(run, record, err);
}

/* A cell without a program: the workspace as staged, for agents that do nothing at all. */
static int run_nothing(const struct trial_job *job, struct trial_record *record,
                       const struct agent_turn *turn, struct agent_run *run, struct error **err)
{
    struct agent_pipes pipes;
    struct cell_receipt receipt = {0};

    pipes_init(&pipes);

    int r = start_cell(job, record, turn, &pipes, run, err);

    if (r == 0)
        r = cell_end(run->cell, &receipt, err);
    if (r == 0)
        r = mocks_close(job, record, err);
    if (r == 0)
        r = wire_close(job, record, err);
    if (r == 0)
        r = mocks_sealed_close(job, run->mocks, record, err);
    if (r < 0)
        return error_wrap(err, r, "agent cell");
    record->agent.stopped_by = str_dup("none");
    return fs_write_atomic(job->dir_fd, "events.jsonl",
                           &(struct fs_content){"", 0, 0600, FS_NO_SYNC}, err);
}

static void replace_in(char **text, const char *path)
{
    char *replaced = token_replace(*text, TOKEN_INPUT_DIR, path);

    free(*text);
    *text = replaced;
}

/* $INPUT_DIR becomes the path at which the agent finds what it means. */
static void resolve_inputs(const struct trial_job *job, struct agent_turn *turn)
{
    scoped(mem_freep) char *path = trial_input_dir(job);

    if (path == NULL)
        return;
    if (turn->stdin_text != NULL)
        replace_in(&turn->stdin_text, path);
    for (size_t i = 0; i < turn->argv.count; i++)
        replace_in(&turn->argv.items[i], path);
    for (size_t i = 0; i < turn->env.count; i++)
        replace_in(&turn->env.items[i], path);
}

/* Where the cell has the plugins. */
static void plugin_folders(const struct trial_job *job, struct str_list *ret)
{
    const struct str_list *names = &view_plugins(job->view)->names;

    for (size_t i = 0; i < names->count; i++)
        str_list_add_take(ret, path_join(PLUGINS_PATH, names->items[i]));
}

int agent_run(const struct trial_job *job, struct trial_record *record, struct agent_run *ret,
              struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);

    int r = steps_before(job, record, &ret->before, err);

    if (r < 0)
        return r;
    if (public_half->agent.type == AGENT_ORACLE) {
        r = oracle_run(job, record, ret->before, &ret->cell, err);

        return r < 0 ? r
                     : fs_write_atomic(job->dir_fd, "events.jsonl",
                                       &(struct fs_content){"", 0, 0600, FS_NO_SYNC}, err);
    }

    const struct agent_adapter *adapter = agent_adapter_of(public_half->agent.type);
    scoped(agent_turn_done) struct agent_turn turn = {0};

    if (adapter == NULL)
        return error_set(err, ERROR_TASK, "no agent is set: name one with --agent or agent.type");

    if (wire_is_on(job))
        ret->placeholder = random_hex(WIRE_KEY_BYTES);
    scoped(str_list_done) struct str_list plugins = {0};

    plugin_folders(job, &plugins);
    r = adapter->plan_turn(public_half,
                           &(struct agent_place){.script_fd = job->script_fd,
                                                 .install = job->install,
                                                 .base_url = WIRE_URL,
                                                 .plugins = &plugins,
                                                 .key = ret->placeholder},
                           &turn, err);

    if (r < 0)
        return r;
    resolve_inputs(job, &turn);
    return turn.argv.count == 0 ? run_nothing(job, record, &turn, ret, err)
                                : run_program(job, record, &turn, ret, err);
}

void agent_run_done(struct agent_run *run)
{
    cell_free(run->mocks);
    cell_free(run->cell);
    cell_free(run->before);
    free(run->placeholder);
    stream_free(run->stream);
    wire_calls_done(&run->calls);
    event_log_done(&run->events);
    *run = (struct agent_run){0};
}
