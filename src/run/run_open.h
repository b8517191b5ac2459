#pragma once
/*
 * run_open: opening what is on disk by a path that only the starter may be able to walk.
 *
 * Depends on: run/session, record.
 */

#include "record/run_dir.h"
#include "run/session.h"

/* The run at path, by way of the opener. */
must_check int session_open_run(const struct session *session, const char *path, bool lock,
                                struct run_dir **ret, struct error **err) nonnull(1, 2, 4);

/* What an operand of `cell`, `show` and `extract` names. */
enum operand_kind { OPERAND_TASK, OPERAND_RUN, OPERAND_TRIAL };
/* A folder with trial.json is a trial, with run.json a run, anything else a task. */
enum operand_kind operand_kind_of(const struct session *session, const char *path) nonnull(1, 2);

/* RUN/trials/VARIANT/TASK/NN (or RUN/VARIANT/TASK/NN) split in the run's path and the trial's path
 * in it. */
struct trial_operand {
    char *run_path;   /* owned */
    char *trial_path; /* "trials/VARIANT/TASK/NN", owned */
};
must_check int trial_operand_parse(const struct session *session, const char *path,
                                   struct trial_operand *ret, struct error **err) nonnull(1, 2, 3);
void trial_operand_done(struct trial_operand *operand) nonnull(1);
/* The run directory that path lies in (for session_options.owner_of, before a session exists);
 * owned. */
char *run_path_of(const char *path) nonnull(1);
