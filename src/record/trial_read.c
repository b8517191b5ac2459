#include <limits.h>
#include <stddef.h>

#include "base/mem.h"
#include "record/fields.h"
#include "record/internal.h"

/* Where we are, for messages: "NAME: PATH: WHAT expected". */
struct place {
    const char *name;
    const char *path;
    struct error **err;
};

static int expected(const struct place *place, const char *what)
{
    return error_set(place->err, ERROR_SYSTEM, "%s: %s: %s expected", place->name, place->path,
                     what);
}

/* Sets *ret to the member that place->path names, NULL when any part of the path is absent. */
static int find_member(const struct place *place, const json_t *root, json_t **ret)
{
    const json_t *object = root;
    const char *path = place->path;

    *ret = NULL;
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(path, '.')) {
        scoped(mem_freep) char *key = str_ndup(path, (size_t)(dot - path));

        object = json_object_get(object, key);
        if (object == NULL)
            return 0;
        if (!json_is_object(object))
            return error_set(place->err, ERROR_SYSTEM, "%s: %s: an object expected", place->name,
                             key);
        path = dot + 1;
    }
    *ret = json_object_get(object, path);
    return 0;
}

/* One function a kind. Each writes through member only when the value is what it should be. */

static int read_text(const struct place *place, json_t *value, void *member)
{
    char **text = member;

    if (json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return expected(place, "a string or null");
    free(*text);
    *text = str_dup(json_string_value(value));
    return 0;
}

static int read_name(const struct place *place, json_t *value, void *member)
{
    return json_is_string(value) ? read_text(place, value, member) : expected(place, "a string");
}

static int read_range(const struct place *place, const json_t *value, int64_t max, int64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > max)
        return expected(place, "a number from 0");
    *ret = json_integer_value(value);
    return 0;
}

static int read_u64(const struct place *place, json_t *value, void *member)
{
    int64_t n = 0;
    int r = read_range(place, value, INT64_MAX, &n);

    if (r == 0)
        *(uint64_t *)member = (uint64_t)n;
    return r;
}

static int read_unsigned(const struct place *place, json_t *value, void *member)
{
    int64_t n = 0;
    int r = read_range(place, value, UINT_MAX, &n);

    if (r == 0)
        *(unsigned *)member = (unsigned)n;
    return r;
}

static int read_date(const struct place *place, json_t *value, void *member)
{
    int64_t n = 0;
    int r = json_is_null(value) ? 0 : read_range(place, value, (int64_t)DATE_MAX_MS, &n);

    if (r == 0)
        *(uint64_t *)member = (uint64_t)n;
    return r;
}

static int read_int(const struct place *place, json_t *value, void *member)
{
    if (!json_is_integer(value) || json_integer_value(value) < INT_MIN ||
        json_integer_value(value) > INT_MAX)
        return expected(place, "a whole number");
    *(int *)member = (int)json_integer_value(value);
    return 0;
}

static int read_number(const struct place *place, json_t *value, void *member)
{
    return json_is_null(value) ? 0 : read_int(place, value, member);
}

static int read_i64(const struct place *place, json_t *value, void *member)
{
    if (!json_is_integer(value))
        return expected(place, "a whole number");
    *(int64_t *)member = json_integer_value(value);
    return 0;
}

static int read_real(const struct place *place, json_t *value, void *member)
{
    if (json_is_null(value))
        return 0;
    if (!json_is_number(value))
        return expected(place, "a number");
    *(double *)member = json_number_value(value);
    return 0;
}

static int read_bool(const struct place *place, json_t *value, void *member)
{
    if (!json_is_boolean(value))
        return expected(place, "true or false");
    *(bool *)member = json_is_true(value);
    return 0;
}

static int read_list(const struct place *place, json_t *value, void *member)
{
    scoped(str_list_done) struct str_list list = {0};
    size_t i;
    json_t *item;

    if (!json_is_array(value))
        return expected(place, "a list of strings");
    json_array_foreach (value, i, item) {
        if (!json_is_string(item))
            return expected(place, "a list of strings");
        str_list_add(&list, json_string_value(item));
    }

    struct str_list *to = member;

    str_list_done(to);
    *to = list;
    list = (struct str_list){0};
    return 0;
}

static int read_any(const struct place *place, json_t *value, void *member)
{
    json_t **to = member;

    (void)place; /* Anything is right. */
    json_decref(*to);
    *to = json_is_null(value) ? NULL : json_incref(value);
    return 0;
}

static int read_object(const struct place *place, json_t *value, void *member)
{
    return json_is_object(value) ? read_any(place, value, member) : expected(place, "an object");
}

static int read_array(const struct place *place, json_t *value, void *member)
{
    return json_is_array(value) ? read_any(place, value, member) : expected(place, "a list");
}

static int read_status(const struct place *place, json_t *value, void *member)
{
    struct trial_record *record = member;

    if (!json_is_string(value) || !trial_status_parse(json_string_value(value), &record->status))
        return expected(place, "a status");
    return 0;
}

static int read_passed(const struct place *place, json_t *value, void *member)
{
    struct trial_record *record = member;

    if (json_is_null(value))
        return 0;
    if (status_has_no_verdict(record->status))
        return expected(place, "null beside this status");
    record->has_verdict = true;
    return read_bool(place, value, &record->passed);
}

static int read_score(const struct place *place, json_t *value, void *member)
{
    struct trial_record *record = member;

    if (json_is_null(value))
        return 0;
    if (status_has_no_verdict(record->status))
        return expected(place, "null beside this status");
    record->has_score = true;
    return read_real(place, value, &record->score);
}

