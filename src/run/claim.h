#pragma once
/*
 * claim: output places that need the starter's rights, made after those rights were given up.
 *
 * Started by root, closedbook may be asked to write where only root may (a run directory below
 * root's own folder). A small process forked before the drop holds the paths that the command line
 * named, nothing else; asked for number i it makes that place, gives it to the new identity and
 * hands the descriptor over. Nothing exists before it is asked for, so a run that never starts
 * leaves nothing. Depends on: base, run/identity.
 */

#include "base/error.h"
#include "run/identity.h"

#define CLAIMS_MAX 8

enum claim_kind {
    CLAIM_DIR,  /* made with its parents, 0700; an existing one is opened */
    CLAIM_FILE, /* made or truncated, 0644 */
};

struct claim_place {
    enum claim_kind kind;
    const char *path;
};

struct claim; /* opaque */

must_check int claim_start(const struct identity *identity, const struct claim_place *places,
                           size_t count, struct claim **ret, struct error **err) nonnull(1, 4);
/* Makes place number i; *ret_fd is the caller's. ERROR_SYSTEM with the path. */
must_check int claim_make(struct claim *claim, size_t i, int *ret_fd, struct error **err)
    nonnull(1, 3);
void claim_free(struct claim *claim);
void claim_freep(struct claim **claim);
