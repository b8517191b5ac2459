#pragma once
/*
 * report: what a run looks like: terminal table, JUnit, Markdown, JSON summary, exit status.
 *
 * Every byte of a task, agent or file name goes through term_quote() or a format's own escaping.
 * Depends on: base, record.
 */

#include "base/buf.h"
#include "record/run_dir.h"

struct report_options {
    bool verbose;    /* every criterion, not only the failed ones */
    bool colour;
    const char *run_path; /* as the user wrote it, for the "cell RUN/TRIAL --criterion N" lines */
    unsigned columns;     /* of the terminal, 0: 100 */
};

struct report_totals {
    size_t trials, success, failure, max_turns, timeout, budget, error, not_graded, skipped;
    size_t compromised, suspect, unprotected;
    size_t passed; /* has_verdict and passed */
    uint64_t elapsed_ms;
};
struct report_totals report_totals(const struct run_trials *trials) nonnull(1);

void report_terminal(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options) nonnull(1, 2, 3);
void report_markdown(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options) nonnull(1, 2, 3);
/* failures as <failure>, infrastructure errors as <error>, integrity as a suite of its own. */
void report_junit(struct buf *buf, const struct run_trials *trials, const char *run_id) nonnull(1, 2, 3);
json_t *report_json(const struct run_trials *trials, const char *run_id) nonnull(1, 2);

/* The run's exit status by task-format.md ("Exit codes"). */
struct exit_rules {
    bool grading_expected; /* `run`: NOT_GRADED counts as 3 */
    bool allow_empty;
    bool fail_on_suspect;
    double min_pass_rate;  /* < 0: none */
    int64_t max_errors;    /* < 0: none */
    bool interrupted;
};
int report_exit_status(const struct report_totals *totals, const struct exit_rules *rules)
    nonnull(1, 2);
