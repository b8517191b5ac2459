#include "cli/check_run.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cli/version.h"
#include "record/run_dir.h"
#include "task/task_private.h"

void checked_done(struct checked *checked)
{
    free(checked->reason);
    *checked = (struct checked){0};
}

/* The task again, with another agent. */
struct loaded {
    struct str_list paths, only, variants;
    struct task_overrides overrides;
    struct task_selection selection;
    struct run_plan plan;
};

static void loaded_done(struct loaded *loaded)
{
    run_plan_done(&loaded->plan);
    str_list_done(&loaded->paths);
    str_list_done(&loaded->only);
    str_list_done(&loaded->variants);
}

static int load(struct checker *checker, const struct task *task, const char *agent,
                unsigned repeats, struct loaded *ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    scoped(task_set_done) struct task_set set = {0};
    scoped(problems_done) struct problems problems = {0};

    task_split(task, &public_half, &private_half);
    str_list_add(&ret->paths, private_half->task_file);
    str_list_add(&ret->only, private_half->task_id);
    if (strcmp(task_variant(task), "default") != 0)
        str_list_add(&ret->variants, task_variant(task));
    ret->overrides = checker->inputs->overrides;
    ret->overrides.agent = agent;
    ret->selection = checker->inputs->selection;
    ret->selection.include_skipped = true;
    ret->selection.only = &ret->only;
    ret->selection.variants = &ret->variants;

    const struct task_query query = {.paths = &ret->paths,
                                     .reader = &checker->session.reader,
                                     .overrides = &ret->overrides,
                                     .selection = &ret->selection};
    int r = tasks_load(&query, &set, &problems, err);

    if (r < 0)
        return error_wrap(err, r, "%s: %s", agent,
                          problems.count > 0 ? problems.items[0].message : "cannot be loaded");
    run_plan_make(&set, repeats, &ret->plan);
    return 0;
}

/* Lines that matter of a trial that did not pass. */
static char *reason_of(const struct trial_record *record)
{
    if (record->error != NULL)
        return str_dup(record->error);
    for (size_t i = 0; i < record->criterion_count; i++) {
        const struct criterion_record *criterion = &record->criteria[i];

        if (criterion->gating && !criterion->passed)
            return str_format("criterion %zu (%s): %s", i + 1, criterion->type,
                              criterion->error != NULL     ? criterion->error
                              : criterion->details != NULL ? criterion->details
                                                           : "not passed");
    }
    return str_dup(trial_status_name(record->status));
}

static void count(const struct run_trials *trials, struct checked *ret)
{
    ret->agent_errors = true;
    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];

        ret->trials++;
        if (record->has_verdict && record->passed) {
            ret->passed++;
            continue;
        }
        if (record->has_verdict) {
            ret->failed++;
        } else {
            ret->errors++;
            ret->agent_errors =
                ret->agent_errors && str_equal(record->error_code, error_code_name(ERROR_AGENT));
        }
        if (ret->reason == NULL)
            ret->reason = reason_of(record);
    }
}

static int run_in(struct checker *checker, struct loaded *loaded, int dir_fd, const char *path,
                  struct checked *ret, struct error **err)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    struct plan_inputs inputs = {.paths = &loaded->paths,
                                 .overrides = &loaded->overrides,
                                 .selection = &loaded->selection,
                                 .grading = true};
    scoped(run_done) struct run run = {.session = &checker->session,
                                       .plan = &loaded->plan,
                                       .inputs = &inputs,
                                       .dir_fd = dir_fd,
                                       .path = path,
                                       .run_id = checker->run_id,
                                       .version = CLOSEDBOOK_VERSION,
                                       .stop = checker->stop,
                                       .parallel = checker->parallel,
                                       .grading = true};
    int r = run_start(&run, err);

    checker->interrupted = checker->interrupted || run.interrupted;
    if (r == 0)
        r = run_dir_trials(run.dir, false, &trials, err);
    if (r == 0)
        count(&trials, ret);
    return r;
}

int check_run(struct checker *checker, const struct task *task, const char *agent, unsigned repeats,
              struct checked *ret, struct error **err)
{
    scoped(loaded_done) struct loaded loaded = {0};
    scoped(fd_closep) int fd = -1;
    scoped(mem_freep) char *name = str_format("run-%u", checker->run_count++);
    scoped(mem_freep) char *path = path_join(checker->path, name);
    int r = load(checker, task, agent, repeats, &loaded, err);

    if (r < 0)
        return r;
    if (mkdirat(checker->dir_fd, name, 0700) != 0)
        return error_errno(err, errno, "cannot make '%s'", path);
    fd = openat(checker->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    r = run_in(checker, &loaded, fd, path, ret, err);
    return r < 0 ? r : fs_remove_tree(checker->dir_fd, name, err);
}

int check_run_script(struct checker *checker, const struct task *task, const struct buf *program,
                     struct checked *ret, struct error **err)
{
    scoped(mem_freep) char *agent = str_format("script:%s/agent", checker->path);
    struct fs_content content = {program->data, program->size_bytes, 0700, FS_NO_SYNC};
    int r = fs_write_atomic(checker->dir_fd, "agent", &content, err);

    return r < 0 ? r : check_run(checker, task, agent, 1, ret, err);
}
