#include "report/html.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/term.h"
#include "report/html_internal.h"
#include "report/report_css.h"
#include "report/report_js.h"
#include "report/suites.h"
#include "report/xml.h"

static const char *const looks[LOOK_COUNT] = {"good", "bad", "warn", "none"};

const char *html_look(enum trial_look look)
{
    return looks[look];
}

void html_text(struct buf *buf, const char *raw)
{
    if (raw != NULL)
        xml_attribute(buf, raw);
}

void html_block(struct buf *buf, const char *raw, const char *class)
{
    size_t size = raw == NULL ? 0 : strlen(raw);
    size_t half = HTML_BLOCK_BYTES_MAX / 2;

    if (size == 0)
        return;
    buf_format(buf, "<pre class=\"%s\">", class);
    if (size <= HTML_BLOCK_BYTES_MAX) {
        xml_content(buf, raw, size);
    } else {
        xml_content(buf, raw, half);
        buf_format(buf, "\n... %zu bytes left out ...\n", size - 2 * half);
        xml_content(buf, raw + size - half, half);
    }
    buf_text_append(buf, "</pre>\n");
}

/* --- the head ----------------------------------------------------------------------------------
 */

/* The policy names what it allows by digest, in base64 (CSP Level 3, section 2.3.1). */
static void digest_base64(struct buf *buf, const char *text)
{
    struct sha256 digest = sha256_of(text, strlen(text));

    buf_base64(buf, digest.bytes, SHA256_BYTES);
}

