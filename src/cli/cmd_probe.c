#include "base/clock.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/task_flags.h"
#include "run/probe.h"
#include "run/staged.h"
#include "task/task_private.h"

/* Exit statuses of this command. */
enum { STATUS_ERRORS = 3, STATUS_FOUND = 4 };

struct values {
    struct task_flags tasks;
    const char *allow_tier;
    bool fast, controls, json;
};

static const struct cli_option rows[] = {
    TASK_FLAG_ROWS(struct values),
    ALLOW_TIER_ROW(struct values),
    {.kind = OPTION_FLAG,
     .long_name = "fast",
     .offset = offsetof(struct values, fast),
     .help = "only what takes less than two seconds"},
    {.kind = OPTION_FLAG,
     .long_name = "controls",
     .offset = offsetof(struct values, controls),
     .help = "run the attacks without a cell, where each must be FOUND"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the result as JSON"},
};

struct job {
    const struct values *values;
    struct session session;
    struct task_inputs inputs;
    struct task_set tasks;
    struct staged staged;
    struct view *empty; /* without a task; owned */
    struct probe_options options;
};

static void job_done(struct job *job)
{
    staged_done(&job->staged);
    view_free(job->empty);
    task_set_done(&job->tasks);
    task_inputs_done(&job->inputs);
    session_close(&job->session);
}

/* The control runs in the same cell, but for the cell. */
static bool is_tempdir(const struct values *values)
{
    return values->controls || str_equal(values->tasks.driver, "tempdir");
}

static int open_empty(struct job *job, struct error **err)
{
    enum cell_driver driver = is_tempdir(job->values) ? CELL_TEMPDIR : CELL_NATIVE;
    int r = session_monitor(&job->session, driver, &job->options.control, err);

    if (r == 0)
        r = view_build_empty(job->session.store, &job->empty, err);
    job->options.view = job->empty;
    return r;
}

static int open_task(struct job *job, const struct arguments *arguments, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_inputs_init(&job->values->tasks, arguments->operands, 1, &job->inputs);
    job->inputs.overrides.agent_optional = true;
    job->inputs.overrides.model_optional = true;
    if (job->values->controls)
        job->inputs.overrides.driver = "tempdir";

    int r = task_inputs_load(&job->inputs, &job->session.reader, arguments->verbosity > 0,
                             &job->tasks, err);

    if (r == 0 && job->tasks.count != 1)
        r = error_set(err, ERROR_USER,
                      "%zu tasks were found, one was expected; choose with --only ID",
                      job->tasks.count);
    if (r < 0)
        return r;
    staged_make(&(struct staged_options){.session = &job->session,
                                         .task = job->tasks.tasks[0],
                                         .all = &job->tasks},
                &job->staged);
    if (job->staged.error != NULL)
        return error_set(err, error_code_of(job->staged.error), "%s",
                         error_message(job->staged.error));
    task_split(job->tasks.tasks[0], &public_half, &private_half);
    job->options.control = job->staged.control;
    job->options.view = job->staged.view;
    job->options.task_id = private_half->task_id;
    return 0;
}

static int open_cell(struct job *job, const struct arguments *arguments, struct error **err)
{
    struct session_options options = {.cells = true, .allow_tier = job->values->allow_tier};
    scoped(mem_freep) char *run_id = random_hex(8);
    int r = session_open(&options, &job->session, err);

    if (r == 0)
        r = session_open_store(&job->session, run_id, err);
    if (r < 0)
        return r;
    job->options.session = &job->session;
    job->options.fast = job->values->fast;
    return arguments->operand_count > 0 ? open_task(job, arguments, err) : open_empty(job, err);
}

/* --- what is printed */

static void print_row(struct buf *text, const struct battery_row *row, const char *verdict)
{
    buf_format(text, "%c  %-26s %-8s %8ju  ", row->class, row->id, verdict,
               (uintmax_t)row->examined);
    term_quote(text, row->title, strlen(row->title), 0);
    if (row->detail != NULL) {
        buf_text_append(text, ": ");
        term_quote(text, row->detail, strlen(row->detail), 0);
    }
    buf_char(text, '\n');
}

static void print_table(struct buf *text, const struct probe_result *result, bool verbose)
{
    const struct battery *battery = &result->battery;

    buf_format(text, "%-2s %-26s %-8s %8s  %s\n", "", "ATTACK", "VERDICT", "EXAMINED", "WHAT");
    for (size_t i = 0; i < battery->count; i++) {
        struct battery_row row = battery->rows[i];

        if (!verbose && row.verdict == ATTACK_DENIED)
            row.detail = NULL;
        print_row(text, &row, attack_verdict_name(row.verdict));
    }
    buf_format(text,
               "%zu attacks, tier %s: %zu denied, %zu found, %zu posture, %zu errors (%.1f s)\n",
               battery->count, cell_tier_name(result->tier), battery_count(battery, ATTACK_DENIED),
               battery_count(battery, ATTACK_FOUND), battery_count(battery, ATTACK_POSTURE),
               battery_count(battery, ATTACK_ERROR), ns_to_ms(result->ns) / 1000);
}

static bool is_control_bad(const struct battery_row *row)
{
    return row->leaky && row->verdict != ATTACK_FOUND && row->verdict != ATTACK_POSTURE;
}

static size_t print_controls(struct buf *text, const struct probe_result *result)
{
    const struct battery *battery = &result->battery;
    size_t bad = 0, elsewhere = 0;

    for (size_t i = 0; i < battery->count; i++) {
        const struct battery_row *row = &battery->rows[i];

        bad += is_control_bad(row);
        elsewhere += !row->leaky;
        print_row(text, row,
                  !row->leaky           ? "mutant"
                  : is_control_bad(row) ? "NOT FOUND"
                                        : attack_verdict_name(row->verdict));
    }
    buf_format(text,
               "%zu attacks without a cell: %zu were not found; of %zu more the control is a "
               "monitor built without a protection (scripts/mutate)\n",
               battery->count - elsewhere, bad, elsewhere);
    return bad;
}

static size_t count_bad(const struct battery *battery)
{
    size_t bad = 0;

    for (size_t i = 0; i < battery->count; i++)
        bad += is_control_bad(&battery->rows[i]);
    return bad;
}

static int print_result(const struct arguments *arguments, const struct probe_result *result,
                        struct error **err)
{
    const struct values *values = arguments->values;
    scoped(buf_done) struct buf text = {0};

    if (values->json) {
        scoped(json_freep) json_t *json = probe_json(result);

        return output_json(json, err);
    }
    if (values->controls)
        (void)print_controls(&text, result);
    else
        print_table(&text, result, arguments->verbosity > 0);
    return print_out(&text, err);
}

static int status_of(const struct values *values, const struct battery *battery)
{
    if (values->controls)
        return count_bad(battery) > 0 ? STATUS_ERRORS : 0;
    if (battery_count(battery, ATTACK_FOUND) > 0)
        return STATUS_FOUND;
    return battery_count(battery, ATTACK_ERROR) > 0 ? STATUS_ERRORS : 0;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(job_done) struct job job = {.values = arguments->values, .staged.script_fd = -1};
    scoped(probe_result_done) struct probe_result result = {0};
    int r = open_cell(&job, arguments, err);

    if (r == 0)
        r = probe_run(&job.options, &result, err);
    if (r == 0)
        r = print_result(arguments, &result, err);
    return r < 0 ? r : status_of(job.values, &result.battery);
}

static const struct values defaults = {0};

const struct command command_probe = {
    .name = "probe",
    .summary = "attack the cell that a task's agent gets, and say what was found",
    .operands = "[TASK]",
    .description =
        "Runs the attack battery as the agent in a twin of the cell, with a decoy in place of the "
        "private half. Without a task the workspace is empty. Exit status 4 when an attack found "
        "something, 3 when one could not be tried.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = 1,
    .run = run,
};
