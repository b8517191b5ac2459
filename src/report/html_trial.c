#include "base/mem.h"
#include "report/html_internal.h"

#define TIME_WIDTH 300

/* --- where the time went -----------------------------------------------------------------------
 */

static void time_bar(struct buf *buf, const struct trial_record *record)
{
    const struct {
        const char *name;
        double ms;
    } parts[] = {
        {"stage", record->timing_ms.stage},     {"launch", record->timing_ms.launch},
        {"agent", record->timing_ms.agent},     {"kill", record->timing_ms.kill},
        {"collect", record->timing_ms.collect}, {"grade", record->timing_ms.grade},
    };
    double sum = 0;
    double at = 0;

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        sum += parts[i].ms;
    if (sum <= 0)
        return;
    buf_format(buf, "<svg width=\"%d\" height=\"10\" role=\"img\" aria-label=\"times\">",
               TIME_WIDTH);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        double width = TIME_WIDTH * parts[i].ms / sum;

        buf_format(buf,
                   "<rect class=\"f-%zu\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"10\">"
                   "<title>%s %.1f ms</title></rect>",
                   i, at, width, parts[i].name, parts[i].ms);
        at += width;
    }
    buf_text_append(buf, "</svg>\n<div class=\"dim\">");
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        buf_format(buf, "%s%s ", i == 0 ? "" : ", ", parts[i].name);
        duration_text(buf, parts[i].ms);
    }
    buf_text_append(buf, "</div>\n");
}

/* --- who, and at what cost ---------------------------------------------------------------------
 */

static void agent_facts(struct buf *buf, const struct trial_record *record)
{
    const json_t *tokens = json_get_object(record->usage, "usage");
    const json_t *cost = json_object_get(record->usage, "cost_microusd");
    const char *key;
    json_t *value;

    buf_text_append(buf, "<p class=\"facts\">agent ");
    html_text(buf, record->agent.type);
    if (record->agent.model != NULL) {
        buf_text_append(buf, ", model ");
        html_text(buf, record->agent.model);
    }
    if (record->agent.turns > 0)
        buf_format(buf, ", %u turn%s", record->agent.turns, record->agent.turns == 1 ? "" : "s");
    if (record->agent.tool_calls > 0)
        buf_format(buf, ", %ju tool calls", (uintmax_t)record->agent.tool_calls);
    if (record->agent.exit_code >= 0)
        buf_format(buf, ", exit status %d", record->agent.exit_code);
    if (record->agent.signal >= 0)
        buf_format(buf, ", signal %d", record->agent.signal);
    if (record->agent.stopped_by != NULL) {
        buf_text_append(buf, ", ended by ");
        html_text(buf, record->agent.stopped_by);
    }
    json_object_foreach (json_is_object(tokens) ? (json_t *)(uintptr_t)tokens : NULL, key, value) {
        if (!json_is_integer(value))
            continue;
        buf_text_append(buf, ", ");
        html_text(buf, key);
        buf_format(buf, " %jd", (intmax_t)json_integer_value(value));
    }
    if (json_is_number(cost))
        buf_format(buf, ", $%.4f", json_number_value(cost) / 1e6);
    buf_format(buf, ", driver ");
    html_text(buf, record->cell.driver);
    if (record->cell.tier != NULL) {
        buf_text_append(buf, ", tier ");
        html_text(buf, record->cell.tier);
    }
    buf_format(buf, ", %ju files left", (uintmax_t)record->artifacts.files);
    buf_text_append(buf, "</p>\n");
}

static void integrity(struct buf *buf, const struct trial_record *record)
{
    const char *verdict = trial_integrity_name(record->integrity);
    bool bad = record->integrity == INTEGRITY_COMPROMISED;

    if (verdict == NULL)
        return;
    buf_format(buf, "<p><span class=\"chip %s\">%s</span></p>\n",
               bad                                    ? "bad"
               : record->integrity == INTEGRITY_CLEAN ? "good"
                                                      : "warn",
               verdict);
    for (size_t i = 0; i < record->integrity_reasons.count; i++)
        html_block(buf, record->integrity_reasons.items[i], "plain");
}

