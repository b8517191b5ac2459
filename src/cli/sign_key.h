#pragma once
/*
 * sign_key: the operator's key, for commands that seal a run. It is read twice: before anything
 * begins, so that a wrong one is said then, and for the seal itself; between the two no process of
 * ours has it.
 */

#include "record/run_dir.h"
#include "record/signing.h"
#include "run/session.h"

/* The row of a command that seals; its values have `const char *sign_key`. */
#define SIGN_KEY_ROW(type)                                                                         \
    {                                                                                              \
        .kind = OPTION_TEXT, .long_name = "sign-key", .value = "FILE",                             \
        .offset = offsetof(type, sign_key),                                                        \
        .help = "sign the run's records with this key, as keygen makes it"                         \
    }

/* path NULL: fine, there is none. */
must_check int sign_key_check(const struct session *session, const char *path, struct error **err)
    nonnull(1);
/* The last line of the run's journal, signed when there is a key. */
must_check int sign_key_seal(const struct session *session, const char *path, struct run_dir *run,
                             struct error **err) nonnull(1, 3);
