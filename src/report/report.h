#pragma once
/*
 * report: what a run looks like: terminal table, JUnit, Markdown, JSON summary, exit status.
 *
 * Pure functions from loaded trials to bytes; nothing here reads a file or prints. Every byte of a
 * task, agent or file name goes through term_quote() first and then the format's own escaping, so
 * that no control character and no reordering of text reaches a terminal, in JUnit and Markdown
 * neither. Criteria are numbered from 1. Depends on: base, record.
 */

#include "base/buf.h"
#include "record/run_dir.h"

struct report_options {
    bool verbose; /* every criterion and whole details, not only the failed ones */
    bool brief;   /* terminal only: a line for each trial that did not pass, and the last lines */
    bool colour;  /* terminal only */
    bool ascii;   /* terminal only: no signs beyond ASCII of our own */
    const char *run_path; /* as the user wrote it, for the "cell RUN/TRIAL --criterion N" lines */
    unsigned columns;     /* of the terminal, 0: 100 */
};

struct report_totals {
    size_t trials, success, failure, max_turns, timeout, budget, error, not_graded, skipped;
    size_t compromised, suspect, unprotected;
    bool host_compromised; /* the host changed while the run was on */
    size_t suites_missed;  /* thresholds of datasets */
    size_t unstable;       /* trials with a gating criterion whose repeated verdicts differ */
    size_t passed;         /* has_verdict and passed; never a COMPROMISED one */
    size_t decided;        /* has_verdict: what a pass rate is a share of */
    uint64_t elapsed_ms;   /* from the first start to the last end */
};
/* error counts BUILD_FAILED, too; budget counts both. */
struct report_totals report_totals(const struct run_trials *trials) nonnull(1);
/* passed / decided; 0 when nothing was decided. */
double report_pass_rate(const struct report_totals *totals) nonnull(1);

void report_terminal(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options) nonnull(1, 2, 3);
void report_markdown(struct buf *buf, const struct run_trials *trials,
                     const struct report_options *options) nonnull(1, 2, 3);
/*
 * Suites "trials" (failures as <failure>; ERROR, BUILD_FAILED and NOT_GRADED as <error>) and
 * "integrity" (COMPROMISED as <failure>, everything but CLEAN as <skipped> with the verdict).
 */
void report_junit(struct buf *buf, const struct run_trials *trials, const char *run_id)
    nonnull(1, 2, 3);
/* {"schema": "closedbook/report/1", ...}, docs/formats/run.md; new reference. */
json_t *report_json(const struct run_trials *trials, const char *run_id) nonnull(1, 2);
/* The trials of report_json(), one a line, escaped likewise. */
void report_jsonl(struct buf *buf, const struct run_trials *trials) nonnull(1, 2);
/*
 * RFC 4180, a header line, one line a trial; docs/formats/run.md has the columns. A text that a
 * spreadsheet would take for a formula has a ' before it.
 */
void report_csv(struct buf *buf, const struct run_trials *trials) nonnull(1, 2);
/* Pretty JSON in which characters that a terminal must not get raw stand as \uXXXX; same value. */
void report_json_write(struct buf *buf, const json_t *value) nonnull(1, 2);

/* The run's exit status by task-format.md ("Exit codes"). */
struct exit_rules {
    bool grading_expected; /* `run`: NOT_GRADED counts as 3 */
    bool allow_empty;
    bool fail_on_suspect;
    bool fail_on_unstable; /* a gating criterion whose verdicts differed is 1 */
    double min_pass_rate;  /* < 0: none; else 1 only when report_pass_rate() is below it */
    int64_t max_errors;    /* < 0: none; else 3 only when there are more */
    bool interrupted;
};
int report_exit_status(const struct report_totals *totals, const struct exit_rules *rules)
    nonnull(1, 2);
