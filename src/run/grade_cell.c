#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "run/grade_cell_internal.h"
#include "run/limits.h"
#include "run/mocks.h"
#include "run/private_files.h"
#include "run/services.h"

/*
 * A path that names nothing of the host; its parent lists nothing. Code that a grader runs can find
 * it all the same (its environment and mount table hold it): SECURITY.md says so.
 */
static char *hidden_path(void)
{
    scoped(mem_freep) char *name = random_hex(16);

    return str_format("/graders/%s", name);
}

static void add_variable(struct grade_cell *cell, const char *name, const char *value)
{
    str_list_add_take(&cell->env, str_format("%s=%s", name, value));
}

/* The operator's value, moved from the suite root on the host to where it is mounted. */
static void add_suite_variable(struct grade_cell *cell, const char *name)
{
    const char *value = getenv(name);
    size_t root_length = strlen(cell->options.suite_root);

    if (value == NULL || !str_starts(value, cell->options.suite_root))
        return;

    scoped(mem_freep) char *moved = str_format("%s%s", cell->suite_path, value + root_length);

    add_variable(cell, name, moved);
}

static void make_env(struct grade_cell *cell)
{
    const struct private_stage *stage = cell->options.private_stage;

    for (char **item = environ; cell->options.operator_env && *item != NULL; item++)
        str_list_add(&cell->env, *item);
    if (!cell->options.operator_env)
        view_env(cell->options.view, grade_cell_role(cell), &cell->env, NULL);
    mocks_put_first(&cell->env, CELL_CANDIDATE_DIR);
    if (cell->options.limits != NULL)
        limits_env(cell->options.limits, &cell->env);
    add_variable(cell, "CLOSEDBOOK_TRIAL", cell->trial_path);
    /* Nothing below HOME is a tool of the grader. */
    add_variable(cell, "PYTHONNOUSERSITE", "1");
    if (cell->options.input_dir != NULL)
        add_variable(cell, "INPUT_DIR", cell->options.input_dir);
    if (stage != NULL && stage->has_suite) {
        scoped(mem_freep) char *task_dir = path_join(cell->suite_path, stage->task_dir_in_suite);
        scoped(mem_freep) char *normal = path_normal(task_dir);

        add_variable(cell, "TASK_DIR", normal);
        for (size_t i = 0;
             cell->options.suite_root != NULL && i < cell->options.suite_variables->count; i++)
            add_suite_variable(cell, cell->options.suite_variables->items[i]);
    }
    if (stage != NULL && stage->has_reference)
        add_variable(cell, "REFERENCE_DIR", cell->reference_path);
}

struct grade_cell *grade_cell_new(const struct grade_cell_options *options)
{
    struct grade_cell *cell = mem_new(1, sizeof(*cell));

    cell->options = *options;
    cell->suite_path = hidden_path();
    cell->reference_path = hidden_path();
    cell->trial_path = hidden_path();
    cell->events_path = path_join(cell->trial_path, "events.jsonl");
    cell->final_path = path_join(cell->trial_path, "final.txt");
    cell->dialog_path = path_join(cell->trial_path, "dialog.json");
    if (options->private_stage != NULL && options->private_stage->reference_in_suite != NULL)
        cell->reference_place =
            path_join(cell->suite_path, options->private_stage->reference_in_suite);
    make_env(cell);
    return cell;
}

void grade_cell_free(struct grade_cell *cell)
{
    if (cell == NULL)
        return;
    cell_free(cell->cell);
    cell_free(cell->left);
    str_list_done(&cell->env);
    free(cell->suite_path);
    free(cell->reference_path);
    free(cell->trial_path);
    free(cell->reference_place);
    free(cell->events_path);
    free(cell->final_path);
    free(cell->dialog_path);
    free(cell);
}

void grade_cell_freep(struct grade_cell **cell)
{
    grade_cell_free(*cell);
}

struct cell *grade_cell_take(struct grade_cell *cell)
{
    return take(cell->cell);
}

const struct str_list *grade_cell_env(const struct grade_cell *cell)
{
    return &cell->env;
}

