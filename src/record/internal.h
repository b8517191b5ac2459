#pragma once
/*
 * internal: what the files of record/ share.
 */

#include "record/record.h"

#define TRIAL_FILE_NAME "trial.json"

/* Status whose trial has neither verdict nor score. */
bool status_has_no_verdict(enum trial_status status);

/*
 * Digests of every regular file below dir_fd but its own trial.json, keys sorted by bytes; new
 * reference. ERROR_LIMIT past TRIAL_FILES_MAX or TRIAL_DEPTH_MAX, ERROR_SYSTEM for anything else.
 */
must_check int digest_tree(int dir_fd, json_t **ret, struct error **err) nonnull(2);
/* The digest of one regular file below dir_fd; links are not followed. */
must_check int digest_file(int dir_fd, const char *path, struct sha256 *ret, struct error **err)
    nonnull(2, 3);
