#pragma once
/*
 * html_internal: the page's parts.
 */

#include "report/html.h"
#include "report/trial_text.h"

/* Raw text in running text or an attribute; NULL is nothing. */
void html_text(struct buf *buf, const char *raw) nonnull(1);
/* Raw text as a block, cut in the middle past HTML_BLOCK_BYTES_MAX; empty or NULL: nothing. */
void html_block(struct buf *buf, const char *raw, const char *class) nonnull(1, 3);

/* "good", "bad", "warn", "none": classes of the style. */
const char *html_look(enum trial_look look);

/* Tables and pictures of rates; a map of tasks and variants with a square a trial. */
void html_figures(struct buf *buf, const struct run_figures *figures) nonnull(1, 2);
void html_map(struct buf *buf, const struct run_trials *trials, const struct run_figures *figures)
    nonnull(1, 2, 3);
/* The i-th trial, with all that is known of it. */
void html_trial(struct buf *buf, const struct run_trials *trials, size_t i,
                const struct trial_naming *naming, const struct html_run *run) nonnull(1, 2, 4, 5);
