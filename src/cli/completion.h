#pragma once
/*
 * completion: scripts for shells that complete closedbook's command line, made from the tables of
 * commands and options.
 */

#include "base/buf.h"

/* Names of the shells that completion_write() knows, NULL-terminated. */
extern const char *const completion_shells[];
/* Appends the script for one of them. */
void completion_write(struct buf *buf, const char *shell) nonnull(1, 2);
