#include "report/progress.h"

#include "base/mem.h"
#include "base/term.h"
#include "report/paint.h"

#define COLUMNS_DEFAULT 80
#define BAR_COLUMNS 20
#define PARTS_MAX 10
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define ESTIMATE_AFTER_NS (2 * NS_PER_S) /* before that it would only jump about */

enum progress_mode progress_mode_of(bool is_terminal, bool no_progress, bool quiet)
{
    if (quiet || no_progress)
        return PROGRESS_NONE;
    return is_terminal ? PROGRESS_LIVE : PROGRESS_LINES;
}

/* --- the live line -------------------------------------------------------------------------- */

/* One piece of the live line. Where there is no room the least important pieces go first. */
struct part {
    enum paint paint;
    unsigned importance; /* 0: never left out */
    char text[96];
};

struct parts {
    struct part items[PARTS_MAX];
    size_t count;
};

static void add(struct parts *parts, enum paint paint, unsigned importance, const char *text)
{
    ASSERT(parts->count < PARTS_MAX);

    struct part *part = &parts->items[parts->count++];

    part->paint = paint;
    part->importance = importance;
    (void)snprintf(part->text, sizeof(part->text), "%s", text); /* all of them are shorter */
}

static void add_count(struct parts *parts, enum paint paint, size_t count, const char *what)
{
    scoped(mem_freep) char *text = str_format("%zu %s", count, what);

    if (count > 0)
        add(parts, paint, 3, text);
}

/* "0:07", "12:05", "1:02:03" */
static void clock_text(struct buf *buf, uint64_t ns)
{
    uint64_t seconds = ns / NS_PER_S;

    if (seconds >= 3600)
        buf_format(buf, "%ju:%02ju:%02ju", (uintmax_t)(seconds / 3600),
                   (uintmax_t)(seconds / 60 % 60), (uintmax_t)(seconds % 60));
    else
        buf_format(buf, "%ju:%02ju", (uintmax_t)(seconds / 60), (uintmax_t)(seconds % 60));
}

static void add_bar(const struct progress *progress, const struct signs *signs, struct parts *parts)
{
    size_t total = progress->options.total;
    size_t done = total == 0 ? 0 : size_min(BAR_COLUMNS, progress->done * BAR_COLUMNS / total);
    scoped(buf_done) struct buf bar = {0};

    for (size_t i = 0; i < BAR_COLUMNS; i++)
        buf_text_append(&bar, i < done ? signs->done : signs->rest);
    add(parts, progress->failed + progress->errors > 0 ? PAINT_YELLOW : PAINT_GREEN, 9,
        buf_text(&bar));
}

static void add_times(const struct progress *progress, uint64_t now_ns, struct parts *parts)
{
    uint64_t elapsed_ns = now_ns > progress->start_ns ? now_ns - progress->start_ns : 0;
    size_t left = progress->options.total - size_min(progress->options.total, progress->done);
    scoped(buf_done) struct buf elapsed = {0};
    scoped(buf_done) struct buf estimate = {0};

    clock_text(&elapsed, elapsed_ns);
    add(parts, PAINT_DIM, 5, buf_text(&elapsed));
    if (progress->done == 0 || left == 0 || elapsed_ns < ESTIMATE_AFTER_NS)
        return;
    buf_text_append(&estimate, "about ");
    /* In milliseconds, or eleven days of 100,000 trials would not fit. */
    clock_text(&estimate, elapsed_ns / NS_PER_MS * left / progress->done * NS_PER_MS);
    buf_text_append(&estimate, " left");
    add(parts, PAINT_DIM, 7, buf_text(&estimate));
}

static size_t width(const struct parts *parts)
{
    size_t columns = 0;

    for (size_t i = 0; i < parts->count; i++)
        columns += utf8_columns(parts->items[i].text) + 2;
    return columns;
}

/* Takes the least important part out; false when only what must stay is left. */
static bool drop_one(struct parts *parts)
{
    size_t least = 0;

    for (size_t i = 1; i < parts->count; i++) {
        if (parts->items[i].importance >= parts->items[least].importance)
            least = i;
    }
    if (parts->count == 0 || parts->items[least].importance == 0)
        return false;
    parts->count--;
    memmove(&parts->items[least], &parts->items[least + 1],
            (parts->count - least) * sizeof(parts->items[0]));
    return true;
}

static void collect(const struct progress *progress, uint64_t now_ns, struct buf *buf,
                    struct parts *ret)
{
    const struct painter painter = {.buf = buf, .ascii = progress->options.ascii};
    scoped(mem_freep) char *done = str_format("%zu/%zu", progress->done, progress->options.total);

    add_bar(progress, painter_signs(&painter), ret);
    add(ret, PAINT_BOLD, 0, done);
    add_count(ret, PAINT_PLAIN, progress->running, "running");
    add_count(ret, PAINT_GREEN, progress->passed, "passed");
    add_count(ret, PAINT_RED, progress->failed, "failed");
    add_count(ret, PAINT_YELLOW, progress->errors, progress->errors == 1 ? "error" : "errors");
    add_count(ret, PAINT_DIM, progress->other, "other");
    add_times(progress, now_ns, ret);
}

