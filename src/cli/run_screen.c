#include "cli/run_screen.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/term.h"
#include "cli/output.h"

struct run_screen {
    bool quiet;
    struct progress progress;
    struct buf buf;
};

static void flush(struct run_screen *screen)
{
    size_t done = 0;
    int tries = 2; /* a full disk or a signal may be over at the second */

    while (done < screen->buf.size_bytes && tries > 0) {
        ssize_t n = write(STDERR_FILENO, screen->buf.data + done, screen->buf.size_bytes - done);

        if (n > 0)
            done += (size_t)n;
        else
            tries--; /* progress is for who looks; the run goes on without */
    }
    buf_clear(&screen->buf);
}

struct run_screen *run_screen_new(const struct run_screen_options *options)
{
    struct run_screen *screen = mem_new(1, sizeof(*screen));
    struct progress_options progress = {
        .mode = progress_mode_of(isatty(STDERR_FILENO), options->no_progress, options->quiet),
        .verbose = options->verbose,
        .colour = options->colour,
        .columns = output_columns(STDERR_FILENO),
        .total = options->trials,
    };

    screen->quiet = options->quiet;
    progress_start(&screen->progress, &progress, clock_ns(), &screen->buf);
    flush(screen);
    return screen;
}

static void trial_started(void *context, const char *trial_id)
{
    struct run_screen *screen = context;

    (void)trial_id; /* only counted */
    progress_trial_started(&screen->progress, clock_ns(), &screen->buf);
    flush(screen);
}

/* What went wrong with the machine is told however quiet it was to be. */
static void tell_error(struct run_screen *screen, const char *trial_id,
                       const struct trial_note *note)
{
    scoped(mem_freep) char *id = term_quoted(trial_id);
    scoped(mem_freep) char *reason = term_quoted(note->error);

    buf_format(&screen->buf, "closedbook: trial '%s': %s\n", id, reason);
}

static void trial_finished(void *context, const char *trial_id, const struct trial_note *note)
{
    struct run_screen *screen = context;
    enum trial_status status = (enum trial_status)note->status;
    struct progress_trial trial = {
        .trial_id = trial_id,
        .status = status,
        .has_verdict = note->has_verdict,
        .passed = note->passed,
        .has_score = note->has_score,
        .score = note->score,
        .duration_ms = note->duration_ms,
        .reason = note->error[0] != 0 ? note->error : NULL,
    };

    if (screen->quiet && (status == STATUS_ERROR || status == STATUS_BUILD_FAILED))
        tell_error(screen, trial_id, note);
    progress_trial_finished(&screen->progress, &trial, clock_ns(), &screen->buf);
    flush(screen);
}

static void tick(void *context)
{
    struct run_screen *screen = context;

    progress_tick(&screen->progress, clock_ns(), &screen->buf);
    flush(screen);
}

struct pool_observer run_screen_observer(struct run_screen *screen)
{
    return (struct pool_observer){
        .context = screen,
        .trial_started = trial_started,
        .trial_finished = trial_finished,
        .tick = tick,
    };
}

void run_screen_end(struct run_screen *screen)
{
    progress_finish(&screen->progress, &screen->buf);
    flush(screen);
}

void run_screen_freep(struct run_screen **screen)
{
    if (*screen == NULL)
        return;
    buf_done(&(*screen)->buf);
    free(*screen);
    *screen = NULL;
}
