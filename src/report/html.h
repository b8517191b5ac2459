#pragma once
/*
 * html: a run as one page that works from disk: nothing is loaded from elsewhere, and what is not
 * of the page itself cannot run (a Content-Security-Policy with the digests of its own style and
 * script).
 *
 * Every byte of a task, agent or file name goes through term_quote() and then through the escaping
 * of XML. Depends on: base, record, report/figures.
 */

#include "report/figures.h"
#include "report/report.h"

#define HTML_BLOCK_BYTES_MAX ((size_t)16 << 10) /* of one text of a criterion */
#define HTML_PAGE_BYTES_MAX ((size_t)32 << 20)  /* past it trials have no details any more */

struct html_run {
    const char *run_id, *version, *started; /* as run.json has them; NULL: not known */
    const char *run_path;                   /* as the user wrote it, for command lines */
};

void report_html(struct buf *buf, const struct run_trials *trials, const struct html_run *run)
    nonnull(1, 2, 3);
