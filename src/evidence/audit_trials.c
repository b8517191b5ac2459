#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/audit_internal.h"
#include "record/record.h"

#define TRIAL_LEVEL 3
#define SCORE_SLACK 1e-9 /* of sums in another order */

/* A walk down trials/VARIANT/TASK/NN. */
struct walk {
    struct auditing *auditing;
    const char *path; /* of the directory that is walked */
    unsigned level;
};

/* --- what a record says of itself --------------------------------------------------------------
 */

/* What criteria come to, as grade/grade.c adds them up. */
struct sums {
    double weights, score, passed;
    bool all_passed, has_error;
};

static struct sums sum_up(const struct trial_record *record)
{
    struct sums sums = {.all_passed = true};

    for (size_t i = 0; i < record->criterion_count; i++) {
        const struct criterion_record *criterion = &record->criteria[i];
        bool passed = criterion->has_score && criterion->score >= criterion->threshold;

        sums.has_error = sums.has_error || (criterion->gating && !criterion->has_score);
        if (!criterion->gating)
            continue;
        sums.weights += criterion->weight;
        sums.score += criterion->has_score ? criterion->score * criterion->weight : 0;
        sums.passed += passed ? criterion->weight : 0;
        sums.all_passed = sums.all_passed && passed;
    }
    return sums;
}

static void check_arithmetic(struct auditing *auditing, const char *path,
                             const struct trial_record *record)
{
    struct sums sums = sum_up(record);
    double gate = record->early_stop == NULL
                      ? 1
                      : json_number_value(json_object_get(record->early_stop, "gate_threshold"));
    bool is_fact = trial_status_is_fact(record->status);

    for (size_t i = 0; i < record->criterion_count; i++) {
        const struct criterion_record *criterion = &record->criteria[i];

        if (criterion->has_score && criterion->passed != (criterion->score >= criterion->threshold))
            audit_find(auditing, path, "criterion %zu: %s with score %g of %g", i + 1,
                       criterion->passed ? "passed" : "not passed", criterion->score,
                       criterion->threshold);
    }
    if (record->has_score && sums.weights > 0 &&
        fabs(record->score - sums.score / sums.weights) > SCORE_SLACK)
        audit_find(auditing, path, "the score is %g, its criteria come to %g", record->score,
                   sums.score / sums.weights);
    if (!record->has_verdict || sums.weights <= 0)
        return;
    bool passes = sums.all_passed || (gate < 1 && sums.passed / sums.weights >= gate);
    bool expected = passes && !is_fact && record->integrity != INTEGRITY_COMPROMISED;

    if (record->passed != expected)
        audit_find(auditing, path, "%s, and its criteria say %s",
                   record->passed ? "passed" : "not passed", expected ? "passed" : "not passed");
    if ((record->status == STATUS_SUCCESS) != (passes && !is_fact))
        audit_find(auditing, path, "its status %s does not follow from its criteria",
                   trial_status_name(record->status));
}

/* A cell in which an agent was has been ended, and all that was in it. */
static void check_receipt(struct auditing *auditing, const char *path,
                          const struct trial_record *record)
{
    if (record->agent.stopped_by != NULL && record->status != STATUS_ERROR &&
        str_equal(record->cell.driver, "native") && record->cell.uid >= 0 &&
        json_object_size(record->cell.used) == 0)
        audit_find(auditing, path, "no receipt of the end of the agent's cell");
}

/* --- a trial's directory -----------------------------------------------------------------------
 */

static void check_journal(struct auditing *auditing, const char *path, const char *id,
                          const char *digest)
{
    const char *wanted = json_get_text(auditing->records, id);

    if (wanted == NULL)
        audit_find(auditing, path, "the journal knows no end of a trial '%s'", id);
    else if (!str_equal(wanted, digest))
        audit_find(auditing, path, "trial.json is not as it was when the trial finished");
    if (json_object_get(auditing->seen, id) != NULL)
        audit_find(auditing, path, "the trial '%s' is here twice", id);
    json_put_bool(auditing->seen, id, true);
}

/* Every file that is there is in the record as it is, and none is missing. */
static int check_files(struct auditing *auditing, int dir_fd, const char *path,
                       const struct trial_record *record, struct error **err)
{
    scoped(json_freep) json_t *digests = NULL;
    const char *name;
    json_t *digest;
    int r = trial_record_digests(dir_fd, &digests, err);

    if (r < 0)
        return r;

    json_object_foreach (digests, name, digest) {
        const char *recorded = json_get_text(record->digests, name);

        if (recorded == NULL)
            audit_find(auditing, path, "'%s' is there, and not in trial.json", name);
        else if (!str_equal(recorded, json_string_value(digest)))
            audit_find(auditing, path, "'%s' is not as it was when the trial finished", name);
        auditing->audit->files++;
    }
    json_object_foreach (record->digests, name, digest) {
        scoped(mem_freep) char *whole = path_join(path, name);

        if (json_object_get(digests, name) != NULL)
            continue;
        if (json_object_get(auditing->withheld, whole) != NULL)
            auditing->audit->withheld++;
        else
            audit_find(auditing, path, "'%s' is not there", name);
    }
    return 0;
}

static int look_at_trial(struct walk *walk, int dir_fd, struct error **err)
{
    struct auditing *auditing = walk->auditing;
    scoped(error_freep) struct error *problem = NULL;
    scoped(mem_freep) char *digest = NULL;
    struct trial_record record;
    int r = audit_digest(auditing, dir_fd, "trial.json", &digest, err);

    if (r < 0)
        return r;
    if (digest == NULL) {
        audit_find(auditing, walk->path, "a trial that did not finish");
        return 0;
    }
    if (trial_record_load(dir_fd, walk->path, &record, &problem) < 0) {
        audit_find(auditing, walk->path, "%s", error_message(problem));
        return 0;
    }
    scoped(mem_freep) char *place = trial_path(record.variant_id, record.task_id, record.replicate);

    auditing->audit->trials++;
    auditing->audit->files++;
    if (!str_equal(place, walk->path))
        audit_find(auditing, walk->path, "its record is of '%s'", place);
    check_journal(auditing, walk->path, record.trial_id, digest);
    check_arithmetic(auditing, walk->path, &record);
    check_receipt(auditing, walk->path, &record);
    r = check_files(auditing, dir_fd, walk->path, &record, err);
    trial_record_done(&record);
    return r;
}

static int visit(void *context, int dir_fd, const char *name, struct error **err)
{
    struct walk *walk = context;
    scoped(mem_freep) char *path = path_join(walk->path, name);
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct walk below = {.auditing = walk->auditing, .path = path, .level = walk->level + 1};

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        audit_find(walk->auditing, path, "no directory of a trial");
        return 0;
    }
    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    return below.level == TRIAL_LEVEL ? look_at_trial(&below, fd, err)
                                      : fs_each(fd, visit, &below, err);
}

int audit_trials(struct auditing *auditing, struct error **err)
{
    struct walk walk = {.auditing = auditing, .path = "trials"};
    scoped(fd_closep) int fd =
        openat(auditing->run_fd, "trials", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "cannot open 'trials'");
    return fs_each(fd, visit, &walk, err);
}
