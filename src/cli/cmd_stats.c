#include "cli/commands.h"
#include "cli/figures_options.h"
#include "cli/output.h"
#include "cli/print.h"
#include "report/figures_text.h"
#include "run/run_open.h"

struct values {
    bool json, plan;
    const char *colour;
    uint64_t confidence, draws, seed;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the figures as JSON"},
    {.kind = OPTION_FLAG,
     .long_name = "plan",
     .offset = offsetof(struct values, plan),
     .help = "tell how many tasks and replicates would show a difference"},
    FIGURES_OPTIONS(struct values),
    {.kind = OPTION_TEXT,
     .long_name = "color",
     .value = "WHEN",
     .offset = offsetof(struct values, colour),
     .choices = output_colour_choices,
     .help = "auto, always or never"},
};

static void write_figures(struct buf *text, const struct values *values,
                          const struct run_figures *figures, bool whole)
{
    struct painter painter = {.buf = text, .colour = output_colour(values->colour, STDOUT_FILENO)};

    if (values->plan)
        figures_plan_text(&painter, figures);
    else
        figures_text(&painter, figures, whole);
}

static int stats(const struct arguments *arguments, struct session *session, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(run_dir_closep) struct run_dir *run = NULL;
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(figures_done) struct run_figures figures = {0};
    scoped(buf_done) struct buf text = {0};
    struct figures_options options =
        figures_options_of(values->confidence, values->draws, values->seed);
    int r = session_open_run(session, arguments->operands[0], false, &run, err);

    if (r == 0)
        r = run_dir_trials(run, true, &trials, err);
    if (r < 0)
        return r;
    if (trials.count == 0)
        return error_set(err, ERROR_USER, "%s: no trial of it is finished", run_dir_path(run));
    figures_make(&trials, &options, &figures);
    if (values->json) {
        scoped(json_freep) json_t *json = figures_json(&figures);

        json_put_text(json, "run_id", run_dir_id(run));
        json_put_int(json, "unfinished", (int64_t)trials.unfinished);
        return output_json(json, err);
    }
    write_figures(&text, values, &figures, arguments->verbosity > 0);
    if (trials.unfinished > 0)
        buf_format(&text, "  %zu trial%s not finished: left out\n", trials.unfinished,
                   trials.unfinished == 1 ? " is" : "s are");
    return print_out(&text, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {.owner_of = arguments->operands[0]};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : stats(arguments, &session, err);
}

static const struct values defaults = {.colour = "auto", FIGURES_DEFAULTS};

const struct command command_stats = {
    .name = "stats",
    .summary = "rates with intervals, pass@k, cost and steadiness of a run",
    .operands = "RUN",
    .description = "Per variant: pass rate and score with intervals that count tasks, not trials;\n"
                   "pass@k and pass^k; cost and time; the tasks that pass sometimes, with -v all.\n"
                   "The formulas and their sources are in docs/statistics.md.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = 1,
    .run = run,
};
