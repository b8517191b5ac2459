#pragma once
/*
 * progress: what is seen while a run goes on.
 *
 * On a terminal one live line, redrawn in place at most every PROGRESS_REDRAW_MS; else one plain
 * line per finished trial. Pure: each call gets the time and appends bytes to buf, which the caller
 * writes and clears. Depends on: base, record.
 */

#include "base/buf.h"
#include "record/record.h"

#define PROGRESS_REDRAW_MS 100

enum progress_mode {
    PROGRESS_NONE,
    PROGRESS_LINES,
    PROGRESS_LIVE,
};
/* What the flags and the output say: quiet and --no-progress silence it. */
enum progress_mode progress_mode_of(bool is_terminal, bool no_progress, bool quiet);

struct progress_options {
    enum progress_mode mode;
    bool verbose; /* live: finished trials get their line, too, above the live one */
    bool colour, ascii;
    unsigned columns; /* of the terminal, 0: 80 */
    size_t total;     /* trials to run in this process; those kept by --resume are not counted */
};

/* A trial that ended, as the parent learns of it. Texts are borrowed and raw. */
struct progress_trial {
    const char *trial_id;
    enum trial_status status;
    bool has_verdict, passed, has_score;
    double score;
    uint64_t duration_ms;
    const char *reason; /* one line, NULL: none */
};

struct progress {
    struct progress_options options;
    size_t running, done, passed, failed, errors, other;
    uint64_t start_ns, drawn_ns;
    bool shown; /* a live line stands on the terminal */
};

void progress_start(struct progress *progress, const struct progress_options *options,
                    uint64_t now_ns, struct buf *buf) nonnull(1, 2, 4);
void progress_trial_started(struct progress *progress, uint64_t now_ns, struct buf *buf)
    nonnull(1, 3);
void progress_trial_finished(struct progress *progress, const struct progress_trial *trial,
                             uint64_t now_ns, struct buf *buf) nonnull(1, 2, 4);
/* Called now and then: redraws when it is time to. */
void progress_tick(struct progress *progress, uint64_t now_ns, struct buf *buf) nonnull(1, 3);
/* Milliseconds until a tick would draw, -1 when none ever does: for poll(). */
int progress_wait_ms(const struct progress *progress, uint64_t now_ns) nonnull(1);
/* Takes the live line away, so that something else can be printed; the next tick puts it back. */
void progress_hide(struct progress *progress, struct buf *buf) nonnull(1, 2);
/* The end: the live line is gone and stays so. */
void progress_finish(struct progress *progress, struct buf *buf) nonnull(1, 2);
