#include "run/trial_agent.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "grade/live.h"
#include "run/agent_output.h"
#include "run/agent_program.h"
#include "run/agent_save.h"
#include "run/dialog.h"
#include "run/limits.h"
#include "run/mocks.h"
#include "run/mocks_sealed.h"
#include "run/oracle.h"
#include "run/services.h"
#include "run/steps.h"
#include "run/view_file.h"
#include "run/wire.h"
#include "stage/plugins.h"
#include "task/task_public.h"
#include "task/tokens.h"

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

    /* With one it would end when that does; in a dialog others follow. */
    if (command.argv == NULL || has_services || steps_are_in_agent(job) ||
        view_mock_tools(job->view) >= 0 || wire_is_on(job) || private_half->simulation != NULL)
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

/* The words, the whole environment and the pipes of a program of the agent's. Borrows env, too. */
static struct cell_command command_of(const struct trial_job *job, const struct agent_run *run,
                                      const struct agent_turn *turn,
                                      const struct agent_pipes *pipes, struct str_list *env)
{
    struct cell_command command = {0};
    scoped(str_list_done) struct str_list base = {0};
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    view_env(job->view, CELL_AGENT, &base, &command.cwd);
    limits_env(&public_half->limits, &base);
    agent_env_merge(&base, &turn->env, env);
    mocks_on_path(public_half, env);
    if (wire_is_on(job))
        wire_env(job, run->placeholder, env);
    command.envp = (const char *const *)env->items;
    if (turn->argv.count == 0)
        return command;
    command.argv = (const char *const *)turn->argv.items;
    for (size_t i = 0; i < AGENT_PIPES; i++)
        command.fds[i] = pipes->write[i];
    command.fd_count = turn->events_on_fd3 ? 4 : 3;
    return command;
}

static int start_cell(const struct trial_job *job, struct trial_record *record,
                      const struct agent_turn *turn, const struct agent_pipes *pipes,
                      struct agent_run *run, struct error **err)
{
    scoped(str_list_done) struct str_list env = {0};
    scoped(str_list_done) struct str_list targets = {0};
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
    if (run->before != NULL)
        spec.workspace = (struct cell_workspace){.kind = CELL_WORKSPACE_KEEP,
                                                 .keep_cell_id = cell_id(run->before)};
    spec.command = command_of(job, run, turn, pipes, &env);
    r = view_file_save(job, turn, &spec, &spec.command, err);
    return r < 0 ? r : start_in_order(job, record, &spec, run, err);
}

/* Another program of the agent's, in its living cell. */
static int start_again(const struct trial_job *job, const struct agent_turn *turn,
                       const struct agent_pipes *pipes, struct agent_run *run, struct error **err)
{
    scoped(str_list_done) struct str_list env = {0};
    const struct cell_command command = command_of(job, run, turn, pipes, &env);

    return cell_exec(run->cell, &command, &run->process, err);
}

/* Two clocks: of the program at hand, and of the agent as a whole. */
struct agent_clock {
    uint64_t start_ns, turn_ns; /* clock_ns() when they began */
};

/* The earlier of turn and task timeout; *ret_name says which. 0: none. */
static uint64_t deadline_of(const struct task_limits *limits, const struct agent_clock *clock,
                            const char **ret_name)
{
    uint64_t turn_ns = clock->turn_ns + limits->turn_timeout_ms * 1000000u;
    uint64_t task_ns = clock->start_ns + limits->task_timeout_ms * 1000000u;
    bool turn_first =
        limits->turn_timeout_ms != 0 && (limits->task_timeout_ms == 0 || turn_ns < task_ns);

    *ret_name = turn_first ? "turn_timeout" : "task_timeout";
    if (turn_first)
        return turn_ns;
    return limits->task_timeout_ms == 0 ? 0 : task_ns;
}

