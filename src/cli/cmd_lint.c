#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/print.h"
#include "cli/task_flags.h"
#include "cli/version.h"
#include "grade/regex.h"
#include "lint/edit.h"
#include "lint/lint.h"

enum claim_index { CLAIM_SARIF };

struct values {
    struct task_flags tasks;
    const char *format, *sarif;
    struct option_list rules, ignored;
    bool json, fix, explain, list_rules, fail_on_warnings;
};

static const char *const formats[] = {"text", "json", "sarif", "github", NULL};

static const struct cli_option rows[] = {
    {.kind = OPTION_TEXT,
     .long_name = "format",
     .value = "FORMAT",
     .offset = offsetof(struct values, format),
     .choices = formats,
     .help = "text, json, sarif, or github: annotations for its actions"},
    {.kind = OPTION_FLAG,
     .long_name = "json",
     .offset = offsetof(struct values, json),
     .help = "the same as --format json"},
    {.kind = OPTION_TEXT,
     .long_name = "sarif",
     .value = "FILE",
     .offset = offsetof(struct values, sarif),
     .help = "write SARIF, too"},
    {.kind = OPTION_FLAG,
     .long_name = "fix",
     .offset = offsetof(struct values, fix),
     .help = "correct in place what can be corrected safely"},
    {.kind = OPTION_LIST,
     .long_name = "rule",
     .value = "RULE",
     .offset = offsetof(struct values, rules),
     .help = "only this rule, by id or name (repeatable)"},
    {.kind = OPTION_LIST,
     .long_name = "ignore",
     .value = "RULE",
     .offset = offsetof(struct values, ignored),
     .help = "not this rule (repeatable)"},
    {.kind = OPTION_FLAG,
     .long_name = "warnings",
     .offset = offsetof(struct values, fail_on_warnings),
     .help = "warnings make it fail, too"},
    {.kind = OPTION_FLAG,
     .long_name = "explain",
     .offset = offsetof(struct values, explain),
     .help = "say of each finding what comes of it and what to do"},
    {.kind = OPTION_FLAG,
     .long_name = "list-rules",
     .offset = offsetof(struct values, list_rules),
     .help = "print the rules, tab-separated, and stop"},
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
     .long_name = "suite-root",
     .value = "DIR",
     .offset = offsetof(struct values, tasks.suite_root),
     .help = "the suite's folder, when it is not the one with .git"},
};

/* What lint asks of the engine that criteria use. */
static int try_pattern(const char *pattern, const json_t *flags, const char *subject, size_t size,
                       struct error **err)
{
    scoped(regex_freep) struct regex *regex = NULL;
    unsigned bits = 0;
    int r = regex_flags_parse(flags, &bits, err);

    if (r == 0)
        r = regex_compile(pattern, bits, &regex, err);
    if (r < 0)
        return r;
    return regex_search(regex, subject, size) == REGEX_LIMIT;
}

static int check_rules(const struct option_list *from, struct str_list *to, struct error **err)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct lint_rule *rule = lint_rule_find(from->items[i]);

        if (rule == NULL)
            return error_set(err, ERROR_USER,
                             "no rule '%s'; 'closedbook lint --list-rules' lists them",
                             from->items[i]);
        str_list_add(to, rule->id);
    }
    return 0;
}

static int read_text(const struct session *session, const char *path, struct buf *ret,
                     struct error **err)
{
    scoped(fd_closep) int fd =
        session->reader.open(session->reader.context, path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_errno_as(err, ERROR_USER, -fd, "cannot open '%s'", path);
    return fs_read_fd(fd, path, TASK_BYTES_MAX, ret, err);
}

/* All fixes of one file, which are findings first to end. */
static int fix_file(const struct session *session, const struct lint_finding *findings,
                    size_t count, size_t *ret_fixed, struct error **err)
{
    scoped(edits_done) struct edits edits = {0};
    scoped(buf_done) struct buf text = {0}, changed = {0};

    for (size_t i = 0; i < count; i++)
        if (findings[i].edit.text != NULL)
            edits_add(&edits, findings[i].edit.start, findings[i].edit.end,
                      str_dup(findings[i].edit.text));
    if (edits.count == 0)
        return 0;
    int r = read_text(session, findings[0].file, &text, err);

    if (r < 0)
        return r;
    *ret_fixed += edits.count - edits_apply(&edits, buf_text(&text), text.size_bytes, &changed);
    return edit_write(findings[0].file, &changed, err);
}

static int fix_all(const struct session *session, const struct lint_report *report, bool is_quiet,
                   struct error **err)
{
    size_t fixed = 0;
    int r = 0;

