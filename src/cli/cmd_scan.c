#include <stdio.h>

#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/task_flags.h"
#include "run/run.h"
#include "run/staged.h"

#define EXCERPT_LINES_MAX 6
#define EXCERPT_BYTES_MAX ((size_t)600)

struct values {
    struct task_flags tasks;
    const char *allow_tier;
    bool json, roots;
};

static const struct cli_option rows[] = {
    ALLOW_TIER_ROW(struct values),
    {.kind = OPTION_LIST,
     .long_name = "only",
     .value = "ID",
     .offset = offsetof(struct values, tasks.only),
     .help = "only this task (repeatable)"},
    {.kind = OPTION_TEXT,
     .short_name = 'e',
     .long_name = "experiment",
     .value = "NAME|FILE",
     .offset = offsetof(struct values, tasks.experiment),
     .help = "lay an experiment over the tasks"},
    {.kind = OPTION_TEXT,
     .short_name = 'T',
     .long_name = "agent",
     .value = "TYPE[:ARG]",
     .offset = offsetof(struct values, tasks.agent),
     .help = "the agent, whose plugins and settings are looked at, too"},
    {.kind = OPTION_FLAG,
     .long_name = "skip-later",
     .offset = offsetof(struct values, tasks.skip_later),
     .help = "skip tasks that need what a later version has, each with the reason"},
    {.kind = OPTION_TEXT,
     .long_name = "suite-root",
     .value = "DIR",
     .offset = offsetof(struct values, tasks.suite_root),
     .help = "the suite's folder, when it is not the one with .git"},
    {.kind = OPTION_FLAG,
     .long_name = "roots",
     .offset = offsetof(struct values, roots),
     .help = "exposed paths and a rootfs of any size, and those of the agent's program"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "print as JSON, without the shared texts"},
};

struct scanner {
    const struct arguments *arguments;
    const struct values *values;
    struct session session;
    const volatile int *stop;
    size_t severe, findings, errors;
    json_t *list;
};

static void scanner_done(struct scanner *scanner)
{
    session_close(&scanner->session);
    json_decref(scanner->list);
}

/* The shared text, as it stands in the private file: for the operator alone. */
static void show_text(const struct leak_sight *sight, const struct leak *leak, struct buf *text)
{
    const char *whole = fingerprint_file_text(sight->index, leak->file);

    if (whole == NULL || leak->run_offset > strlen(whole))
        return;
    const char *at = whole + leak->run_offset;
    const char *end = at + size_min(size_min(leak->run_bytes, EXCERPT_BYTES_MAX), strlen(at));

    for (unsigned i = 0; i < EXCERPT_LINES_MAX && at < end; i++) {
        size_t length = size_min(strcspn(at, "\n"), (size_t)(end - at));

        buf_text_append(text, "      | ");
        term_quote(text, at, length, TERM_ONE_LINE);
        buf_char(text, '\n');
        at += length + 1;
    }
    if (at < end || leak->run_bytes > EXCERPT_BYTES_MAX)
        buf_text_append(text, "      | ...\n");
}

static void show(const struct staged *staged, struct buf *text)
{
    const struct leak_sight *sight = &staged->sight;
    const struct leaks *leaks = &sight->given.leaks;

    buf_format(text, "%-32s %s  %ju places, %ju bytes, %zu private files\n", task_key(staged->task),
               leaks->severe_count > 0 ? "LEAKS"
               : leaks->count > 0      ? "findings"
                                       : "clean",
               (uintmax_t)leaks->places, (uintmax_t)leaks->bytes,
               fingerprint_file_count(sight->index));
    for (size_t i = 0; i < leaks->count; i++) {
        const struct leak *leak = &leaks->items[i];
        scoped(mem_freep) char *what = leak_describe(leak, sight->index);

        buf_format(text, "    %s %s ", leak->id, leak->severe ? "severe:" : "shared:");
        term_quote(text, what, strlen(what), TERM_ONE_LINE);
        buf_char(text, '\n');
        show_text(sight, leak, text);
    }
    for (size_t i = 0; i < sight->left_out.count; i++) {
        buf_text_append(text, "    too large, left out: ");
        term_quote(text, sight->left_out.items[i], strlen(sight->left_out.items[i]), TERM_ONE_LINE);
        buf_char(text, '\n');
    }
    if (leaks->dropped > 0)
        buf_format(text, "    and %zu more\n", leaks->dropped);
}

