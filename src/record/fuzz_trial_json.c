/* Whatever bytes stand in a trial.json: it is read or complained about, and what is read is stable.
 */
#include "base/mem.h"
#include "record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *json = NULL;
    struct trial_record record;
    struct trial_record again;

    if (json_parse("trial.json", (const char *)data, size, &json, NULL) < 0)
        return 0;

    int r = trial_record_from_json("trial.json", json, &record, &err);

    ASSERT((r < 0) == (err != NULL));
    if (r < 0)
        return 0;

    scoped(json_freep) json_t *first = trial_record_to_json(&record);

    ASSERT(trial_record_from_json("again", first, &again, NULL) == 0);

    scoped(json_freep) json_t *second = trial_record_to_json(&again);

    ASSERT(json_equal(first, second));
    /* The rules hold whatever was read. */
    if (record.status == STATUS_ERROR || record.status == STATUS_SKIPPED)
        ASSERT(json_is_null(json_object_get(first, "passed")) &&
               json_is_null(json_object_get(first, "score")));
    trial_record_done(&record);
    trial_record_done(&again);
    return 0;
}
