#include <math.h>

#include "base/mem.h"
#include "record/fields.h"
#include "record/internal.h"

/* The object that holds the last key of a dotted path; made on the way. */
static json_t *parent_made(json_t *root, const char *path, const char **ret_key)
{
    json_t *object = root;

    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(path, '.')) {
        scoped(mem_freep) char *key = str_ndup(path, (size_t)(dot - path));
        json_t *next = json_object_get(object, key);

        if (next == NULL) {
            next = json_object();
            json_put(object, key, next);
        }
        object = next;
        path = dot + 1;
    }
    *ret_key = path;
    return object;
}

static json_t *real_or_null(double n)
{
    return isfinite(n) ? json_real(n) : json_null();
}

static json_t *list_json(const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        json_push(array, json_text_or_null(list->items[i]));
    return array;
}

static json_t *write_integrity(const void *whole)
{
    const struct trial_record *record = whole;
    json_t *object = json_object();
    json_t *reasons = list_json(&record->integrity_reasons);

    if (json_array_size(reasons) == 0 && record->integrity == INTEGRITY_NOT_EVALUATED)
        json_push(reasons, json_text_or_null("not evaluated"));
    json_put(object, "verdict", json_text_or_null(trial_integrity_name(record->integrity)));
    json_put(object, "reasons", reasons);
    return object;
}

static json_t *criterion_json(const struct criterion_record *criterion)
{
    json_t *object = json_object();

    json_put(object, "type", json_text_or_null(criterion->type));
    json_put(object, "description", json_text_or_null(criterion->description));
    json_put(object, "score", criterion->has_score ? real_or_null(criterion->score) : json_null());
    json_put_bool(object, "passed", criterion->passed);
    json_put(object, "weight", real_or_null(criterion->weight));
    json_put(object, "threshold", real_or_null(criterion->threshold));
    json_put_bool(object, "gating", criterion->gating);
    json_put(object, "error", json_text_or_null(criterion->error));
    json_put(object, "details", json_text_or_null(criterion->details));
    json_put_int(object, "duration_ms", (int64_t)criterion->duration_ms);
    /* Most criteria have neither; 24 of them in each of many records would be a lot of nulls. */
    if (criterion->observed != NULL)
        json_put(object, "observed", json_text_or_null(criterion->observed));
    if (criterion->expected != NULL)
        json_put(object, "expected", json_text_or_null(criterion->expected));
    if (criterion->suite_thresholds != NULL)
        json_put(object, "suite_thresholds", json_incref(criterion->suite_thresholds));
    if (criterion->metrics != NULL)
        json_put(object, "metrics", json_incref(criterion->metrics));
    if (criterion->judge != NULL)
        json_put(object, "judge", json_incref(criterion->judge));
    if (criterion->repeat != NULL)
        json_put(object, "repeat", json_incref(criterion->repeat));
    return object;
}

static json_t *write_criteria(const void *whole)
{
    const struct trial_record *record = whole;
    json_t *array = json_array();

    for (size_t i = 0; i < record->criterion_count; i++)
        json_push(array, criterion_json(&record->criteria[i]));
    return array;
}

static json_t *write_passed(const void *whole)
{
    const struct trial_record *record = whole;

    if (!record->has_verdict || status_has_no_verdict(record->status))
        return json_null();
    return json_boolean(record->passed && record->integrity != INTEGRITY_COMPROMISED);
}

static json_t *write_score(const void *whole)
{
    const struct trial_record *record = whole;

    if (!record->has_score || status_has_no_verdict(record->status))
        return json_null();
    return real_or_null(record->score);
}

static json_t *shared_or(json_t *value, json_t *fallback)
{
    if (value == NULL)
        return fallback;
    json_decref(fallback);
    return json_incref(value);
}

static json_t *write_text(const void *member)
{
    return json_text_or_null(*(char *const *)member);
}

static json_t *write_unsigned(const void *member)
{
    return json_integer(*(const unsigned *)member);
}

static json_t *write_u64(const void *member)
{
    uint64_t n = *(const uint64_t *)member;

    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

static json_t *write_date(const void *member)
{
    uint64_t unix_ms = *(const uint64_t *)member;

    return unix_ms == 0 || unix_ms > DATE_MAX_MS ? json_null() : json_integer((json_int_t)unix_ms);
}

static json_t *write_number(const void *member)
{
    int n = *(const int *)member;

    return n < 0 ? json_null() : json_integer(n);
}

static json_t *write_int(const void *member)
{
    return json_integer(*(const int *)member);
}

static json_t *write_i64(const void *member)
{
    return json_integer(*(const int64_t *)member);
}

/* Milliseconds, to the microsecond: more digits would only pretend. */
static json_t *write_ms(const void *member)
{
    double ms = *(const double *)member;

    return real_or_null(fabs(ms) < 1e12 ? round(ms * 1000) / 1000 : ms);
}

static json_t *write_bool(const void *member)
{
    return json_boolean(*(const bool *)member);
}

static json_t *write_list(const void *member)
{
    return list_json(member);
}

static json_t *write_object(const void *member)
{
    return shared_or(*(json_t *const *)member, json_object());
}

static json_t *write_array(const void *member)
{
    return shared_or(*(json_t *const *)member, json_array());
}

static json_t *write_any(const void *member)
{
    return shared_or(*(json_t *const *)member, json_null());
}

static json_t *write_status(const void *record)
{
    return json_text_or_null(trial_status_name(((const struct trial_record *)record)->status));
}

static json_t *(*const writers[FIELD_KIND_COUNT])(const void *member) = {
    [FIELD_TEXT] = write_text,
    [FIELD_NAME] = write_text,
    [FIELD_UNSIGNED] = write_unsigned,
    [FIELD_U64] = write_u64,
    [FIELD_DATE] = write_date,
    [FIELD_NUMBER] = write_number,
    [FIELD_INT] = write_int,
    [FIELD_I64] = write_i64,
    [FIELD_MS] = write_ms,
    [FIELD_BOOL] = write_bool,
    [FIELD_LIST] = write_list,
    [FIELD_OBJECT] = write_object,
    [FIELD_ARRAY] = write_array,
    [FIELD_ANY] = write_any,
    [FIELD_STATUS] = write_status,
    [FIELD_PASSED] = write_passed,
    [FIELD_SCORE] = write_score,
    [FIELD_INTEGRITY] = write_integrity,
    [FIELD_CRITERIA] = write_criteria,
};

json_t *trial_record_to_json(const struct trial_record *record)
{
    json_t *root = json_object();

    json_put_text(root, "schema", TRIAL_SCHEMA);
    for (size_t i = 0; i < trial_field_count; i++) {
        const struct field *field = &trial_fields[i];
        const char *key = NULL;
        json_t *object = parent_made(root, field->path, &key);

        json_put(object, key, writers[field->kind]((const char *)record + field->offset));
    }
    return root;
}