static void show_error(const struct staged *staged, struct buf *text)
{
    buf_format(text, "%-32s error  ", task_key(staged->task));
    term_quote(text, error_message(staged->error), strlen(error_message(staged->error)),
               TERM_ONE_LINE);
    buf_char(text, '\n');
}

static void note(struct scanner *scanner, const struct staged *staged)
{
    json_t *json = staged->sight.index != NULL ? leak_sight_to_json(&staged->sight) : json_object();

    json_put_text(json, "task", task_key(staged->task));
    json_put(json, "error",
             json_text_or_null(staged->sight.index == NULL ? error_message(staged->error) : NULL));
    json_push(scanner->list, json);
}

static int scan_task(struct scanner *scanner, const struct task_set *set, const struct task *task,
                     struct error **err)
{
    const struct values *values = scanner->values;
    scoped(buf_done) struct buf text = {0};
    struct staged staged = {.script_fd = -1};
    bool is_quiet = scanner->arguments->is_quiet;

    staged_make(&(struct staged_options){.session = &scanner->session,
                                         .task = task,
                                         .all = set,
                                         .grading = true,
                                         .only_grading = true,
                                         .looks_for_leaks = true,
                                         .all_roots = values->roots,
                                         .keeps_texts = true},
                &staged);
    scanner->severe += staged.sight.given.leaks.severe_count;
    scanner->findings += staged.sight.given.leaks.count + staged.sight.given.leaks.dropped;
    scanner->errors += staged.sight.index == NULL;
    note(scanner, &staged);
    if (staged.sight.index == NULL)
        show_error(&staged, &text);
    else if (!is_quiet || staged.sight.given.leaks.count > 0)
        show(&staged, &text);
    staged_done(&staged);
    return values->json ? 0 : print_out(&text, err);
}

static int scan_all(struct scanner *scanner, const struct task_set *set, struct error **err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < set->count && *scanner->stop == 0; i++)
        r = scan_task(scanner, set, set->tasks[i], err);
    if (r == 0 && scanner->values->json)
        r = output_json(scanner->list, err);
    if (r < 0)
        return r;
    if (*scanner->stop != 0)
        return 130;
    return scanner->errors > 0 ? 3 : scanner->severe > 0;
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(mem_freep) char *run_id = run_make_id();
    scoped(task_inputs_done) struct task_inputs inputs = {0};
    scoped(task_set_done) struct task_set set = {0};
    scoped(scanner_done) struct scanner scanner = {
        .arguments = arguments,
        .values = values,
        .stop = interrupt_watch(),
        .list = json_array(),
    };
    struct session_options options = {.cells = true, .allow_tier = values->allow_tier};

    task_inputs_init(&values->tasks, arguments->operands, arguments->operand_count, &inputs);
    inputs.overrides.agent_optional = true;
    inputs.overrides.model_optional = true;
    int r = session_open(&options, &scanner.session, err);

    if (r == 0)
        r = task_inputs_load(&inputs, &scanner.session.reader, arguments->verbosity > 0, &set, err);
    if (r == 0)
        r = session_open_store(&scanner.session, run_id, err);
    return r < 0 ? r : scan_all(&scanner, &set, err);
}

const struct command command_scan = {
    .name = "scan",
    .summary = "does what an agent is given hold grading material, in whatever coding?",
    .operands = "[PATH]...",
    .description =
        "Searches the workspace, plugins, prompt and environment of each task for its private\n"
        "half: task file, reference, tests, labels; re-indented, renamed, encoded, in archives.\n"
        "'run' does the same before the first trial and refuses a severe finding. Exit status 1\n"
        "when there is one, 3 when a task cannot be looked at.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .operands_max = SIZE_MAX,
    .run = run,
};