static void head(struct buf *buf, const struct html_run *run)
{
    buf_text_append(buf, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                         "'none'; style-src 'sha256-");
    digest_base64(buf, report_css);
    buf_text_append(buf, "'; script-src 'sha256-");
    digest_base64(buf, report_js);
    buf_text_append(buf,
                    "'; base-uri 'none'; form-action 'none'\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                    "<title>closedbook ");
    html_text(buf, run->run_id);
    buf_format(buf, "</title>\n<style>%s</style>\n</head>\n<body>\n", report_css);
}

static void tile(struct buf *buf, const char *class, const char *value, const char *what)
{
    buf_format(buf, "<div class=\"tile\"><b class=\"%s\">%s</b>%s</div>\n", class, value, what);
}

static void count_tile(struct buf *buf, const char *class, size_t count, const char *what)
{
    scoped(mem_freep) char *value = str_format("%zu", count);

    if (count > 0)
        tile(buf, class, value, what);
}

static void money_tile(struct buf *buf, const struct run_figures *figures)
{
    double cost = 0;
    size_t priced = 0;

    for (size_t i = 0; i < figures->count; i++) {
        cost += figures->variants[i].cost_usd;
        priced += figures->variants[i].priced;
    }
    if (priced == 0)
        return;
    scoped(mem_freep) char *value = str_format("$%.4f", cost);
    scoped(mem_freep) char *what = str_format("agents' models, %zu trials", priced);

    tile(buf, "", value, what);
}

static void tiles(struct buf *buf, const struct run_trials *trials,
                  const struct run_figures *figures)
{
    struct report_totals totals = report_totals(trials);
    scoped(mem_freep) char *rate = totals.decided == 0
                                       ? str_dup("none")
                                       : str_format("%.1f %%", 100 * report_pass_rate(&totals));
    scoped(mem_freep) char *of = str_format("%zu of %zu passed", totals.passed, totals.decided);
    scoped(buf_done) struct buf elapsed = {0};

    duration_text(&elapsed, (double)totals.elapsed_ms);
    buf_text_append(buf, "<div class=\"tiles\">\n");
    tile(buf, totals.decided > 0 && totals.passed == totals.decided ? "good" : "", rate, of);
    count_tile(buf, "bad", totals.decided - totals.passed, "not passed");
    count_tile(buf, "warn", totals.error, "in error");
    count_tile(buf, "warn", totals.not_graded, "not graded");
    count_tile(buf, "none", totals.skipped, "skipped");
    count_tile(buf, "warn", trials->unfinished, "unfinished");
    count_tile(buf, "warn", totals.unstable, "unstable");
    count_tile(buf, "bad", totals.compromised, "COMPROMISED");
    count_tile(buf, "warn", totals.suspect, "SUSPECT");
    money_tile(buf, figures);
    tile(buf, "", buf_text(&elapsed), "from first to last");
    buf_text_append(buf, "</div>\n");
}

static void alarms(struct buf *buf, const struct run_trials *trials)
{
    scoped(buf_done) struct buf unprotected = {0};
    scoped(buf_done) struct buf host = {0};

    unprotected_text(&unprotected, trials);
    if (unprotected.size_bytes > 0) {
        buf_text_append(buf, "<p class=\"alarm mild\">");
        html_text(buf, buf_text(&unprotected));
        buf_text_append(buf, "</p>\n");
    }
    if (trials->host.count == 0)
        return;
    host_text(&host, &trials->host);
    buf_text_append(buf, "<div class=\"alarm\">");
    html_text(buf, buf_text(&host));
    buf_text_append(buf, "<ul>\n");
    for (size_t i = 0; i < trials->host.changes.count; i++) {
        buf_text_append(buf, "<li>");
        html_text(buf, trials->host.changes.items[i]);
        buf_text_append(buf, "</li>\n");
    }
    buf_text_append(buf, "</ul></div>\n");
}

/* --- datasets ----------------------------------------------------------------------------------
 */

static void suite_row(struct buf *buf, const struct suite_figures *figures)
{
    const char *metric;
    json_t *value;

    buf_text_append(buf, "<tr><td>");
    html_text(buf, figures->variant_id);
    buf_text_append(buf, "</td><td>");
    html_text(buf, figures->task_id);
    buf_format(buf, "</td><td>%zu ", figures->criterion + 1);
    html_text(buf, figures->description);
    buf_format(buf, "</td><td class=\"n\">%zu of %zu</td><td>", figures->measured, figures->rows);
    json_object_foreach (figures->metrics, metric, value) {
        html_text(buf, metric);
        buf_format(buf, " %.4g<br>", json_number_value(value));
    }
    buf_text_append(buf, "</td><td>");
    for (size_t i = 0; i < figures->check_count; i++) {
        scoped(mem_freep) char *check = suite_check_text(&figures->checks[i]);

        buf_format(buf, "<span class=\"%s\">%s ", figures->checks[i].passed ? "good" : "bad",
                   figures->checks[i].passed ? "passed:" : "missed:");
        html_text(buf, check);
        buf_text_append(buf, "</span><br>");
    }
    buf_text_append(buf, "</td></tr>\n");
}

static void datasets(struct buf *buf, const struct run_trials *trials)
{
    scoped(suites_done) struct suites suites = {0};

    suites_make(trials, &suites);
    if (suites.count == 0)
        return;
    buf_text_append(buf, "<h2>Datasets</h2>\n<div class=\"scroll\"><table>\n<tr><th>variant</th>"
                         "<th>task</th><th>criterion</th><th class=\"n\">rows</th><th>figures</th>"
                         "<th>thresholds</th></tr>\n");
    for (size_t i = 0; i < suites.count; i++)
        suite_row(buf, &suites.items[i]);
    buf_text_append(buf, "</table></div>\n");
}

/* --- trials ------------------------------------------------------------------------------------
 */

static void tools(struct buf *buf)
{
    static const char *const names[LOOK_COUNT] = {"passed", "failed", "errors", "others"};

    buf_text_append(buf, "<h2>Trials</h2>\n<div class=\"tools\" hidden>\n<input type=\"search\" "
                         "id=\"search\" placeholder=\"words in name, status or output\" "
                         "aria-label=\"search trials\">\n");
    for (size_t i = 0; i < LOOK_COUNT; i++)
        buf_format(buf, "<button data-look=\"%s\" aria-pressed=\"false\">%s</button>\n", looks[i],
                   names[i]);
    buf_text_append(buf, "<button id=\"open\">open or close all</button>\n"
                         "<span class=\"dim\" id=\"shown\"></span>\n</div>\n");
}

/* What failed first, errors next, then the rest; each in the order of the run. */
static void all_trials(struct buf *buf, const struct run_trials *trials, const struct html_run *run)
{
    const struct trial_naming naming = trial_naming(trials);
    static const enum trial_look order[] = {LOOK_FAILED, LOOK_ERROR, LOOK_PASSED, LOOK_NEUTRAL};

    for (size_t n = 0; n < ARRAY_SIZE(order); n++) {
        for (size_t i = 0; i < trials->count; i++) {
            if (trial_look(&trials->records[i]) == order[n])
                html_trial(buf, trials, i, &naming, run);
        }
    }
}

void report_html(struct buf *buf, const struct run_trials *trials, const struct html_run *run)
{
    scoped(figures_done) struct run_figures figures = {0};

    figures_make(trials, &figures_defaults, &figures);
    head(buf, run);
    buf_text_append(buf, "<h1>closedbook run ");
    html_text(buf, run->run_id);
    buf_text_append(buf, "</h1>\n<div class=\"facts\">");
    if (run->started != NULL) {
        buf_text_append(buf, "started ");
        html_text(buf, run->started);
    }
    if (run->version != NULL) {
        buf_text_append(buf, ", closedbook ");
        html_text(buf, run->version);
    }
    buf_text_append(buf, "</div>\n");
    tiles(buf, trials, &figures);
    alarms(buf, trials);
    html_figures(buf, &figures);
    html_map(buf, trials, &figures);
    datasets(buf, trials);
    tools(buf);
    all_trials(buf, trials, run);
    buf_format(buf, "<script>%s</script>\n</body>\n</html>\n", report_js);
}
