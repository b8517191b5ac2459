#pragma once
/*
 * record: the run directory and the trial record, on disk and in memory.
 *
 * docs/formats/run.md and trial.md are normative; tests hold real records against schema/.
 * trial.json is written last of a trial's files, whole, and fsynced: a trial is finished exactly
 * when its trial.json exists and the digests in it match. Paths inside are relative to the run
 * directory. Depends on: base. Limits: below.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#define TRIAL_SCHEMA "closedbook/trial/1"
#define TRIAL_BYTES_MAX ((size_t)64 << 20) /* of one trial.json */
#define TRIAL_FILES_MAX 10000              /* of one trial's directory */
#define TRIAL_DEPTH_MAX 8
#define TRIAL_CRITERIA_MAX 10000

enum trial_status {
    STATUS_SUCCESS,
    STATUS_FAILURE,
    STATUS_MAX_TURNS_EXHAUSTED,
    STATUS_TIMEOUT,
    STATUS_TOKEN_BUDGET_EXCEEDED,
    STATUS_COST_BUDGET_EXCEEDED,
    STATUS_ERROR,
    STATUS_BUILD_FAILED,
    STATUS_NOT_GRADED,
    STATUS_SKIPPED,
    STATUS_COUNT,
};
const char *trial_status_name(enum trial_status status); /* "SUCCESS" */
/* What happened to the agent, a time limit or a budget: no grading moves it. */
bool trial_status_is_fact(enum trial_status status);
must_check bool trial_status_parse(const char *name, enum trial_status *ret) nonnull(1, 2);

enum trial_integrity {
    INTEGRITY_NOT_EVALUATED, /* verdict null */
    INTEGRITY_CLEAN,
    INTEGRITY_SUSPECT,
    INTEGRITY_COMPROMISED,
    INTEGRITY_PARTIAL,
    INTEGRITY_UNPROTECTED,
    INTEGRITY_COUNT,
};
const char *trial_integrity_name(enum trial_integrity integrity); /* NULL for not evaluated */
/* NULL is INTEGRITY_NOT_EVALUATED. */
must_check bool trial_integrity_parse(const char *name, enum trial_integrity *ret) nonnull(2);

struct criterion_record {
    char *type, *description, *error, *details; /* error and details may be NULL */
    char *observed, *expected;                  /* labels of a classification; NULL: it is none */
    json_t *suite_thresholds; /* {metric: least} over the rows of a dataset; NULL: none */
    json_t *metrics;          /* {name: number} of a criterion of one's own; NULL: none */
    json_t *judge;            /* who judged, see trial.md; NULL: nobody did */
    json_t *repeat;           /* of `grade --repeat`, see trial.md; NULL: graded once */
    double score, weight, threshold;
    bool has_score, passed, gating;
    uint64_t duration_ms;
};

/* Its gradings by `grade --repeat` did not agree. */
bool criterion_is_unstable(const struct criterion_record *criterion) nonnull(1);

/* trial.json in memory: every field of schema closedbook/trial/1. Strings are owned, NULL is null.
 */