static void note_end(struct trial_record *record, enum cell_wait_result end,
                     const struct cell_exit *status, const char *deadline_name, bool stopped_early)
{
    const char *why = deadline_name;

    if (end == CELL_EXITED)
        why = status->term_signal != 0 ? "signal" : "exit";
    if (end == CELL_STOPPED)
        why = stopped_early ? "stop_early" : "interrupt";
    free(record->agent.stopped_by);
    record->agent.stopped_by = str_dup(why);
    record->agent.exit_code = record->agent.signal = -1;
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

/* Until the program at hand has ended, or its time. */
static int wait_program(const struct trial_job *job, struct trial_record *record,
                        struct agent_run *run, struct agent_output *output,
                        enum cell_wait_result *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const char *deadline_name = NULL;
    struct cell_exit status = {0};
    const struct agent_clock clock = {run->start_ns + run->paused_ns, clock_ns()};

    task_split(job->task, &public_half, &private_half);
    uint64_t deadline_ns = deadline_of(&public_half->limits, &clock, &deadline_name);
    int r = cell_wait(run->cell, run->process,
                      &(struct cell_patience){output->captures, 3, deadline_ns, job->stop}, ret,
                      &status, err);

    if (r < 0)
        return r;
    note_end(record, *ret, &status, deadline_name, run->enough);
    run->interrupted = *ret == CELL_STOPPED && !run->enough;
    record->timing_ms.agent += ns_to_ms(clock_ns() - clock.turn_ns);
    record->agent.duration_ms = (uint64_t)record->timing_ms.agent;
    return 0;
}

static int end_cell(const struct trial_job *job, struct trial_record *record, struct agent_run *run,
                    enum cell_wait_result end, struct error **err)
{
    struct cell_receipt receipt = {0};
    int r = cell_end(run->cell, &receipt, err);

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

/* prompt: NULL is the task's. A session that the program has told is gone on with. */
static int plan_turn(const struct trial_job *job, const struct agent_run *run, const char *prompt,
                     struct agent_turn *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(str_list_done) struct str_list plugins = {0};

    task_split(job->task, &public_half, &private_half);
    const struct agent_adapter *adapter = agent_adapter_of(public_half->agent.type);
    if (adapter == NULL)
        return error_set(err, ERROR_TASK, "no agent is set: name one with --agent or agent.type");
    plugin_folders(job, &plugins);
    int r = adapter->plan_turn(
        public_half,
        &(struct agent_place){.script_fd = job->script_fd,
                              .install = job->install,
                              .base_url = WIRE_URL,
                              .plugins = &plugins,
                              .prompt = prompt,
                              .session = run->stream == NULL ? NULL : stream_session(run->stream),
                              .key = run->placeholder},
        ret, err);

    if (r == 0)
        resolve_inputs(job, ret);
    return r;
}

/* --- a program, or one an exchange -------------------------------------------------------------
 */

/* In a dialog what a program printed is what it said, unless it told of that in events. */
static void note_reply(struct agent_run *run, const struct agent_output *output,
                       size_t events_before)
{
    const char *printed = buf_text(&output->out) + output->exchange;
    size_t size = output->out.size_bytes - output->exchange;

    for (size_t i = events_before; i < run->events.count; i++) {
        if (run->events.events[i].kind == EVENT_TEXT)
            return;
    }
    while (size > 0 && printed[size - 1] == '\n')
        size--;
    if (size == 0)
        return;
    struct event *event = event_log_add(&run->events, EVENT_TEXT, EVENT_SELF_REPORTED);

    event->t_ms = (clock_ns() - run->start_ns) / 1000000;
    event->output = json_text(printed, size_min(size, EVENT_LINE_BYTES_MAX));
}

/* *ret: what is said to the agent next; NULL: the dialog is over. */
static int ask_user(const struct trial_job *job, const struct trial_record *record,
                    struct agent_run *run, char **ret, struct error **err)
{
    struct dialog_exchange exchange = {0};
    bool is_used_up = false;
    int r = wire_used(job, &exchange.agent_tokens, &is_used_up, err);

    if (r < 0)
        return r;
    const char *stopped_by = record->agent.stopped_by;
    uint64_t asked_ns = clock_ns();

    exchange.has_failed = record->agent.exit_code != 0;
    exchange.is_stopped =
        is_used_up || !(str_equal(stopped_by, "exit") || str_equal(stopped_by, "signal"));
    r = dialog_next(run->dialog, &exchange, &run->events, ret, err);
    /* How long the user thinks is no time of the agent's. */
    run->paused_ns += clock_ns() - asked_ns;
    return r < 0 || *ret == NULL ? r : wire_next(job, *ret, err);
}

/* The exchanges after the first. */
static int go_on(const struct trial_job *job, struct trial_record *record, struct agent_run *run,
                 struct agent_output *output, enum cell_wait_result *end, struct error **err)
{
    size_t events_before = 0;

    for (;;) {
        scoped(agent_pipes_done) struct agent_pipes pipes;
        scoped(agent_turn_done) struct agent_turn turn = {0};
        scoped(mem_freep) char *said = NULL;

        agent_pipes_init(&pipes);
        if (run->stream != NULL)
            stream_end(run->stream);
        note_reply(run, output, events_before);
        int r = ask_user(job, record, run, &said, err);

        if (r < 0 || said == NULL)
            return r;
        events_before = run->events.count;
        r = plan_turn(job, run, said, &turn, err);
        if (r == 0)
            r = agent_pipes_open(&pipes, &turn, err);
        if (r == 0)
            r = start_again(job, &turn, &pipes, run, err);
        if (r < 0)
            return r;
        agent_pipes_close_write(&pipes);
        agent_output_attach(output, &pipes);
        r = wait_program(job, record, run, output, end, err);
        agent_output_sync(output, &pipes);
        if (r < 0)
            return r;
    }
}

static bool look_live(void *context)
{
    struct agent_run *run = context;

    run->enough = run->enough || live_look(run->live, &run->events) != LIVE_GOES_ON;
    return run->enough;
}

/* From here on armed criteria see what the agent does. */
static void watch(struct agent_run *run, const struct task_public *half,
                  const struct task_private *task, struct agent_output *output)
{
    run->live = live_new(task, task_agent_is_trusted(&half->agent));
    if (run->live == NULL)
        return;
    output->look = look_live;
    output->look_context = run;
}

static int run_program(const struct trial_job *job, struct trial_record *record,
                       const struct agent_turn *turn, struct agent_run *run, struct error **err)
{
    scoped(agent_pipes_done) struct agent_pipes pipes;
    scoped(error_freep) struct error *problem = NULL;
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    enum cell_wait_result end = CELL_EXITED;
    uint64_t launch_ns = clock_ns();

    task_split(job->task, &public_half, &private_half);
    agent_pipes_init(&pipes);
    int r = agent_pipes_open(&pipes, turn, err);

    if (r < 0)
        return r;
    if (start_cell(job, record, turn, &pipes, run, &problem) < 0)
        return start_failed(job, problem, err);
    agent_pipes_close_write(&pipes);
    record->timing_ms.launch = ns_to_ms(clock_ns() - launch_ns);
    run->start_ns = clock_ns();

    scoped(event_reader_freep) struct event_reader *reader =
        event_reader_new(&run->events, EVENT_SELF_REPORTED, run->start_ns);
    scoped(agent_output_done) struct agent_output output = {0};

    run->stream = agent_program_stream(job, &run->events);
    agent_output_init(&output, (size_t)public_half->limits.max_output_mb << 20, reader,
                      run->stream);
    output.show = (struct event_show){job->shows_events ? job->trial_id : NULL, &run->events, 0};
    watch(run, public_half, private_half, &output);
    agent_output_attach(&output, &pipes);
    r = wait_program(job, record, run, &output, &end, err);
    agent_output_sync(&output, &pipes);
    record->early_stop = live_json(run->live);
    /* What the agent did is kept also when nobody answers it any more. */
    int said = r == 0 && run->dialog != NULL ? go_on(job, record, run, &output, &end, &problem) : 0;

    if (said < 0 && error_errno_of(problem) == EPIPE)
        return error_errno(err, EPIPE, "agent cell");
    if (r == 0)
        r = end_cell(job, record, run, end, err);
    if (r == 0 && run->stream != NULL)
        r = agent_program_end(job, run, record, err);
    if (r == 0)
        r = agent_save(job, record, run, &output, err);
    if (r == 0 && said < 0)
        return error_set(err, error_code_of(problem), "%s", error_message(problem));
    return r < 0 || run->stream == NULL ? r : agent_program_check(run, record, err);
}

/* A cell without a program: the workspace as staged, for agents that do nothing at all. */
static int run_nothing(const struct trial_job *job, struct trial_record *record,
                       const struct agent_turn *turn, struct agent_run *run, struct error **err)
{
    struct agent_pipes pipes;
    struct cell_receipt receipt = {0};

    agent_pipes_init(&pipes);

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

    scoped(agent_turn_done) struct agent_turn turn = {0};
    scoped(mem_freep) char *said = NULL;

    if (wire_is_on(job))
        ret->placeholder = random_hex(WIRE_KEY_BYTES);
    r = dialog_open(job, &ret->dialog, err);
    if (r == 0 && ret->dialog != NULL)
        r = dialog_begin(ret->dialog, &ret->events, &said, err);
    if (r == 0)
        r = plan_turn(job, ret, said, &turn, err);
    if (r == 0)
        r = turn.argv.count == 0 ? run_nothing(job, record, &turn, ret, err)
                                 : run_program(job, record, &turn, ret, err);
    if (ret->dialog != NULL)
        record->dialog = dialog_json(ret->dialog);
    return r;
}

void agent_run_done(struct agent_run *run)
{
    cell_free(run->mocks);
    cell_free(run->cell);
    cell_free(run->before);
    free(run->placeholder);
    dialog_free(run->dialog);
    live_free(run->live);
    stream_free(run->stream);
    wire_calls_done(&run->calls);
    event_log_done(&run->events);
    *run = (struct agent_run){0};
}
