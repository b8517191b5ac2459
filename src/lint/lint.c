/* The tasks one after the other, the findings in order. */
#include "lint/lint.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lint/edit.h"
#include "lint/internal.h"

static bool is_wanted(const struct lint *lint, const struct lint_rule *rule)
{
    const struct str_list *only = lint->options->only, *ignore = lint->options->ignore;

    if (ignore != NULL && (str_list_has(ignore, rule->id) || str_list_has(ignore, rule->name)))
        return false;
    return only == NULL || only->count == 0 || str_list_has(only, rule->id) ||
           str_list_has(only, rule->name);
}

/* Takes the finding over. */
static void keep(struct lint *lint, const struct lint_finding *finding)
{
    struct lint_report *report = lint->report;

    if (report->count >= LINT_FINDINGS_MAX) {
        free(finding->file);
        free(finding->place);
        free(finding->message);
        free(finding->edit.text);
        report->dropped_count++;
        return;
    }
    if ((report->count & (report->count - 1)) == 0)
        report->findings = mem_resize(report->findings, report->count == 0 ? 1 : report->count * 2,
                                      sizeof(*report->findings));
    report->findings[report->count++] = *finding;
}

static struct lint_finding finding_at(const struct target *target, struct mark mark,
                                      const char *place)
{
    const char *file = mark.origin == NULL ? NULL : mark.origin->file;

    return (struct lint_finding){
        .rule = target->rule,
        .severity = target->rule->severity,
        .file = str_dup(file == NULL ? target->origin->file : file),
        .line = file == NULL ? 0 : mark.line,
        .column = file == NULL ? 0 : mark.column,
        .place = str_dup(place),
    };
}

void found(struct target *target, struct mark mark, const char *place, const char *fmt, ...)
{
    struct lint_finding finding = finding_at(target, mark, place);
    scoped(buf_done) struct buf message = {0};
    va_list args;

    va_start(args, fmt);
    buf_vformat(&message, fmt, args);
    va_end(args);
    finding.message = buf_take(&message);
    keep(target->lint, &finding);
}

void found_fixable(struct target *target, const struct node *scalar, const char *place,
                   const char *text, const char *message)
{
    struct lint_finding finding = finding_at(target, scalar->mark, place);

    finding.message = str_dup(message);
    if (scalar->mark.origin == target->origin && scalar->end > scalar->start)
        finding.edit = (struct lint_edit){
            edit_byte_of(target->origin->text, target->origin->length, scalar->start),
            edit_byte_of(target->origin->text, target->origin->length, scalar->end), str_dup(text)};
    keep(target->lint, &finding);
}

bool next_criterion(const struct target *target, size_t *position, struct criterion_seen *ret)
{
    const struct node *list = node_get(target->file, "success_criteria");

    while (list != NULL && list->kind == NODE_LIST && *position < list->count) {
        size_t i = (*position)++;
        const char *type = node_get_text(list->items[i], "type");

        if (list->items[i]->kind != NODE_MAP)
            continue;
        *ret = (struct criterion_seen){.node = list->items[i], .type = type == NULL ? "" : type};
        (void)snprintf(ret->place, sizeof(ret->place), "success_criteria[%zu]", i); /* fits */
        return true;
    }
    return false;
}

const struct node *setting(const struct target *target, const char *path)
{
    const struct node *node = node_find(target->merged, path);

    return node != NULL ? node : node_find(target->file, path);
}

bool is_judge(const char *type)
{
    return strcmp(type, "llm_judge") == 0 || strcmp(type, "agent_judge") == 0;
}

/* The text that the agent gets, from wherever it stands. */
static void take_prompt(struct target *target)
{
    const struct node *text = node_get(target->merged, "initial_prompt");
    const struct node *file = node_get(target->merged, "initial_prompt_file");
    scoped(buf_done) struct buf content = {0};

    if (text != NULL && text->kind == NODE_TEXT) {
        target->prompt = str_dup(text->text);
        target->prompt_mark = text->mark;
        target->prompt_field = "initial_prompt";
        return;
    }
    if (file == NULL || file->kind != NODE_TEXT)
        return;
    scoped(mem_freep) char *path = yaml_path(target, file);

    target->prompt_mark = file->mark;
    target->prompt_field = "initial_prompt_file";
    if (path != NULL && read_file(target, path, TASK_BYTES_MAX, &content))
        target->prompt = buf_take(&content);
}

static void look_at(void *context, const struct task_seen *seen)
{
    struct lint *lint = context;
    struct target target = {.lint = lint,
                            .origin = seen->origin,
                            .file = seen->file,
                            .merged = seen->merged != NULL ? seen->merged : seen->file};

    lint->report->file_count++;
    if (seen->file == NULL || seen->file->kind != NODE_MAP)
        return;
    take_prompt(&target);
    for (const struct rule *rule = lint_rules; rule->shown.id != NULL; rule++) {
        target.rule = &rule->shown;
        if (rule->check != NULL && is_wanted(lint, target.rule))
            rule->check(&target);
    }
    free(target.prompt);
}

