#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "report/html.h"
#include "report/report.h"
#include "run/run_open.h"

struct values {
    bool json;
    const char *format, *colour;
};

static const char *const formats[] = {"terminal", "markdown", "html", "junit",
                                      "json",     "jsonl",    "csv",  NULL};

static const struct cli_option rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the summary as JSON"},
    {.kind = OPTION_TEXT,
     .short_name = 'f',
     .long_name = "format",
     .value = "FORMAT",
     .offset = offsetof(struct values, format),
     .choices = formats,
     .help = "terminal, markdown, html, junit, json, jsonl or csv"},
    {.kind = OPTION_TEXT,
     .long_name = "color",
     .value = "WHEN",
     .offset = offsetof(struct values, colour),
     .choices = output_colour_choices,
     .help = "auto, always or never"},
};

static void write_report(struct buf *text, const struct values *values,
                         const struct run_trials *trials, const struct run_dir *run,
                         const struct arguments *arguments)
{
    struct report_options options = {
        .verbose = arguments->verbosity > 0,
        .brief = arguments->is_quiet,
        .run_path = run_dir_path(run),
        .colour = output_colour(values->colour, STDOUT_FILENO),
        .columns = output_columns(STDOUT_FILENO),
    };

    if (values->json || str_equal(values->format, "json")) {
        scoped(json_freep) json_t *json = report_json(trials, run_dir_id(run));

        report_json_write(text, json);
    } else if (str_equal(values->format, "jsonl")) {
        report_jsonl(text, trials);
    } else if (str_equal(values->format, "csv")) {
        report_csv(text, trials);
    } else if (str_equal(values->format, "markdown")) {
        report_markdown(text, trials, &options);
    } else if (str_equal(values->format, "html")) {
        const json_t *facts = run_dir_run(run);
        struct html_run page = {.run_id = run_dir_id(run),
                                .version = json_get_text(facts, "version"),
                                .started = json_get_text(facts, "started"),
                                .run_path = run_dir_path(run)};

        report_html(text, trials, &page);
    } else if (str_equal(values->format, "junit")) {
        report_junit(text, trials, run_dir_id(run));
    } else {
        report_terminal(text, trials, &options);
    }
}

static int report(const struct arguments *arguments, struct session *session, struct error **err)
{
    const struct values *values = arguments->values;
    const char *path = arguments->operands[0];
    scoped(run_dir_closep) struct run_dir *run = NULL;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(buf_done) struct buf text = {0};
    int r = session_open_run(session, path, false, &run, err);

    if (r == 0)
        r = run_dir_trials(run, true, &trials, err);
    if (r < 0)
        return r;
    write_report(&text, values, &trials, run, arguments);
    r = print_out(&text, err);
    if (r < 0)
        return r;

    struct report_totals totals = report_totals(&trials);
    struct exit_rules rules = {.allow_empty = true,
                               .fail_on_unstable = true,
                               .min_pass_rate = -1,
                               .max_errors = -1,
                               .interrupted = trials.unfinished > 0};

    return report_exit_status(&totals, &rules);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {.owner_of = arguments->operands[0]};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : report(arguments, &session, err);
}

static const struct values defaults = {.format = "terminal", .colour = "auto"};

const struct command command_report = {
    .name = "report",
    .summary = "show a run: what passed, what failed and why",
    .operands = "RUN",
    .description =
        "RUN is a run directory. The exit status is the run's; 130 while trials are unfinished.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
