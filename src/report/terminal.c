#include "base/mem.h"
#include "report/paint.h"
#include "report/report.h"
#include "report/suites_text.h"
#include "report/variants.h"

#define COLUMNS_DEFAULT 100
#define COLUMNS_MIN 60
#define NAME_COLUMNS_MAX 44
#define SCORE_COLUMNS 5
#define TIME_COLUMNS 8
#define GAP 2
#define TRIAL_INDENT 4
#define DETAIL_LINES 12 /* of one criterion, unless verbose */

/* What one report needs everywhere. */
struct page {
    struct painter painter;
    const struct run_trials *trials;
    const struct report_options *options;
    struct trial_naming naming;
    size_t columns;
    size_t name_columns, status_columns; /* of the table */
};

static void newline(const struct page *page)
{
    buf_char(page->painter.buf, '\n');
}

static void paint_look(const struct page *page, enum trial_look look)
{
    paint_text(&page->painter, look_paint(look), painter_signs(&page->painter)->look[look]);
}

/* --- the table ------------------------------------------------------------------------------ */

static void measure(struct page *page)
{
    page->name_columns = strlen("TRIAL");
    page->status_columns = strlen("STATUS");
    for (size_t i = 0; i < page->trials->count; i++) {
        const struct trial_record *record = &page->trials->records[i];
        scoped(buf_done) struct buf name = {0};

        trial_name(&name, record, &page->naming);
        page->name_columns = size_max(page->name_columns, raw_columns(buf_text(&name)));
        page->status_columns =
            size_max(page->status_columns, strlen(trial_status_name(record->status)));
    }
    page->name_columns = size_min(page->name_columns, NAME_COLUMNS_MAX);
}

static void table_head(const struct page *page)
{
    const struct painter *painter = &page->painter;

    paint_spaces(painter, 4);
    paint_cell(painter, PAINT_DIM, "TRIAL", page->name_columns + GAP, ALIGN_LEFT);
    paint_cell(painter, PAINT_DIM, "STATUS", page->status_columns + GAP, ALIGN_LEFT);
    paint_cell(painter, PAINT_DIM, "SCORE", SCORE_COLUMNS, ALIGN_RIGHT);
    paint_cell(painter, PAINT_DIM, "TIME", GAP + TIME_COLUMNS, ALIGN_RIGHT);
    newline(page);
}

static void score_and_time(const struct page *page, const struct trial_record *record)
{
    const struct painter *painter = &page->painter;
    scoped(buf_done) struct buf score = {0};
    scoped(buf_done) struct buf duration = {0};

    if (record->has_score)
        buf_format(&score, "%.2f", record->score);
    else
        buf_text_append(&score, painter_signs(painter)->none);
    if (record->status == STATUS_SKIPPED)
        buf_text_append(&duration, painter_signs(painter)->none);
    else
        duration_text(&duration, record->timing_ms.total);
    paint_cell(painter, PAINT_PLAIN, buf_text(&score), SCORE_COLUMNS, ALIGN_RIGHT);
    paint_cell(painter, PAINT_DIM, buf_text(&duration), GAP + TIME_COLUMNS, ALIGN_RIGHT);
}

static void table_row(const struct page *page, const struct trial_record *record)
{
    const struct painter *painter = &page->painter;
    enum trial_look look = trial_look(record);
    size_t taken = 4 + page->name_columns + page->status_columns + SCORE_COLUMNS + TIME_COLUMNS +
                   (size_t)4 * GAP;
    scoped(buf_done) struct buf name = {0};
    scoped(buf_done) struct buf reason = {0};

    trial_name(&name, record, &page->naming);
    trial_reason(&reason, record);
    paint_spaces(painter, 2);
    paint_look(page, look);
    paint_spaces(painter, 1);
    paint_cell(painter, PAINT_PLAIN, buf_text(&name), page->name_columns, ALIGN_LEFT);
    paint_spaces(painter, GAP);
    paint_cell(painter, look_paint(look), trial_status_name(record->status), page->status_columns,
               ALIGN_LEFT);
    paint_spaces(painter, GAP);
    score_and_time(page, record);
    if (reason.size_bytes > 0) {
        paint_spaces(painter, GAP);
        (void)paint_raw(painter, PAINT_PLAIN, reason.data, reason.size_bytes,
                        page->columns > taken + 12 ? page->columns - taken : 12);
    }
    newline(page);
}

/* --- what failed, and why ------------------------------------------------------------------- */

/* Painting the lines of one text below a criterion. */
struct block {
    const struct page *page;
    size_t indent;
    bool whole; /* nothing is cut or left out */
};

