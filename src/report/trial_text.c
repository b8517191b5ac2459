#include "report/trial_text.h"

#include <math.h>

#include "base/mem.h"

enum trial_look trial_look(const struct trial_record *record)
{
    if (record->integrity == INTEGRITY_COMPROMISED)
        return LOOK_FAILED;

    switch (record->status) {
    case STATUS_SUCCESS:
        return LOOK_PASSED;
    case STATUS_FAILURE:
    case STATUS_MAX_TURNS_EXHAUSTED:
    case STATUS_TIMEOUT:
    case STATUS_TOKEN_BUDGET_EXCEEDED:
    case STATUS_COST_BUDGET_EXCEEDED:
        return LOOK_FAILED;
    case STATUS_ERROR:
    case STATUS_BUILD_FAILED:
        return LOOK_ERROR;
    case STATUS_NOT_GRADED:
    case STATUS_SKIPPED:
    case STATUS_COUNT:
        return LOOK_NEUTRAL;
    }
    return LOOK_NEUTRAL;
}

bool trial_has_passed(const struct trial_record *record)
{
    return record->has_verdict && record->passed && record->integrity != INTEGRITY_COMPROMISED;
}

struct trial_naming trial_naming(const struct run_trials *trials)
{
    struct trial_naming naming = {0};

    for (size_t i = 0; i < trials->count; i++) {
        naming.variants |= strcmp(trials->records[i].variant_id, "default") != 0;
        naming.replicates |= trials->records[i].replicate > 0;
    }
    return naming;
}

void trial_name(struct buf *buf, const struct trial_record *record,
                const struct trial_naming *naming)
{
    buf_text_append(buf, record->task_id);
    if (naming->variants)
        buf_format(buf, " [%s]", record->variant_id);
    if (naming->replicates)
        buf_format(buf, " #%02u", record->replicate);
}

/* --- the same again ------------------------------------------------------------------------- */

static bool criteria_alike(const struct trial_record *a, const struct trial_record *b)
{
    for (size_t i = 0; i < a->criterion_count; i++) {
        const struct criterion_record *one = &a->criteria[i];
        const struct criterion_record *other = &b->criteria[i];

        if (one->passed != other->passed || one->has_score != other->has_score ||
            fabs(one->score - other->score) > 1e-9 || !str_equal(one->error, other->error) ||
            !str_equal(one->details, other->details) ||
            criterion_is_unstable(one) != criterion_is_unstable(other))
            return false;
    }
    return true;
}

static bool lists_equal(const struct str_list *a, const struct str_list *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        if (!str_equal(a->items[i], b->items[i]))
            return false;
    }
    return a->count == b->count;
}

bool trial_ended_alike(const struct trial_record *a, const struct trial_record *b)
{
    return str_equal(a->task_id, b->task_id) && str_equal(a->variant_id, b->variant_id) &&
           a->status == b->status && a->integrity == b->integrity &&
           a->criterion_count == b->criterion_count && str_equal(a->error, b->error) &&
           str_equal(a->error_code, b->error_code) &&
           str_equal(a->agent.stopped_by, b->agent.stopped_by) &&
           lists_equal(&a->integrity_reasons, &b->integrity_reasons) && criteria_alike(a, b);
}

/* --- why ------------------------------------------------------------------------------------ */

static void criteria_reason(struct buf *buf, const struct trial_record *record)
{
    const struct criterion_record *first = NULL;
    size_t more = 0;

    for (size_t i = 0; i < record->criterion_count; i++) {
        const struct criterion_record *criterion = &record->criteria[i];

        if (!criterion->gating || !criterion_failed(criterion))
            continue;
        if (first == NULL)
            first = criterion;
        else
            more++;
    }
    if (first == NULL)
        return;
    buf_text_append(buf, first->description == NULL ? "" : first->description);
    if (more > 0)
        buf_format(buf, " (+%zu more)", more);
}

static void integrity_reason(struct buf *buf, const struct trial_record *record)
{
    const struct str_list *reasons = &record->integrity_reasons;

    buf_text_append(buf, trial_integrity_name(record->integrity));
    if (reasons->count > 0)
        buf_format(buf, ": %s", reasons->items[0]);
}

/* A limit of turns as the task set it, from the lineage; 0: none. */
static int64_t turn_limit(const struct trial_record *record, const char *name)
{
    return json_get_int(json_get_object(record->lineage, name), "value", 0);
}

