#pragma once
/*
 * error: what went wrong, whose fault it is, and the chain of contexts up to the command.
 *
 * A function that can fail returns 0 or -enum error_code and takes `struct error **err` last.
 * err may be NULL; otherwise *err is NULL on entry and set exactly once, on failure only.
 * The message reads outermost context first, the cause last, without capital or full stop.
 */

#include "base/base.h"

/* Whose fault it is. Commands turn it into the exit status; results keep it. */
enum error_code {
    ERROR_USER = 1, /* the command line or the configuration */
    ERROR_TASK,     /* the task's files */
    ERROR_AGENT,    /* what the agent under test did */
    ERROR_SYSTEM,   /* the machine: a system call, a missing program, a full disk */
    ERROR_LIMIT,    /* a limit of ours was reached */
    ERROR_BUG,      /* our own */
};

struct error;

/* Each returns -code, so that `return error_set(...)` is the usual line. */
int error_set(struct error **err, enum error_code code, const char *fmt, ...) printf_like(3, 4);

/*
 * The same for a mistake in a text of the author's: puts "offset N: " before the message and keeps
 * the offset (in bytes) for error_offset(), so that a caret can be shown.
 */
int error_set_at(struct error **err, enum error_code code, size_t offset, const char *fmt, ...)
    printf_like(4, 5);

/* ERROR_SYSTEM with ": strerror(errno_value)" appended. */
int error_errno(struct error **err, int errno_value, const char *fmt, ...) printf_like(3, 4);

/* The same under another code: what failed is a system call, whose fault it is someone else's. */
int error_errno_as(struct error **err, enum error_code code, int errno_value, const char *fmt, ...)
    printf_like(4, 5);

/* Puts "context: " before the message of an error that is already set. Returns r. */
int error_wrap(struct error **err, int r, const char *fmt, ...) printf_like(3, 4);

/* The whole chain as one line; the error owns it. */
const char *error_message(const struct error *err) nonnull(1);
enum error_code error_code_of(const struct error *err) nonnull(1);
/* The errno of an error_errno() at the root, or 0. */
int error_errno_of(const struct error *err) nonnull(1);
/* The offset of an error_set_at() at the root, or ERROR_NO_OFFSET. */
#define ERROR_NO_OFFSET SIZE_MAX
size_t error_offset(const struct error *err) nonnull(1);
/* "user", "task", "agent", "system", "limit", "bug". */
const char *error_code_name(enum error_code code);
/* Exit status of the program for an error: user and task 2, agent 1, the rest 3. */
int error_exit_status(enum error_code code);

void error_free(struct error *err);
void error_freep(struct error **err);
