#include "run/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/grade_cell.h"
#include "run/mocks.h"
#include "run/mocks_sealed.h"
#include "task/task_private.h"
#include "task/task_public.h"

#define STEP_OUTPUT_BYTES_MAX ((size_t)100 << 10) /* of each stream */
#define STEP_TAIL_BYTES 300
#define CHANGES_BYTES_MAX ((size_t)256 << 20)
#define BEFORE "pre_run"
#define AFTER "post_run"

/* One phase: its commands, and where they run. */
struct phase {
    const struct trial_job *job;
    struct trial_record *record;
    const char *name;
    const struct task_step *steps;
    size_t first, end; /* of steps */
    struct grade_cell *cell;
    const struct steps_place *place; /* in place of cell: the agent's */
};

static const struct task_private *private_of(const struct trial_job *job)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    return private_half;
}

/* Both streams, one after the other, as steps/PHASE-NN.out. */
static int save_output(const struct phase *phase, size_t i,
                       const struct grade_command_result *result, struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    scoped(mem_freep) char *name = str_format("%s-%02zu.out", phase->name, i + 1);
    scoped(buf_done) struct buf text = {0};

    if (result->out.size_bytes + result->err.size_bytes == 0)
        return 0;
    buf_append(&text, buf_text(&result->out), result->out.size_bytes);
    buf_append(&text, buf_text(&result->err), result->err.size_bytes);
    int r = fs_open_dir(phase->job->dir_fd, "steps", 0700, &dir_fd, err);

    return r < 0
               ? r
               : fs_write_atomic(
                     dir_fd, name,
                     &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC}, err);
}

static const char *place_name(const struct phase *phase)
{
    if (phase->place != NULL)
        return "agent";
    return phase->job->bare_host != NULL ? "bare host" : "host";
}

/* Before it runs: what has begun is seen in the record, however it ends. Borrowed from that. */
static json_t *note_start(const struct phase *phase, size_t i)
{
    json_t *json = json_object();

    json_put_text(json, "phase", phase->name);
    json_put_text(json, "command", phase->steps[i].command);
    json_put_text(json, "runs_in", place_name(phase));
    if (phase->record->steps == NULL)
        phase->record->steps = json_array();
    json_push(phase->record->steps, json);
    return json;
}

static void note_end(json_t *json, const struct grade_command_result *result, uint64_t start_ns)
{
    json_put_int(json, "exit_code", result->exit_code);
    json_put_int(json, "signal", result->term_signal == 0 ? -1 : result->term_signal);
    json_put_bool(json, "timed_out", result->timed_out);
    json_put_int(json, "duration_ms", (int64_t)((clock_ns() - start_ns) / 1000000u));
}

/* What outlives its time in the agent's cell can only be ended with that. */
static bool is_failure(const struct phase *phase, size_t i,
                       const struct grade_command_result *result)
{
    if (phase->place != NULL && result->timed_out)
        return true;
    return phase->steps[i].fail_on_error && (result->timed_out || result->exit_code != 0);
}

static int failure(const struct phase *phase, size_t i, const struct grade_command_result *result,
                   struct error **err)
{
    const struct task_step *step = &phase->steps[i];
    const struct buf *said = result->err.size_bytes > 0 ? &result->err : &result->out;
    size_t size = said->size_bytes;

    while (size > 0 && strchr(" \t\r\n", buf_text(said)[size - 1]) != NULL)
        size--;
    size_t from = size > STEP_TAIL_BYTES ? size - STEP_TAIL_BYTES : 0;
    scoped(mem_freep) char *how =
        result->timed_out ? str_format("ran longer than %ju ms", (uintmax_t)step->timeout_ms)
                          : str_format("exit code %d", result->exit_code);

    scoped(mem_freep) char *tail =
        size == 0 ? str_dup("it printed nothing") : str_ndup(buf_text(said) + from, size - from);

    return error_set(err, ERROR_TASK, "%s:%u: %s step %zu failed (%s): %s", step->file, step->line,
                     phase->name, i + 1, how, tail);
}