const char *grade_cell_reference(const struct grade_cell *cell)
{
    const struct private_stage *stage = cell->options.private_stage;

    return stage != NULL && stage->has_reference ? cell->reference_path : NULL;
}

/* Candidates see what the agent saw, but for the workspace, which is as the grader has it. */
static int allow_candidates(struct grade_cell *cell, struct error **err)
{
    struct cell_spec recipe = {.etc_fd = -1};
    int r = view_fill_cell(cell->options.view, cell->options.monitor, CELL_CANDIDATE, &recipe, err);

    if (r == 0 && cell->options.program != NULL)
        r = grade_cell_add_mount(&recipe, *cell->options.program, err);
    return r < 0 ? r : cell_allow_candidates(cell->cell, &recipe, err);
}

/* command: what it begins with; NULL: nothing. Candidates that it asks for wait for the recipe. */
static int start_cell(struct grade_cell *cell, const struct cell_command *command,
                      struct error **err)
{
    const struct grade_cell_options *options = &cell->options;
    const struct cell *keep = cell->left != NULL ? cell->left : options->keep;
    struct cell_spec spec = {.role = grade_cell_role(cell), .etc_fd = -1};
    int r = grade_cell_fill(cell, &spec, err);

    if (r < 0)
        return r;
    if (keep != NULL)
        spec.workspace =
            (struct cell_workspace){.kind = CELL_WORKSPACE_KEEP, .keep_cell_id = cell_id(keep)};
    if (command != NULL)
        spec.command = *command;

    r = cell_start(options->monitor, &spec, &cell->cell, err);
    if (r == 0 && grade_cell_has_candidates(cell))
        r = allow_candidates(cell, err);
    if (r < 0)
        return error_wrap(err, r, "grading cell");
    cell_free(take(cell->left));
    return 0;
}

int grade_cell_live(struct grade_cell *cell, struct cell **ret, struct error **err)
{
    int r = 0;

    if (cell->cell == NULL)
        r = start_cell(cell, NULL, err);
    if (r == 0 && !cell->applied && cell->options.tar_fd >= 0) {
        r = collect_apply(cell->cell, cell->options.tar_fd, cell->options.changes_fd, err);
        if (r < 0)
            return error_wrap(err, r, "cannot lay out what the agent left");
    }
    if (r == 0 && !cell->applied && cell->options.kept_path != NULL)
        r = grade_cell_put_kept(cell, err);
    if (r == 0 && !cell->applied && cell->options.sealed_fd != NULL)
        r = grade_cell_put_sealed(cell, err);
    if (r < 0)
        return r;
    cell->applied = true;
    *ret = cell->cell;
    return 0;
}

/* Everything in it dies; the workspace stays, for the next cell, which starts on first use. */
static int leave(struct grade_cell *cell, struct error **err)
{
    struct cell_receipt receipt;

    if (cell->cell == NULL)
        return 0;
    cell->left = take(cell->cell);
    cell->used = false;
    return cell_end(cell->left, &receipt, err);
}

/* After a command that is only to look: its workspace goes, the next makes it anew. */
static int forget(struct grade_cell *cell, struct error **err)
{
    int r = leave(cell, err);

    cell_free(take(cell->left));
    cell->applied = false;
    return r;
}

/* By the shell, because a tempdir has as-candidate on PATH alone. */
static const char ask_candidate[] =
    "exec as-candidate ${INPUT_DIR:+--env} ${INPUT_DIR:+\"INPUT_DIR=$INPUT_DIR\"} -- \"$@\"";

struct shell_run {
    const char *shell, *command;
    const char
        *candidate_shell; /* the whole command runs in a candidate, by this; NULL: it does not */
    const struct grade_command *limits;
    struct grade_command_result *result;
};

