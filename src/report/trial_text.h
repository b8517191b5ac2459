#pragma once
/*
 * trial_text: how a trial is called and why it ended as it did, in words that every writer uses.
 *
 * Functions that fill a buf give *raw* text: the writer quotes it for its format.
 */

#include "report/report.h"

/* One look at a trial. */
enum trial_look { LOOK_PASSED, LOOK_FAILED, LOOK_ERROR, LOOK_NEUTRAL, LOOK_COUNT };
enum trial_look trial_look(const struct trial_record *record) nonnull(1);

/* A gating criterion of it had other verdicts when it was graded several times. */
bool trial_is_unstable(const struct trial_record *record) nonnull(1);
/* With a verdict, a good one, and not COMPROMISED. */
bool trial_has_passed(const struct trial_record *record) nonnull(1);

/* Whether names need their variant and replicate to be told apart. */
struct trial_naming {
    bool variants, replicates;
};
struct trial_naming trial_naming(const struct run_trials *trials) nonnull(1);
/* "hello", "hello [v2]", "hello #03"; raw. */
void trial_name(struct buf *buf, const struct trial_record *record,
                const struct trial_naming *naming) nonnull(1, 2, 3);

/* b ended exactly as a did: another replicate of the same task and variant, with the same status,
 * error, integrity and verdict of every criterion, so that telling one of them tells both. */
bool trial_ended_alike(const struct trial_record *a, const struct trial_record *b) nonnull(1, 2);

/* Why, in one line; nothing for a trial that simply passed. Raw. */
void trial_reason(struct buf *buf, const struct trial_record *record) nonnull(1, 2);

/*
 * "2 UNPROTECTED (tempdir driver): ...", why results of this run prove nothing; nothing when all
 * were protected. Raw.
 */
void unprotected_text(struct buf *buf, const struct run_trials *trials) nonnull(1, 2);

/* "COMPROMISED: the host changed ...", for a record with differences; raw. */
void host_text(struct buf *buf, const struct host_record *host) nonnull(1, 2);

/* A criterion that needs telling: errored, or below its threshold. */
bool criterion_failed(const struct criterion_record *criterion) nonnull(1);
/* "0.50 < 0.90", "1.00", "error", "1.00, unstable: 2 of 3 passed". */
void criterion_score(struct buf *buf, const struct criterion_record *criterion) nonnull(1, 2);
/* The grading cell of a recorded trial can be opened for it. */
bool criterion_has_cell(const struct criterion_record *criterion) nonnull(1);
/* "closedbook cell RUN/TRIAL --criterion N", quoted for a shell; raw. */
void cell_command(struct buf *buf, const char *run_path, const char *trial_path, size_t number)
    nonnull(1, 2, 3);

/* "0.31 s", "75.2 s", "12:05", "3:04:09" */
void duration_text(struct buf *buf, double ms) nonnull(1);

/* Calls line for each line of text (no newline in it), at most max (0: all): the middle is left
 * out. */
typedef void each_line(void *context, const char *line, size_t size, size_t left_out);
void text_lines(const char *text, size_t max, each_line *line, void *context) nonnull(1, 3);
