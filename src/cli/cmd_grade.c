#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/run_screen.h"
#include "cli/sign_key.h"
#include "cli/task_flags.h"
#include "cli/version.h"
#include "report/report.h"
#include "run/run.h"
#include "run/run_open.h"

#define REPEAT_MAX 100

struct values {
    uint64_t parallel, repeat;
    bool trust_host_steps, new_reference, ask_again, json, no_progress;
    const char *colour, *allow_tier, *sign_key;
};

static const struct cli_option rows[] = {
    ALLOW_TIER_ROW(struct values),
    TRUST_HOST_STEPS_ROW(struct values),
    SIGN_KEY_ROW(struct values),
    {.kind = OPTION_FLAG,
     .long_name = "new-reference",
     .offset = offsetof(struct values, new_reference),
     .help = "the reference changed, and that is meant"},
    {.kind = OPTION_NUMBER,
     .long_name = "repeat",
     .value = "N",
     .offset = offsetof(struct values, repeat),
     .min = 1,
     .max = REPEAT_MAX,
     .help = "grade each N times, say where verdicts differ"},
    {.kind = OPTION_FLAG,
     .long_name = "ask-again",
     .offset = offsetof(struct values, ask_again),
     .help = "ask judges anew, whatever they said before"},
    {.kind = OPTION_NUMBER,
     .short_name = 'j',
     .long_name = "jobs",
     .value = "N",
     .offset = offsetof(struct values, parallel),
     .min = 1,
     .max = POOL_PARALLEL_MAX,
     .help = "trials at a time"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the summary as JSON"},
    {.kind = OPTION_FLAG,
     .long_name = "no-progress",
     .offset = offsetof(struct values, no_progress),
     .help = "no live progress"},
    {.kind = OPTION_TEXT,
     .long_name = "color",
     .value = "WHEN",
     .offset = offsetof(struct values, colour),
     .choices = output_colour_choices,
     .help = "auto, always or never"},
};

/* What grading works on. */
struct job {
    const struct arguments *arguments;
    const char *path;           /* of the run */
    struct trial_operand trial; /* the one that is graded; empty: all */
    struct session session;
    struct run_dir *recorded;
    struct task_inputs inputs;
    struct run_plan plan;
};

static void job_done(struct job *job)
{
    run_plan_done(&job->plan);
    task_inputs_done(&job->inputs);
    run_dir_close(job->recorded);
    session_close(&job->session);
    trial_operand_done(&job->trial);
}

static int load(struct job *job, struct error **err)
{
    scoped(task_set_done) struct task_set set = {0};
    unsigned repeats = 1;
    int r = session_open_run(&job->session, job->path, false, &job->recorded, err);

    if (r == 0)
        r = task_inputs_recorded(run_dir_plan(job->recorded), &job->inputs, &repeats, err);
    job->inputs.overrides.agent_optional = true;
    job->inputs.overrides.model_optional = true;
    if (r == 0)
        r = task_inputs_load(&job->inputs, &job->session.reader, job->arguments->verbosity > 0,
                             &set, err);
    if (r == 0)
        r = task_inputs_judges(&job->inputs, INPUTS_GRADE, &job->session, &set, err);
    if (r == 0)
        r = session_open_store(&job->session, run_dir_id(job->recorded), err);
    if (r == 0)
        run_plan_make(&set, repeats, &job->plan);
    return r;
}

static int show(struct job *job, const struct run *run, struct error **err)
{
    const struct values *values = job->arguments->values;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf text = {0};
    struct report_options options = {
        .verbose = job->arguments->verbosity > 0,
        .brief = job->arguments->is_quiet,
        .run_path = job->path,
        .colour = output_colour(values->colour, STDOUT_FILENO),
        .columns = output_columns(STDOUT_FILENO),
    };
    int r = run_dir_trials(run->dir, false, &trials, err);

    if (r == 0)
        r = output_save_suites(run->dir, &trials, err);
    if (r == 0)
        r = sign_key_seal(&job->session, values->sign_key, run->dir, err);
    if (r == 0 && values->json) {
        scoped(json_freep) json_t *json = report_json(&trials, run_dir_id(run->dir));

        r = output_json(json, err);
    } else if (r == 0) {
        report_terminal(&text, &trials, &options);
        r = print_out(&text, err);
    }
    if (r < 0)
        return r;

    struct report_totals totals = report_totals(&trials);
    struct exit_rules rules = {.grading_expected = true,
                               .min_pass_rate = -1,
                               .max_errors = -1,
                               .fail_on_unstable = true,
                               .interrupted = run->interrupted};

    return report_exit_status(&totals, &rules);
}

static int grade(struct job *job, struct error **err)
{
    const struct values *values = job->arguments->values;
    scoped(run_screen_freep) struct run_screen *screen = run_screen_new(
        &(struct run_screen_options){.quiet = job->arguments->is_quiet || values->json,
                                     .no_progress = values->no_progress,
                                     .colour = output_colour(values->colour, STDERR_FILENO),
                                     .trials = job->plan.trial_count});
    scoped(run_done) struct run run = {
        .session = &job->session,
        .plan = &job->plan,
        .dir_fd = run_dir_fd(job->recorded),
        .path = job->path,
        .observer = run_screen_observer(screen),
        .stop = interrupt_watch(),
        .parallel = (unsigned)values->parallel,
        .trust_host_steps = values->trust_host_steps,
        .only = job->trial.trial_path,
        .new_reference = values->new_reference,
        .gradings = (unsigned)values->repeat,
        .asks_anew = values->ask_again || values->repeat > 1,
    };

    if (values->trust_host_steps)
        log_warn("%s", TRUST_HOST_STEPS_WARNING);
    int r = run_grade(&run, err);

    run_screen_end(screen);
    return r < 0 ? r : show(job, &run, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(job_done) struct job job = {.arguments = arguments, .path = arguments->operands[0]};
    const struct values *values = arguments->values;
    scoped(mem_freep) char *run_path = run_path_of(arguments->operands[0]);
    struct session_options options = {
        .cells = true, .owner_of = run_path, .allow_tier = values->allow_tier};
    int r = session_open(&options, &job.session, err);

    if (r == 0)
        r = sign_key_check(&job.session, values->sign_key, err);

    if (r == 0 && operand_kind_of(&job.session, job.path) == OPERAND_TRIAL) {
        r = trial_operand_parse(&job.session, job.path, &job.trial, err);
        job.path = r == 0 ? job.trial.run_path : job.path;
    }
    if (r == 0)
        r = load(&job, err);
    return r < 0 ? r : grade(&job, err);
}

static const struct values defaults = {.parallel = 1, .repeat = 1, .colour = "auto"};

const struct command command_grade = {
    .name = "grade",
    .summary = "grade recorded trials, or grade them again; execution facts stay",
    .operands = "RUN|TRIAL",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
