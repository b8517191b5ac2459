#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/allowed_leaks.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/run_screen.h"
#include "cli/sign_key.h"
#include "cli/task_flags.h"
#include "cli/version.h"
#include "report/html.h"
#include "report/report.h"
#include "run/host_watch.h"
#include "run/replay.h"
#include "run/run.h"
#include "run/run_open.h"
#include "task/task_private.h"
#include "task/task_public.h"

/* Places that the command line may name, in the order of session_options.claims. */
enum claim_index {
    CLAIM_RUN,
    CLAIM_JUNIT,
    CLAIM_MARKDOWN,
    CLAIM_HTML,
    CLAIM_RECORDING,
    CLAIM_COUNT
};

struct values {
    struct task_flags tasks;
    uint64_t parallel, repeats, expect_tasks, stop_after_errors;
    const char *verify_host, *allow_tier, *sign_key, *record, *replay;
    const char *run_dir, *resume, *junit, *markdown, *html, *colour, *min_pass_rate, *max_errors;
    struct option_list allow_leaks;
    bool trust_host_steps, preflight, stream, json, no_progress, allow_empty, fail_fast,
        retry_errors, rerun_failed;
};

#define SHARED_ROWS                                                                                \
    TASK_FLAG_ROWS(struct values), ALLOW_TIER_ROW(struct values),                                  \
        {.kind = OPTION_NUMBER,                                                                    \
         .short_name = 'j',                                                                        \
         .long_name = "jobs",                                                                      \
         .value = "N",                                                                             \
         .offset = offsetof(struct values, parallel),                                              \
         .min = 1,                                                                                 \
         .max = POOL_PARALLEL_MAX,                                                                 \
         .help = "trials at a time"},                                                              \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "repeats",                                                                   \
         .value = "N",                                                                             \
         .offset = offsetof(struct values, repeats),                                               \
         .min = 1,                                                                                 \
         .max = UINT16_MAX,                                                                        \
         .help = "trials of each task; default: what the experiment says, else 1"},                \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "run-dir",                                                                   \
         .value = "DIR",                                                                           \
         .offset = offsetof(struct values, run_dir),                                               \
         .help = "the run's directory; default: runs/RUN_ID"},                                     \
        {.kind = OPTION_OPTIONAL,                                                                  \
         .long_name = "resume",                                                                    \
         .value = "force",                                                                         \
         .when_bare = "yes",                                                                       \
         .offset = offsetof(struct values, resume),                                                \
         .help = "go on with the run in --run-dir; =force: even when tasks changed"},              \
        {.kind = OPTION_OPTIONAL,                                                                  \
         .long_name = "verify-host",                                                               \
         .value = "full",                                                                          \
         .when_bare = "yes",                                                                       \
         .offset = offsetof(struct values, verify_host),                                           \
         .help = "COMPROMISED if the suite, sources or folders of the run change; =full: reads "   \
                 "all contents"},                                                                  \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "retry-errors",                                                              \
         .offset = offsetof(struct values, retry_errors),                                          \
         .help = "with --resume: run trials again that ended in ERROR"},                           \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "rerun-failed",                                                              \
         .offset = offsetof(struct values, rerun_failed),                                          \
         .help = "with --resume: run failed trials again, too"},                                   \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "fail-fast",                                                                 \
         .offset = offsetof(struct values, fail_fast),                                             \
         .help = "start nothing more after a trial that did not pass"},                            \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "stop-after-errors",                                                         \
         .value = "N",                                                                             \
         .offset = offsetof(struct values, stop_after_errors),                                     \
         .min = 1,                                                                                 \
         .max = UINT32_MAX,                                                                        \
         .help = "start nothing more after N errors"},                                             \
        TRUST_HOST_STEPS_ROW(struct values), SIGN_KEY_ROW(struct values),                          \
        {.kind = OPTION_LIST,                                                                      \
         .long_name = "allow-leak",                                                                \
         .value = "ID=REASON",                                                                     \
         .offset = offsetof(struct values, allow_leaks),                                           \
         .help = "a finding of the leak scan that is meant, and why (repeatable); recorded"},      \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "preflight",                                                                 \
         .offset = offsetof(struct values, preflight),                                             \
         .help = "attack a twin of each distinct cell before an agent starts in it"},              \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "record",                                                                    \
         .value = "DIR",                                                                           \
         .offset = offsetof(struct values, record),                                                \
         .help = "keep what agents, judges and users ask of models, and the answers, in DIR"},     \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "replay",                                                                    \
         .value = "DIR",                                                                           \
         .offset = offsetof(struct values, replay),                                                \
         .help = "answer from what --record kept in DIR, without network and keys"},               \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "stream",                                                                    \
         .offset = offsetof(struct values, stream),                                                \
         .help = "show on stderr what agents do as they do it, a line an event"},                  \
        {.kind = OPTION_NUMBER,                                                                    \
         .long_name = "expect-tasks",                                                              \
         .value = "N",                                                                             \
         .offset = offsetof(struct values, expect_tasks),                                          \
         .min = 1,                                                                                 \
         .max = TASKS_MAX,                                                                         \
         .help = "fail unless exactly N tasks are selected"},                                      \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "allow-empty",                                                               \
         .offset = offsetof(struct values, allow_empty),                                           \
         .help = "exit 0 when only skipped tasks were selected"},                                  \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "junit",                                                                     \
         .value = "FILE",                                                                          \
         .offset = offsetof(struct values, junit),                                                 \
         .help = "write JUnit XML, too"},                                                          \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "markdown",                                                                  \
         .value = "FILE",                                                                          \
         .offset = offsetof(struct values, markdown),                                              \
         .help = "write a Markdown summary, too"},                                                 \
        {.kind = OPTION_TEXT,                                                                      \
         .long_name = "html",                                                                      \
         .value = "FILE",                                                                          \
         .offset = offsetof(struct values, html),                                                  \
         .help = "write the run as one web page, too"},                                            \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "json",                                                                      \
         .offset = offsetof(struct values, json),                                                  \
         .help = "print the summary as JSON"},                                                     \
        {.kind = OPTION_FLAG,                                                                      \
         .long_name = "no-progress",                                                               \
         .offset = offsetof(struct values, no_progress),                                           \
         .help = "no live progress"},                                                              \
    {                                                                                              \
        .kind = OPTION_TEXT, .long_name = "color", .value = "WHEN",                                \
        .offset = offsetof(struct values, colour), .choices = output_colour_choices,               \
        .help = "auto, always or never"                                                            \
    }

