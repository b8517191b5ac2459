#pragma once
/*
 * decoy: a private half that is not one: a folder on the host with a random secret in every form in
 * which grading material lies about, and a process that holds the secret. What an attack finds of
 * it in a cell, it would have found of the real one.
 *
 * Depends on: base, evidence/attack.h.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"

struct decoy {
    char *path;   /* the folder, absolute; owned */
    char *secret; /* hint and digits; owned */
    char *hint;   /* owned */
    struct sha256 digest;
    int secret_fd;      /* a sealed file of it; -1: none */
    int stand_pidfd;    /* the stand-in on the host; -1: none */
    int stand_input;    /* it ends when this is closed */
    struct buf targets; /* lines of attack.h */
};

/* Makes the folder below /tmp (or $TMPDIR) and starts the stand-in from the probe program. */
must_check int decoy_make(const char *probe_program, struct decoy *ret, struct error **err)
    nonnull(1, 2);
/* Ends the stand-in, removes the folder. */
void decoy_done(struct decoy *decoy) nonnull(1);

/* A path in the folder; owned. */
char *decoy_path(const struct decoy *decoy, const char *name) malloc_like nonnull(1, 2);
/* Adds a target line. */
void decoy_target(struct decoy *decoy, const char *where, const char *kind, const char *value)
    nonnull(1, 2, 3, 4);
void decoy_target_number(struct decoy *decoy, const char *kind, uint64_t value) nonnull(1, 2);
/* A word by which the run would be known, as its digest; common words are left out. */
void decoy_word(struct decoy *decoy, const char *word) nonnull(1);
/*
 * Reads a stand-in's lines until it is ready, at most 10 s, and adds them as targets of `where`.
 */
must_check int decoy_hear(struct decoy *decoy, int fd, const char *where, struct error **err)
    nonnull(1, 3);
/* True when a file was made in the marker's folder by the attack of that id. */
bool decoy_is_marked(const struct decoy *decoy, const char *id) nonnull(1, 2);