    for (size_t i = 0, end; i < report->count && r == 0; i = end) {
        for (end = i; end < report->count &&
                      strcmp(report->findings[end].file, report->findings[i].file) == 0;)
            end++;
        r = fix_file(session, &report->findings[i], end - i, &fixed, err);
    }
    if (r == 0 && !is_quiet)
        (void)fprintf(stderr, "%zu fixed\n", fixed); /* nothing can be told when stderr is gone */
    return r;
}

static int write_sarif(const struct session *session, const struct lint_report *report,
                       const char *path, struct error **err)
{
    scoped(fd_closep) int fd = -1;
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = lint_to_sarif(report, CLOSEDBOOK_VERSION);
    int r = claim_make(session->claim, CLAIM_SARIF, &fd, err);

    json_write_pretty(&text, json);
    return r < 0 ? r : fs_write_all(fd, path, text.data, text.size_bytes, err);
}

static int show(const struct arguments *arguments, const struct lint_report *report,
                struct error **err)
{
    const struct values *values = arguments->values;
    const char *format = values->json ? "json" : values->format;
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = NULL;

    if (str_equal(format, "json"))
        json = lint_to_json(report);
    if (str_equal(format, "sarif"))
        json = lint_to_sarif(report, CLOSEDBOOK_VERSION);
    if (json != NULL)
        return output_json(json, err);
    if (str_equal(format, "github"))
        lint_format_github(report, &text);
    else if (!arguments->is_quiet || report->count > 0)
        lint_format_text(report, values->explain || arguments->verbosity > 0, &text);
    return print_out(&text, err);
}

/* Looks; with fix corrects and looks again, so that what is shown is what is left. */
static int look(const struct arguments *arguments, const struct session *session,
                struct lint_options *options, struct lint_report *ret, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(lint_report_done) struct lint_report first = {0};
    int r = lint_run(options, values->fix ? &first : ret, err);

    if (r == 0 && values->fix)
        r = fix_all(session, &first, arguments->is_quiet, err);
    return r < 0 || !values->fix ? r : lint_run(options, ret, err);
}

static int lint(const struct arguments *arguments, const struct session *session,
                struct error **err)
{
    const struct values *values = arguments->values;
    scoped(task_inputs_done) struct task_inputs inputs = {0};
    scoped(lint_report_done) struct lint_report report = {0};
    scoped(str_list_done) struct str_list rules = {0}, ignored = {0};
    int r = check_rules(&values->rules, &rules, err);

    if (r == 0)
        r = check_rules(&values->ignored, &ignored, err);
    if (r < 0)
        return r;
    task_inputs_init(&values->tasks, arguments->operands, arguments->operand_count, &inputs);
    inputs.overrides.agent_optional = true;
    inputs.overrides.model_optional = true;
    inputs.selection.include_skipped = true;
    if (inputs.paths.count == 0)
        return error_set(err, ERROR_USER,
                         "no task named, and neither tasks/ nor tests/tasks/ is here");

    struct lint_options options = {
        .query = {&inputs.paths, &session->reader, &inputs.overrides, &inputs.selection, 0, NULL,
                  NULL},
        .try_pattern = try_pattern,
        .only = &rules,
        .ignore = &ignored,
    };

    r = look(arguments, session, &options, &report, err);
    if (r == 0)
        r = show(arguments, &report, err);
    if (r == 0 && values->sarif != NULL)
        r = write_sarif(session, &report, values->sarif, err);
    if (r < 0)
        return r;
    return report.counts[LINT_ERROR] > 0 ||
           (values->fail_on_warnings && report.counts[LINT_WARNING] > 0);
}

static int run(const struct arguments *arguments, struct error **err)
{
    const struct values *values = arguments->values;
    scoped(session_close) struct session session = {0};
    struct session_options options = {
        .claims = {[CLAIM_SARIF] = {CLAIM_FILE,
                                    values->sarif != NULL ? values->sarif : "/dev/null"}},
        .claim_count = 1,
        .owner_of = values->fix && arguments->operand_count > 0 ? arguments->operands[0] : NULL,
    };

    if (values->list_rules) {
        scoped(buf_done) struct buf text = {0};

        lint_format_rules(&text);
        return print_out(&text, err);
    }
    int r = session_open(&options, &session, err);

    return r < 0 ? r : lint(arguments, &session, err);
}

static const struct values defaults = {.format = "text"};

const struct command command_lint = {
    .name = "lint",
    .summary = "look for what is doubtful in tasks, those that do not load included",
    .operands = "[PATH]...",
    .description = "Exit status 1 when there is an error. Rules: docs/lint.md.",
    .options = rows,
    .option_count = ARRAY_SIZE(rows),
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .operands_max = SIZE_MAX,
    .run = run,
};
