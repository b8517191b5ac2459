#pragma once
/*
 * leak_sight: what is known of a task's private half when its trials begin: the fingerprints that
 * they are watched with, and what the search of all that the agent is given has shown.
 *
 * Made once a task and inherited by fork. A severe leak that nobody allowed is ERROR_TASK: no trial
 * begins. Depends on: run/leak_scan.
 */

#include "run/leak_scan.h"

struct leak_sight {
    struct fingerprint_index *index; /* NULL: nobody looks */
    const struct task *task;
    struct leak_view given;   /* what the search before the trials has shown */
    struct str_list left_out; /* what was too large to be looked for, or at */
    struct str_list allowed;  /* of each of them: why it is allowed; "": it is not */
    int unpack_fd;            /* closedbook-unpack; -1: archives stay closed */
    bool has_unpack;
};

/* allowed_ids: "ID=REASON"; NULL: none. Beside those the task's own leak_ok counts. */
must_check int leak_sight_make(const struct leak_scan *scan, const struct str_list *allowed_ids,
                               struct leak_sight *ret, struct error **err) nonnull(1, 3);
void leak_sight_done(struct leak_sight *sight) nonnull(1);
/* Why what was found is allowed; NULL: it is not. The lists own it. */
const char *leak_sight_allows(const struct leak_sight *sight, const struct leak *leak)
    nonnull(1, 2);
/* As leaks_to_json(), each finding with "allowed": the reason or null; new reference. */
json_t *leak_sight_to_json(const struct leak_sight *sight) nonnull(1);
