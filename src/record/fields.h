#pragma once
/*
 * fields: where each key of trial.json stands and which member holds it.
 *
 * One table, in the order of writing; writer (trial_write.c) and reader (trial_read.c) both walk it
 * and have one function a kind. A dotted path is a key of a nested object.
 */

#include "record/record.h"

enum field_kind {
    FIELD_TEXT,     /* char *, null when NULL */
    FIELD_NAME,     /* char *, required */
    FIELD_UNSIGNED, /* unsigned */
    FIELD_U64,      /* uint64_t */
    FIELD_DATE,     /* uint64_t, milliseconds since 1970; null when 0 */
    FIELD_NUMBER,   /* int, null when negative */
    FIELD_INT,      /* int */
    FIELD_I64,      /* int64_t */
    FIELD_MS,       /* double, milliseconds; kept to the microsecond */
    FIELD_BOOL,     /* bool */
    FIELD_LIST,     /* struct str_list */
    FIELD_OBJECT,   /* json_t *, {} when NULL */
    FIELD_ARRAY,    /* json_t *, [] when NULL */
    FIELD_ANY,      /* json_t *, null when NULL */
    /* These take the whole record. */
    FIELD_STATUS, /* required */
    FIELD_PASSED,
    FIELD_SCORE,
    FIELD_INTEGRITY,
    FIELD_CRITERIA,
    FIELD_KIND_COUNT,
};

struct field {
    const char *path;
    enum field_kind kind;
    size_t offset;
};

extern const struct field trial_fields[];
extern const size_t trial_field_count;

#define DATE_MAX_MS ((uint64_t)253402300799999) /* the end of the year 9999 */
