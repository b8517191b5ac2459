#pragma once
/*
 * preflight: the fast part of the attack battery, once for each distinct cell of a run, before the
 * first agent starts in it.
 *
 * Cells are the same when their driver, trees, texts and limits are; what lies in the workspace
 * does not matter to what a cell keeps out. Depends on: run/probe, run/staged.
 */

#include "run/session.h"
#include "run/staged.h"

struct preflight; /* opaque */

struct preflight *preflight_new(void);
void preflight_free(struct preflight *preflight);

/*
 * Attacks a twin of the staged task's cell unless one like it was attacked before. Sets
 * staged->preflight to the digest of the result, or staged->error when something was found or could
 * not be tried: then no trial of it starts.
 */
void preflight_check(struct preflight *preflight, struct session *session, struct staged *staged)
    nonnull(1, 2, 3);