static void block_line(void *context, const char *line, size_t size, size_t left_out)
{
    const struct block *block = context;
    const struct painter *painter = &block->page->painter;
    size_t room = block->page->columns - block->indent - 2;

    paint_spaces(painter, block->indent);
    paint_text(painter, PAINT_DIM, painter_signs(painter)->bar);
    paint_spaces(painter, left_out > 0 || size > 0);
    if (left_out > 0) {
        scoped(mem_freep) char *text = str_format("%s %zu lines left out (-v shows them)",
                                                  painter_signs(painter)->ellipsis, left_out);

        paint_text(painter, PAINT_DIM, text);
    } else {
        (void)paint_raw(painter, PAINT_PLAIN, line, size, block->whole ? 0 : room);
    }
    newline(block->page);
}

static void paint_block(const struct page *page, const char *text, size_t indent)
{
    /* What a whole trial failed of is short, and must not lose its end: the cause stands last. */
    bool whole = page->options->verbose || indent == TRIAL_INDENT;
    struct block block = {.page = page, .indent = indent, .whole = whole};

    if (text != NULL && text[0] != '\0')
        text_lines(text, whole ? 0 : DETAIL_LINES, block_line, &block);
}

static size_t digits(size_t n)
{
    return n < 10 ? 1 : 1 + digits(n / 10);
}

static size_t type_columns(const struct trial_record *record)
{
    size_t columns = 0;

    for (size_t i = 0; i < record->criterion_count; i++) {
        if (record->criteria[i].type != NULL)
            columns = size_max(columns, raw_columns(record->criteria[i].type));
    }
    return size_min(columns, 24);
}

static enum trial_look criterion_look(const struct criterion_record *criterion)
{
    if (criterion->error != NULL)
        return LOOK_ERROR;
    if (criterion->passed)
        return LOOK_PASSED;
    return criterion->gating ? LOOK_FAILED : LOOK_NEUTRAL;
}

static void criterion_row(const struct page *page, const struct trial_record *record, size_t i)
{
    const struct painter *painter = &page->painter;
    const struct criterion_record *criterion = &record->criteria[i];
    enum trial_look look = criterion_look(criterion);
    scoped(buf_done) struct buf score = {0};
    scoped(mem_freep) char *number = str_format("%zu", i + 1);
    size_t type = type_columns(record);

    criterion_score(&score, criterion);

    size_t taken = 7 + digits(record->criterion_count) + type + GAP + raw_columns(buf_text(&score));
    size_t room = page->columns > taken + 12 ? page->columns - taken : 12;

    paint_spaces(painter, TRIAL_INDENT);
    paint_look(page, look);
    paint_spaces(painter, 1);
    paint_cell(painter, PAINT_DIM, number, digits(record->criterion_count), ALIGN_RIGHT);
    paint_spaces(painter, 1);
    paint_cell(painter, PAINT_DIM, criterion->type == NULL ? "" : criterion->type, type,
               ALIGN_LEFT);
    paint_spaces(painter, GAP);
    paint_cell(painter, PAINT_PLAIN, criterion->description == NULL ? "" : criterion->description,
               room - GAP, ALIGN_LEFT);
    paint_spaces(painter, GAP);
    paint_cell(painter, look_paint(look), buf_text(&score), raw_columns(buf_text(&score)),
               ALIGN_LEFT);
    newline(page);
}

static void criterion_detail(const struct page *page, size_t trial, size_t i)
{
    const struct criterion_record *criterion = &page->trials->records[trial].criteria[i];
    scoped(buf_done) struct buf command = {0};
    size_t indent = 7 + digits(page->trials->records[trial].criterion_count);

    paint_block(page, criterion->error, indent);
    paint_block(page, criterion->details, indent);
    if (!criterion_failed(criterion) || !criterion_has_cell(criterion))
        return;
    cell_command(&command, page->options->run_path, page->trials->paths[trial], i + 1);
    paint_spaces(&page->painter, indent);
    /* Never cut: it is there to be copied. */
    (void)paint_raw(&page->painter, PAINT_BOLD, command.data, command.size_bytes, 0);
    newline(page);
}

/* Of those that only inform, too. */
static bool has_unstable(const struct trial_record *record)
{
    for (size_t i = 0; i < record->criterion_count; i++) {
        if (criterion_is_unstable(&record->criteria[i]))
            return true;
    }
    return false;
}

