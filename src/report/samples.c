#include "report/samples.h"

#include "base/mem.h"
#include "record/testing.h"

void samples_set(char **text, const char *value)
{
    free(*text);
    *text = str_dup(value);
}

static bool decides(enum trial_status status)
{
    return status != STATUS_ERROR && status != STATUS_BUILD_FAILED && status != STATUS_SKIPPED &&
           status != STATUS_NOT_GRADED;
}

struct trial_record *samples_add(struct run_trials *trials, const char *task_id,
                                 enum trial_status status)
{
    size_t i = trials->count++;

    trials->records = mem_resize(trials->records, trials->count, sizeof(*trials->records));
    trials->paths = mem_resize(trials->paths, trials->count, sizeof(*trials->paths));
    trials->records[i] = testing_trial();
    trials->paths[i] = str_format("trials/default/%s/00", task_id);

    struct trial_record *record = &trials->records[i];

    samples_set(&record->task_id, task_id);
    record->status = status;
    record->has_verdict = record->has_score = decides(status);
    record->passed = status == STATUS_SUCCESS;
    record->score = record->passed ? 1.0 : 0.5;
    record->timing_ms.total = 310;
    return record;
}

static void add_failed(struct run_trials *trials)
{
    struct trial_record *record = samples_add(trials, "hidden-tests", STATUS_FAILURE);
    struct criterion_record *tests =
        testing_criterion(record, "run_command", "all hidden tests pass", 0.0);
    struct buf details = {0};

    buf_text_append(&details, "exit code 1, expected 0\r\n");
    for (int i = 1; i <= 20; i++)
        buf_format(&details, "\tFAILED test %d\n", i);
    tests->details = buf_take(&details);

    struct criterion_record *readme =
        testing_criterion(record, "file_contains", "README names the new option", 0.5);

    readme->details = str_dup("missing: '--resume'");
}

struct run_trials samples_every_kind(void)
{
    struct run_trials trials = {.unfinished = 1};

    (void)samples_add(&trials, "hello", STATUS_SUCCESS); /* as it is */
    add_failed(&trials);

    struct trial_record *record = samples_add(&trials, "json-task", STATUS_ERROR);

    record->criterion_count = 0;
    free(record->criteria[0].type);
    free(record->criteria[0].description);
    record->error = str_dup("cannot start the grading cell: Operation not permitted");
    record->error_code = str_dup("system");

    record = samples_add(&trials, "slow", STATUS_TIMEOUT);
    record->timing_ms.total = 60012;
    record->agent.duration_ms = 60000;
    samples_set(&record->agent.stopped_by, "turn_timeout");

    record = samples_add(&trials, "thief", STATUS_SUCCESS);
    record->integrity = INTEGRITY_COMPROMISED;
    str_list_add(&record->integrity_reasons, "read the reference");

    record = samples_add(&trials, "windows-only", STATUS_SKIPPED);
    record->error = str_dup("requires os: windows");
    return trials;
}

struct run_trials samples_hostile(const char *text)
{
    struct run_trials trials = {0};
    struct trial_record *record = samples_add(&trials, text, STATUS_FAILURE);
    struct criterion_record *criterion = testing_criterion(record, "run_command", text, 0.0);

    criterion->details = str_dup(text);
    criterion->error = str_dup(text);
    samples_set(&record->variant_id, text);
    samples_set(&record->criteria[0].type, text);
    record->criteria[0].passed = false;
    record->error = str_dup(text);
    record->error_code = str_dup(text);
    record->integrity = INTEGRITY_SUSPECT;
    str_list_add(&record->integrity_reasons, text);
    samples_set(&record->agent.stopped_by, text);
    return trials;
}