struct trial_record {
    char *run_id, *trial_id, *task_id, *variant_id;
    unsigned replicate;
    enum trial_status status;
    bool has_verdict, passed; /* passed and score are null for ERROR, NOT_GRADED and SKIPPED */
    bool has_score;
    double score;
    enum trial_integrity integrity;
    struct str_list integrity_reasons;
    char *error;      /* ERROR: the message; SKIPPED, NOT_GRADED: the reason */
    char *error_code; /* error_code_name() */
    struct {
        char *type, *model,
            *stopped_by;       /* "exit", "turn_timeout", "task_timeout", "interrupt", ... */
        int exit_code, signal; /* -1: none */
        unsigned turns;
        uint64_t tool_calls, duration_ms;
        uint64_t output_bytes;
        bool output_cut;
    } agent;
    json_t *usage; /* object */
    struct criterion_record *criteria;
    size_t criterion_count;
    struct {
        char *driver, *tier;
        int64_t uid;
        struct str_list namespaces, protections;
        bool seccomp;
        int landlock_abi;
        char *preflight;       /* digest; NULL: none was made */
        json_t *limits, *used; /* objects */
        uint64_t kill_processes;
        double kill_ms;
    } cell;
    char *events;  /* "wire", "stream", "self-reported" */
    char *staging; /* "copied", "layered" */
    struct {
        char *root; /* "sha256:..." */
        uint64_t files, bytes;
        json_t *layers;  /* as view_layers_json() */
        json_t *systems; /* as view_systems_json() */
    } view;
    struct {
        uint64_t files, bytes;
        char *digest;    /* NULL: nothing collected */
        json_t *refused; /* [{path, reason}] */
    } artifacts;
    struct {
        double stage, launch, agent, kill, collect, grade, total;
    } timing_ms;
    json_t *evidence;    /* what was looked for and found, see trial.md; NULL: nobody looked */
    json_t *early_stop;  /* by armed criteria, see trial.md; NULL: it ran to its end */
    json_t *dialog;      /* with a simulated user, see trial.md; NULL: there was none */
    json_t *mocks;       /* of recorded programs, see trial.md; NULL: the task has none */
    json_t *graded_with; /* digests of what graders read, see trial.md; NULL: nothing */
    json_t *steps;       /* list of pre_run and post_run steps that ran, see trial.md; NULL: none */
    json_t *lineage;     /* object */
    json_t *digests;     /* {"events.jsonl": "sha256:...", ...} of the trial's other files */
    uint64_t started_unix_ms, ended_unix_ms;
};

/* Empty objects and lists, exit code and signal none, status ERROR: a record that nobody filled is
 * no success. */
void trial_record_init(struct trial_record *record) nonnull(1);
void trial_record_done(struct trial_record *record) nonnull(1);
/*
 * The form that is saved; new reference. Keeps the rules whatever the caller set: passed and score
 * are null for ERROR, NOT_GRADED and SKIPPED, a COMPROMISED trial has not passed, an integrity that
 * was not evaluated says so in its reasons. Bytes that are no UTF-8 become U+FFFD.
 */
json_t *trial_record_to_json(const struct trial_record *record) nonnull(1);
/* Strict about types, tolerant of unknown keys. ERROR_SYSTEM names file and key. */
must_check int trial_record_from_json(const char *name, const json_t *json,
                                      struct trial_record *ret, struct error **err)
    nonnull(1, 2, 3);
/*
 * Computes the digests of the other files of the trial's directory (record->digests is replaced),
 * writes trial.json whole and fsyncs it; whoever writes the journal fsyncs the directory before it
 * says there that the trial is finished. After a failure the old trial.json, or none, is there.
 * ERROR_SYSTEM when the disk is full; ERROR_LIMIT past TRIAL_FILES_MAX.
 */
must_check int trial_record_save(int trial_dir_fd, struct trial_record *record, struct error **err)
    nonnull(2);
must_check int trial_record_load(int trial_dir_fd, const char *name, struct trial_record *ret,
                                 struct error **err) nonnull(2, 3);
/* The digests of all other files of a trial's directory, as in its record; new reference. */
must_check int trial_record_digests(int trial_dir_fd, json_t **ret, struct error **err) nonnull(2);
/* The digest of a trial's trial.json. */
must_check int trial_record_digest(int trial_dir_fd, struct sha256 *ret, struct error **err)
    nonnull(2);
/*
 * Compares every digest of the record with the file it names. *ret_bad names the first that is
 * absent or differs (owned), NULL when all match. An error only when a file cannot be read.
 */
must_check int trial_record_verify(int trial_dir_fd, const struct trial_record *record,
                                   char **ret_bad, struct error **err) nonnull(2, 3);

/* "trials/<variant>/<task>/<nn>", '/' in the task id as '@'; owned. The ids are checked ones. */
char *trial_path(const char *variant_id, const char *task_id, unsigned replicate) malloc_like
    nonnull(1, 2);
