#pragma once
/*
 * run_internal: what the files of a run directory share.
 */

#include "base/buf.h"
#include "record/internal.h"
#include "record/run_dir.h"

#define JOURNAL_FILE "journal.jsonl"

/* journal_fd and lock_fd are -1 in a run that was opened for reading. */
struct run_dir {
    char *path;
    int dir_fd;
    int lock_fd;
    int journal_fd;
    off_t journal_bytes; /* committed; the file is exactly this long between commits */
    json_t *run;
    json_t *plan;
    struct buf pending;
    struct sha256 last; /* of the last line, pending ones counted; zeros: there is none */
};

/* Opens the journal for appending, made when absent; a torn last line is cut off. */
must_check int journal_open(struct run_dir *run, struct error **err) nonnull(1);