static bool needs_telling(const struct page *page, const struct trial_record *record)
{
    enum trial_look look = trial_look(record);

    return page->options->verbose || look == LOOK_FAILED || look == LOOK_ERROR ||
           record->integrity == INTEGRITY_SUSPECT || has_unstable(record) ||
           record->status == STATUS_NOT_GRADED;
}

static void trial_title(const struct page *page, size_t trial)
{
    const struct painter *painter = &page->painter;
    const struct trial_record *record = &page->trials->records[trial];
    enum trial_look look = trial_look(record);
    scoped(buf_done) struct buf name = {0};

    trial_name(&name, record, &page->naming);
    newline(page);
    paint_spaces(painter, 2);
    paint_look(page, look);
    paint_spaces(painter, 1);
    (void)paint_raw(painter, PAINT_BOLD, buf_text(&name), name.size_bytes, 0);
    paint_spaces(painter, GAP);
    paint_text(painter, look_paint(look), trial_status_name(record->status));
    if (record->error_code != NULL) {
        paint_text(painter, PAINT_PLAIN, " (");
        (void)paint_raw(painter, PAINT_PLAIN, record->error_code, strlen(record->error_code), 0);
        paint_text(painter, PAINT_PLAIN, ")");
    }
    paint_spaces(painter, GAP);
    (void)paint_raw(painter, PAINT_DIM, page->trials->paths[trial],
                    strlen(page->trials->paths[trial]), 0);
    newline(page);
}

static void integrity_lines(const struct page *page, const struct trial_record *record)
{
    if (record->integrity != INTEGRITY_COMPROMISED && record->integrity != INTEGRITY_SUSPECT)
        return;
    paint_spaces(&page->painter, TRIAL_INDENT);
    paint_text(&page->painter, PAINT_RED, trial_integrity_name(record->integrity));
    newline(page);
    for (size_t i = 0; i < record->integrity_reasons.count; i++)
        paint_block(page, record->integrity_reasons.items[i], TRIAL_INDENT);
}

/* Replicates stand side by side. With -v each is told apart. */
static bool is_told(const struct page *page, size_t trial)
{
    const struct trial_record *records = page->trials->records;

    for (size_t i = trial; i-- > 0 && !page->options->verbose;) {
        if (!str_equal(records[i].task_id, records[trial].task_id) ||
            !str_equal(records[i].variant_id, records[trial].variant_id))
            return false;
        if (trial_ended_alike(&records[i], &records[trial]))
            return true;
    }
    return false;
}

static void same_line(const struct page *page, size_t trial)
{
    const struct trial_record *records = page->trials->records;
    scoped(buf_done) struct buf text = {0};

    for (size_t i = trial + 1; i < page->trials->count && !page->options->verbose; i++) {
        if (trial_ended_alike(&records[trial], &records[i]))
            buf_format(&text, " #%02u", records[i].replicate);
        else if (!str_equal(records[trial].task_id, records[i].task_id))
            break;
    }
    if (text.size_bytes == 0)
        return;
    paint_spaces(&page->painter, TRIAL_INDENT);
    paint_text(&page->painter, PAINT_DIM, "and in the same way:");
    paint_text(&page->painter, PAINT_DIM, buf_text(&text));
    newline(page);
}

/* An agent that failed often says why itself. */
static void agent_lines(const struct page *page, size_t trial)
{
    const struct painter *painter = &page->painter;
    const struct trial_record *record = &page->trials->records[trial];
    const char *words = page->trials->last_words == NULL ? NULL : page->trials->last_words[trial];
    scoped(mem_freep) char *head = NULL;

    if (words == NULL || trial_has_passed(record))
        return;
    if (record->agent.signal > 0)
        head = str_format("the agent was ended by signal %d", record->agent.signal);
    else if (record->agent.exit_code >= 0)
        head = str_format("the agent's exit code was %d", record->agent.exit_code);
    else
        head = str_dup("the agent did not end by itself");
    paint_spaces(painter, TRIAL_INDENT);
    paint_text(painter, PAINT_DIM, head);
    paint_text(painter, PAINT_DIM, "; the end of its agent.stderr:");
    newline(page);
    paint_block(page, words, TRIAL_INDENT + 3);
}

static void trial_detail(const struct page *page, size_t trial)
{
    const struct trial_record *record = &page->trials->records[trial];

    trial_title(page, trial);
    same_line(page, trial);
    paint_block(page, record->error, TRIAL_INDENT);
    integrity_lines(page, record);
    if (trial_status_is_fact(record->status)) {
        scoped(buf_done) struct buf reason = {0};

        trial_reason(&reason, record);
        paint_block(page, buf_text(&reason), TRIAL_INDENT);
    }
    agent_lines(page, trial);
    for (size_t i = 0; i < record->criterion_count; i++) {
        if (!page->options->verbose && !criterion_failed(&record->criteria[i]) &&
            !criterion_is_unstable(&record->criteria[i]))
            continue;
        criterion_row(page, record, i);
        criterion_detail(page, trial, i);
    }
}

