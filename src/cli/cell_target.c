#include "cli/cell_target.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/fs.h"
#include "base/mem.h"
#include "run/mocks.h"
#include "task/task_private.h"
#include "task/task_public.h"

#define EVENTS_TEXT_BYTES_MAX ((size_t)64 << 20)

void cell_target_done(struct cell_target *target)
{
    grade_cell_free(target->grade_cell);
    cell_free(target->cell);
    if (target->view != NULL && target->view != target->staged.view)
        view_free(target->view);
    staged_done(&target->staged);
    if (target->monitor != NULL)
        monitor_free(target->monitor);
    if (target->recorded != NULL) {
        fd_closep(&target->tar_fd);
        fd_closep(&target->changes_fd);
        fd_closep(&target->events_fd);
    }
    run_dir_close(target->recorded);
    trial_operand_done(&target->operand);
    task_set_done(&target->tasks);
    task_inputs_done(&target->inputs);
    session_close(&target->session);
    str_list_done(&target->argv);
    str_list_done(&target->env);
    free(target->events);
}

static int load_one_task(struct cell_target *target, bool verbose, struct error **err)
{
    int r =
        task_inputs_load(&target->inputs, &target->session.reader, verbose, &target->tasks, err);

    if (r < 0)
        return r;
    if (target->tasks.count != 1)
        return error_set(err, ERROR_USER,
                         "%zu tasks or variants were found, one was expected; choose with --only "
                         "ID and --variant ID",
                         target->tasks.count);
    return 0;
}

static int stage_task(struct cell_target *target, bool grading, struct error **err)
{
    struct staged_options options = {
        .session = &target->session,
        .task = target->tasks.tasks[0],
        .all = &target->tasks,
        .grading = grading,
        .only_grading = target->recorded != NULL,
    };

    staged_make(&options, &target->staged);
    if (target->staged.error != NULL)
        return error_set(err, error_code_of(target->staged.error), "%s",
                         error_message(target->staged.error));
    target->view = target->staged.view;
    return monitor_connect(target->staged.control, &target->monitor, err);
}

static void make_grade_cell(struct cell_target *target)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(target->tasks.tasks[0], &public_half, &private_half);

    struct grade_cell_options options = {
        .monitor = target->monitor,
        .view = target->view,
        .private_stage = target->staged.has_private ? &target->staged.private_stage : NULL,
        .suite_variables = &private_half->suite_variables,
        .suite_root = private_half->suite_root,
        .tar_fd = target->recorded != NULL ? target->tar_fd : -1,
        .changes_fd = target->recorded != NULL ? target->changes_fd : -1,
        .events_fd = target->recorded != NULL ? target->events_fd : -1,
        .events = target->events,
        .dialog = "[]\n",
    };

    target->grade_cell = grade_cell_new(&options);
}

static int open_empty(struct cell_target *target, struct error **err)
{
    struct monitor *control = NULL;
    int r = session_monitor(&target->session, CELL_NATIVE, &control, err);

    if (r == 0)
        r = view_build_empty(target->session.store, &target->view, err);
    return r < 0 ? r : monitor_connect(control, &target->monitor, err);
}

static int open_task(struct cell_target *target, const struct arguments *arguments,
                     struct error **err)
{
    task_inputs_init(&target->values->tasks, arguments->operands, 1, &target->inputs);
    target->inputs.overrides.agent_optional = true;
    target->inputs.overrides.model_optional = true;

    int r = load_one_task(target, arguments->verbosity > 0, err);

    if (r == 0)
        r = stage_task(target, target->values->grader, err);
    if (r == 0 && target->values->grader)
        make_grade_cell(target);
    return r;
}

