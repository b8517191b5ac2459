#pragma once
/*
 * oracle: the reference solution played as if it were an agent, in a harness cell.
 *
 * $REFERENCE_DIR/solve.sh when there is one, else the reference copied over the workspace. A step
 * of run/, not an adapter: it sees the private half, so its trial is UNPROTECTED and no
 * measurement.
 */

#include "run/trial.h"

/* Runs it; *ret_cell is the ended cell with the workspace. ERROR_TASK without a reference or when
 * it fails. */
must_check int oracle_run(const struct trial_job *job, struct trial_record *record,
                          const struct cell *before, struct cell **ret_cell, struct error **err)
    nonnull(1, 2, 3);
