#include "base/mem.h"
#include "cli/commands.h"
#include "cli/figures_options.h"
#include "cli/output.h"
#include "cli/print.h"
#include "report/figures_text.h"
#include "run/run_open.h"

#define EXIT_REGRESSION 1

struct values {
    bool json, force, fail_on_regression;
    const char *colour, *baseline;
    uint64_t confidence, draws, seed;
};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .long_name = "baseline",
     .value = "VARIANT",
     .offset = offsetof(struct values, baseline),
     .help = "of one run: the variant that all others are held against, the first unless given"},
    {.kind = OPTION_FLAG,
     .long_name = "fail-on-regression",
     .offset = offsetof(struct values, fail_on_regression),
     .help = "exit with 1 when B is worse, beyond chance"},
    {.kind = OPTION_FLAG,
     .long_name = "force",
     .offset = offsetof(struct values, force),
     .help = "compare although tasks or their graders differ"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the comparison as JSON"},
    FIGURES_OPTIONS(struct values),
    {.kind = OPTION_TEXT,
     .long_name = "color",
     .value = "WHEN",
     .offset = offsetof(struct values, colour),
     .choices = output_colour_choices,
     .help = "auto, always or never"},
};

/* A run of the command line, and what it comes to. */
struct loaded {
    struct run_dir *run;
    struct run_trials trials;
    struct run_figures figures;
};

static void loaded_done(struct loaded *loaded)
{
    figures_done(&loaded->figures);
    run_trials_done(&loaded->trials);
    run_dir_closep(&loaded->run);
}

/* All pairs to be compared. */
struct pairs {
    struct loaded runs[2];
    size_t run_count;
    struct comparison_side (*sides)[2];
    struct comparison *comparisons;
    size_t count;
    char **names; /* owned, two a pair */
};

static void pairs_done(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count && pairs->comparisons != NULL; i++)
        comparison_done(&pairs->comparisons[i]);
    for (size_t i = 0; i < 2 * pairs->count; i++)
        free(pairs->names[i]);
    for (size_t i = 0; i < pairs->run_count; i++)
        loaded_done(&pairs->runs[i]);
    free(pairs->comparisons);
    free(pairs->sides);
    free(pairs->names);
}

static int load(const struct session *session, const char *path,
                const struct figures_options *options, struct pairs *pairs, struct error **err)
{
    struct loaded *loaded = &pairs->runs[pairs->run_count];
    int r = session_open_run(session, path, false, &loaded->run, err);

    if (r == 0)
        r = run_dir_trials(loaded->run, true, &loaded->trials, err);
    if (r < 0) {
        run_dir_closep(&loaded->run);
        return r;
    }
    pairs->run_count++;
    if (loaded->trials.count == 0)
        return error_set(err, ERROR_USER, "%s: no trial of it is finished", path);
    if (loaded->trials.unfinished > 0)
        return error_set(err, ERROR_USER,
                         "%s: %zu of its trials are not finished; finish it with 'closedbook run "
                         "--resume --run-dir %s'",
                         path, loaded->trials.unfinished, path);
    figures_make(&loaded->trials, options, &loaded->figures);
    return 0;
}

static const struct variant_figures *variant_of(const struct run_figures *figures, const char *name)
{
    for (size_t i = 0; i < figures->count; i++) {
        if (str_equal(figures->variants[i].variant_id, name))
            return &figures->variants[i];
    }
    return NULL;
}

static void add_pair(struct pairs *pairs, const struct comparison_side *a,
                     const struct comparison_side *b)
{
    size_t n = pairs->count++;

    pairs->names = mem_resize(pairs->names, 2 * pairs->count, sizeof(*pairs->names));
    pairs->sides = mem_resize(pairs->sides, pairs->count, sizeof(*pairs->sides));
    pairs->names[2 * n] = str_dup(a->name);
    pairs->names[2 * n + 1] = str_dup(b->name);
    pairs->sides[n][0] = *a;
    pairs->sides[n][1] = *b;
    pairs->sides[n][0].name = pairs->names[2 * n];
    pairs->sides[n][1].name = pairs->names[2 * n + 1];
}

/* Each variant of the one run against one of them. */
static int pair_variants(struct pairs *pairs, const char *baseline, struct error **err)
{
    const struct loaded *loaded = &pairs->runs[0];
    const struct run_figures *figures = &loaded->figures;
    const json_t *plan = run_dir_plan(loaded->run);
    const struct variant_figures *base =
        baseline == NULL ? &figures->variants[0] : variant_of(figures, baseline);

    if (base == NULL)
        return error_set(err, ERROR_USER, "--baseline %s: the run has no variant of that name",
                         baseline);
    if (figures->count < 2)
        return error_set(err, ERROR_USER,
                         "%s has one variant, '%s': give a second run to compare with",
                         run_dir_path(loaded->run), base->variant_id);
    for (size_t i = 0; i < figures->count; i++) {
        const struct variant_figures *other = &figures->variants[i];

        if (other != base)
            add_pair(pairs, &(struct comparison_side){base->variant_id, base, plan},
                     &(struct comparison_side){other->variant_id, other, plan});
    }
    return 0;
}

