#pragma once
/*
 * mocks_sealed: the programs of mock_path_dirs of a task with `mocks: sealed`, in a cell beside the
 * agent's.
 *
 * That cell has what the agent's has of the system, the agent's live workspace, read-only, and the
 * sealed folders; the agent's has a stand-in and a socket. It is started when the agent's is live
 * and before anything runs there, and ended right after. What its programs wrote in their folders
 * is mocks/kept.tar of the trial's directory, with the paths of the workspace. Depends on: base,
 * broker, cell, task.
 */

#include "run/trial.h"

bool mocks_are_sealed(const struct trial_job *job) nonnull(1);
/* *ret is the cell; NULL when the task seals nothing. */
must_check int mocks_sealed_open(const struct trial_job *job, struct cell *agent, struct cell **ret,
                                 struct error **err) nonnull(1, 2, 3);
/* The agent's cell has ended. */
must_check int mocks_sealed_close(const struct trial_job *job, struct cell *cell,
                                  struct trial_record *record, struct error **err) nonnull(1, 3);
/* What was kept, for the trial's graders; -1: nothing. */
int mocks_sealed_kept(int dir_fd);
