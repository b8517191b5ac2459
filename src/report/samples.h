#pragma once
/*
 * samples: trials of every kind, for the tests of report/.
 */

#include "record/run_dir.h"

/* Appends a trial of the task with one criterion that passed; the caller changes it. */
struct trial_record *samples_add(struct run_trials *trials, const char *task_id,
                                 enum trial_status status) nonnull(1, 2);
/* Replaces an owned text. */
void samples_set(char **text, const char *value) nonnull(1, 2);
/* Passed, failed with two criteria, errored, timed out, compromised, skipped. */
struct run_trials samples_every_kind(void);
/* One trial whose every text is text. */
struct run_trials samples_hostile(const char *text) nonnull(1);
