#include "base/mem.h"
#include "base/term.h"
#include "report/report.h"
#include "report/suites.h"

static json_t *totals_json(const struct run_trials *trials)
{
    const struct report_totals totals = report_totals(trials);
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {
        {"trials", totals.trials},
        {"unfinished", trials->unfinished},
        {"passed", totals.passed},
        {"decided", totals.decided},
        {"success", totals.success},
        {"failure", totals.failure},
        {"max_turns_exhausted", totals.max_turns},
        {"timeout", totals.timeout},
        {"budget_exceeded", totals.budget},
        {"error", totals.error},
        {"not_graded", totals.not_graded},
        {"skipped", totals.skipped},
        {"compromised", totals.compromised},
        {"suspect", totals.suspect},
        {"unprotected", totals.unprotected},
        {"unstable", totals.unstable},
        {"suite_thresholds_missed", totals.suites_missed},
        {"elapsed_ms", totals.elapsed_ms},
    };
    json_t *object = json_object();

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        json_put_int(object, counts[i].key, (int64_t)counts[i].count);
    if (totals.decided > 0)
        json_put_real(object, "pass_rate", report_pass_rate(&totals));
    else
        json_put(object, "pass_rate", json_null());
    return object;
}

/* The record, without what only a machine needs to run it again. */
static json_t *trial_json(const struct trial_record *record, const char *path)
{
    json_t *object = json_object();
    scoped(json_freep) json_t *whole = trial_record_to_json(record);

    json_put_text(object, "path", path);
    (void)json_object_del(whole, "schema");  /* all three are there */
    (void)json_object_del(whole, "lineage"); /* or are not missed */
    (void)json_object_del(whole, "digests");
    ASSERT(json_object_update(object, whole) == 0);
    return object;
}

json_t *report_json(const struct run_trials *trials, const char *run_id)
{
    json_t *object = json_object();
    json_t *list = json_array();
    scoped(suites_done) struct suites suites = {0};

    json_put_text(object, "schema", "closedbook/report/1");
    json_put_text(object, "run_id", run_id);
    json_put(object, "totals", totals_json(trials));
    for (size_t i = 0; i < trials->count; i++)
        json_push(list, trial_json(&trials->records[i], trials->paths[i]));
    json_put(object, "host", host_record_json(&trials->host));
    suites_make(trials, &suites);
    json_put(object, "suites", suites_json(&suites));
    json_put(object, "trials", list);
    return object;
}

static void escape_rune(struct buf *buf, uint32_t rune)
{
    if (rune < 0x10000) {
        buf_format(buf, "\\u%04x", rune);
        return;
    }
    rune -= 0x10000;
    buf_format(buf, "\\u%04x\\u%04x", 0xd800 + (rune >> 10), 0xdc00 + (rune & 0x3ff));
}

/* Outside ASCII a JSON text has only strings, so an escape is right wherever it stands. */
static void escape_text(struct buf *buf, const struct buf *text)
{
    for (size_t i = 0; i < text->size_bytes;) {
        scoped(buf_done) struct buf quoted = {0};
        uint32_t rune = 0;
        size_t n = utf8_next(text->data + i, text->size_bytes - i, &rune);

        ASSERT(n > 0);
        if (n > 1)
            term_quote(&quoted, text->data + i, n, TERM_LINES);
        if (n > 1 && quoted.data[0] == '\\')
            escape_rune(buf, rune);
        else
            buf_append(buf, text->data + i, n);
        i += n;
    }
}

void report_json_write(struct buf *buf, const json_t *value)
{
    scoped(buf_done) struct buf text = {0};

    json_write_pretty(&text, value);
    escape_text(buf, &text);
}

void report_jsonl(struct buf *buf, const struct run_trials *trials)
{
    for (size_t i = 0; i < trials->count; i++) {
        scoped(json_freep) json_t *trial = trial_json(&trials->records[i], trials->paths[i]);
        scoped(buf_done) struct buf text = {0};

        json_write_line(&text, trial);
        buf_char(&text, '\n');
        escape_text(buf, &text);
    }
}
