#pragma once
/*
 * shell_text: a shell's command line as the words it means, for patterns that know nothing of
 * quotes.
 *
 * Words are split and quotes resolved as Python's shlex.split does, except that a backslash before
 * a newline continues the line as in a shell. A wrapper ("bash -lc '...'", also of sh, dash and
 * zsh) is taken off once. Depends on: base.
 */

#include "base/base.h"

/* The words joined by single spaces, owned; NULL when a quote is not closed or there is no word. */
char *shell_normal(const char *text) nonnull(1);