/* --- the last line -------------------------------------------------------------------------- */

static void tally(const struct page *page, enum trial_look look, size_t count, const char *what)
{
    if (count == 0)
        return;

    scoped(mem_freep) char *text = str_format("%zu %s", count, what);

    paint_spaces(&page->painter, 1);
    paint_text(&page->painter, PAINT_DIM, painter_signs(&page->painter)->dot);
    paint_spaces(&page->painter, 1);
    paint_text(&page->painter, look_paint(look), text);
}

static void totals_line(const struct page *page)
{
    const struct painter *painter = &page->painter;
    const struct report_totals totals = report_totals(page->trials);
    scoped(mem_freep) char *trials =
        str_format("%zu trial%s", totals.trials, totals.trials == 1 ? "" : "s");
    scoped(buf_done) struct buf tail = {0};

    if (!page->options->brief)
        newline(page);
    paint_spaces(painter, 2);
    paint_text(painter, PAINT_BOLD, trials);
    tally(page, LOOK_PASSED, totals.passed, "passed");
    tally(page, LOOK_FAILED, totals.decided - totals.passed, "failed");
    tally(page, LOOK_ERROR, totals.error, totals.error == 1 ? "error" : "errors");
    tally(page, LOOK_NEUTRAL, totals.not_graded, "not graded");
    tally(page, LOOK_NEUTRAL, totals.skipped, "skipped");
    tally(page, LOOK_FAILED, totals.unstable, "unstable");
    tally(page, LOOK_NEUTRAL, page->trials->unfinished, "unfinished");
    if (totals.decided > 0)
        buf_format(&tail, "   pass rate %.0f %%", 100.0 * report_pass_rate(&totals));
    if (totals.elapsed_ms > 0) {
        buf_text_append(&tail, "   ");
        duration_text(&tail, (double)totals.elapsed_ms);
    }
    paint_text(painter, PAINT_DIM, buf_text(&tail));
    newline(page);
}

static void integrity_line(const struct page *page)
{
    scoped(buf_done) struct buf text = {0};

    unprotected_text(&text, page->trials);
    if (text.size_bytes == 0)
        return;
    paint_spaces(&page->painter, 2);
    (void)paint_raw(&page->painter, PAINT_YELLOW, text.data, text.size_bytes, 0);
    newline(page);
}

/* Never cut, and each on a line of its own: somebody has to look at every one. */
static void host_lines(const struct page *page)
{
    const struct host_record *host = &page->trials->host;

    if (host->count == 0)
        return;
    scoped(buf_done) struct buf text = {0};

    host_text(&text, host);
    newline(page);
    paint_spaces(&page->painter, 2);
    (void)paint_raw(&page->painter, PAINT_RED, text.data, text.size_bytes, 0);
    newline(page);
    for (size_t i = 0; i < host->changes.count; i++) {
        paint_spaces(&page->painter, TRIAL_INDENT);
        (void)paint_raw(&page->painter, PAINT_PLAIN, host->changes.items[i],
                        strlen(host->changes.items[i]), 0);
        newline(page);
    }
}

static void details(const struct page *page)
{
    for (size_t i = 0; i < page->trials->count; i++) {
        if (needs_telling(page, &page->trials->records[i]) && !is_told(page, i))
            trial_detail(page, i);
    }
    variants_table(&page->painter, page->trials);
}

void report_terminal(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options)
{
    size_t columns = options->columns == 0 ? COLUMNS_DEFAULT : options->columns;
    struct page page = {
        .painter = {.buf = buf, .colour = options->colour, .ascii = options->ascii},
        .trials = trials,
        .options = options,
        .naming = trial_naming(trials),
        .columns = size_max(columns, COLUMNS_MIN),
    };

    measure(&page);
    if (trials->count > 0 && !options->brief)
        table_head(&page);
    for (size_t i = 0; i < trials->count; i++) {
        if (!options->brief || needs_telling(&page, &trials->records[i]))
            table_row(&page, &trials->records[i]);
    }
    if (!options->brief)
        details(&page);
    suites_text(&page.painter, trials, options->verbose);
    totals_line(&page);
    integrity_line(&page);
    host_lines(&page);
}
