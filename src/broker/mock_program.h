#pragma once
/*
 * mock_program: what the two halves of closedbook-mock share. Static, libc only.
 *
 * mock_shim.c stands in the agent's cell for a program; mock_serve.c runs sealed programs in the
 * cell beside it. What the latter reads from the former is hostile.
 */

#include <sys/un.h>

#include "base/base.h"

#define CALL_STREAMS 3

/* Says what went wrong, as the program that it stands for, and ends. */
_Noreturn void mock_fail(const char *tool, const char *what, int error);
int mock_socket(void);
struct sockaddr_un mock_address(const char *path) nonnull(1);
int mock_listen(const char *path) nonnull(1);

/*
 * Answers, until it is ended, calls that come over descriptor 3; folders: those of the sealed
 * programs, below CALL_SEALED_DIR, the first that has a program counts.
 */
int mock_serve(char **folders) nonnull(1);
/* Executes such a program; returns when it cannot. */
void mock_run_sealed(const char *tool, char **argv) nonnull(1, 2);
/* Writes to descriptor 3 what lies below CALL_SEALED_DIR and not so in CALL_SEALED_SOURCE. */
int mock_kept(void);
