#pragma once
/*
 * regrade: what must hold before recorded trials are graded again.
 *
 * A verdict is only comparable with the one before it when both had the same reference. So another
 * reference is refused before anything is graded, unless the user means it; then the record names
 * the one that it replaced (`graded_with.instead_of`). Depends on: run/session, record, stage,
 * task.
 */

#include "record/record.h"
#include "run/session.h"
#include "task/task.h"

/* Statuses that grading may set or change (of a TIMEOUT only the criteria); the rest are execution
 * facts. */
bool regrade_may_change(enum trial_status status);

/*
 * What the grading before said and what its graders printed stays: previous/NNN.json is trial.json
 * as it is now, previous/NNN/ a copy of grade/. ERROR_LIMIT after REGRADE_KEPT_MAX of them.
 */
#define REGRADE_KEPT_MAX 1000
must_check int regrade_keep(int trial_dir_fd, struct error **err);

/* The references of a run's tasks, looked at once each as long as equal tasks come in a row. */
struct regrade_references {
    struct session *session; /* borrowed; its store is open */
    const struct task *task; /* that `now` is of; NULL: none yet */
    bool has_now;            /* false: no grader of that task reads any of it */
    char *now;               /* "sha256:..."; NULL: the task has no reference */
    size_t changed;          /* trials that were graded with another one */
    char *first;             /* says how the first of them differs */
};

/* Counts the trial when it was graded with another reference than its task has now. */
must_check int regrade_references_add(struct regrade_references *references,
                                      const struct task *task, const char *trial_path,
                                      const struct trial_record *record, struct error **err)
    nonnull(1, 2, 3, 4);
/* ERROR_USER with the difference when any trial was counted. */
must_check int regrade_references_check(const struct regrade_references *references,
                                        struct error **err) nonnull(1);
void regrade_references_done(struct regrade_references *references) nonnull(1);
