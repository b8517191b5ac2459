#include "run/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "run/judges.h"
#include "run/mocks.h"
#include "run/mocks_sealed.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* A run_command's own timeout wins; without one it is this, or the sandbox's limit when smaller. */
#define COMMAND_TIMEOUT_MS 30000u
#define CHANGES_BYTES_MAX ((size_t)1 << 20) /* larger ones hold changes in any case */

/* The text of the last thing that the agent said; owned. */
static char *final_text(const struct event_log *events)
{
    for (size_t i = events->count; i > 0; i--) {
        const struct event *event = &events->events[i - 1];

        if (event->kind == EVENT_TEXT && json_is_string(event->output))
            return str_dup(json_string_value(event->output));
    }
    return str_dup("");
}

static void clear_criteria(struct trial_record *record)
{
    for (size_t i = 0; i < record->criterion_count; i++) {
        free(record->criteria[i].type);
        free(record->criteria[i].description);
        free(record->criteria[i].error);
        free(record->criteria[i].details);
        free(record->criteria[i].observed);
        free(record->criteria[i].expected);
        json_decref(record->criteria[i].suite_thresholds);
        json_decref(record->criteria[i].metrics);
        json_decref(record->criteria[i].judge);
        json_decref(record->criteria[i].repeat);
    }
    free(record->criteria);
    record->criteria = NULL;
    record->criterion_count = 0;
}

static void record_criterion(const struct criterion *criterion, const struct verdict *verdict,
                             struct criterion_record *ret)
{
    *ret = (struct criterion_record){
        .type = str_dup(criterion->type_name),
        .description = str_dup(criterion->description),
        .score = verdict->score,
        .has_score = !verdict->errored,
        .weight = criterion->weight,
        .threshold = criterion->pass_threshold,
        .gating = !verdict->informational && criterion->weight > 0,
        .passed = !verdict->errored && verdict->score >= criterion->pass_threshold,
        .duration_ms = verdict->duration_ns / 1000000u,
        .observed = verdict->observed == NULL ? NULL : str_dup(verdict->observed),
        .expected = verdict->expected == NULL ? NULL : str_dup(verdict->expected),
        .suite_thresholds = json_incref(criterion->suite_thresholds),
        .metrics = json_incref(verdict->metrics),
        .judge = judges_summary(verdict),
    };
    if (verdict->details != NULL && verdict->errored)
        ret->error = str_dup(verdict->details);
    else if (verdict->details != NULL)
        ret->details = str_dup(verdict->details);
}

/* What its commands printed and its judges said, in a folder of the trial's own. */
static int save_outputs(int dir_fd, const char *folder, const struct grade_result *result,
                        struct error **err)
{
    scoped(fd_closep) int grade_fd = -1;
    int r = 0;

    for (size_t i = 0; r == 0 && i < result->count; i++) {
        const struct verdict *verdict = &result->verdicts[i];

        if (verdict->output.size_bytes == 0 && verdict->judgement == NULL)
            continue;
        if (grade_fd < 0)
            r = fs_open_dir(dir_fd, folder, 0700, &grade_fd, err);
        if (r == 0 && verdict->judgement != NULL)
            r = judges_save(grade_fd, verdict, err);
        if (r < 0 || verdict->output.size_bytes == 0)
            continue;

        scoped(mem_freep) char *name = str_format("%02zu.out", i + 1);

        r = fs_write_atomic(grade_fd, name,
                            &(struct fs_content){verdict->output.data, verdict->output.size_bytes,
                                                 0600, FS_NO_SYNC},
                            err);
    }
    return r;
}

/* As many turns as were allowed. An agent's own count is enough: whichever it is, it failed. */
static bool turns_are_used_up(const struct trial_job *job, const struct trial_record *record)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    /* In a dialog the limit is of each exchange, and agent.turns of all. */
    return public_half->limits.max_turns > 0 &&
           ((private_half->simulation == NULL &&
             record->agent.turns >= public_half->limits.max_turns) ||
            str_equal(record->agent.stopped_by, "max_turns"));
}

/* An execution fact stays; the verdict decides the rest, in the order of task-format.md. */
static void set_status(const struct trial_job *job, struct trial_record *record,
                       const struct grade_result *result)
{
    bool fact = trial_status_is_fact(record->status);

    record->has_score = result->has_score;
    record->score = result->score;
    if (fact) {
        record->has_verdict = true;
        record->passed = false;
        return;
    }
    free(record->error);
    record->error = NULL;
    if (result->error != NULL) {
        record->status = STATUS_ERROR;
        record->error = str_dup(result->error);
        record->has_verdict = record->has_score = false;
        return;
    }
    if (result->nothing_gates) {
        record->status = STATUS_NOT_GRADED;
        record->error = str_dup("no criterion gates: all have weight 0 or rest on what the agent "
                                "reported of itself");
        record->has_verdict = record->has_score = false;
        return;
    }
    record->status = result->gate                     ? STATUS_SUCCESS
                     : turns_are_used_up(job, record) ? STATUS_MAX_TURNS_EXHAUSTED
                                                      : STATUS_FAILURE;
    record->has_verdict = true;
    record->passed = result->gate;
}

