#pragma once
/*
 * run_dir: one run on disk: run.json, plan.json, journal.jsonl, trials/.
 *
 * One process at a time holds it (flock on run.json's neighbour "lock"). The journal is appended in
 * groups and fsynced; a torn last line is ignored on load.
 */

#include "record/record.h"

struct run_dir; /* opaque */

struct run_facts {
    const char *run_id;
    const char *version;
    const char *command_line; /* for people */
    json_t *config;           /* resolved configuration, with its digest */
    json_t *machine;          /* tier, kernel, protections */
};

/* Creates DIR (0700) with run.json and plan.json. ERROR_USER when it exists with a run, names --resume. */
must_check int run_dir_create(const char *path, const struct run_facts *facts, const json_t *plan,
                              struct run_dir **ret, struct error **err) nonnull(1, 2, 3, 4);
/* Opens an existing run; lock: exclusive, ERROR_USER when another process has it. */
must_check int run_dir_open(const char *path, bool lock, struct run_dir **ret, struct error **err)
    nonnull(1, 3);
void run_dir_close(struct run_dir *run);
void run_dir_closep(struct run_dir **run);

const char *run_dir_id(const struct run_dir *run) nonnull(1);
const char *run_dir_path(const struct run_dir *run) nonnull(1);
int run_dir_fd(const struct run_dir *run) nonnull(1);
const json_t *run_dir_plan(const struct run_dir *run) nonnull(1);
const json_t *run_dir_run(const struct run_dir *run) nonnull(1);

/* Opens (making it 0700) a trial's directory by trial_path(). With fresh, what was there is removed. */
must_check int run_dir_open_trial(struct run_dir *run, const char *trial_path, bool fresh, int *ret,
                                  struct error **err) nonnull(1, 2, 4);

/* Journal: {"t", "event": "start|finish|...", "trial", "status", "digest"}. Buffered until commit. */
void run_dir_journal(struct run_dir *run, json_t *line) nonnull(1, 2);
must_check int run_dir_commit(struct run_dir *run, struct error **err) nonnull(1);

/* Every finished trial, sorted by path, loaded. Unfinished and unverified ones are left out and counted. */
struct run_trials {
    struct trial_record *records;
    char **paths;
    size_t count, unfinished;
};
must_check int run_dir_trials(struct run_dir *run, bool verify, struct run_trials *ret,
                              struct error **err) nonnull(1, 3);
void run_trials_done(struct run_trials *trials) nonnull(1);