static int wait_command(struct grade_cell *cell, uint32_t process, int *fds,
                        const struct shell_run *run, struct error **err)
{
    struct grade_command_result *result = run->result;
    struct cell_capture captures[2] = {{.fd = fds[0], .buf = &result->out},
                                       {.fd = fds[1], .buf = &result->err}};
    uint64_t deadline_ns = clock_ns() + run->limits->timeout_ms * 1000000u;
    enum cell_wait_result end;
    struct cell_exit status = {0};
    const struct cell_patience patience = {captures, 2, deadline_ns, cell->options.stop};
    int r = cell_wait(cell->cell, process, &patience, &end, &status, err);

    fds[0] = captures[0].fd;
    fds[1] = captures[1].fd;
    if (r < 0)
        return error_wrap(err, r, "grading cell");
    if (end == CELL_EXITED && cell_candidate_failures(cell->cell) > 0)
        return error_set(err, ERROR_SYSTEM,
                         "grading cell: %u candidates could not be made; standard error has: %s",
                         cell_candidate_failures(cell->cell), buf_text(&result->err));
    result->out_cut = captures[0].bytes_seen > result->out.size_bytes;
    result->err_cut = captures[1].bytes_seen > result->err.size_bytes;
    result->timed_out = end == CELL_DEADLINE;
    result->stopped = end == CELL_STOPPED;
    result->exit_code = end == CELL_EXITED ? status.exit_code : -1;
    result->term_signal = end == CELL_EXITED ? status.term_signal : 0;
    return end == CELL_EXITED ? 0 : leave(cell, err);
}

static int pipe_pair(int read_end[1], int write_end[1], struct error **err)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_errno(err, errno, "cannot make a pipe");
    read_end[0] = ends[0];
    write_end[0] = ends[1];
    return 0;
}

static int run_shell(struct grade_cell *cell, const struct shell_run *run, struct error **err)
{
    scoped(fd_closep) int out_read = -1;
    scoped(fd_closep) int out_write = -1;
    scoped(fd_closep) int err_read = -1;
    scoped(fd_closep) int err_write = -1;
    int r = pipe_pair(&out_read, &out_write, err);

    if (r == 0)
        r = pipe_pair(&err_read, &err_write, err);
    if (r < 0)
        return r;

    const char *argv[] = {run->shell, "-c", run->command, NULL};
    const char *as_candidate[] = {run->shell,           "-c", ask_candidate, "as-candidate",
                                  run->candidate_shell, "-c", run->command,  NULL};
    struct cell_command command = {
        .argv = run->candidate_shell == NULL ? argv : as_candidate,
        .envp = (const char *const *)cell->env.items,
        .fds = {-1, out_write, err_write},
        .fd_count = 3,
    };
    scoped(fd_closep) int input = -1;
    uint32_t process = 1;

    if (run->limits->input != NULL)
        r = fs_memfd("input", run->limits->input, run->limits->input_bytes, &input, err);
    if (r < 0)
        return r;
    command.fds[0] = input;
    run->result->out.max_bytes = run->limits->output_max_bytes;
    run->result->err.max_bytes = run->limits->output_max_bytes;
    r = cell->cell == NULL ? start_cell(cell, &command, err)
                           : cell_exec(cell->cell, &command, &process, err);
    if (r < 0)
        return r;
    fd_closep(&out_write);
    fd_closep(&err_write);

    int fds[2] = {out_read, err_read};

    r = wait_command(cell, process, fds, run, err);
    out_read = fds[0];
    err_read = fds[1];
    return r;
}

/* Runs one command line of ours, quietly; *ret_code is its exit code. */
static int run_quiet(struct grade_cell *cell, const char *shell, const char *command, int *ret_code,
                     struct error **err)
{
    struct grade_command limits = {
        .command = command, .timeout_ms = 10000, .output_max_bytes = 4096};
    struct grade_command_result result = {0};
    struct shell_run run = {
        .shell = shell, .command = command, .limits = &limits, .result = &result};
    int r = run_shell(cell, &run, err);

    *ret_code = result.exit_code;
    grade_command_result_done(&result);
    return r;
}

int grade_cell_shell(const struct view *view, enum cell_role role, const char **ret,
                     struct error **err)
{
    const char *shell = root_shell(view_system(view, role));

    if (shell == NULL)
        return error_set(err, ERROR_TASK,
                         "the %s cell's root has no /bin/sh, which this command needs: take a "
                         "rootfs or an image that has one",
                         role == CELL_GRADER ? "grading" : "agent");
    *ret = shell;
    return 0;
}