struct grade_files {
    int tar_fd, changes_fd, events_fd;
    int log_fd;    /* of recorded programs; -1: none */
    int sealed_fd; /* what sealed programs wrote; -1: none */
};

static void grade_files_done(struct grade_files *files)
{
    fd_closep(&files->tar_fd);
    fd_closep(&files->changes_fd);
    fd_closep(&files->events_fd);
    fd_closep(&files->log_fd);
    fd_closep(&files->sealed_fd);
}

/* The workspace is as it was staged: there is nothing to lay over it. */
static bool left_as_staged(int dir_fd, const struct trial_record *record)
{
    static const char *const lists[] = {"added", "modified", "deleted", "moved"};
    scoped(json_freep) json_t *changes = NULL;
    bool unchanged = true;

    if (record->artifacts.files > 0 ||
        json_load(dir_fd, "changes.json", CHANGES_BYTES_MAX, &changes, NULL) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const json_t *list = json_get_array(changes, lists[i]);

        unchanged = unchanged && list != NULL && json_array_size(list) == 0;
    }
    return unchanged;
}

/* Every criterion may, but for those that are known not to. */
static bool reads_files(const struct task_private *task)
{
    for (size_t i = 0; i < task->criterion_count; i++) {
        enum criterion_kind kind = task->criteria[i].kind;

        if (kind != CRITERION_RUN_COMMAND && kind != CRITERION_EXEC &&
            kind != CRITERION_COMMAND_EXECUTED && kind != CRITERION_COMMANDS_EFFICIENCY &&
            kind != CRITERION_SKILL_TRIGGERED)
            return true;
    }
    return false;
}

static int open_files(int dir_fd, struct grade_files *files, struct error **err)
{
    static const char *const names[] = {"artifacts.tar", "changes.json", "events.jsonl"};
    int *const places[] = {&files->tar_fd, &files->changes_fd, &files->events_fd};

    files->log_fd = mocks_log_open(dir_fd);
    files->sealed_fd = mocks_sealed_kept(dir_fd);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        *places[i] = fs_open_regular(dir_fd, names[i]);
        if (*places[i] < 0)
            return error_errno(err, -*places[i], "cannot open the trial's artifacts: '%s'",
                               names[i]);
    }
    return 0;
}

static void copy_result(const struct task_private *task, const struct grade_result *result,
                        struct trial_record *record)
{
    clear_criteria(record);
    record->criteria = mem_new(size_max(result->count, 1), sizeof(*record->criteria));
    record->criterion_count = result->count;
    for (size_t i = 0; i < result->count; i++)
        record_criterion(&task->criteria[i], &result->verdicts[i], &record->criteria[i]);
}

/* Which reference it was graded with, and which one before that. */
static void note_private(const struct trial_job *job, struct trial_record *record)
{
    json_t *now = NULL;

    if (job->private_stage != NULL) {
        const char *was = json_get_text(record->graded_with, "reference");

        now = private_files_json(job->private_stage);
        if (json_is_object(record->graded_with) && !str_equal(was, json_get_text(now, "reference")))
            json_put(now, "instead_of", json_text_or_null(was));
    }
    json_decref(record->graded_with);
    record->graded_with = now;
}

static int grade_in_cell(const struct trial_job *job, const struct grade_cell_options *options,
                         const struct event_log *events, struct grade_result *ret,
                         struct error **err)
{
    scoped(judges_freep) struct judges *judges = NULL;
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);

    int r = judges_open(job, &judges, err);

    if (r < 0)
        return r;
    scoped(grade_cell_freep) struct grade_cell *cell = grade_cell_new(options);
    struct grade_workspace workspace = grade_cell_workspace(cell);
    uint64_t limit_ms = public_half->limits.command_timeout_ms;
    struct grade_input input = {
        .task = private_half,
        .workspace = &workspace,
        .events = events,
        .final_message = options->final_text,
        .dialog = options->dialog,
        .events_trusted = task_agent_is_trusted(&public_half->agent),
        .stopped_early = options->stopped_early,
        .command_timeout_ms =
            limit_ms != 0 && limit_ms < COMMAND_TIMEOUT_MS ? limit_ms : COMMAND_TIMEOUT_MS,
        .judges = judges_of(judges),
    };

    return grade_run(&input, ret, err);
}