/* What loading said, as findings of CB000. */
static void take_problems(struct lint *lint, const struct problems *problems)
{
    static const enum lint_severity severities[] = {
        [PROBLEM_ERROR] = LINT_ERROR,
        [PROBLEM_WARNING] = LINT_WARNING,
        [PROBLEM_NOTE] = LINT_NOTE,
    };
    const struct lint_rule *rule = &lint_rules[0].shown;

    for (size_t i = 0; i < problems->count && is_wanted(lint, rule); i++) {
        const struct problem *problem = &problems->items[i];
        struct lint_finding finding = {
            .rule = rule,
            .severity = severities[problem->level],
            .file = str_dup(problem->file == NULL ? "" : problem->file),
            .line = problem->line,
            .column = problem->column,
            .place = str_dup(problem->path == NULL ? "" : problem->path),
            .message = str_dup(problem->message),
        };

        keep(lint, &finding);
    }
    lint->report->dropped_count += problems->dropped_count;
}

static int compare(const void *a, const void *b)
{
    const struct lint_finding *left = a, *right = b;
    int order = strcmp(left->file, right->file);

    if (order != 0)
        return order;
    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    /* What a rule says comes before what loading said of the same line. */
    bool left_loads = left->rule == &lint_rules[0].shown;
    bool right_loads = right->rule == &lint_rules[0].shown;

    if (left_loads != right_loads)
        return left_loads ? 1 : -1;
    if (left->column != right->column)
        return left->column < right->column ? -1 : 1;
    order = strcmp(left->rule->id, right->rule->id);
    return order != 0 ? order : strcmp(left->message, right->message);
}

/* Said already: the same of another task's layers, or by a rule of what loading refuses, too. */
static bool is_said(const struct lint_finding *kept, const struct lint_finding *next)
{
    if (next->rule == &lint_rules[0].shown && kept->rule != next->rule &&
        str_starts(kept->place, next->place))
        return true;
    return kept->column == next->column && kept->rule == next->rule &&
           strcmp(kept->message, next->message) == 0;
}

static void finding_done(struct lint_finding *finding)
{
    free(finding->file);
    free(finding->place);
    free(finding->message);
    free(finding->edit.text);
}

static bool is_near(const struct lint_report *report, size_t a, size_t b)
{
    const struct lint_finding *left = &report->findings[a], *right = &report->findings[b];

    return left->line == right->line && strcmp(left->file, right->file) == 0;
}

static void settle(struct lint_report *report)
{
    size_t kept = 0;

    if (report->count > 1)
        qsort(report->findings, report->count, sizeof(*report->findings), compare);
    for (size_t i = 0; i < report->count; i++) {
        bool said = false;

        for (size_t j = kept; j > 0 && !said && is_near(report, j - 1, i); j--)
            said = is_said(&report->findings[j - 1], &report->findings[i]);
        if (said) {
            finding_done(&report->findings[i]);
            continue;
        }
        report->counts[report->findings[i].severity]++;
        report->findings[kept++] = report->findings[i];
    }
    report->count = kept;
}

static void lint_done(struct lint *lint)
{
    for (size_t i = 0; i < lint->folder_count; i++)
        folder_free(lint->folders[i]);
    free(lint->folders);
    for (size_t i = 0; i < lint->id_count; i++) {
        free(lint->ids[i].id);
        free(lint->ids[i].file);
    }
    free(lint->ids);
    for (size_t i = 0; i < lint->pattern_count; i++) {
        free(lint->patterns[i].key);
        free(lint->patterns[i].mistake);
    }
    free(lint->patterns);
}

int lint_run(const struct lint_options *options, struct lint_report *ret, struct error **err)
{
    scoped(lint_report_done) struct lint_report report = {0};
    scoped(lint_done) struct lint lint = {.options = options, .report = &report};
    scoped(problems_done) struct problems problems = {0};
    scoped(task_set_done) struct task_set set = {0};
    scoped(error_freep) struct error *load_error = NULL;
    struct task_query query = options->query;

    query.visit = look_at;
    query.visit_context = &lint;
    int r = tasks_load(&query, &set, &problems, &load_error);

    if (r < 0 && problems.error_count == 0)
        return error_set(err, error_code_of(load_error), "%s", error_message(load_error));
    take_problems(&lint, &problems);
    settle(&report);
    *ret = report;
    report = (struct lint_report){0};
    return 0;
}

void lint_report_done(struct lint_report *report)
{
    for (size_t i = 0; i < report->count; i++)
        finding_done(&report->findings[i]);
    free(report->findings);
    *report = (struct lint_report){0};
}