static int read_integrity(const struct place *place, json_t *value, void *member)
{
    struct trial_record *record = member;
    const json_t *verdict = json_object_get(value, "verdict");
    json_t *reasons = json_object_get(value, "reasons");

    if (!json_is_null(verdict) && !json_is_string(verdict))
        return expected(place, "{verdict, reasons}");
    if (!trial_integrity_parse(json_string_value(verdict), &record->integrity))
        return expected(place, "an integrity verdict or null");
    return reasons == NULL ? 0 : read_list(place, reasons, &record->integrity_reasons);
}

typedef int read_member(const struct place *place, json_t *value, void *member);

static const struct {
    const char *key;
    read_member *read;
    size_t offset;
} criterion_members[] = {
    {"type", read_text, offsetof(struct criterion_record, type)},
    {"description", read_text, offsetof(struct criterion_record, description)},
    {"score", read_real, offsetof(struct criterion_record, score)},
    {"passed", read_bool, offsetof(struct criterion_record, passed)},
    {"weight", read_real, offsetof(struct criterion_record, weight)},
    {"threshold", read_real, offsetof(struct criterion_record, threshold)},
    {"gating", read_bool, offsetof(struct criterion_record, gating)},
    {"error", read_text, offsetof(struct criterion_record, error)},
    {"details", read_text, offsetof(struct criterion_record, details)},
    {"duration_ms", read_u64, offsetof(struct criterion_record, duration_ms)},
    {"observed", read_text, offsetof(struct criterion_record, observed)},
    {"expected", read_text, offsetof(struct criterion_record, expected)},
    {"suite_thresholds", read_object, offsetof(struct criterion_record, suite_thresholds)},
    {"metrics", read_object, offsetof(struct criterion_record, metrics)},
    {"judge", read_object, offsetof(struct criterion_record, judge)},
    {"repeat", read_object, offsetof(struct criterion_record, repeat)},
};

static int read_criterion(const struct place *whole, json_t *value, struct criterion_record *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(criterion_members); i++) {
        json_t *member = json_object_get(value, criterion_members[i].key);
        scoped(mem_freep) char *path = str_format("%s.%s", whole->path, criterion_members[i].key);
        const struct place place = {whole->name, path, whole->err};

        if (member == NULL)
            continue;

        int r =
            criterion_members[i].read(&place, member, (char *)ret + criterion_members[i].offset);

        if (r < 0)
            return r;
    }
    ret->has_score = json_is_number(json_object_get(value, "score"));
    return 0;
}

static int read_criteria(const struct place *place, json_t *value, void *member)
{
    struct trial_record *record = member;

    if (!json_is_array(value) || json_array_size(value) > TRIAL_CRITERIA_MAX)
        return expected(place, "a list of criteria");
    record->criterion_count = json_array_size(value);
    record->criteria = mem_new(record->criterion_count + 1, sizeof(*record->criteria));
    for (size_t i = 0; i < record->criterion_count; i++) {
        scoped(mem_freep) char *path = str_format("%s[%zu]", place->path, i);
        const struct place inner = {place->name, path, place->err};
        json_t *item = json_array_get(value, i);
        int r = json_is_object(item) ? read_criterion(&inner, item, &record->criteria[i])
                                     : expected(&inner, "an object");

        if (r < 0)
            return r;
    }
    return 0;
}

static read_member *const readers[FIELD_KIND_COUNT] = {
    [FIELD_TEXT] = read_text,         [FIELD_NAME] = read_name,
    [FIELD_UNSIGNED] = read_unsigned, [FIELD_U64] = read_u64,
    [FIELD_DATE] = read_date,         [FIELD_NUMBER] = read_number,
    [FIELD_INT] = read_int,           [FIELD_I64] = read_i64,
    [FIELD_MS] = read_real,           [FIELD_BOOL] = read_bool,
    [FIELD_LIST] = read_list,         [FIELD_OBJECT] = read_object,
    [FIELD_ARRAY] = read_array,       [FIELD_ANY] = read_any,
    [FIELD_STATUS] = read_status,     [FIELD_PASSED] = read_passed,
    [FIELD_SCORE] = read_score,       [FIELD_INTEGRITY] = read_integrity,
    [FIELD_CRITERIA] = read_criteria,
};

static int read_fields(const char *name, const json_t *json, struct trial_record *ret,
                       struct error **err)
{
    for (size_t i = 0; i < trial_field_count; i++) {
        const struct field *field = &trial_fields[i];
        const struct place place = {name, field->path, err};
        json_t *value = NULL;
        int r = find_member(&place, json, &value);

        if (r == 0 && value != NULL)
            r = readers[field->kind](&place, value, (char *)ret + field->offset);
        else if (r == 0 && (field->kind == FIELD_NAME || field->kind == FIELD_STATUS))
            r = expected(&place, "a string");
        if (r < 0)
            return r;
    }
    return 0;
}

int trial_record_from_json(const char *name, const json_t *json, struct trial_record *ret,
                           struct error **err)
{
    if (!str_equal(json_get_text(json, "schema"), TRIAL_SCHEMA))
        return error_set(err, ERROR_SYSTEM, "%s: schema: '%s' expected", name, TRIAL_SCHEMA);

    struct trial_record record;

    trial_record_init(&record);

    int r = read_fields(name, json, &record, err);

    if (r < 0) {
        trial_record_done(&record);
        return r;
    }
    *ret = record;
    return 0;
}
