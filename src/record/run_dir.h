#pragma once
/*
 * run_dir: one run on disk: run.json, plan.json, journal.jsonl, host.json, trials/.
 *
 * One process at a time holds it (flock on "lock", which holds the pid of the owner; forked
 * children share the lock). The journal is appended in groups and fsynced; a torn last line is
 * ignored on load and cut off before the next one is written. Directories are 0700, files 0600.
 */

#include "record/host_record.h"
#include "record/record.h"

#define RUN_SCHEMA "closedbook/run/1"
#define PLAN_SCHEMA "closedbook/plan/1"
#define RUN_FILE_BYTES_MAX ((size_t)256 << 20) /* of run.json, plan.json and the journal, each */
#define RUN_LAST_LINES 3
#define RUN_TRIALS_MAX ((size_t)1000000)

struct run_dir; /* opaque */

struct run_facts {
    const char *run_id;
    const char *version;
    const char *command_line; /* for people */
    json_t *config;           /* resolved configuration, with its digest; borrowed, may be NULL */
    json_t *machine;          /* tier, kernel, protections; borrowed, may be NULL */
};

/*
 * Creates DIR (0700), takes its lock, writes plan.json, then run.json: a run exists exactly when
 * run.json does. ERROR_USER when the directory holds a run (names --resume), anything else that is
 * not ours, or is held by another process (names its pid); ERROR_SYSTEM when it cannot be written.
 */
must_check int run_dir_create(const char *path, const struct run_facts *facts, const json_t *plan,
                              struct run_dir **ret, struct error **err) nonnull(1, 2, 3, 4);
/* The same for a directory that is open already (and stays the caller's); path is what messages
 * say. */
must_check int run_dir_create_at(int dir_fd, const char *path, const struct run_facts *facts,
                                 const json_t *plan, struct run_dir **ret, struct error **err)
    nonnull(2, 3, 4, 5);
/*
 * Opens an existing run; lock: exclusive and ready for journal and commit, ERROR_USER when another
 * process has it. Without lock it is only read. ERROR_USER when there is no run at path.
 */
must_check int run_dir_open(const char *path, bool lock, struct run_dir **ret, struct error **err)
    nonnull(1, 3);
/* The same for a directory that is open already (and stays the caller's). */
must_check int run_dir_open_at(int dir_fd, const char *path, bool lock, struct run_dir **ret,
                               struct error **err) nonnull(2, 4);
/* Lines not committed are dropped. */
void run_dir_close(struct run_dir *run);
void run_dir_closep(struct run_dir **run);

const char *run_dir_id(const struct run_dir *run) nonnull(1);
const char *run_dir_path(const struct run_dir *run) nonnull(1);
int run_dir_fd(const struct run_dir *run) nonnull(1);
const json_t *run_dir_plan(const struct run_dir *run) nonnull(1);
const json_t *run_dir_run(const struct run_dir *run) nonnull(1);

/*
 * Writes run.json anew with the figures of datasets (an array); an empty one is left out. The run
 * must be locked.
 */
must_check int run_dir_save_suites(struct run_dir *run, const json_t *suites, struct error **err)
    nonnull(1, 2);

/* Opens (making it 0700) a trial's directory by trial_path(). With fresh, what was there is
 * removed. */
must_check int run_dir_open_trial(struct run_dir *run, const char *trial_path, bool fresh, int *ret,
                                  struct error **err) nonnull(1, 2, 4);

/*
 * Journal: {"t", "event": "start|finish|...", "trial", "status", "record"}; "t" (milliseconds since
 * 1970) is put first when absent, "prev", the digest of the line before, last. The reference is
 * taken. Buffered until commit.
 */
void run_dir_journal(struct run_dir *run, json_t *line) nonnull(1, 2);
/*
 * Appends what was buffered and fsyncs it; nothing buffered: does nothing. After a failure the file
 * is as it was and the lines are still buffered, so that a commit can be tried again.
 */
must_check int run_dir_commit(struct run_dir *run, struct error **err) nonnull(1);
/*
 * The first line: what the run shall do, before it does any of it: the digest of plan.json, which
 * has those of each task, its private half, its graders and its configuration. Commits.
 */
must_check int run_dir_promise(struct run_dir *run, struct error **err) nonnull(1);
/*
 * The last line of a run, or of a grading: the digests of run.json, plan.json and host.json as they
 * are now, and with a key its signature (docs/formats/run.md). Commits.
 */
struct signing_key;
must_check int run_dir_seal(struct run_dir *run, const struct signing_key *key, struct error **err)
    nonnull(1);
/* The files that a seal covers; NULL at the end. */
extern const char *const run_sealed_files[];
/* The committed lines as an array; new reference. A torn last line is left out; another bad one is
 * ERROR_SYSTEM. */
must_check int run_dir_journal_read(const struct run_dir *run, json_t **ret, struct error **err)
    nonnull(1, 2);

/*
 * Every finished trial, sorted by variant, task and replicate, loaded. Those without a whole
 * record, and with verify those whose digests do not match, are left out and counted. An error only
 * when something cannot be read.
 */
struct run_trials {
    struct trial_record *records;
    char **paths; /* trial_path() of each */
    /* The last RUN_LAST_LINES lines of agent.stderr of each that failed, any bytes; an item, or the
     * array, is NULL: none. */
    char **last_words;
    size_t count, unfinished;
    struct host_record host; /* of the run as a whole */
};
must_check int run_dir_trials(struct run_dir *run, bool verify, struct run_trials *ret,
                              struct error **err) nonnull(1, 3);
void run_trials_done(struct run_trials *trials) nonnull(1);