static bool is_shell_special(char c)
{
    return strchr(" \t\n;&|<>()$`\\\"'*?[]{}~#=%!", c) != NULL;
}

/*
 * The word that names what a command runs: its first word, or the script right after an interpreter
 * when that lies under $TASK_DIR or $REFERENCE_DIR. NULL when it is not that plain.
 */
static char *tool_of(const char *command)
{
    size_t start = strspn(command, " \t\n");
    size_t length = 0;

    while (command[start + length] != 0 && !is_shell_special(command[start + length]))
        length++;
    if (length == 0 || (command[start + length] != 0 && command[start + length] != ' ' &&
                        command[start + length] != '\n'))
        return NULL;
    return str_ndup(command + start, length);
}

/* What lies there is the agent's to bring and to leave, whatever the command calls it. */
static bool is_of_workspace(const char *tool)
{
    scoped(mem_freep) char *path = path_normal(tool);

    return manifest_path_below(path, "/workspace");
}

/* True when `missing` names a tool or a script of the grader's that its cell lacks. */
static int find_missing(struct grade_cell *cell, const char *command, char **ret,
                        struct error **err)
{
    static const char *const roots[] = {"$TASK_DIR/", "${TASK_DIR}/", "$REFERENCE_DIR/",
                                        "${REFERENCE_DIR}/"};
    scoped(mem_freep) char *tool = tool_of(command);
    int code = 0;
    int r = 0;

    if (tool != NULL && (tool[0] == '/' ? !is_of_workspace(tool) : strchr(tool, '/') == NULL)) {
        scoped(mem_freep) char *check = str_format("command -v -- '%s' >/dev/null 2>&1", tool);

        r = run_quiet(cell, "/bin/sh", check, &code, err);
        if (r == 0 && code != 0)
            *ret = take(tool);
        if (r < 0 || code != 0)
            return r;
    }
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        const char *at = strstr(command, roots[i]);
        size_t length = 0;

        if (at == NULL)
            continue;
        length = strlen(roots[i]);
        while (at[length] != 0 && !is_shell_special(at[length]))
            length++;

        scoped(mem_freep) char *word = str_ndup(at, length);
        scoped(mem_freep) char *check = str_format("test -r \"%s\"", word);

        r = run_quiet(cell, "/bin/sh", check, &code, err);
        if (r == 0 && code != 0)
            *ret = take(word);
        return r;
    }
    return 0;
}

/* Of the cell that a command has to itself. */
static int start_services(struct grade_cell *cell, struct error **err)
{
    const struct services services = {
        .items = cell->options.services,
        .count = cell->options.service_count,
        .shell = "/bin/sh",
        .envp = (const char *const *)cell->env.items,
    };
    scoped(error_freep) struct error *problem = NULL;
    int r = services_start(cell->cell, &services, &problem);

    if (r == 0)
        return 0;
    if (error_errno_of(problem) == EPIPE)
        return error_errno(err, EPIPE, "grading cell");
    /* Beside the agent it was ready: what it does not bear is what the agent left. */
    enum error_code code = error_code_of(problem);

    return error_set(err, code == ERROR_TASK ? ERROR_AGENT : code, "grading cell: %s",
                     error_message(problem));
}

static int run_command(struct grade_cell *cell, const struct grade_command *command,
                       struct grade_command_result *ret, struct error **err)
{
    struct shell_run run = {.command = command->command, .limits = command, .result = ret};
    struct cell *live = NULL;
    int r = grade_cell_shell(cell->options.view, grade_cell_role(cell), &run.shell, err);

    if (r == 0 && command->as_candidate)
        r = grade_cell_shell(cell->options.view, CELL_CANDIDATE, &run.candidate_shell, err);

    /*
     * Commands build on each other through the workspace alone: what one criterion's candidate left
     * in HOME, in /tmp or running must not meet the next one's grader.
     */
    if (r == 0 && cell->used)
        r = leave(cell, err);
    /* Where nothing must be done in it before, the cell begins with the command. */
    if (r == 0 && (cell->options.service_count > 0 || !grade_cell_has_nothing_to_apply(cell)))
        r = grade_cell_live(cell, &live, err);
    cell->used = true;
    if (r == 0 && cell->options.service_count > 0)
        r = start_services(cell, err);
    if (r == 0)
        r = run_shell(cell, &run, err);
    /* What a candidate lacks is the agent's to bring. */
    if (r == 0 && !command->as_candidate && (ret->exit_code == 126 || ret->exit_code == 127)) {
        r = find_missing(cell, command->command, &ret->missing_name, err);
        ret->missing_tool = ret->missing_name != NULL;
    }
    return r;
}

