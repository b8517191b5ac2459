#include <inttypes.h>

#include "base/term.h"
#include "report/report.h"
#include "report/trial_text.h"

static const char header[] =
    "variant,task,replicate,status,passed,score,integrity,agent,model,turns,tool_calls,agent_ms,"
    "total_ms,input_tokens,output_tokens,cost_microusd,error_code,path\r\n";

/* Raw text as a field. */
static void text(struct buf *buf, const char *raw)
{
    scoped(buf_done) struct buf quoted = {0};

    if (raw == NULL)
        return;
    term_quote(&quoted, raw, strlen(raw), TERM_ONE_LINE);
    buf_char(buf, '"');
    if (quoted.size_bytes > 0 && strchr("=+-@", quoted.data[0]) != NULL)
        buf_char(buf, '\'');
    for (const char *c = buf_text(&quoted); *c != '\0'; c++) {
        if (*c == '"')
            buf_char(buf, '"');
        buf_char(buf, *c);
    }
    buf_char(buf, '"');
}

static void text_field(struct buf *buf, const char *raw)
{
    text(buf, raw);
    buf_char(buf, ',');
}

static void number_field(struct buf *buf, const json_t *number)
{
    if (json_is_integer(number))
        buf_format(buf, "%jd", (intmax_t)json_integer_value(number));
    buf_char(buf, ',');
}

static void line(struct buf *buf, const struct trial_record *record, const char *path)
{
    const json_t *tokens = json_get_object(record->usage, "usage");

    text_field(buf, record->variant_id);
    text_field(buf, record->task_id);
    buf_format(buf, "%u,%s,", record->replicate, trial_status_name(record->status));
    if (record->has_verdict)
        buf_text_append(buf, trial_has_passed(record) ? "true" : "false");
    buf_char(buf, ',');
    if (record->has_score)
        buf_format(buf, "%.6f", record->score);
    buf_char(buf, ',');
    text_field(buf, trial_integrity_name(record->integrity));
    text_field(buf, record->agent.type);
    text_field(buf, record->agent.model);
    buf_format(buf, "%u,%ju,%ju,%.3f,", record->agent.turns, (uintmax_t)record->agent.tool_calls,
               (uintmax_t)record->agent.duration_ms, record->timing_ms.total);
    number_field(buf, json_object_get(tokens, "input_tokens"));
    number_field(buf, json_object_get(tokens, "output_tokens"));
    number_field(buf, json_object_get(record->usage, "cost_microusd"));
    text_field(buf, record->error_code);
    text(buf, path);
    buf_text_append(buf, "\r\n");
}

void report_csv(struct buf *buf, const struct run_trials *trials)
{
    buf_text_append(buf, header);
    for (size_t i = 0; i < trials->count; i++)
        line(buf, &trials->records[i], trials->paths[i]);
}