static const struct cli_option run_rows[] = {
    SHARED_ROWS,
    {.kind = OPTION_TEXT,
     .long_name = "min-pass-rate",
     .value = "P",
     .offset = offsetof(struct values, min_pass_rate),
     .help = "0 to 1: failures are fine while at least this part passes"},
    {.kind = OPTION_TEXT,
     .long_name = "max-errors",
     .value = "N",
     .offset = offsetof(struct values, max_errors),
     .help = "up to N errors are fine"},
};

static const struct cli_option execute_rows[] = {SHARED_ROWS};

static const struct values defaults = {.parallel = 1, .colour = "auto"};

struct job {
    const struct arguments *arguments;
    const struct values *values;
    bool grading;
    char *run_id, *run_path; /* owned */
    struct session session;
    struct run_dir *recorded; /* with --resume and no PATH: whose plan the inputs come from */
    struct task_inputs inputs;
    struct run_plan plan;
    unsigned repeats;
    struct exit_rules rules;
    struct str_list allowed_leaks;
};

static void job_done(struct job *job)
{
    run_plan_done(&job->plan);
    task_inputs_done(&job->inputs);
    run_dir_close(job->recorded);
    session_close(&job->session);
    free(job->run_id);
    free(job->run_path);
    str_list_done(&job->allowed_leaks);
}

static int read_rules(const struct values *values, bool grading, struct exit_rules *ret,
                      struct error **err)
{
    *ret = (struct exit_rules){
        .grading_expected = grading,
        .allow_empty = values->allow_empty,
        .min_pass_rate = -1,
        .max_errors = -1,
    };
    if (values->min_pass_rate != NULL &&
        (!str_to_double(values->min_pass_rate, &ret->min_pass_rate) || ret->min_pass_rate < 0 ||
         ret->min_pass_rate > 1))
        return error_set(err, ERROR_USER, "--min-pass-rate: '%s' found, 0 to 1 expected",
                         values->min_pass_rate);
    if (values->max_errors != NULL &&
        (!str_to_i64(values->max_errors, &ret->max_errors) || ret->max_errors < 0))
        return error_set(err, ERROR_USER, "--max-errors: '%s' found, a whole number expected",
                         values->max_errors);
    return 0;
}