/* Of agents that report themselves, too: a remark decides nothing. */
static void turns_remark(struct buf *buf, const struct trial_record *record)
{
    int64_t expected = turn_limit(record, "run_limits.expected_turns");

    if (record->status == STATUS_MAX_TURNS_EXHAUSTED)
        buf_format(buf, "%s%u turns, at most %jd allowed", buf->size_bytes > 0 ? "; " : "",
                   record->agent.turns, (intmax_t)turn_limit(record, "run_limits.max_turns"));
    else if (expected > 0 && record->agent.turns > expected)
        buf_format(buf, "%s%u turns, %jd expected", buf->size_bytes > 0 ? "; " : "",
                   record->agent.turns, (intmax_t)expected);
}

/* An agent that ended badly is graded all the same; whoever reads why it failed wants to know. */
static void agent_remark(struct buf *buf, const struct trial_record *record)
{
    if (record->status != STATUS_FAILURE)
        return;
    if (record->agent.signal > 0)
        buf_format(buf, "; the agent was ended by signal %d", record->agent.signal);
    else if (record->agent.exit_code > 0)
        buf_format(buf, "; the agent's exit code was %d, see agent.stderr",
                   record->agent.exit_code);
}

/* A teardown that failed decides nothing either, but somebody must clean up. */
static void steps_remark(struct buf *buf, const struct trial_record *record)
{
    size_t i, number = 0;
    json_t *step;

    json_array_foreach (record->steps, i, step) {
        const char *error = json_get_text(step, "error");
        int64_t code = json_get_int(step, "exit_code", 0);
        const char *before = buf->size_bytes > 0 ? "; " : "";

        if (!str_equal(json_get_text(step, "phase"), "post_run"))
            continue;
        number++;
        if (error != NULL)
            buf_format(buf, "%spost_run failed: %s", before, error);
        else if (json_get_bool(step, "timed_out", false))
            buf_format(buf, "%spost_run step %zu ran out of time", before, number);
        else if (code != 0)
            buf_format(buf, "%spost_run step %zu failed (exit code %jd)", before, number,
                       (intmax_t)code);
    }
}

static void status_reason(struct buf *buf, const struct trial_record *record)
{
    if (record->integrity == INTEGRITY_COMPROMISED || record->integrity == INTEGRITY_SUSPECT) {
        integrity_reason(buf, record);
        return;
    }
    switch (record->status) {
    case STATUS_SUCCESS:
    case STATUS_COUNT:
        return;
    case STATUS_TIMEOUT:
        if (record->agent.stopped_by != NULL)
            buf_format(buf, "%s after ", record->agent.stopped_by);
        duration_text(buf, (double)record->agent.duration_ms);
        return;
    case STATUS_TOKEN_BUDGET_EXCEEDED:
    case STATUS_COST_BUDGET_EXCEEDED:
        buf_format(buf, "run_limits.%s is used up",
                   record->agent.stopped_by != NULL ? record->agent.stopped_by : "?");
        return;
    case STATUS_FAILURE:
    case STATUS_MAX_TURNS_EXHAUSTED:
        criteria_reason(buf, record);
        return;
    case STATUS_ERROR:
    case STATUS_BUILD_FAILED:
    case STATUS_NOT_GRADED:
    case STATUS_SKIPPED:
        if (record->error != NULL)
            buf_text_append(buf, record->error);
        return;
    }
}

void trial_reason(struct buf *buf, const struct trial_record *record)
{
    scoped(buf_done) struct buf reason = {0};

    status_reason(&reason, record);
    if (trial_is_unstable(record))
        buf_format(&reason, "%sunstable", reason.size_bytes > 0 ? "; " : "");
    agent_remark(&reason, record);
    turns_remark(&reason, record);
    steps_remark(&reason, record);
    buf_append(buf, buf_text(&reason), reason.size_bytes);
}

void unprotected_text(struct buf *buf, const struct run_trials *trials)
{
    const char *reason = NULL;
    size_t count = 0;

    for (size_t i = 0; i < trials->count; i++) {
        const struct trial_record *record = &trials->records[i];

        if (record->integrity != INTEGRITY_UNPROTECTED)
            continue;
        count++;
        if (reason == NULL && record->integrity_reasons.count > 0)
            reason = record->integrity_reasons.items[0];
    }
    if (count == 0)
        return;
    buf_format(buf, "%zu UNPROTECTED", count);
    if (reason != NULL)
        buf_format(buf, " (%s)", reason);
    buf_text_append(buf, ": such a result proves nothing about an agent");
}

