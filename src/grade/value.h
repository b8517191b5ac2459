#pragma once
/*
 * value: JSON values as criteria compare, order and show them.
 *
 * Numbers compare by value, exactly: 1 equals 1.0, and 2^53 + 1 does not equal 2^53. Walks are
 * counted against a budget, because values that expressions build may share parts and so be far
 * larger than the memory that they take. Depends on: base.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

/* How much work one evaluation may still do, in steps of about the cost of one value. */
struct budget {
    uint64_t left;
    bool exhausted; /* stays true once left was too small */
};

/* Takes steps off; false, and exhausted, when there were not as many left. */
bool budget_take(struct budget *budget, uint64_t steps) nonnull(1);

/*
 * Reads one JSON document of any type, as a file of an agent is judged: duplicate keys are refused,
 * a UTF-8 byte order mark is skipped, integers beyond 64 bits become reals. ERROR_AGENT says what
 * is wrong and where.
 */
must_check int value_parse(const char *text, size_t size, json_t **ret, struct error **err)
    nonnull(1, 3);

bool value_equal(const json_t *a, const json_t *b, struct budget *budget) nonnull(3);
/* -1, 0 or 1 for two numbers. */
int value_compare_numbers(const json_t *a, const json_t *b);
/* -1, 0 or 1 for two strings, by code points. */
int value_compare_strings(const json_t *a, const json_t *b);
/* True for an integer and for a real without a fraction. */
bool value_is_integral(const json_t *value);
/* "null", "boolean", "number", "string", "array" or "object". */
const char *value_type_name(const json_t *value) nonnull(1);
/* Code points of a string value. */
size_t value_string_runes(const json_t *value) nonnull(1);

enum value_style {
    VALUE_COMPACT, /* {"a":1} */
    VALUE_SPACED,  /* {"a": 1}: what a command pattern is matched against */
    VALUE_SORTED,  /* compact, keys sorted, equal numbers alike: equal values give equal texts */
};
/* Appends the JSON text. Stops early when the buf overflows or the budget is used up. */
void value_write(struct buf *buf, const json_t *value, enum value_style style,
                 struct budget *budget) nonnull(1, 2, 4);
/* Appends the compact text, cut after max_bytes with " [cut]". */
void value_show(struct buf *buf, const json_t *value, size_t max_bytes) nonnull(1, 2);

/* Appends the bytes with each invalid UTF-8 sequence as U+FFFD. */
void text_append_utf8(struct buf *buf, const char *bytes, size_t size) nonnull(1);