static int check_flags(const struct values *values, struct error **err)
{
    if (values->resume != NULL && values->run_dir == NULL)
        return error_set(err, ERROR_USER, "--resume needs --run-dir, the run to go on with");
    if (values->resume != NULL && !str_equal(values->resume, "yes") &&
        !str_equal(values->resume, "force"))
        return error_set(err, ERROR_USER, "--resume=%s: only --resume=force is known",
                         values->resume);
    if (values->verify_host != NULL && !str_equal(values->verify_host, "yes") &&
        !str_equal(values->verify_host, "full"))
        return error_set(err, ERROR_USER, "--verify-host=%s: only --verify-host=full is known",
                         values->verify_host);
    if ((values->retry_errors || values->rerun_failed) && values->resume == NULL)
        return error_set(err, ERROR_USER, "--retry-errors and --rerun-failed need --resume");
    return 0;
}

static struct claim_place report_place(const char *path)
{
    return (struct claim_place){CLAIM_FILE, path != NULL ? path : "/dev/null"};
}

static int open_session(struct job *job, struct error **err)
{
    const struct values *values = job->values;
    struct session_options options = {
        .cells = true,
        .allow_tier = values->allow_tier,
        .owner_of = values->resume != NULL ? job->run_path : NULL,
        .claims =
            {
                [CLAIM_RUN] = {CLAIM_DIR, job->run_path},
                [CLAIM_JUNIT] = report_place(values->junit),
                [CLAIM_MARKDOWN] = report_place(values->markdown),
                [CLAIM_HTML] = report_place(values->html),
                [CLAIM_RECORDING] = {values->record != NULL ? CLAIM_DIR : CLAIM_FILE,
                                     values->record != NULL ? values->record : "/dev/null"},
            },
        .claim_count = CLAIM_COUNT,
    };

    return session_open(&options, &job->session, err);
}

/* From the command line, or, when a run goes on and no PATH is given, from the run itself. */
static int read_inputs(struct job *job, struct error **err)
{
    const struct arguments *arguments = job->arguments;

    job->repeats = (unsigned)job->values->repeats;
    if (job->values->resume == NULL || arguments->operand_count > 0) {
        task_inputs_init(&job->values->tasks, arguments->operands, arguments->operand_count,
                         &job->inputs);
        return 0;
    }

    int r = session_open_run(&job->session, job->run_path, false, &job->recorded, err);

    return r < 0 ? r
                 : task_inputs_recorded(run_dir_plan(job->recorded), &job->inputs, &job->repeats,
                                        err);
}

static int load_plan(struct job *job, struct error **err)
{
    scoped(task_set_done) struct task_set set = {0};
    uint64_t expected = job->values->expect_tasks;
    int r = read_inputs(job, err);

    if (r == 0)
        r = task_inputs_load(&job->inputs, &job->session.reader, job->arguments->verbosity > 0,
                             &set, err);
    if (r < 0)
        return r;
    if (expected != 0 && task_set_ids(&set) != expected)
        return error_set(err, ERROR_USER, "--expect-tasks %ju: %zu selected", (uintmax_t)expected,
                         task_set_ids(&set));
    run_plan_make(&set, job->repeats, &job->plan);
    if (job->plan.tasks.count == 0)
        return error_set(err, ERROR_USER,
                         "nothing to run: no task has what --tags, --exclude-tags and --only ask "
                         "for");
    if (job->plan.trial_count == 0 && !job->values->allow_empty)
        return error_set(
            err, ERROR_USER,
            "nothing to run: of the tasks selected (%zu), skipped are %zu (--allow-empty "
            "makes that fine, --include-skipped runs them)",
            job->plan.tasks.count, job->plan.tasks.skipped_count);
    return 0;
}

static int check_tiers(const struct job *job, struct error **err)
{
    int r = 0;

    for (size_t i = 0; i < job->plan.tasks.count && r == 0; i++) {
        const struct task_public *public_half = NULL;
        const struct task_private *private_half = NULL;

        task_split(job->plan.tasks.tasks[i], &public_half, &private_half);
        r = session_check_tier(&job->session, private_half->task_id, public_half, err);
        if (r == 0)
            r = session_check_limits(&job->session, private_half->task_id, public_half, err);
    }
    return r;
}