static void draw(struct progress *progress, uint64_t now_ns, struct buf *buf)
{
    const struct painter painter = {
        .buf = buf,
        .colour = progress->options.colour,
        .ascii = progress->options.ascii,
    };
    /* One column stays free: a terminal wraps when the last one is written. */
    size_t columns =
        (progress->options.columns == 0 ? COLUMNS_DEFAULT : progress->options.columns) - 1;
    struct parts parts = {0};

    collect(progress, now_ns, buf, &parts);
    while (width(&parts) > columns) {
        if (!drop_one(&parts))
            break;
    }
    buf_char(buf, '\r');
    for (size_t i = 0; i < parts.count; i++) {
        paint_spaces(&painter, i == 0 ? 1 : 2);
        paint_text(&painter, parts.items[i].paint, parts.items[i].text);
    }
    buf_text_append(buf, "\033[K");
    progress->drawn_ns = now_ns;
    progress->shown = true;
}

/* --- plain lines ---------------------------------------------------------------------------- */

static enum trial_look look_of(const struct progress_trial *trial)
{
    if (trial->status == STATUS_ERROR || trial->status == STATUS_BUILD_FAILED)
        return LOOK_ERROR;
    if (!trial->has_verdict)
        return LOOK_NEUTRAL;
    return trial->passed ? LOOK_PASSED : LOOK_FAILED;
}

static void trial_line(const struct progress *progress, const struct progress_trial *trial,
                       struct buf *buf)
{
    const struct painter painter = {
        .buf = buf,
        .colour = progress->options.colour,
        .ascii = progress->options.ascii,
    };
    enum trial_look look = look_of(trial);

    paint_text(&painter, look_paint(look), trial_status_name(trial->status));
    paint_spaces(&painter, 1);
    (void)paint_raw(&painter, PAINT_PLAIN, trial->trial_id, strlen(trial->trial_id), 0);
    if (trial->has_score)
        buf_format(buf, " %.2f", trial->score);
    else
        buf_text_append(buf, " -");
    buf_char(buf, ' ');
    buf_format(buf, "%ju.%03ju s", (uintmax_t)(trial->duration_ms / 1000),
               (uintmax_t)(trial->duration_ms % 1000));
    if (trial->reason != NULL && trial->reason[0] != '\0') {
        buf_text_append(buf, "  ");
        (void)paint_raw(&painter, PAINT_PLAIN, trial->reason, strlen(trial->reason), 0);
    }
    buf_char(buf, '\n');
}

/* --- what the caller calls ------------------------------------------------------------------ */

void progress_start(struct progress *progress, const struct progress_options *options,
                    uint64_t now_ns, struct buf *buf)
{
    *progress = (struct progress){.options = *options, .start_ns = now_ns};
    if (options->mode == PROGRESS_LIVE)
        draw(progress, now_ns, buf);
}

void progress_trial_started(struct progress *progress, uint64_t now_ns, struct buf *buf)
{
    progress->running++;
    progress_tick(progress, now_ns, buf);
}

static void count(struct progress *progress, const struct progress_trial *trial)
{
    progress->running -= progress->running > 0;
    progress->done++;

    switch (look_of(trial)) {
    case LOOK_PASSED:
        progress->passed++;
        return;
    case LOOK_FAILED:
        progress->failed++;
        return;
    case LOOK_ERROR:
        progress->errors++;
        return;
    case LOOK_NEUTRAL:
    case LOOK_COUNT:
        progress->other++;
        return;
    }
}

void progress_trial_finished(struct progress *progress, const struct progress_trial *trial,
                             uint64_t now_ns, struct buf *buf)
{
    bool live = progress->options.mode == PROGRESS_LIVE;

    count(progress, trial);
    if (progress->options.mode == PROGRESS_LINES || (live && progress->options.verbose)) {
        progress_hide(progress, buf);
        trial_line(progress, trial, buf);
    }
    progress_tick(progress, now_ns, buf);
}

int progress_wait_ms(const struct progress *progress, uint64_t now_ns)
{
    uint64_t due_ns = progress->drawn_ns + PROGRESS_REDRAW_MS * NS_PER_MS;

    if (progress->options.mode != PROGRESS_LIVE)
        return -1;
    if (now_ns >= due_ns || !progress->shown)
        return 0;
    return (int)((due_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
}

void progress_tick(struct progress *progress, uint64_t now_ns, struct buf *buf)
{
    if (progress_wait_ms(progress, now_ns) == 0)
        draw(progress, now_ns, buf);
}

void progress_hide(struct progress *progress, struct buf *buf)
{
    if (progress->shown)
        buf_text_append(buf, "\r\033[K");
    progress->shown = false;
}

void progress_finish(struct progress *progress, struct buf *buf)
{
    progress_hide(progress, buf);
    progress->options.mode = PROGRESS_NONE;
}
