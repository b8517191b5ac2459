#pragma once
/*
 * mocks: programs that stand in the way of others in the agent's cell: an author's own, first on
 * PATH, and recorded ones, which the broker answers for.
 *
 * Of a recorded program the cell has a file of one line, by which a stand-in without secrets is
 * started, and a socket. What is answered and what was called is with the broker; the log is
 * mocks/calls.jsonl of the trial's directory, and the graders' cells get it at MOCKS_LOG.
 * Depends on: base, broker, cell, task.
 */

#include "run/trial.h"
#include "task/task_public.h"

#define MOCKS_LOG "cli_mocks/calls.jsonl"

/* Puts the folder first on every PATH of env, "NAME=value". */
void mocks_put_first(struct str_list *env, const char *dir) nonnull(1, 2);
/* All that the task has, before everything that is on PATH. */
void mocks_on_path(const struct task_public *task, struct str_list *env) nonnull(1, 2);

/* Whether the trial has recorded programs that are answered for. */
bool mocks_are_recorded(const struct trial_job *job) nonnull(1);
/*
 * Adds what stands in for recorded and sealed programs. ERROR_SYSTEM without namespaces.
 */
must_check int mocks_fill_cell(const struct trial_job *job, struct cell_spec *spec,
                               struct error **err) nonnull(1, 2);
/* Makes a socket at the path in a live cell, where its programs reach it; *ret listens outside. */
must_check int mocks_listen(struct cell *cell, const char *path, int *ret, struct error **err)
    nonnull(1, 2, 3);
/* The same for a port of TCP on the cell's own loopback. */
must_check int mocks_listen_port(struct cell *cell, const char *port, int *ret, struct error **err)
    nonnull(1, 2, 3);
/* In a live cell that runs nothing yet: from here on calls are answered and logged. */
must_check int mocks_open(const struct trial_job *job, struct cell *cell, struct error **err)
    nonnull(1, 2);
/* When the cell has ended: what was called goes into the record. */
must_check int mocks_close(const struct trial_job *job, struct trial_record *record,
                           struct error **err) nonnull(1, 2);
/* Notes logs that the agent wrote itself, from changes.json: they count for nothing. */
must_check int mocks_note_forged(const struct trial_job *job, struct trial_record *record,
                                 struct error **err) nonnull(1, 2);
/* The log of a trial's directory, for its graders; -1: there is none. */
int mocks_log_open(int dir_fd);