static int write_file(struct job *job, enum claim_index place, const char *name,
                      const struct buf *text, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    int r = claim_make(job->session.claim, place, &fd, err);

    return r < 0 ? r : fs_write_all(fd, name, text->data, text->size_bytes, err);
}

static int write_reports(struct job *job, const char *run_id, const struct run_trials *trials,
                         struct error **err)
{
    const struct values *values = job->values;
    scoped(buf_done) struct buf text = {0};
    int r = 0;

    if (values->junit != NULL) {
        report_junit(&text, trials, run_id);
        r = write_file(job, CLAIM_JUNIT, values->junit, &text, err);
    }
    buf_clear(&text);
    if (r == 0 && values->markdown != NULL) {
        struct report_options options = {.run_path = job->run_path};

        report_markdown(&text, trials, &options);
        r = write_file(job, CLAIM_MARKDOWN, values->markdown, &text, err);
    }
    buf_clear(&text);
    if (r == 0 && values->html != NULL) {
        struct html_run page = {
            .run_id = run_id, .version = CLOSEDBOOK_VERSION, .run_path = job->run_path};

        report_html(&text, trials, &page);
        r = write_file(job, CLAIM_HTML, values->html, &text, err);
    }
    return r;
}

static int print_result(struct job *job, const char *run_id, const struct run_trials *trials,
                        struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    struct report_options options = {
        .verbose = job->arguments->verbosity > 0,
        .brief = job->arguments->is_quiet,
        .run_path = job->run_path,
        .colour = output_colour(job->values->colour, STDOUT_FILENO),
        .columns = output_columns(STDOUT_FILENO),
    };

    if (job->values->json) {
        scoped(json_freep) json_t *json = report_json(trials, run_id);

        return output_json(json, err);
    }
    report_terminal(&text, trials, &options);
    return print_out(&text, err);
}

static int finish(struct job *job, struct run *run, struct error **err)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    int r = run_dir_trials(run->dir, false, &trials, err);

    if (r == 0)
        r = output_save_suites(run->dir, &trials, err);
    if (r == 0)
        r = sign_key_seal(&job->session, job->values->sign_key, run->dir, err);
    if (r == 0)
        r = write_reports(job, run_dir_id(run->dir), &trials, err);
    if (r == 0)
        r = print_result(job, run_dir_id(run->dir), &trials, err);
    if (r < 0)
        return r;

    struct report_totals totals = report_totals(&trials);

    job->rules.interrupted = run->interrupted;
    return report_exit_status(&totals, &job->rules);
}

static int watch_host(const struct job *job, struct host_watch **ret, struct error **err)
{
    const char *how = job->values->verify_host;
    scoped(mem_freep) char *cwd = getcwd(NULL, 0);

    if (how == NULL)
        return 0;
    scoped(mem_freep) char *path = path_join(cwd == NULL ? "/" : cwd, job->run_path);

    return host_watch_start(&job->session, &job->plan, path, str_equal(how, "full"), ret, err);
}

static int run_trials(struct job *job, int dir_fd, struct error **err)
{
    const struct values *values = job->values;
    scoped(run_screen_freep) struct run_screen *screen = run_screen_new(
        &(struct run_screen_options){.quiet = job->arguments->is_quiet || values->json,
                                     .no_progress = values->no_progress || values->stream,
                                     .colour = output_colour(values->colour, STDERR_FILENO),
                                     .trials = job->plan.trial_count});
    struct plan_inputs inputs = {
        .paths = &job->inputs.paths,
        .overrides = &job->inputs.overrides,
        .selection = &job->inputs.selection,
        .grading = job->grading,
    };
    scoped(run_done) struct run run = {
        .session = &job->session,
        .plan = &job->plan,
        .inputs = &inputs,
        .dir_fd = dir_fd,
        .path = job->run_path,
        .run_id = job->run_id,
        .version = CLOSEDBOOK_VERSION,
        .observer = run_screen_observer(screen),
        .stop = interrupt_watch(),
        .parallel = (unsigned)values->parallel,
        .preflight = values->preflight,
        .shows_events = values->stream,
        .trust_host_steps = values->trust_host_steps,
        .allowed_leaks = &job->allowed_leaks,
        .fail_fast = values->fail_fast,
        .stop_after_errors = values->stop_after_errors,
        .retry_errors = values->retry_errors,
        .rerun_failed = values->rerun_failed,
        .force = str_equal(values->resume, "force"),
        .grading = job->grading,
    };
    scoped(host_watch_freep) struct host_watch *watch = NULL;

    if (values->trust_host_steps)
        log_warn("%s", TRUST_HOST_STEPS_WARNING);
    int r = watch_host(job, &watch, err);

    if (r == 0)
        r = values->resume != NULL ? run_resume(&run, err) : run_start(&run, err);
    run_screen_end(screen);
    if (r == 0 && watch != NULL)
        r = host_watch_end(watch, run_dir_fd(run.dir), err);
    return r < 0 ? r : finish(job, &run, err);
}