static int open_artifacts(struct cell_target *target, int dir_fd, struct error **err)
{
    scoped(buf_done) struct buf events = {0};

    static const char *const names[] = {"artifacts.tar", "changes.json", "events.jsonl"};
    int *const places[] = {&target->tar_fd, &target->changes_fd, &target->events_fd};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        *places[i] = fs_open_regular(dir_fd, names[i]);
        if (*places[i] < 0)
            return error_errno(err, -*places[i], "trial '%s' left nothing to look at: %s",
                               target->operand.trial_path, names[i]);
    }

    int r = fs_read_file(dir_fd, "events.jsonl", EVENTS_TEXT_BYTES_MAX, &events, err);

    if (r == 0)
        target->events = buf_take(&events);
    return r;
}

/* The part of "trials/VARIANT/TASK/NN" that names the task. */
static char *task_of_trial(const char *trial_path)
{
    scoped(mem_freep) char *folder = path_dir(trial_path);
    char *id = str_dup(path_base(folder));

    for (char *at = strchr(id, '@'); at != NULL; at = strchr(at, '@'))
        *at = '/';
    return id;
}

/* And the part that names its variant; owned. */
static char *variant_of_trial(const char *trial_path)
{
    scoped(mem_freep) char *task = path_dir(trial_path);
    scoped(mem_freep) char *variant = path_dir(task);

    return str_dup(path_base(variant));
}

static int load_recorded(struct cell_target *target, bool verbose, struct error **err)
{
    scoped(mem_freep) char *id = task_of_trial(target->operand.trial_path);
    unsigned repeats = 1;
    int r = task_inputs_recorded(run_dir_plan(target->recorded), &target->inputs, &repeats, err);

    if (r < 0)
        return r;
    str_list_done(&target->inputs.only);
    target->inputs.only = (struct str_list){0};
    str_list_add(&target->inputs.only, id);
    str_list_done(&target->inputs.variants);
    target->inputs.variants = (struct str_list){0};
    str_list_add_take(&target->inputs.variants, variant_of_trial(target->operand.trial_path));
    target->inputs.overrides.agent_optional = true;
    target->inputs.overrides.model_optional = true;
    return load_one_task(target, verbose, err);
}

static int open_trial(struct cell_target *target, const struct arguments *arguments,
                      struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    int r = trial_operand_parse(&target->session, arguments->operands[0], &target->operand, err);

    target->tar_fd = target->changes_fd = target->events_fd = -1;
    if (r == 0)
        r = session_open_run(&target->session, target->operand.run_path, false, &target->recorded,
                             err);
    if (r == 0)
        r = load_recorded(target, arguments->verbosity > 0, err);
    if (r == 0)
        r = run_dir_open_trial(target->recorded, target->operand.trial_path, false, &dir_fd, err);
    if (r == 0)
        r = open_artifacts(target, dir_fd, err);
    if (r == 0)
        r = stage_task(target, true, err);
    if (r == 0)
        make_grade_cell(target);
    return r;
}

/* What is neither a trial nor a task is not tried as a task: "a run" says more than "no YAML". */
static int open_operand(struct cell_target *target, const struct arguments *arguments,
                        bool in_a_run, struct error **err)
{
    enum operand_kind kind = operand_kind_of(&target->session, arguments->operands[0]);

    if (kind == OPERAND_TRIAL)
        return open_trial(target, arguments, err);
    if (kind == OPERAND_RUN || in_a_run)
        return error_set(err, ERROR_USER,
                         "'%s' is %s, not a trial; RUN/trials/VARIANT/TASK/NN was expected "
                         "('closedbook report' lists them)",
                         arguments->operands[0], kind == OPERAND_RUN ? "a run" : "part of a run");
    if (target->values->criterion != 0 && !target->values->grader)
        return error_set(err, ERROR_USER,
                         "--criterion runs in the grader's cell: add --grader, or name a recorded "
                         "trial instead of '%s'",
                         arguments->operands[0]);
    return open_task(target, arguments, err);
}

