#pragma once
/*
 * print: text to the terminal, for commands.
 */

#include "base/buf.h"
#include "base/error.h"

/* Writes the text to stdout, as it is: what came from outside is quoted by who made it. */
must_check int print_out(const struct buf *text, struct error **err) nonnull(1);
/* "closedbook: MESSAGE" on stderr, quoted. */
void print_error(const struct error *err) nonnull(1);
