#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/task_flags.h"
#include "run/installed.h"
#include "run/run_plan.h"
#include "task/task_private.h"
#include "task/task_public.h"

struct values {
    struct task_flags tasks;
    bool json, resolved;
    const char *schema, *explain;
    uint64_t repeats;
};

static const char *const schema_forms[] = {"json", "markdown", NULL};

static const struct cli_option rows[] = {
    TASK_FLAG_ROWS(struct values),
    {.kind = OPTION_NUMBER,
     .long_name = "repeats",
     .value = "N",
     .offset = offsetof(struct values, repeats),
     .min = 1,
     .max = UINT16_MAX,
     .help = "trials of each task"},
    {.kind = OPTION_FLAG,
     .long_name = "resolved",
     .offset = offsetof(struct values, resolved),
     .help = "print each task as merged from all layers, with where each value came from"},
    {.kind = OPTION_TEXT,
     .long_name = "explain",
     .value = "FIELD",
     .offset = offsetof(struct values, explain),
     .help =
         "print what a field is in each task and where that came from: run_limits.max_turns, or "
         "all below run_limits"},
    {.kind = OPTION_OPTIONAL,
     .long_name = "schema",
     .value = "json|markdown",
     .when_bare = "json",
     .choices = schema_forms,
     .offset = offsetof(struct values, schema),
     .help = "print the schema of task files, or the field reference, and stop"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print the plan as JSON"},
};

static void list_task(struct buf *text, const struct task *task, unsigned repeats)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const char *skip = task_skip_reason(task);

    task_split(task, &public_half, &private_half);
    buf_format(text, "%-40s ", task_key(task)); /* checked ids: plain characters only */
    if (skip != NULL) {
        buf_text_append(text, str_starts(skip, "later: ") ? "" : "skipped: ");
        term_quote(text, skip, strlen(skip), TERM_ONE_LINE);
        buf_char(text, '\n');
        return;
    }
    buf_format(text, "%u trial%s, %zu criteria%s%s\n", repeats, repeats == 1 ? "" : "s",
               private_half->criterion_count,
               private_half->reference_dir != NULL ? ", reference" : "",
               public_half->driver == DRIVER_TEMPDIR ? ", tempdir (unprotected)" : "");
}

static int print_plan(const struct values *values, struct task_set *set,
                      const struct task_inputs *inputs, struct error **err)
{
    scoped(run_plan_done) struct run_plan plan = {0};
    scoped(buf_done) struct buf text = {0};

    run_plan_make(set, (unsigned)values->repeats, &plan);

    size_t tasks = task_set_ids(&plan.tasks);

    if (values->json) {
        struct plan_inputs recorded = {
            .paths = &inputs->paths,
            .overrides = &inputs->overrides,
            .selection = &inputs->selection,
            .grading = true,
        };
        scoped(json_freep) json_t *json = run_plan_json(&plan, &recorded);

        return output_json(json, err);
    }
    for (size_t i = 0; i < plan.tasks.count; i++)
        list_task(&text, plan.tasks.tasks[i], run_plan_repeats(&plan, i));
    buf_format(&text, "%zu task%s (%zu skipped), %zu trial%s\n", tasks, tasks == 1 ? "" : "s",
               plan.tasks.skipped_count, plan.trial_count, plan.trial_count == 1 ? "" : "s");
    return print_out(&text, err);
}

static int print_resolved(const struct task_set *set, struct error **err)
{
    scoped(json_freep) json_t *array = json_array();

    for (size_t i = 0; i < set->count; i++) {
        json_t *item = json_object();

        json_put(item, "task", task_resolved(set->tasks[i]));
        json_put(item, "lineage", task_lineage(set->tasks[i]));
        json_push(array, item);
    }
    return output_json(array, err);
}

/* The field itself, or one below it. */
static bool is_below(const char *field, const char *wanted)
{
    size_t length = strlen(wanted);

    return strncmp(field, wanted, length) == 0 &&
           (field[length] == '\0' || field[length] == '.' || field[length] == '[');
}

static void explain_value(struct buf *text, const char *field, const json_t *entry)
{
    scoped(buf_done) struct buf value = {0};
    const char *file = json_get_text(entry, "file");
    int64_t line = json_get_int(entry, "line", 0);

    json_write_line(&value, json_object_get(entry, "value"));
    buf_format(text, "  %s = ", field);
    term_quote(text, buf_text(&value), value.size_bytes, TERM_ONE_LINE);
    buf_format(text, "  (%s", json_get_text(entry, "source"));
    if (file != NULL) {
        buf_text_append(text, " ");
        term_quote(text, file, strlen(file), TERM_ONE_LINE);
        if (line > 0)
            buf_format(text, ":%jd", (intmax_t)line);
    }
    buf_text_append(text, ")\n");
}

static void explain_task(struct buf *text, const struct task *task, const char *wanted)
{
    scoped(json_freep) json_t *lineage = task_lineage(task);
    const char *field;
    json_t *entry;
    bool found = false;

    buf_format(text, "%s\n", task_key(task));
    json_object_foreach (lineage, field, entry) {
        if (!is_below(field, wanted))
            continue;
        found = true;
        explain_value(text, field, entry);
    }
    if (!found)
        buf_text_append(text, "  not set\n");
}

static int explain(const struct task_set *set, const char *wanted, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    if (!task_field_exists(wanted))
        return error_set(err, ERROR_USER,
                         "--explain '%s': the name of a field expected, like run_limits.max_turns "
                         "(docs/formats/task.md lists them)",
                         wanted);
    for (size_t i = 0; i < set->count; i++)
        explain_task(&text, set->tasks[i], wanted);
    return print_out(&text, err);
}

static int load_and_print(const struct arguments *arguments, struct session *session,
                          struct error **err)
{
    const struct values *values = arguments->values;
    scoped(task_inputs_done) struct task_inputs inputs = {0};
    scoped(task_set_done) struct task_set set = {0};

    task_inputs_init(&values->tasks, arguments->operands, arguments->operand_count, &inputs);
    inputs.overrides.agent_optional = true;

    int r = task_inputs_load(&inputs, &session->reader, arguments->verbosity > 0, &set, err);

    if (r == 0 && values->explain == NULL && !values->resolved)
        r = task_inputs_judges(&inputs, INPUTS_RUN | INPUTS_GRADE, session, &set, err);
    if (r == 0 && values->explain == NULL && !values->resolved)
        r = installed_check(session, &set, err);
    if (r < 0)
        return r;
    if (values->explain != NULL)
        return explain(&set, values->explain, err);
    return values->resolved ? print_resolved(&set, err) : print_plan(values, &set, &inputs, err);
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(session_close) struct session session = {0};
    struct session_options options = {.judges = true};

    if (str_equal(values->schema, "json")) {
        scoped(json_freep) json_t *schema = task_schema_json();

        return output_json(schema, err);
    }
    if (values->schema != NULL) {
        scoped(buf_done) struct buf text = {0};

        task_schema_markdown(&text);
        return print_out(&text, err);
    }

    int r = session_open(&options, &session, err);

    return r < 0 ? r : load_and_print(arguments, &session, err);
}

const struct command command_plan = {
    .name = "plan",
    .summary = "check tasks and show what a run would do; spends nothing",
    .operands = "[PATH]...",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .operands_max = SIZE_MAX,
    .run = run,
};
