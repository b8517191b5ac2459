#pragma once
/*
 * What the compiler (jsonschema_compile.c), the validator (jsonschema.c) and its keywords
 * (jsonschema_keywords.c) share.
 */

#include "grade/jsonschema.h"
#include "grade/regex.h"
#include "grade/value.h"

struct schema_pattern {
    const char *text; /* the document owns it */
    struct regex *regex;
};

struct schema {
    json_t *document;
    struct schema_pattern *patterns; /* every pattern of the document once */
    size_t pattern_count;
};

/* The compiled form of a pattern of the document. */
struct regex *schema_regex(const struct schema *schema, const char *pattern) nonnull(1, 2);
/* What a $ref of a compiled schema means. Borrowed. */
json_t *schema_target(const struct schema *schema, const char *reference) nonnull(1, 2);

/* Appends "/key" with ~ and / escaped; pointer_index() appends "/3". Cut back with pointer_cut().
 */
void pointer_key(struct buf *pointer, const char *key) nonnull(1, 2);
void pointer_index(struct buf *pointer, size_t index) nonnull(1);
void pointer_cut(struct buf *pointer, size_t size) nonnull(1);

/* One validation. Complaints are kept only while complaints is not NULL. */
struct validation {
    const struct schema *schema;
    struct budget budget;
    struct buf pointer;     /* of the value that is looked at */
    struct buf *complaints; /* NULL inside not, anyOf, oneOf, if, contains */
    size_t complaint_count;
    unsigned depth;
    bool failed; /* err is set: every further answer is false */
    struct error **err;
};
/* Whether the value obeys the schema; complains where it does not. */
bool schema_holds(struct validation *validation, const json_t *schema, json_t *value);
/* The same in silence. */
bool schema_holds_quietly(struct validation *validation, const json_t *schema, json_t *value)
    nonnull(1, 2);
/* The same for a member or an element of value, with its place in the pointer. */
bool schema_holds_at_key(struct validation *validation, const json_t *schema, const char *key,
                         json_t *value) nonnull(1, 2, 3);
bool schema_holds_at_index(struct validation *validation, const json_t *schema, size_t index,
                           json_t *value) nonnull(1, 2);
/* "at 'pointer': found VALUE, expected ..."; returns false. */
bool schema_complain(struct validation *validation, const json_t *value, const char *fmt, ...)
    printf_like(3, 4);
/* True when the pattern is in the string; limits fail the validation. */
bool schema_matches(struct validation *validation, const char *pattern, const char *text,
                    size_t size) nonnull(1, 2, 3);
/* The validation has taken too much work; returns false. */
bool schema_fail_limit(struct validation *validation, const char *what) nonnull(1, 2);

/* The keywords, each looked up in the schema; all are true for values of other types. */
bool keywords_any(struct validation *validation, const json_t *schema, json_t *value);
bool keywords_number(struct validation *validation, const json_t *schema, json_t *value);
bool keywords_string(struct validation *validation, const json_t *schema, json_t *value);
bool keywords_array(struct validation *validation, const json_t *schema, json_t *value);
bool keywords_object(struct validation *validation, const json_t *schema, json_t *value);
