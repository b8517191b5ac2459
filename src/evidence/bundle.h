#pragma once
/*
 * bundle: a run as one file for others, without what graders read and said.
 *
 * A tar archive of the project's own form (collect/tar.h) with the files of a run directory, and
 * bundle.json, which names those that were left out: outputs of graders and steps, judges'
 * transcripts, logs of recorded programs. trial.json has the digests of all of them, so that an
 * audit of the bundle proves as much of them as of the rest. Depends on: base, collect.
 */

#include "base/error.h"
#include "base/json.h"

#define BUNDLE_SCHEMA "closedbook/bundle/1"
#define BUNDLE_FILE "bundle.json"
#define BUNDLE_FILES_MAX ((size_t)1000000)

struct bundle {
    uint64_t files, bytes, withheld;
};

/* Of the run's directory; everything: nothing is left out. to_fd is an empty file. */
must_check int bundle_write(int run_dir_fd, bool everything, int to_fd, struct bundle *ret,
                            struct error **err) nonnull(4);
/* The paths that a bundle's bundle.json names, {path: true}; new reference; NULL: it is no bundle.
 * What is no list of ours is ERROR_USER. */
must_check int bundle_withheld(int run_dir_fd, json_t **ret, struct error **err) nonnull(2);
