#pragma once
/*
 * shell: what lint makes of a shell command without a parser: quotes, words in the place of a
 * command, variables. It may miss things; what it says should be right.
 *
 * Depends on: base.
 */

#include "base/base.h"

/* "curl", "git clone": stands where a command begins (at the start, behind ; & | ( or a newline).
 */
bool shell_runs(const char *text, const char *words) nonnull(1, 2);
/* From there on, the next place where a command begins; NULL: none. */
const char *shell_next_command(const char *text, const char *from) nonnull(1, 2);
/* What makes it succeed whatever happens ("exit 0", "|| true", "true"); constant. NULL: nothing. */
const char *shell_always_succeeds(const char *text) nonnull(1);
/* The next variable that is read without a default, outside single quotes; *ret is owned. */
bool shell_next_variable(const char *text, size_t *position, char **ret) nonnull(1, 2, 3);
/* The text sets that variable: NAME=, read NAME, for NAME. */
bool shell_sets(const char *text, const char *name) nonnull(1, 2);