void host_text(struct buf *buf, const struct host_record *host)
{
    buf_format(buf, "COMPROMISED: the host changed while the run was on (%ju difference%s",
               (uintmax_t)host->count, host->count == 1 ? "" : "s");
    if (host->count > host->changes.count)
        buf_format(buf, ", the first %zu are listed", host->changes.count);
    buf_text_append(buf, ")");
}

/* --- criteria ------------------------------------------------------------------------------- */

bool trial_is_unstable(const struct trial_record *record)
{
    for (size_t i = 0; i < record->criterion_count; i++) {
        if (record->criteria[i].gating && criterion_is_unstable(&record->criteria[i]))
            return true;
    }
    return false;
}

bool criterion_failed(const struct criterion_record *criterion)
{
    return criterion->error != NULL || !criterion->passed;
}

void criterion_score(struct buf *buf, const struct criterion_record *criterion)
{
    if (criterion->error != NULL)
        buf_text_append(buf, "error");
    else if (!criterion->has_score)
        buf_text_append(buf, "-");
    else if (criterion->score < criterion->threshold)
        buf_format(buf, "%.2f < %.2f", criterion->score, criterion->threshold);
    else
        buf_format(buf, "%.2f", criterion->score);
    if (!criterion->gating)
        buf_text_append(buf, " (informational)");
    if (criterion_is_unstable(criterion))
        buf_format(buf, ", unstable: %jd of %jd passed",
                   (intmax_t)json_get_int(criterion->repeat, "passed", 0),
                   (intmax_t)json_get_int(criterion->repeat, "times", 0));
}

bool criterion_has_cell(const struct criterion_record *criterion)
{
    return str_equal(criterion->type, "run_command");
}

/* Single quotes around anything that a shell would not take as one plain word. */
static void shell_word(struct buf *buf, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_./@:+,%=-";

    if (word[strspn(word, plain)] == '\0' && word[0] != '-') {
        buf_text_append(buf, word);
        return;
    }
    buf_char(buf, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            buf_text_append(buf, "'\\''");
        else
            buf_char(buf, *word);
    }
    buf_char(buf, '\'');
}

void cell_command(struct buf *buf, const char *run_path, const char *trial_path, size_t number)
{
    size_t length = strlen(run_path);

    while (length > 1 && run_path[length - 1] == '/')
        length--;

    scoped(mem_freep) char *path = str_format("%.*s/%s", (int)length, run_path, trial_path);

    buf_text_append(buf, "closedbook cell ");
    shell_word(buf, path);
    buf_format(buf, " --criterion %zu", number);
}

void duration_text(struct buf *buf, double ms)
{
    uint64_t seconds = ms > 0 ? (uint64_t)(ms / 1000) : 0;

    if (seconds < 10)
        buf_format(buf, "%.2f s", ms / 1000);
    else if (seconds < 100)
        buf_format(buf, "%.1f s", ms / 1000);
    else if (seconds < 3600)
        buf_format(buf, "%ju:%02ju", (uintmax_t)(seconds / 60), (uintmax_t)(seconds % 60));
    else
        buf_format(buf, "%ju:%02ju:%02ju", (uintmax_t)(seconds / 3600),
                   (uintmax_t)(seconds / 60 % 60), (uintmax_t)(seconds % 60));
}

/* --- lines ---------------------------------------------------------------------------------- */

static size_t count_lines(const char *text, size_t size)
{
    size_t lines = 0;

    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines + (size > 0 && text[size - 1] != '\n');
}

void text_lines(const char *text, size_t max, each_line *line, void *context)
{
    const char *end = text + strlen(text);
    size_t count = count_lines(text, (size_t)(end - text));
    bool all = max == 0 || count <= max;
    /* Head and tail: the verdict stands first, a program's last words say the most. */
    size_t head = all ? count : max / 2;
    size_t tail = all ? 0 : max - head;

    for (size_t i = 0; text < end; i++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline == NULL ? end : newline;
        size_t size = (size_t)(stop - text);

        if (size > 0 && text[size - 1] == '\r')
            size--;
        if (i < head || i >= count - tail)
            line(context, text, size, 0);
        else if (i == head)
            line(context, "", 0, count - head - tail);
        text = stop + 1;
    }
}
