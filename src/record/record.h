#pragma once
/*
 * record: the run directory and the trial record, on disk and in memory.
 *
 * docs/formats/{run,trial}.md are normative; schema/*.json are validated against real records by tests.
 * trial.json is written last of a trial's files, whole, and fsynced: a trial is finished exactly when
 * its trial.json exists and the digests in it match. Paths inside are relative to the run directory.
 * Depends on: base.
 */

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

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
must_check bool trial_status_parse(const char *name, enum trial_status *ret) nonnull(1, 2);

enum trial_integrity {
    INTEGRITY_NOT_EVALUATED, /* verdict null */
    INTEGRITY_CLEAN,
    INTEGRITY_SUSPECT,
    INTEGRITY_COMPROMISED,
    INTEGRITY_PARTIAL,
    INTEGRITY_UNPROTECTED,
};
const char *trial_integrity_name(enum trial_integrity integrity); /* NULL for not evaluated */

struct criterion_record {
    char *type, *description, *error, *details; /* error and details may be NULL */
    double score, weight, threshold;
    bool has_score, passed, gating;
    uint64_t duration_ms;
};

/* trial.json in memory: every field of schema closedbook/trial/1. Strings are owned, NULL is null. */
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
        char *type, *model, *stopped_by; /* "exit", "turn_timeout", "task_timeout", "interrupt", ... */
        int exit_code, signal;           /* -1: none */
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
        json_t *limits; /* object */
        uint64_t kill_processes;
        double kill_ms;
    } cell;
    char *events;  /* "wire", "stream", "self-reported" */
    char *staging; /* "copied", "layered" */
    struct {
        char *root; /* "sha256:..." */
        uint64_t files, bytes;
        json_t *layers; /* as view_layers_json() */
    } view;
    struct {
        uint64_t files, bytes;
        char *digest; /* NULL: nothing collected */
        json_t *refused; /* [{path, reason}] */
    } artifacts;
    struct {
        double stage, launch, agent, kill, collect, grade, total;
    } timing_ms;
    json_t *lineage; /* object */
    json_t *digests; /* {"events.jsonl": "sha256:...", ...} of the trial's other files */
    uint64_t started_unix_ms, ended_unix_ms;
};

void trial_record_init(struct trial_record *record) nonnull(1);
void trial_record_done(struct trial_record *record) nonnull(1);
json_t *trial_record_to_json(const struct trial_record *record) nonnull(1);
/* Strict about types, tolerant of unknown keys. ERROR_SYSTEM names file and key. */
must_check int trial_record_from_json(const char *name, const json_t *json,
                                      struct trial_record *ret, struct error **err)
    nonnull(1, 2, 3);
/* Computes digests of the other files of the trial's directory, writes trial.json, fsyncs it. */
must_check int trial_record_save(int trial_dir_fd, struct trial_record *record,
                                 struct error **err) nonnull(2);
must_check int trial_record_load(int trial_dir_fd, const char *name, struct trial_record *ret,
                                 struct error **err) nonnull(2, 3);
/* True when every digest in trial.json matches; *ret_bad names the first that does not (owned). */
must_check int trial_record_verify(int trial_dir_fd, const struct trial_record *record,
                                   char **ret_bad, struct error **err) nonnull(2, 3);

/* "trials/<variant>/<task>/<nn>", '/' in the task id as '@'; owned. */
char *trial_path(const char *variant_id, const char *task_id, unsigned replicate)
    malloc_like nonnull(1, 2);
