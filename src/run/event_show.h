#pragma once
/*
 * event_show: events on standard error as they happen, one line each: `run --stream`.
 *
 * Written by the trial's own process, a line at a time in one write, so that lines of trials that
 * run beside each other are whole. What the agent wrote is quoted, and cut. Depends on: base,
 * agent/events.
 */

#include "agent/events.h"

#define EVENT_SHOW_BYTES_MAX ((size_t)300) /* of a text, before it is quoted */

struct event_show {
    const char *trial;           /* borrowed; NULL: nothing is shown */
    const struct event_log *log; /* borrowed */
    size_t shown;                /* events of it */
};

/* Those that are new. */
void event_show_new(struct event_show *show) nonnull(1);
/* A line: "[trial] 1.234s tool_call Bash {"command":"ls"}\n". */
void event_show_line(const char *trial, const struct event *event, struct buf *ret)
    nonnull(1, 2, 3);
