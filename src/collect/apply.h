#pragma once
/*
 * apply: makes a pristine workspace what an agent left, from artifacts.tar and changes.json.
 *
 * Runs in the grading cell as the grader. Part of closedbook-worker; tests call it in process.
 * Depends on: base.
 */

#include "base/error.h"

#define APPLY_CHANGES_BYTES_MAX ((size_t)512 << 20)

/* Both files are read from their start. ERROR_SYSTEM when they are not ours or do not fit the tree.
 */
must_check int apply_changes(int workspace_fd, int archive_fd, int changes_fd, struct error **err);