/* --- criteria ----------------------------------------------------------------------------------
 */

static void criterion(struct buf *buf, const struct run_trials *trials, size_t trial, size_t i,
                      const struct html_run *run)
{
    const struct criterion_record *criterion = &trials->records[trial].criteria[i];
    bool failed = criterion_failed(criterion);
    scoped(buf_done) struct buf score = {0};
    scoped(buf_done) struct buf command = {0};

    criterion_score(&score, criterion);
    buf_format(buf, "<div class=\"criterion\"><span class=\"%s\">%s</span> %zu <code>",
               criterion->error != NULL ? "warn"
               : failed                 ? "bad"
                                        : "good",
               criterion->error != NULL ? "!"
               : failed                 ? "&#10007;"
                                        : "&#10003;",
               i + 1);
    html_text(buf, criterion->type);
    buf_text_append(buf, "</code> ");
    html_text(buf, criterion->description);
    buf_text_append(buf, " <span class=\"dim\">");
    html_text(buf, buf_text(&score));
    buf_format(buf, "%s</span></div>\n", criterion->gating ? "" : ", not gating");
    html_block(buf, criterion->error, "plain");
    html_block(buf, criterion->details, "plain");
    if (!failed || !criterion_has_cell(criterion))
        return;
    cell_command(&command, run->run_path, trials->paths[trial], i + 1);
    html_block(buf, buf_text(&command), "cmd");
}

static void body(struct buf *buf, const struct run_trials *trials, size_t i,
                 const struct html_run *run)
{
    const struct trial_record *record = &trials->records[i];

    buf_text_append(buf, "<div class=\"body\">\n");
    agent_facts(buf, record);
    time_bar(buf, record);
    integrity(buf, record);
    html_block(buf, record->error, "plain");
    if (trials->last_words != NULL && trials->last_words[i] != NULL) {
        buf_text_append(buf, "<p class=\"dim\">its last words on standard error</p>\n");
        html_block(buf, trials->last_words[i], "plain");
    }
    for (size_t n = 0; n < record->criterion_count; n++)
        criterion(buf, trials, i, n, run);
    buf_text_append(buf, "<p class=\"dim mono\">");
    html_text(buf, trials->paths[i]);
    buf_text_append(buf, "</p>\n</div>\n");
}

void html_trial(struct buf *buf, const struct run_trials *trials, size_t i,
                const struct trial_naming *naming, const struct html_run *run)
{
    static const char *const signs[LOOK_COUNT] = {"&#10003;", "&#10007;", "!", "&#9675;"};
    const struct trial_record *record = &trials->records[i];
    enum trial_look look = trial_look(record);
    scoped(buf_done) struct buf name = {0};
    scoped(buf_done) struct buf why = {0};

    trial_name(&name, record, naming);
    trial_reason(&why, record);
    buf_format(buf,
               "<details class=\"trial\" id=\"t%zu\" data-look=\"%s\"><summary><span "
               "class=\"%s\">%s</span><span class=\"name\">",
               i, html_look(look), html_look(look), signs[look]);
    html_text(buf, buf_text(&name));
    buf_format(buf, "</span><span class=\"%s\">%s</span><span class=\"num\">", html_look(look),
               trial_status_name(record->status));
    if (record->has_score)
        buf_format(buf, "%.2f", record->score);
    buf_text_append(buf, "</span><span class=\"num\">");
    if (record->status != STATUS_SKIPPED)
        duration_text(buf, record->timing_ms.total);
    buf_text_append(buf, "</span><span class=\"why\">");
    html_text(buf, buf_text(&why));
    buf_text_append(buf, "</span></summary>\n");
    if (buf->size_bytes < HTML_PAGE_BYTES_MAX)
        body(buf, trials, i, run);
    else
        buf_text_append(buf, "<div class=\"body dim\">left out: the page is large enough; "
                             "<code>closedbook report</code> tells it</div>\n");
    buf_text_append(buf, "</details>\n");
}