static void add_side_name(char **ret, const struct loaded *loaded,
                          const struct variant_figures *variant)
{
    *ret = loaded->figures.count == 1
               ? str_dup(run_dir_path(loaded->run))
               : str_format("%s [%s]", run_dir_path(loaded->run), variant->variant_id);
}

/* Variants of the same name; or the only one of each run. */
static int pair_runs(struct pairs *pairs, struct error **err)
{
    const struct loaded *a = &pairs->runs[0], *b = &pairs->runs[1];
    bool only = a->figures.count == 1 && b->figures.count == 1;

    for (size_t i = 0; i < a->figures.count; i++) {
        const struct variant_figures *left = &a->figures.variants[i];
        const struct variant_figures *right =
            only ? &b->figures.variants[0] : variant_of(&b->figures, left->variant_id);
        scoped(mem_freep) char *left_name = NULL;
        scoped(mem_freep) char *right_name = NULL;

        if (right == NULL)
            continue;
        add_side_name(&left_name, a, left);
        add_side_name(&right_name, b, right);
        add_pair(pairs, &(struct comparison_side){left_name, left, run_dir_plan(a->run)},
                 &(struct comparison_side){right_name, right, run_dir_plan(b->run)});
    }
    if (pairs->count == 0)
        return error_set(err, ERROR_USER, "%s and %s have no variant in common",
                         run_dir_path(a->run), run_dir_path(b->run));
    return 0;
}

/* Figures of tasks that were graded otherwise mean nothing. */
static int check_digests(const struct pairs *pairs, struct error **err)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const struct comparison *comparison = &pairs->comparisons[i];

        if (comparison->changed_count > 0)
            return error_set(err, ERROR_USER,
                             "%zu of %zu shared tasks, or their graders, are not the same in %s "
                             "and %s (the first: '%s'); run both again, or use --force",
                             comparison->changed_count, comparison->pass.tasks, comparison->a.name,
                             comparison->b.name, comparison->changed[0]);
        if (comparison->pass.tasks == 0)
            return error_set(err, ERROR_USER, "%s and %s have no task in common that both decided",
                             comparison->a.name, comparison->b.name);
    }
    return 0;
}

static int write_comparisons(const struct arguments *arguments, const struct pairs *pairs,
                             struct error **err)
{
    const struct values *values = arguments->values;
    scoped(buf_done) struct buf text = {0};
    struct painter painter = {.buf = &text, .colour = output_colour(values->colour, STDOUT_FILENO)};

    if (values->json) {
        scoped(json_freep) json_t *json = json_object();
        json_t *list = json_array();

        json_put_text(json, "schema", "closedbook/comparison/1");
        for (size_t i = 0; i < pairs->count; i++)
            json_push(list, comparison_json(&pairs->comparisons[i]));
        json_put(json, "comparisons", list);
        return output_json(json, err);
    }
    for (size_t i = 0; i < pairs->count; i++)
        comparison_text(&painter, &pairs->comparisons[i], arguments->verbosity > 0);
    return print_out(&text, err);
}

static int compare(const struct arguments *arguments, struct session *session, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(pairs_done) struct pairs pairs = {0};
    struct figures_options options =
        figures_options_of(values->confidence, values->draws, values->seed);
    int r = 0;

    if (arguments->operand_count == 2 && values->baseline != NULL)
        return error_set(err, ERROR_USER, "--baseline is for the variants of one run");
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++)
        r = load(session, arguments->operands[i], &options, &pairs, err);
    if (r == 0)
        r = arguments->operand_count == 1 ? pair_variants(&pairs, values->baseline, err)
                                          : pair_runs(&pairs, err);
    if (r < 0)
        return r;
    pairs.comparisons = mem_new(pairs.count, sizeof(*pairs.comparisons));
    comparisons_make((const struct comparison_side(*)[2])pairs.sides, pairs.count, &options,
                     pairs.comparisons);
    if (!values->force)
        r = check_digests(&pairs, err);
    if (r == 0)
        r = write_comparisons(arguments, &pairs, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < pairs.count && values->fail_on_regression; i++) {
        if (comparison_is_worse(&pairs.comparisons[i]))
            return EXIT_REGRESSION;
    }
    return 0;
}

static int run(const struct arguments *arguments, struct error **err)
{
    scoped(session_close) struct session session = {0};
    struct session_options options = {.owner_of = arguments->operands[0]};
    int r = session_open(&options, &session, err);

    return r < 0 ? r : compare(arguments, &session, err);
}

static const struct values defaults = {.colour = "auto", FIGURES_DEFAULTS};

const struct command command_compare = {
    .name = "compare",
    .summary = "is B better than A: two runs, or the variants of one",
    .operands = "RUN [RUN]",
    .description =
        "A is the first run, B the second; of one run each other variant is held against the "
        "first. Tasks that both decided are paired, and each counts once. p-values are of sign "
        "flips (McNemar's with one trial a task), corrected by Holm over all pairs.\n"
        "Refused when tasks or graders differ. The formulas are in docs/statistics.md.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_min = 1,
    .operands_max = 2,
    .run = run,
};
