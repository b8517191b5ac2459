#pragma once
/*
 * audit: a run directory against its own records, by whoever has it, without cells or privilege.
 *
 * Checked are: each line of the journal is as we write it and goes on from the one before; the
 * first promises the plan that is there; the last seals run.json, plan.json and host.json, with a
 * signature where there is one; each finished trial of the journal is there, its trial.json as it
 * was then, and every file of it as trial.json says, and none beside; a trial's score, verdict and
 * status follow from its criteria; an agent that ran in a cell has a receipt of its end. Nothing in
 * the directory is trusted; it is read by descriptor, links are not followed.
 * Depends on: base, record.
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "record/signing.h"

#define AUDIT_FINDINGS_MAX 1000

struct audit_finding {
    char *place; /* a path below the run's directory, with ":LINE" in the journal */
    char *what;  /* what was found, and what was expected */
};

struct audit {
    struct audit_finding *items;
    size_t count, dropped;
    uint64_t lines, trials, files, bytes;
    uint64_t withheld;       /* files of a bundle that were left out; their digests are there */
    struct str_list derived; /* files that can be made anew from the others: not looked at */
    bool has_seal, has_signature; /* of the last line */
    struct signing_public signer; /* counts with has_signature */
};
void audit_done(struct audit *audit) nonnull(1);

/*
 * Fills *ret; what does not fit is a finding. An error only when something cannot be read. key: who
 * must have signed; NULL: nobody in particular.
 */
must_check int audit_run(int run_dir_fd, const struct signing_public *key, struct audit *ret,
                         struct error **err) nonnull(3);
json_t *audit_to_json(const struct audit *audit) nonnull(1);
