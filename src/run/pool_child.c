#include "run/pool_child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/confine.h"
#include "run/private_files.h"
#include "run/regrade.h"
#include "run/steps.h"
#include "task/task_private.h"
#include "task/task_public.h"

static struct trial_job job_of(const struct pool_child *child)
{
    const struct staged *staged = child->staged;

    return (struct trial_job){
        .task = child->options->plan->tasks.tasks[child->trial->task_index],
        .view = staged->view,
        .private_stage = staged->has_private ? &staged->private_stage : NULL,
        .private_seal = &staged->seal,
        .sight = &staged->sight,
        .monitor = child->monitor,
        .bare_host = child->bare_host,
        .broker_fd = child->broker_fd,
        .judges_fd = child->judges_fd,
        .mock_fd = child->options->session->mock_fd,
        .script_fd = staged->script_fd,
        .install = &staged->install,
        .dir_fd = child->dir_fd,
        .run_id = run_dir_id(child->options->run),
        .trial_id = child->trial->id,
        .variant_id = task_variant(child->options->plan->tasks.tasks[child->trial->task_index]),
        .replicate = child->trial->replicate,
        .grading = child->options->grading,
        .gradings = child->options->gradings,
        .asks_anew = child->options->asks_anew,
        .shows_events = child->options->shows_events,
        .stop = child->options->stop,
        .setup_error = staged->error,
        .preflight = staged->preflight,
        .stage_ns = child->trial->replicate == 0 ? staged->stage_ns : 0,
    };
}

static void fill_note(const struct trial_record *record, enum trial_outcome outcome,
                      struct trial_note *note)
{
    *note = (struct trial_note){
        .outcome = outcome,
        .status = record->status,
        .integrity = record->integrity,
        .has_score = record->has_score,
        .has_verdict = record->has_verdict,
        .passed = record->has_verdict && record->passed,
        .score = record->score,
        .duration_ms = (uint64_t)record->timing_ms.total,
    };
    if (record->error != NULL)
        (void)snprintf(note->error, sizeof(note->error), "%s", record->error); /* cut is fine */
}

static int check_view(const struct trial_job *job, const struct trial_record *record,
                      struct error **err)
{
    struct sha256 root = view_root(job->view);
    struct sha256 was;

    if (record->view.root == NULL || !sha256_parse(record->view.root, &was))
        return error_set(err, ERROR_SYSTEM, "trial.json: view.root is no digest");
    if (!sha256_equal(&root, &was))
        return error_set(err, ERROR_TASK,
                         "the inputs of task '%s' changed since the trial ran, so what the agent "
                         "left cannot be laid over them; restore them, or run the trial again",
                         task_id(job->task));
    return 0;
}

static int regrade(const struct trial_job *job, struct trial_record *record, struct error **err)
{
    scoped(buf_done) struct buf lines = {0};
    scoped(event_log_done) struct event_log events = {0};
    int r = trial_record_load(job->dir_fd, job->trial_id, record, err);

    if (r < 0 || !regrade_may_change(record->status))
        return r;
    if (job->setup_error != NULL)
        return error_set(err, error_code_of(job->setup_error), "%s",
                         error_message(job->setup_error));
    r = check_view(job, record, err);
    if (r == 0)
        r = regrade_keep(job->dir_fd, err);
    if (r == 0)
        r = fs_read_file(job->dir_fd, "events.jsonl", EVENTS_FILE_BYTES_MAX, &lines, err);
    if (r == 0)
        r = event_log_read("events.jsonl", buf_text(&lines), lines.size_bytes, &events, err);
    if (r == 0)
        r = trial_grade(job, record, &events, err);
    if (r == 0)
        steps_after(job, record);
    return r < 0 ? r : trial_record_save(job->dir_fd, record, err);
}

static int grade_recorded(const struct trial_job *job, struct trial_record *record,
                          struct error **err)
{
    scoped(error_freep) struct error *problem = NULL;

    if (regrade(job, record, &problem) == 0)
        return 0;
    if (record->trial_id == NULL)
        return error_set(err, error_code_of(problem), "%s", error_message(problem));
    trial_record_fail(record, problem);
    return trial_record_save(job->dir_fd, record, err);
}

static int confine(const struct pool_child *child, struct error **err)
{
    struct confine_options options = {.write_fds = {child->dir_fd}, .write_count = 1};

    if (child->staged->has_private)
        options.read_count = private_files_trees(&child->staged->private_stage, options.read_fds);

    return confine_self(&options, err);
}

static int work(const struct pool_child *child, struct trial_record *record,
                enum trial_outcome *outcome, struct error **err)
{
    struct trial_job job = job_of(child);
    int r = confine(child, err);

    *outcome = TRIAL_RECORDED;
    if (r < 0)
        return r;
    if (child->options->work == POOL_GRADE)
        return grade_recorded(&job, record, err);
    return trial_run(&job, record, outcome, err);
}

_Noreturn void pool_child_main(const struct pool_child *child, int note_fd)
{
    scoped(error_freep) struct error *err = NULL;
    struct trial_record record;
    struct trial_note note = {0};
    enum trial_outcome outcome = TRIAL_RECORDED;

    trial_record_init(&record);
    if (work(child, &record, &outcome, &err) < 0) {
        log_warn("trial '%s': %s", child->trial->id, error_message(err));
        _exit(error_exit_status(error_code_of(err)));
    }
    fill_note(&record, outcome, &note);
    _exit(write(note_fd, &note, sizeof(note)) == (ssize_t)sizeof(note) ? 0 : 3);
}

int pool_child_crashed(const struct pool_child *child, const struct error *why,
                       struct trial_note *note, struct error **err)
{
    struct trial_record record;
    struct trial_job job = job_of(child);
    struct monitor *any = child->options->session->native != NULL
                              ? child->options->session->native
                              : child->options->session->tempdir;

    job.monitor = any;
    job.view = NULL;
    trial_record_init(&record);
    trial_record_begin(&job, &record);
    trial_record_fail(&record, why);

    int r = trial_record_save(child->dir_fd, &record, err);

    fill_note(&record, TRIAL_RECORDED, note);
    trial_record_done(&record);
    return r;
}
