#include <strings.h>

#include "base/mem.h"
#include "base/term.h"
#include "report/report.h"
#include "report/suites.h"
#include "report/trial_text.h"

#define DETAIL_LINES 30 /* of one criterion, unless verbose */

static const char *const signs[LOOK_COUNT] = {"✅", "❌", "⚠", "⏭"};

/* "www." would become a link without any markup, as would "://". */
static bool after_www(const struct buf *buf)
{
    return buf->size_bytes >= 3 && strncasecmp(buf->data + buf->size_bytes - 3, "www", 3) == 0;
}

/* Raw text as running text: nothing in it is markup, a link or the end of a table's cell. */
static void text(struct buf *buf, const char *raw)
{
    scoped(buf_done) struct buf quoted = {0};

    term_quote(&quoted, raw, strlen(raw), TERM_ONE_LINE);
    for (const char *c = buf_text(&quoted); *c != '\0'; c++) {
        if (strchr("\\`*_[]<>|~&#$", *c) != NULL || str_starts(c, "://") ||
            (*c == '.' && after_www(buf)))
            buf_char(buf, '\\');
        buf_char(buf, *c);
    }
}

static size_t longest_run(const char *s, char of)
{
    size_t longest = 0;
    size_t run = 0;

    for (; *s != '\0'; s++) {
        run = *s == of ? run + 1 : 0;
        longest = size_max(longest, run);
    }
    return longest;
}

/* Raw text as code in a line: the fence is longer than any run of backticks inside. */
static void code(struct buf *buf, const char *raw)
{
    scoped(buf_done) struct buf quoted = {0};

    term_quote(&quoted, raw, strlen(raw), TERM_ONE_LINE);

    size_t fence = longest_run(buf_text(&quoted), '`') + 1;

    for (size_t i = 0; i < fence; i++)
        buf_char(buf, '`');
    buf_format(buf, "%s%s%s", fence > 1 ? " " : "", buf_text(&quoted), fence > 1 ? " " : "");
    for (size_t i = 0; i < fence; i++)
        buf_char(buf, '`');
}

static void block_line(void *context, const char *line, size_t size, size_t left_out)
{
    struct buf *buf = context;

    if (left_out > 0)
        buf_format(buf, "… %zu lines left out", left_out);
    term_quote(buf, line, size, TERM_LINES);
    buf_char(buf, '\n');
}

/* Raw text as a block of code. */
static void block(struct buf *buf, const char *raw, const struct report_options *options)
{
    scoped(buf_done) struct buf quoted = {0};

    if (raw == NULL || raw[0] == '\0')
        return;
    text_lines(raw, options->verbose ? 0 : DETAIL_LINES, block_line, &quoted);

    size_t fence = size_max(3, longest_run(buf_text(&quoted), '`') + 1);

    buf_char(buf, '\n');
    for (size_t i = 0; i < fence; i++)
        buf_char(buf, '`');
    buf_format(buf, "text\n%s", buf_text(&quoted));
    for (size_t i = 0; i < fence; i++)
        buf_char(buf, '`');
    buf_char(buf, '\n');
}

static void name_of(struct buf *buf, const struct trial_record *record,
                    const struct trial_naming *naming)
{
    scoped(buf_done) struct buf name = {0};

    trial_name(&name, record, naming);
    text(buf, buf_text(&name));
}

static void row(struct buf *buf, const struct trial_record *record,
                const struct trial_naming *naming)
{
    scoped(buf_done) struct buf reason = {0};

    buf_format(buf, "| %s | ", signs[trial_look(record)]);
    name_of(buf, record, naming);
    buf_format(buf, " | %s | ", trial_status_name(record->status));
    if (record->has_score)
        buf_format(buf, "%.2f", record->score);
    buf_text_append(buf, " | ");
    if (record->status != STATUS_SKIPPED)
        duration_text(buf, record->timing_ms.total);
    buf_text_append(buf, " | ");
    trial_reason(&reason, record);
    text(buf, buf_text(&reason));
    buf_text_append(buf, " |\n");
}

static void criterion(struct buf *buf, const struct run_trials *trials, size_t trial, size_t i,
                      const struct report_options *options)
{
    const struct criterion_record *criterion = &trials->records[trial].criteria[i];
    scoped(buf_done) struct buf command = {0};
    scoped(buf_done) struct buf score = {0};

    criterion_score(&score, criterion);
    buf_format(buf, "\n**%zu** ", i + 1);
    code(buf, criterion->type == NULL ? "" : criterion->type);
    buf_char(buf, ' ');
    text(buf, criterion->description == NULL ? "" : criterion->description);
    buf_text_append(buf, ", ");
    text(buf, buf_text(&score));
    buf_char(buf, '\n');
    block(buf, criterion->error, options);
    block(buf, criterion->details, options);
    if (!criterion_failed(criterion) || !criterion_has_cell(criterion))
        return;
    cell_command(&command, options->run_path, trials->paths[trial], i + 1);
    buf_char(buf, '\n');
    code(buf, buf_text(&command));
    buf_char(buf, '\n');
}