int cell_target_open(const struct arguments *arguments, struct cell_target *ret, struct error **err)
{
    const char *operand = arguments->operand_count > 0 ? arguments->operands[0] : NULL;
    scoped(mem_freep) char *run_path = operand != NULL ? run_path_of(operand) : NULL;
    scoped(mem_freep) char *run_id = random_hex(8);
    scoped(mem_freep) char *run_file = run_path != NULL ? path_join(run_path, "run.json") : NULL;
    struct session_options options = {.cells = true, .reads_nothing = operand == NULL};
    const struct cell_values *values = arguments->values;

    ret->values = arguments->values;
    options.allow_tier = values->allow_tier;
    if (run_file != NULL && access(run_file, F_OK) == 0)
        options.owner_of = run_path;

    int r = session_open(&options, &ret->session, err);

    if (r == 0)
        r = session_open_store(&ret->session, run_id, err);
    if (r < 0)
        return r;
    if (operand == NULL)
        return open_empty(ret, err);
    return open_operand(ret, arguments, options.owner_of != NULL && !str_ends(operand, ".yaml"),
                        err);
}

static int add_shell(struct cell_target *target, struct error **err)
{
    enum cell_role role = target->grade_cell != NULL ? CELL_GRADER : CELL_AGENT;
    const char *shell = NULL;
    int r = grade_cell_shell(target->view, role, &shell, err);

    if (r == 0)
        str_list_add(&target->argv, shell);
    return r;
}

static int criterion_command(struct cell_target *target, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    uint64_t number = target->values->criterion;

    task_split(target->tasks.tasks[0], &public_half, &private_half);
    if (number > private_half->criterion_count)
        return error_set(err, ERROR_USER, "--criterion %ju: the task has %zu criteria",
                         (uintmax_t)number, private_half->criterion_count);

    const struct criterion *criterion = &private_half->criteria[number - 1];

    if (criterion->kind != CRITERION_RUN_COMMAND)
        return error_set(err, ERROR_USER,
                         "criterion %ju is a %s, which has no command; give one after --",
                         (uintmax_t)number, criterion->type_name);
    int r = add_shell(target, err);

    str_list_add(&target->argv, "-c");
    str_list_add(&target->argv, json_get_text(criterion->params, "command"));
    return r;
}

int cell_target_command(struct cell_target *target, const struct arguments *arguments,
                        struct cell_command *command, struct error **err)
{
    scoped(str_list_done) struct str_list base = {0};
    scoped(str_list_done) struct str_list more = {0};
    const char *term = getenv("TERM");
    int r = 0;

    for (size_t i = 0; i < arguments->program_count; i++)
        str_list_add(&target->argv, arguments->program[i]);
    if (target->argv.count == 0 && target->values->criterion != 0 && target->grade_cell != NULL)
        r = criterion_command(target, err);
    else if (target->argv.count == 0)
        r = add_shell(target, err);
    if (r < 0)
        return r;
    if (target->grade_cell != NULL)
        str_list_copy(&base, grade_cell_env(target->grade_cell));
    else
        view_env(target->view, CELL_AGENT, &base, &command->cwd);
    if (term != NULL)
        str_list_add_take(&more, str_format("TERM=%s", term));
    agent_env_merge(&base, &more, &target->env);
    if (target->grade_cell == NULL && target->tasks.count == 1) {
        const struct task_public *public_half = NULL;
        const struct task_private *private_half = NULL;

        task_split(target->tasks.tasks[0], &public_half, &private_half);
        mocks_on_path(public_half, &target->env);
    }
    command->argv = (const char *const *)target->argv.items;
    command->envp = (const char *const *)target->env.items;
    return 0;
}

int cell_target_start(struct cell_target *target, const struct cell_command *command,
                      struct cell **ret, uint32_t *ret_process, struct error **err)
{
    *ret_process = 0;
    if (target->grade_cell != NULL) {
        int r = grade_cell_live(target->grade_cell, ret, err);

        return r < 0 ? r : cell_exec(*ret, command, ret_process, err);
    }

    struct cell_spec spec = {.role = CELL_AGENT, .etc_fd = -1};
    int r = view_fill_cell(target->view, target->monitor, CELL_AGENT, &spec, err);

    if (r < 0)
        return r;
    spec.command = *command;
    r = cell_start(target->monitor, &spec, &target->cell, err);
    *ret = target->cell;
    return r;
}
