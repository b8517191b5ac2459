#pragma once
/* What the parts of the audit have in common. */

#include "base/hash.h"
#include "evidence/audit.h"

/* While a run is looked at. */
struct auditing {
    int run_fd;
    const struct signing_public *key;
    struct audit *audit;
    json_t *records;  /* by trial id: the digest of trial.json, as the journal says last */
    json_t *seen;     /* by trial id: true, when its directory was found */
    json_t *withheld; /* paths that a bundle leaves out; NULL: it is none */
};

void audit_find(struct auditing *auditing, const char *place, const char *fmt, ...)
    printf_like(3, 4);
/* The digest of a regular file, in hex, owned; NULL: there is none. Its bytes are counted. */
must_check int audit_digest(struct auditing *auditing, int dir_fd, const char *name, char **ret,
                            struct error **err) nonnull(1, 3, 4);
must_check int audit_journal(struct auditing *auditing, struct error **err) nonnull(1);
must_check int audit_trials(struct auditing *auditing, struct error **err) nonnull(1);
