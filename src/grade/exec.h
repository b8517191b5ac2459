#pragma once
/*
 * exec: the protocol closedbook/criterion/1, spoken with a criterion that is a program of its own.
 *
 * PROGRAM --describe prints a description; PROGRAM alone reads a request and prints an answer, each
 * one JSON object (docs/formats/criterion.md). What the program prints is not trusted to be any of
 * this. Depends on: base, grade.h, jsonschema. Limits: those below.
 */

#include "grade/grade.h"
#include "grade/jsonschema.h"

#define EXEC_PROTOCOL "closedbook/criterion/1"
#define EXEC_DESCRIBE_TIMEOUT_MS 10000u
#define EXEC_DESCRIPTION_BYTES_MAX ((size_t)1 << 20)
#define EXEC_ANSWER_BYTES_MAX ((size_t)4 << 20)
#define EXEC_METRICS_MAX 100
#define EXEC_PROGRAMS_MAX 50

/* What a program says of itself. */
struct exec_description {
    json_t *document;
    struct schema *params;    /* of the parameters */
    struct str_list programs; /* that must be on PATH */
    bool reference;           /* it cannot do without one */
};
void exec_description_done(struct exec_description *description) nonnull(1);
/* ERROR_TASK says what is wrong with it. */
must_check int exec_description_parse(const char *text, size_t size, struct exec_description *ret,
                                      struct error **err) nonnull(1, 3);
/* Parameters against what was described. ERROR_TASK lists what does not fit. */
must_check int exec_params_check(const struct exec_description *description, json_t *params,
                                 struct error **err) nonnull(1);

/* Borrowed. */
struct exec_request {
    const char *protocol;                             /* EXEC_PROTOCOL */
    const json_t *params;                             /* an object; NULL: empty */
    const char *workspace, *task_dir, *reference_dir; /* in the cell; the last may be NULL */
    const char *final_message;
    const json_t *dialog;           /* a list; NULL: empty */
    const struct event_log *events; /* NULL: none */
    bool unknown_member;            /* with one that no version has, to see that it is ignored */
};
void exec_request_write(struct buf *buf, const struct exec_request *request) nonnull(1, 2);

/* Sets score, details, metrics and labels. ERROR_TASK says what is wrong with it. */
must_check int exec_answer_parse(const char *text, size_t size, struct verdict *ret,
                                 struct error **err) nonnull(1, 3);

/* Appends the word as a shell reads it, in quotes. */
void exec_quote(struct buf *buf, const char *word) nonnull(1, 2);
/*
 * The shell command that starts a program: path is relative to $TASK_DIR of its cell, arguments
 * (NULL: none) is put behind it as it is. Owned.
 */
char *exec_command(const char *path, const char *arguments) nonnull(1);
