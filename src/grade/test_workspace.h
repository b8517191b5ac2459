#pragma once
/*
 * test_workspace: a folder and a table of commands as the workspace of criteria under test.
 */

#include "base/error.h"
#include "grade/grade.h"

/* Make and remove the folder; for cmocka's group fixtures. */
int workspace_setup(void **state);
int workspace_teardown(void **state);

/* The folder, or a failing system for the path "broken" and the command "broken". */
struct grade_workspace test_workspace(void);

/* One criterion evaluated. */
struct judged {
    struct verdict verdict;
    struct error *err;
};
void judged_done(struct judged *judged);

/* Evaluates one criterion of the kind with parameters given as JSON, and no events. */
int try_judge(enum criterion_kind kind, const char *params, struct judged *ret);
/* The same, which must not fail. */
void judge(enum criterion_kind kind, const char *params, struct judged *ret);
/* What grade_check() says of it, "/place: message\n" for each, owned; NULL when it is fine. */
char *load_complaint(enum criterion_kind kind, const char *params);

/* What the last command of the workspace was given. */
extern uint64_t test_timeout_ms;
extern struct grade_command test_last_command; /* its texts may be gone */

/* JSON that must be right. New reference. */
json_t *test_json(const char *text);
