#pragma once
/*
 * identity: who closedbook is after it gave its privilege up.
 *
 * Depends on: base.
 */

#include <sys/types.h>

#include "base/error.h"

/* The id that a closedbook started by plain root becomes; refused if an account has it. */
#define IDENTITY_FIXED_ID 0x6ffffff0u

struct identity {
    bool root; /* the process started as root and has to become someone else */
    uid_t uid; /* what it becomes, or what it is */
    gid_t gid;
};

/*
 * SUDO_UID:SUDO_GID when both are set and not 0, else IDENTITY_FIXED_ID; the caller's own ids when
 * it is not root. ERROR_USER when SUDO_* is no number.
 */
must_check int identity_find(struct identity *ret, struct error **err) nonnull(1);
/*
 * ERROR_SYSTEM when the identity is the fixed id and an account or group has it: to be asked before
 * anything is given to that id. Takes milliseconds: name services are loaded.
 */
must_check int identity_check(const struct identity *identity, struct error **err) nonnull(1);

/* Keeps the ids and, of the capabilities, only those (bits); no_new_privs. For helpers with rights.
 */
must_check int identity_keep(uint64_t caps, struct error **err);

/*
 * Becomes uid:gid for good: groups cleared, all three ids, every capability but those in keep_caps
 * (bits; permitted, effective and nothing else) dropped, bounding set emptied where allowed,
 * no_new_privs, dumpable off. Verifies that root cannot be had again.
 */
must_check int identity_become(uid_t uid, gid_t gid, uint64_t keep_caps, struct error **err);