static int grade_once(const struct trial_job *job, const struct trial_record *record,
                      const struct event_log *events, struct grade_result *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(grade_files_done) struct grade_files files = {-1, -1, -1, -1, -1};
    scoped(buf_done) struct buf event_lines = {0};
    scoped(mem_freep) char *final = final_text(events);
    scoped(mem_freep) char *input_dir = trial_input_dir(job);
    int r = open_files(job->dir_fd, &files, err);

    if (r < 0)
        return r;
    task_split(job->task, &public_half, &private_half);
    event_log_write(&event_lines, events);

    struct grade_cell_options options = {
        .monitor = job->monitor,
        .view = job->view,
        .private_stage = job->private_stage,
        .suite_variables = &private_half->suite_variables,
        .suite_root = private_half->suite_root,
        .input_dir = input_dir,
        .limits = &public_half->limits,
        .tar_fd = left_as_staged(job->dir_fd, record) ? -1 : files.tar_fd,
        .changes_fd = files.changes_fd,
        .reads_files = reads_files(private_half),
        .stopped_early = record->early_stop != NULL,
        .events_fd = files.events_fd,
        .kept_path = files.log_fd < 0 ? NULL : MOCKS_LOG,
        .kept_fd = files.log_fd,
        .sealed_fd = files.sealed_fd < 0 ? NULL : &files.sealed_fd,
        .sealed_dirs = &public_half->mock_dirs,
        .events = buf_text(&event_lines),
        .final_text = final,
        .dialog = "[]\n",
        .services = public_half->services,
        .service_count = public_half->service_count,
    };

    if (job->private_stage != NULL)
        r = private_seal_check(job->private_stage, job->private_seal, err);
    if (r == 0)
        r = grade_in_cell(job, &options, events, ret, err);
    if (r == 0 && job->private_stage != NULL)
        r = private_seal_check(job->private_stage, job->private_seal, err);
    return r;
}

/* --- several gradings of one trial ---------------------------------------------------------- */

struct gradings {
    struct grade_result *results;
    size_t count;
};

static void gradings_done(struct gradings *gradings)
{
    for (size_t i = 0; i < gradings->count; i++)
        grade_result_done(&gradings->results[i]);
    free(gradings->results);
}

/* What each grading said of one criterion, and whether all said the same. */
static json_t *repeat_json(const struct gradings *gradings, size_t criterion, double threshold)
{
    json_t *json = json_object();
    json_t *scores = json_array();
    size_t passed = 0, errored = 0;

    for (size_t i = 0; i < gradings->count; i++) {
        const struct verdict *verdict = &gradings->results[i].verdicts[criterion];

        json_push(scores, verdict->errored ? json_null() : json_real(verdict->score));
        errored += verdict->errored;
        passed += !verdict->errored && verdict->score >= threshold;
    }

    bool agree = passed == gradings->count || errored == gradings->count || passed + errored == 0;

    json_put_int(json, "times", (int64_t)gradings->count);
    json_put_int(json, "passed", (int64_t)passed);
    json_put(json, "scores", scores);
    json_put_bool(json, "unstable", !agree);
    return json;
}

static int save_all(const struct trial_job *job, const struct gradings *gradings,
                    struct error **err)
{
    int r = fs_remove_tree(job->dir_fd, "grade", err);

    for (size_t i = 0; r == 0 && i < gradings->count; i++) {
        scoped(mem_freep) char *folder =
            i == 0 ? str_dup("grade") : str_format("grade/repeat-%02zu", i + 1);

        r = save_outputs(job->dir_fd, folder, &gradings->results[i], err);
    }
    return r;
}

/* The first grading is the verdict; the others say whether it can be relied upon. */
static void record_gradings(const struct trial_job *job, const struct gradings *gradings,
                            struct trial_record *record)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    note_private(job, record);
    copy_result(private_half, &gradings->results[0], record);
    for (size_t i = 0; gradings->count > 1 && i < record->criterion_count; i++)
        record->criteria[i].repeat = repeat_json(gradings, i, record->criteria[i].threshold);
    if (judges_are_needed(private_half)) {
        if (record->usage == NULL)
            record->usage = json_object();
        json_put(record->usage, "judges", judges_usage(gradings->results, gradings->count));
    }
    set_status(job, record, &gradings->results[0]);
}

int trial_grade(const struct trial_job *job, struct trial_record *record,
                const struct event_log *events, struct error **err)
{
    size_t count = size_max(job->gradings, 1);
    scoped(gradings_done) struct gradings gradings = {
        .results = mem_new(count, sizeof(*gradings.results)), .count = count};
    uint64_t start_ns = clock_ns();
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = grade_once(job, record, events, &gradings.results[i], err);
        if (r < 0 && count > 1)
            r = error_wrap(err, r, "grading %zu of %zu", i + 1, count);
    }
    if (r == 0)
        r = save_all(job, &gradings, err);
    if (r < 0)
        return error_wrap(err, r, "grading");
    record_gradings(job, &gradings, record);
    record->timing_ms.grade = ns_to_ms(clock_ns() - start_ns);
    return 0;
}