/* In a cell of its own over what the agent left; the workspace of the others waits meanwhile. */
static int run_fresh(struct grade_cell *cell, const struct grade_command *command,
                     struct grade_command_result *ret, struct error **err)
{
    int r = leave(cell, err);
    struct cell *others = take(cell->left);
    bool applied = cell->applied;

    cell->applied = false;
    if (r == 0)
        r = run_command(cell, command, ret, err);
    if (r == 0)
        r = forget(cell, err);
    cell_free(take(cell->left));
    cell->left = others;
    cell->applied = applied && others != NULL;
    return r;
}

static int workspace_run(void *context, const struct grade_command *command,
                         struct grade_command_result *ret, struct error **err)
{
    struct grade_cell *cell = context;

    if (command->fresh)
        return run_fresh(cell, command, ret, err);
    if (command->looks_only)
        return run_command(cell, command, ret, err);
    if (command->read_only && cell->changed)
        return error_set(err, ERROR_BUG, "a read_only command after one that is not");
    cell->changed |= !command->read_only;
    int r = run_command(cell, command, ret, err);

    return r == 0 && command->read_only ? forget(cell, err) : r;
}

static enum grade_file_state file_state(enum collect_file_state state)
{
    switch (state) {
    case COLLECT_FILE_OK:
        return GRADE_FILE_OK;
    case COLLECT_FILE_ABSENT:
        return GRADE_FILE_ABSENT;
    case COLLECT_FILE_NOT_REGULAR:
        return GRADE_FILE_NOT_REGULAR;
    case COLLECT_FILE_TOO_LARGE:
        return GRADE_FILE_TOO_LARGE;
    case COLLECT_FILE_AMBIGUOUS:
        return GRADE_FILE_AMBIGUOUS;
    }
    return GRADE_FILE_ABSENT;
}

static int workspace_read(void *context, const char *path, bool content, struct grade_file *ret,
                          struct error **err)
{
    struct grade_cell *cell = context;
    scoped(collect_file_done) struct collect_file file = {0};
    struct cell *live = NULL;

    if (!cell->options.reads_files)
        return error_set(err, ERROR_BUG, "a file is asked for, and no criterion was to read any");

    int r = grade_cell_live(cell, &live, err);

    /* Not what code of the agent's may have made of it since, in this cell. */
    if (r == 0 && grade_cell_is_kept(cell, path))
        return grade_cell_read_kept(cell, content, ret, err);
    if (r == 0)
        r = collect_read(live, path, content ? GRADE_FILE_BYTES_MAX : 0, &file, err);
    if (r < 0)
        return r;
    ret->state = file_state(file.state);
    if (str_equal(file.what, "a directory"))
        ret->state = GRADE_FILE_DIRECTORY;
    ret->resolved = take(file.resolved);
    ret->matches = file.matches;
    file.matches = (struct str_list){0};
    ret->content = file.content;
    file.content = (struct buf){0};
    if (ret->state == GRADE_FILE_NOT_REGULAR && file.what != NULL)
        buf_text_append(&ret->content, file.what);
    return 0;
}

static int workspace_private(void *context, enum grade_private place, const char *path,
                             struct grade_file *ret, struct error **err)
{
    const struct grade_cell *cell = context;
    const struct private_stage *stage = cell->options.private_stage;

    if (stage == NULL)
        return error_set(err, ERROR_BUG, "a private file is asked for, and none is staged");
    return private_files_read(stage, place, path, ret, err);
}

struct grade_workspace grade_cell_workspace(struct grade_cell *cell)
{
    return (struct grade_workspace){.context = cell,
                                    .read = workspace_read,
                                    .run = workspace_run,
                                    .private_file = workspace_private};
}