static void detail(struct buf *buf, const struct run_trials *trials, size_t trial,
                   const struct trial_naming *naming, const struct report_options *options)
{
    const struct trial_record *record = &trials->records[trial];

    buf_format(buf, "\n### %s ", signs[trial_look(record)]);
    name_of(buf, record, naming);
    buf_format(buf, ", %s\n", trial_status_name(record->status));
    block(buf, record->error, options);
    for (size_t i = 0; i < record->integrity_reasons.count; i++) {
        if (record->integrity == INTEGRITY_COMPROMISED || record->integrity == INTEGRITY_SUSPECT)
            block(buf, record->integrity_reasons.items[i], options);
    }
    for (size_t i = 0; i < record->criterion_count; i++) {
        if (options->verbose || criterion_failed(&record->criteria[i]))
            criterion(buf, trials, trial, i, options);
    }
}

static void title(struct buf *buf, const struct run_trials *trials)
{
    const struct report_totals totals = report_totals(trials);

    buf_format(buf, "## closedbook: %zu of %zu passed\n\n", totals.passed, totals.decided);

    const struct {
        size_t count;
        const char *what;
    } counts[] = {
        {totals.passed, "passed"},   {totals.decided - totals.passed, "failed"},
        {totals.error, "in error"},  {totals.not_graded, "not graded"},
        {totals.skipped, "skipped"}, {trials->unfinished, "unfinished"},
    };

    buf_format(buf, "%zu trial%s", totals.trials, totals.trials == 1 ? "" : "s");
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        if (counts[i].count > 0)
            buf_format(buf, ", %zu %s", counts[i].count, counts[i].what);
    }
    buf_text_append(buf, ", ");
    duration_text(buf, (double)totals.elapsed_ms);
    buf_text_append(buf, "\n\n");
    scoped(buf_done) struct buf warning = {0};

    unprotected_text(&warning, trials);
    if (warning.size_bytes > 0) {
        text(buf, buf_text(&warning));
        buf_text_append(buf, "\n\n");
    }
}

static void host(struct buf *buf, const struct run_trials *trials,
                 const struct report_options *options)
{
    scoped(buf_done) struct buf what = {0};
    scoped(buf_done) struct buf lines = {0};

    if (trials->host.count == 0)
        return;
    host_text(&what, &trials->host);
    text(buf, buf_text(&what));
    buf_text_append(buf, "\n");
    for (size_t i = 0; i < trials->host.changes.count; i++)
        buf_format(&lines, "%s\n", trials->host.changes.items[i]);
    block(buf, buf_text(&lines), options);
    buf_text_append(buf, "\n");
}

/* What was asked of all rows of a dataset. */
static void thresholds(struct buf *buf, const struct run_trials *trials)
{
    scoped(suites_done) struct suites suites = {0};
    bool begun = false;

    suites_make(trials, &suites);
    for (size_t i = 0; i < suites.count; i++) {
        const struct suite_figures *figures = &suites.items[i];

        for (size_t j = 0; j < figures->check_count; j++) {
            scoped(mem_freep) char *message = suite_check_text(&figures->checks[j]);
            scoped(mem_freep) char *name =
                str_format("%s/%s", figures->variant_id, figures->task_id);

            if (!begun)
                buf_text_append(buf, "\n| | dataset | criterion | threshold | rows |\n"
                                     "|---|---|---|---|---:|\n");
            begun = true;
            buf_format(buf, "| %s | ", figures->checks[j].passed ? "passed" : "missed");
            text(buf, name);
            buf_format(buf, " | %zu: ", figures->criterion + 1);
            text(buf, figures->description == NULL ? "" : figures->description);
            buf_text_append(buf, " | ");
            text(buf, message);
            buf_format(buf, " | %zu of %zu |\n", figures->measured, figures->rows);
        }
    }
    if (begun)
        buf_char(buf, '\n');
}

void report_markdown(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options)
{
    const struct trial_naming naming = trial_naming(trials);

    title(buf, trials);
    host(buf, trials, options);
    if (trials->count > 0)
        buf_text_append(buf, "| | trial | status | score | time | why |\n"
                             "|---|---|---|---:|---:|---|\n");
    for (size_t i = 0; i < trials->count; i++)
        row(buf, &trials->records[i], &naming);
    thresholds(buf, trials);
    for (size_t i = 0; i < trials->count; i++) {
        enum trial_look look = trial_look(&trials->records[i]);

        if (options->verbose || look == LOOK_FAILED || look == LOOK_ERROR ||
            trials->records[i].integrity == INTEGRITY_SUSPECT)
            detail(buf, trials, i, &naming, options);
    }
}
