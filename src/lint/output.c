/* Findings as text, JSON and SARIF; the rules as Markdown. */
#include <string.h>

#include "base/term.h"
#include "lint/internal.h"

static void quote(struct buf *buf, const char *text)
{
    term_quote(buf, text, strlen(text), TERM_ONE_LINE);
}

static const char *level_name(const struct lint_finding *finding)
{
    return lint_severity_name(finding->severity);
}

void lint_format_text(const struct lint_report *report, bool explain, struct buf *buf)
{
    for (size_t i = 0; i < report->count; i++) {
        const struct lint_finding *finding = &report->findings[i];

        quote(buf, finding->file);
        if (finding->line > 0)
            buf_format(buf, ":%u:%u", finding->line, finding->column);
        buf_format(buf, ": %s %s: ", level_name(finding), finding->rule->id);
        if (finding->place[0] != '\0') {
            quote(buf, finding->place);
            buf_text_append(buf, ": ");
        }
        quote(buf, finding->message);
        buf_char(buf, '\n');
        if (explain || finding->edit.text != NULL)
            buf_format(buf, "    %s: %s; %s%s\n", finding->rule->name, finding->rule->why,
                       finding->rule->fix, finding->edit.text != NULL ? " (--fix does it)" : "");
    }
    if (report->dropped_count > 0)
        buf_format(buf, "%zu further findings are not shown\n", report->dropped_count);
    buf_format(buf, "%zu task file%s: %zu error%s, %zu warning%s, %zu note%s\n", report->file_count,
               report->file_count == 1 ? "" : "s", report->counts[LINT_ERROR],
               report->counts[LINT_ERROR] == 1 ? "" : "s", report->counts[LINT_WARNING],
               report->counts[LINT_WARNING] == 1 ? "" : "s", report->counts[LINT_NOTE],
               report->counts[LINT_NOTE] == 1 ? "" : "s");
}

/* GitHub's own escapes; control characters have none but these. */
static void escape_github(struct buf *buf, const char *text, bool is_property)
{
    for (const char *s = text; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '%' || c < 0x20 || (is_property && (c == ':' || c == ',')))
            buf_format(buf, "%%%02X", (unsigned)c);
        else
            buf_char(buf, *s);
    }
}

void lint_format_github(const struct lint_report *report, struct buf *buf)
{
    static const char *const commands[] = {"error", "warning", "notice"};

    for (size_t i = 0; i < report->count; i++) {
        const struct lint_finding *finding = &report->findings[i];

        buf_format(buf, "::%s file=", commands[finding->severity]);
        escape_github(buf, finding->file, true);
        buf_format(buf, ",line=%u,title=%s::", finding->line, finding->rule->id);
        escape_github(buf, finding->message, false);
        buf_char(buf, '\n');
    }
}

static void put_text(json_t *object, const char *key, const char *text)
{
    json_put(object, key, json_text(text, strlen(text)));
}

json_t *lint_to_json(const struct lint_report *report)
{
    json_t *json = json_object(), *findings = json_array(), *counts = json_object();

    for (size_t i = 0; i < report->count; i++) {
        const struct lint_finding *finding = &report->findings[i];
        json_t *item = json_object();

        json_put_text(item, "rule", finding->rule->id);
        json_put_text(item, "name", finding->rule->name);
        json_put_text(item, "severity", level_name(finding));
        put_text(item, "file", finding->file);
        json_put_int(item, "line", finding->line);
        json_put_int(item, "column", finding->column);
        put_text(item, "field", finding->place);
        put_text(item, "message", finding->message);
        json_put_text(item, "fix", finding->rule->fix);
        json_put_bool(item, "fixable", finding->edit.text != NULL);
        json_push(findings, item);
    }
    for (enum lint_severity i = LINT_ERROR; i < LINT_SEVERITY_COUNT; i++)
        json_put_int(counts, lint_severity_name(i), (int64_t)report->counts[i]);
    json_put_int(json, "files", (int64_t)report->file_count);
    json_put(json, "counts", counts);
    json_put_int(json, "dropped", (int64_t)report->dropped_count);
    json_put(json, "findings", findings);
    return json;
}

static json_t *message_of(const char *text)
{
    json_t *message = json_object();

    put_text(message, "text", text);
    return message;
}

static json_t *sarif_rules(void)
{
    json_t *rules = json_array();

    for (size_t i = 0; lint_rule_at(i) != NULL; i++) {
        const struct lint_rule *rule = lint_rule_at(i);
        json_t *item = json_object(), *level = json_object();
        scoped(mem_freep) char *help = str_format("%s; %s.", rule->why, rule->fix);

        json_put_text(item, "id", rule->id);
        json_put_text(item, "name", rule->name);
        json_put(item, "shortDescription", message_of(rule->what));
        json_put(item, "help", message_of(help));
        json_put_text(level, "level", lint_severity_name(rule->severity));
        json_put(item, "defaultConfiguration", level);
        json_push(rules, item);
    }
    return rules;
}

/* A path as a URI reference: what is no plain character is escaped. */
static char *uri_of(const char *path)
{
    scoped(buf_done) struct buf uri = {0};

    for (const char *s = path; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr("/._-~", c) != NULL;

        if (is_plain)
            buf_char(&uri, *s);
        else
            buf_format(&uri, "%%%02X", (unsigned)c);
    }
    return buf_take(&uri);
}

static json_t *sarif_location(const struct lint_finding *finding)
{
    json_t *location = json_object(), *physical = json_object(), *artifact = json_object();
    json_t *region = json_object();
    scoped(mem_freep) char *uri = uri_of(finding->file);

    json_put_text(artifact, "uri", uri);
    json_put(physical, "artifactLocation", artifact);
    json_put_int(region, "startLine", finding->line == 0 ? 1 : finding->line);
    if (finding->column > 0)
        json_put_int(region, "startColumn", finding->column);
    json_put(physical, "region", region);
    json_put(location, "physicalLocation", physical);
    return location;
}

json_t *lint_to_sarif(const struct lint_report *report, const char *version)
{
    json_t *sarif = json_object(), *runs = json_array(), *run = json_object();
    json_t *tool = json_object(), *driver = json_object(), *results = json_array();

    json_put_text(driver, "name", "closedbook");
    json_put_text(driver, "version", version);
    json_put(driver, "rules", sarif_rules());
    json_put(tool, "driver", driver);
    for (size_t i = 0; i < report->count; i++) {
        const struct lint_finding *finding = &report->findings[i];
        json_t *result = json_object(), *locations = json_array();

        json_put_text(result, "ruleId", finding->rule->id);
        json_put_text(result, "level", level_name(finding));
        json_put(result, "message", message_of(finding->message));
        json_push(locations, sarif_location(finding));
        json_put(result, "locations", locations);
        json_push(results, result);
    }
    json_put(run, "tool", tool);
    json_put_text(run, "columnKind", "unicodeCodePoints");
    json_put(run, "results", results);
    json_push(runs, run);
    json_put_text(sarif, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_put_text(sarif, "version", "2.1.0");
    json_put(sarif, "runs", runs);
    return sarif;
}

void lint_format_rules(struct buf *buf)
{
    for (size_t i = 0; lint_rule_at(i) != NULL; i++) {
        const struct lint_rule *rule = lint_rule_at(i);

        buf_format(buf, "%s\t%s\t%s\t%s\t%s\t%s%s\n", rule->id, rule->name,
                   lint_severity_name(rule->severity), rule->what, rule->why, rule->fix,
                   rule->can_fix ? " (`--fix` does it)" : "");
    }
}