/* A file in memory never makes a step wait for a reader. */
static int read_output(int fd, const char *name, struct buf *ret, struct error **err)
{
    struct stat status;

    ret->max_bytes = STEP_OUTPUT_BYTES_MAX;
    if (fstat(fd, &status) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        return error_errno(err, errno, "cannot read %s of a step", name);
    if (status.st_size > (off_t)STEP_OUTPUT_BYTES_MAX &&
        ftruncate(fd, (off_t)STEP_OUTPUT_BYTES_MAX) < 0)
        return error_errno(err, errno, "cannot cut %s of a step", name);
    return fs_read_fd(fd, name, STEP_OUTPUT_BYTES_MAX, ret, err);
}

static int run_in_agent(const struct phase *phase, const struct grade_command *command,
                        struct grade_command_result *ret, struct error **err)
{
    const struct steps_place *place = phase->place;
    const char *const argv[] = {place->shell, "-c", command->command, NULL};
    scoped(fd_closep) int out_fd = memfd_create("stdout", MFD_CLOEXEC);
    scoped(fd_closep) int err_fd = memfd_create("stderr", MFD_CLOEXEC);
    const struct cell_command program = {
        .argv = argv,
        .envp = place->envp,
        .fds = {-1, out_fd, err_fd},
        .fd_count = 3,
    };
    const struct cell_patience patience = {
        .deadline_ns = clock_ns() + command->timeout_ms * 1000000u, .stop = phase->job->stop};
    enum cell_wait_result end = CELL_EXITED;
    struct cell_exit status = {0};
    uint32_t process = 0;

    if (out_fd < 0 || err_fd < 0)
        return error_errno(err, errno, "cannot keep a step's output");
    int r = cell_exec(place->cell, &program, &process, err);

    if (r == 0)
        r = cell_wait(place->cell, process, &patience, &end, &status, err);
    if (r < 0)
        return error_wrap(err, r, "agent cell");
    ret->timed_out = end == CELL_DEADLINE;
    ret->stopped = end == CELL_STOPPED;
    ret->exit_code = end == CELL_EXITED ? status.exit_code : -1;
    ret->term_signal = end == CELL_EXITED ? status.term_signal : 0;
    r = read_output(out_fd, "stdout", &ret->out, err);
    return r < 0 ? r : read_output(err_fd, "stderr", &ret->err, err);
}

static int run_command(const struct phase *phase, const struct grade_command *command,
                       struct grade_command_result *ret, struct error **err)
{
    if (phase->place != NULL)
        return run_in_agent(phase, command, ret, err);
    struct grade_workspace workspace = grade_cell_workspace(phase->cell);

    return workspace.run(workspace.context, command, ret, err);
}

static int run_step(const struct phase *phase, size_t i, struct error **err)
{
    struct grade_command command = {
        .command = phase->steps[i].command,
        .timeout_ms = phase->steps[i].timeout_ms,
        .output_max_bytes = STEP_OUTPUT_BYTES_MAX,
    };
    struct grade_command_result result = {0};
    json_t *note = note_start(phase, i);
    uint64_t start_ns = clock_ns();
    int r = run_command(phase, &command, &result, err);

    if (r == 0) {
        note_end(note, &result, start_ns);
        r = save_output(phase, i, &result, err);
    }
    if (r == 0 && result.stopped)
        r = error_set(err, ERROR_USER, "interrupted");
    if (r == 0 && is_failure(phase, i, &result))
        r = failure(phase, i, &result, err);
    grade_command_result_done(&result);
    return r;
}

static int run_steps(const struct phase *phase, struct error **err)
{
    int r = 0;

    for (size_t i = phase->first; i < phase->end && r == 0; i++)
        r = run_step(phase, i, err);
    return r;
}

/* Teardown goes on after a step that could not even run; the first such problem is kept. */
static int run_all_steps(const struct phase *phase, struct error **err)
{
    int r = 0;

    for (size_t i = phase->first; i < phase->end; i++) {
        scoped(error_freep) struct error *problem = NULL;
        int step_r = run_step(phase, i, &problem);

        if (step_r < 0 && r == 0)
            r = error_set(err, error_code_of(problem), "%s", error_message(problem));
    }
    return r;
}

/* Everything but the reference, which only graders and what follows them get. */
static struct private_stage without_reference(const struct private_stage *stage)
{
    struct private_stage less = *stage;

    less.has_reference = false;
    less.reference_in_suite = NULL;
    less.reference_mount_fd = -1;
    return less;
}

/* What the steps left is kept beside the agent's: changes.json is compared with it. */
static int collect_before(const struct trial_job *job, struct monitor *monitor,
                          const struct cell *cell, struct error **err)
{
    scoped(collect_result_done) struct collect_result result = {0};
    struct collect_source source = view_collect_source(job->view);
    scoped(fd_closep) int dir_fd = -1;
    int r = fs_open_dir(job->dir_fd, BEFORE, 0700, &dir_fd, err);

    return r < 0 ? r : collect_run(monitor, cell, &source, dir_fd, &result, err);
}

/* Starts it if it is not, and ends it: its workspace is what counts. */
static int end_cell(struct grade_cell *cell, struct cell **ret, struct error **err)
{
    struct cell_receipt receipt = {0};
    int r = grade_cell_live(cell, ret, err);

    return r < 0 ? r : cell_end(*ret, &receipt, err);
}

/* Steps of the bare host left their workspace there: it is made anew in a cell. */
static int bring_in(const struct trial_job *job, const struct grade_cell_options *options,
                    struct cell **ret, struct error **err)
{
    scoped(fd_closep) int tar_fd =
        openat(job->dir_fd, BEFORE "/artifacts.tar", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    scoped(fd_closep) int changes_fd =
        openat(job->dir_fd, BEFORE "/changes.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct grade_cell_options inside = *options;
    struct cell *live = NULL;

    if (tar_fd < 0 || changes_fd < 0)
        return error_errno(err, errno, "cannot open what the steps left");
    inside.monitor = job->monitor;
    inside.operator_env = false;
    inside.private_stage = NULL;
    inside.tar_fd = tar_fd;
    inside.changes_fd = changes_fd;
    scoped(grade_cell_freep) struct grade_cell *cell = grade_cell_new(&inside);
    int r = end_cell(cell, &live, err);

    if (r == 0)
        *ret = grade_cell_take(cell);
    return r;
}

/* The oracle is no agent: there all steps run where the host's do. */
static size_t host_step_count(const struct trial_job *job)
{
    const struct task_public *public_half = NULL;
    const struct task_private *task = NULL;
    size_t count = 0;

    task_split(job->task, &public_half, &task);
    if (public_half->agent.type == AGENT_ORACLE)
        return task->pre_run_count;
    while (count < task->pre_run_count && !task->pre_run[count].in_agent)
        count++;
    return count;
}

static int run_before(const struct phase *phase, const struct grade_cell_options *options,
                      struct cell **ret_cell, struct error **err)
{
    const struct trial_job *job = phase->job;
    struct cell *live = NULL;
    int r = run_steps(phase, err);

    if (r == 0)
        r = end_cell(phase->cell, &live, err);
    if (r == 0)
        r = collect_before(job, options->monitor, live, err);
    if (r < 0)
        return r;
    if (job->bare_host != NULL)
        return bring_in(job, options, ret_cell, err);
    *ret_cell = grade_cell_take(phase->cell);
    return 0;
}

int steps_before(const struct trial_job *job, struct trial_record *record, struct cell **ret_cell,
                 struct error **err)
{
    const struct task_private *task = private_of(job);
    size_t count = host_step_count(job);

    *ret_cell = NULL;
    if (count == 0)
        return 0;
    ASSERT(job->private_stage != NULL); /* staged for every task with such steps */
    struct private_stage stage = without_reference(job->private_stage);
    scoped(mem_freep) char *input_dir = trial_input_dir(job);
    struct grade_cell_options options = {
        .monitor = job->bare_host != NULL ? job->bare_host : job->monitor,
        .view = job->view,
        .private_stage = &stage,
        .suite_variables = &task->suite_variables,
        .suite_root = task->suite_root,
        .input_dir = input_dir,
        .tar_fd = -1,
        .changes_fd = -1,
        .events_fd = -1,
        .stop = job->stop,
        .operator_env = job->bare_host != NULL,
        .is_harness = true,
    };
    scoped(grade_cell_freep) struct grade_cell *cell = grade_cell_new(&options);
    const struct phase phase = {
        .job = job,
        .record = record,
        .name = BEFORE,
        .steps = task->pre_run,
        .end = count,
        .cell = cell,
    };
    int r = run_before(&phase, &options, ret_cell, err);

    return r < 0 ? error_wrap(err, r, BEFORE) : 0;
}

bool steps_are_in_agent(const struct trial_job *job)
{
    return host_step_count(job) < private_of(job)->pre_run_count;
}

int steps_in_agent(const struct trial_job *job, struct trial_record *record,
                   const struct steps_place *place, struct error **err)
{
    const struct task_private *task = private_of(job);
    const struct phase phase = {
        .job = job,
        .record = record,
        .name = BEFORE,
        .steps = task->pre_run,
        .first = host_step_count(job),
        .end = task->pre_run_count,
        .place = place,
    };
    int r = run_steps(&phase, err);

    return r < 0 ? error_wrap(err, r, BEFORE) : 0;
}

/* --- whose changes they are --------------------------------------------------------------------
 */

/* What identifies an entry of a list of changes: the entry itself, or a deleted path. */
static char *entry_key(const json_t *entry)
{
    scoped(buf_done) struct buf buf = {0};

    json_write_canonical(&buf, entry);
    return buf_take(&buf);
}

/* The paths of entries that stand in both lists; added to *paths. */
static void add_common(const json_t *before, const json_t *after, json_t *paths)
{
    scoped(json_freep) json_t *known = json_object();
    size_t i;
    json_t *entry;

    json_array_foreach (before, i, entry) {
        scoped(mem_freep) char *key = entry_key(entry);

        json_put_bool(known, key, true);
    }
    json_array_foreach (after, i, entry) {
        scoped(mem_freep) char *key = entry_key(entry);
        json_t *path = json_is_object(entry) ? json_object_get(entry, "path") : entry;

        if (json_object_get(known, key) != NULL && path != NULL)
            json_push(paths, json_incref(path));
    }
}

int steps_attribute(const struct trial_job *job, const struct trial_record *record,
                    struct error **err)
{
    static const char *const lists[] = {"added", "modified", "deleted"};
    scoped(json_freep) json_t *before = NULL;
    scoped(json_freep) json_t *after = NULL;
    scoped(buf_done) struct buf text = {0};
    json_t *paths;

    if (host_step_count(job) == 0 || record->steps == NULL)
        return 0;
    int r = json_load(job->dir_fd, BEFORE "/changes.json", CHANGES_BYTES_MAX, &before, err);

    if (r == 0)
        r = json_load(job->dir_fd, "changes.json", CHANGES_BYTES_MAX, &after, err);
    if (r < 0)
        return error_wrap(err, r, "cannot tell what the steps before the agent changed");
    paths = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        add_common(json_get_array(before, lists[i]), json_get_array(after, lists[i]), paths);
    json_put(after, BEFORE, paths);
    json_write_pretty(&text, after);
    return fs_write_atomic(job->dir_fd, "changes.json",
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

/* --- after -------------------------------------------------------------------------------------
 */

static bool has_phase(const struct trial_record *record, const char *name)
{
    size_t i;
    json_t *step;

    json_array_foreach (record->steps, i, step) {
        if (str_equal(json_get_text(step, "phase"), name))
            return true;
    }
    return false;
}

/*
 * In a cell like the graders', over what the agent left, or over the staged view when it left none.
 * On the bare host always over the staged view: nothing of the agent's may lie where a step's
 * program takes it for settings (`git status` runs what .git/config names).
 */
static int run_after(const struct trial_job *job, struct trial_record *record, struct error **err)
{
    const struct task_private *task = private_of(job);
    scoped(fd_closep) int tar_fd =
        openat(job->dir_fd, "artifacts.tar", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    scoped(fd_closep) int changes_fd =
        openat(job->dir_fd, "changes.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    scoped(fd_closep) int log_fd = mocks_log_open(job->dir_fd);
    scoped(fd_closep) int sealed_fd = mocks_sealed_kept(job->dir_fd);
    scoped(mem_freep) char *input_dir = trial_input_dir(job);
    bool is_bare = job->bare_host != NULL;
    const struct task_public *public_half = NULL;

    task_split(job->task, &public_half, &task);
    struct grade_cell_options options = {
        .monitor = is_bare ? job->bare_host : job->monitor,
        .sealed_dirs = &public_half->mock_dirs,
        .kept_path = is_bare || log_fd < 0 ? NULL : MOCKS_LOG,
        .sealed_fd = is_bare || sealed_fd < 0 ? NULL : &sealed_fd,
        .kept_fd = log_fd,
        .view = job->view,
        .private_stage = job->private_stage,
        .suite_variables = &task->suite_variables,
        .suite_root = task->suite_root,
        .input_dir = input_dir,
        .operator_env = is_bare,
        .tar_fd = is_bare || changes_fd < 0 ? -1 : tar_fd,
        .changes_fd = is_bare || tar_fd < 0 ? -1 : changes_fd,
        .events_fd = -1,
    };
    scoped(grade_cell_freep) struct grade_cell *cell = grade_cell_new(&options);
    const struct phase phase = {
        .job = job,
        .record = record,
        .name = AFTER,
        .steps = task->post_run,
        .end = task->post_run_count,
        .cell = cell,
    };

    return run_all_steps(&phase, err);
}

void steps_after(const struct trial_job *job, struct trial_record *record)
{
    const struct task_private *task = private_of(job);
    scoped(error_freep) struct error *problem = NULL;

    if (task->post_run_count == 0 || has_phase(record, AFTER) || job->view == NULL ||
        (task->pre_run_count > 0 && !has_phase(record, BEFORE)))
        return;
    if (run_after(job, record, &problem) == 0)
        return;
    json_t *json = json_object();

    json_put_text(json, "phase", AFTER);
    json_put_text(json, "error", error_message(problem));
    if (record->steps == NULL)
        record->steps = json_array();
    json_push(record->steps, json);
}
