#include "base/fs.h"
#include "base/mem.h"
#include "record/internal.h"
#include "record/record.h"

static const char *const status_names[STATUS_COUNT] = {
    [STATUS_SUCCESS] = "SUCCESS",
    [STATUS_FAILURE] = "FAILURE",
    [STATUS_MAX_TURNS_EXHAUSTED] = "MAX_TURNS_EXHAUSTED",
    [STATUS_TIMEOUT] = "TIMEOUT",
    [STATUS_TOKEN_BUDGET_EXCEEDED] = "TOKEN_BUDGET_EXCEEDED",
    [STATUS_COST_BUDGET_EXCEEDED] = "COST_BUDGET_EXCEEDED",
    [STATUS_ERROR] = "ERROR",
    [STATUS_BUILD_FAILED] = "BUILD_FAILED",
    [STATUS_NOT_GRADED] = "NOT_GRADED",
    [STATUS_SKIPPED] = "SKIPPED",
};

static const char *const integrity_names[INTEGRITY_COUNT] = {
    [INTEGRITY_NOT_EVALUATED] = NULL, [INTEGRITY_CLEAN] = "CLEAN",
    [INTEGRITY_SUSPECT] = "SUSPECT",  [INTEGRITY_COMPROMISED] = "COMPROMISED",
    [INTEGRITY_PARTIAL] = "PARTIAL",  [INTEGRITY_UNPROTECTED] = "UNPROTECTED",
};

const char *trial_status_name(enum trial_status status)
{
    ASSERT((size_t)status < STATUS_COUNT);
    return status_names[status];
}

bool trial_status_is_fact(enum trial_status status)
{
    return status == STATUS_TIMEOUT || status == STATUS_TOKEN_BUDGET_EXCEEDED ||
           status == STATUS_COST_BUDGET_EXCEEDED;
}

bool trial_status_parse(const char *name, enum trial_status *ret)
{
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        if (strcmp(name, status_names[i]) != 0)
            continue;
        *ret = (enum trial_status)i;
        return true;
    }
    return false;
}

const char *trial_integrity_name(enum trial_integrity integrity)
{
    ASSERT((size_t)integrity < INTEGRITY_COUNT);
    return integrity_names[integrity];
}

bool trial_integrity_parse(const char *name, enum trial_integrity *ret)
{
    for (size_t i = 0; i < INTEGRITY_COUNT; i++) {
        if (!str_equal(name, integrity_names[i]))
            continue;
        *ret = (enum trial_integrity)i;
        return true;
    }
    return false;
}

bool status_has_no_verdict(enum trial_status status)
{
    return status == STATUS_ERROR || status == STATUS_NOT_GRADED || status == STATUS_SKIPPED;
}

void trial_record_init(struct trial_record *record)
{
    *record = (struct trial_record){
        .status = STATUS_ERROR,
        .agent = {.exit_code = -1, .signal = -1},
        .cell = {.uid = -1},
        .usage = json_object(),
        .lineage = json_object(),
        .digests = json_object(),
    };
    record->cell.limits = json_object();
    record->cell.used = json_object();
    record->artifacts.refused = json_array();
}

static void criterion_record_done(struct criterion_record *criterion)
{
    free(criterion->type);
    free(criterion->description);
    free(criterion->error);
    free(criterion->details);
    free(criterion->observed);
    free(criterion->expected);
    json_decref(criterion->suite_thresholds);
    json_decref(criterion->metrics);
    json_decref(criterion->judge);
    json_decref(criterion->repeat);
}

bool criterion_is_unstable(const struct criterion_record *criterion)
{
    return json_get_bool(criterion->repeat, "unstable", false);
}

void trial_record_done(struct trial_record *record)
{
    char *const texts[] = {
        record->run_id,           record->trial_id,    record->task_id,
        record->variant_id,       record->error,       record->error_code,
        record->agent.type,       record->agent.model, record->agent.stopped_by,
        record->cell.driver,      record->cell.tier,   record->events,
        record->cell.preflight,   record->staging,     record->view.root,
        record->artifacts.digest,
    };
    json_t *const values[] = {
        record->usage,        record->cell.limits,       record->view.layers,
        record->view.systems, record->artifacts.refused, record->lineage,
        record->digests,      record->cell.used,         record->steps,
        record->dialog,       record->evidence,          record->early_stop,
        record->mocks,        record->graded_with,
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        json_decref(values[i]);
    for (size_t i = 0; i < record->criterion_count; i++)
        criterion_record_done(&record->criteria[i]);
    free(record->criteria);
    str_list_done(&record->integrity_reasons);
    str_list_done(&record->cell.namespaces);
    str_list_done(&record->cell.protections);
    *record = (struct trial_record){0};
}

char *trial_path(const char *variant_id, const char *task_id, unsigned replicate)
{
    scoped(mem_freep) char *task = str_dup(task_id);

    for (char *slash = strchr(task, '/'); slash != NULL; slash = strchr(slash, '/'))
        *slash = '@';

    char *path = str_format("trials/%s/%s/%02u", variant_id, task, replicate);

    /* Ids are checked at load; one that would leave the run directory must never get here. */
    ASSERT(path_is_inside(path));
    return path;
}