/* The folder of --record; *ret_fd: the caller's, and as long open as anything is kept. */
static int make_recording(struct job *job, int *ret_fd, struct error **err)
{
    if (job->values->record == NULL)
        return 0;
    int r = claim_make(job->session.claim, CLAIM_RECORDING, ret_fd, err);

    return r < 0 ? r : replay_make(job->session.replay, *ret_fd, job->values->resume != NULL, err);
}

static int prepare(struct job *job, struct error **err)
{
    int r = check_flags(job->values, err);

    if (r == 0)
        r = allowed_leaks_read(&job->values->allow_leaks, &job->allowed_leaks, err);

    if (r == 0)
        r = read_rules(job->values, job->grading, &job->rules, err);
    if (r < 0)
        return r;
    job->run_id = run_make_id();
    job->run_path = job->values->run_dir != NULL ? str_dup(job->values->run_dir)
                                                 : path_join("runs", job->run_id);
    r = open_session(job, err);
    if (r == 0)
        r = replay_open(&job->session, job->values->record, job->values->replay, err);
    if (r == 0)
        r = sign_key_check(&job->session, job->values->sign_key, err);
    if (r == 0)
        r = load_plan(job, err);
    if (r == 0)
        r = check_tiers(job, err);
    if (r == 0)
        r = task_inputs_judges(&job->inputs, INPUTS_RUN | (job->grading ? INPUTS_GRADE : 0),
                               &job->session, &job->plan.tasks, err);
    if (r == 0)
        r = task_inputs_endpoints(&job->inputs, &job->session, &job->plan.tasks, err);
    return r < 0 ? r : session_open_store(&job->session, job->run_id, err);
}

/* A folder that is not there is said before a run, not after it. Nothing is made yet, the run's own
 * folder must be empty; one that may not be looked into is left to the claim helper. */
static int check_report(const char *path, struct error **err)
{
    scoped(mem_freep) char *folder = path == NULL ? NULL : path_dir(path);
    struct stat status;

    if (folder == NULL)
        return 0;
    if (stat(folder, &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return error_errno_as(err, ERROR_USER, errno, "cannot write '%s'", path);
    return 0;
}

static int work(const struct arguments *arguments, bool grading, struct error **err)
{
    scoped(job_done) struct job job = {
        .arguments = arguments, .values = arguments->values, .grading = grading};
    scoped(fd_closep) int dir_fd = -1;
    scoped(fd_closep) int recording_fd = -1;
    int r = prepare(&job, err);

    /* Everything that could be wrong was looked at: only now does anything come into being. */
    if (r == 0)
        r = make_recording(&job, &recording_fd, err);
    if (r == 0)
        r = claim_make(job.session.claim, CLAIM_RUN, &dir_fd, err);
    if (r == 0)
        r = check_report(job.values->junit, err);
    if (r == 0)
        r = check_report(job.values->markdown, err);
    if (r == 0)
        r = check_report(job.values->html, err);
    return r < 0 ? r : run_trials(&job, dir_fd, err);
}

static int run_run(const struct arguments *arguments, struct error **err)
{
    return work(arguments, true, err);
}

static int run_execute(const struct arguments *arguments, struct error **err)
{
    return work(arguments, false, err);
}

const struct command command_run = {
    .name = "run",
    .summary = "run agents on tasks and grade what they left",
    .operands = "[PATH]...",
    .description = "PATH is a task file or a folder of them; default: tasks/, then tests/tasks/.",
    .options = run_rows,
    .option_count = ARRAY_SIZE(run_rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = SIZE_MAX,
    .run = run_run,
};

const struct command command_execute = {
    .name = "execute",
    .summary = "run agents on tasks without grading; see grade",
    .operands = "[PATH]...",
    .options = execute_rows,
    .option_count = ARRAY_SIZE(execute_rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = SIZE_MAX,
    .run = run_execute,
};
