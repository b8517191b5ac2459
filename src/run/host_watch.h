#pragma once
/*
 * host_watch: whether the host is the same after a run: run --verify-host.
 *
 * Looked at are the suites of the tasks, the sources of their workspaces, their agents' scripts,
 * and the folders above the run's directory. Not looked at: the run's directory, other runs, and
 * the store. Depends on: run/session, run/run_plan, evidence, record.
 */

#include "evidence/host.h"
#include "run/run_plan.h"
#include "run/session.h"

struct host_watch; /* opaque */

/*
 * Takes the first snapshot. run_path is absolute, and there is a directory now; all_contents:
 * digests of all files.
 */
must_check int host_watch_start(const struct session *session, const struct run_plan *plan,
                                const char *run_path, bool all_contents, struct host_watch **ret,
                                struct error **err) nonnull(1, 2, 3, 5);
/* Takes the second one and writes RUN/host.json, with what an earlier part of the run found. */
must_check int host_watch_end(const struct host_watch *watch, int run_fd, struct error **err)
    nonnull(1);
void host_watch_free(struct host_watch *watch);
void host_watch_freep(struct host_watch **watch) nonnull(1);
