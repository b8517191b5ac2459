#pragma once
/*
 * regex: patterns as authors write them for Python's re, matched by PCRE2 with limits.
 *
 * Patterns and subjects are UTF-8; \w, \d, \s, \b and case follow Unicode unless the ASCII flag is
 * given. Spellings that PCRE2 has not, or reads otherwise, are translated (docs/formats/regex.md).
 * A subject that costs more than the limits allow gives REGEX_LIMIT, never a guess. A compiled
 * pattern is for one thread and one evaluation: it counts the work of all its searches. Depends on:
 * base, PCRE2.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"

#define REGEX_PATTERN_BYTES_MAX ((size_t)64 << 10)
#define REGEX_MATCH_LIMIT 10000000 /* PCRE2's own count, for one starting position */
#define REGEX_DEPTH_LIMIT 1000000
#define REGEX_HEAP_LIMIT_KIB (256 * 1024)
#define REGEX_STEPS_MAX                                                                            \
    ((uint64_t)50000000) /* of all searches with one pattern, beside 16 a byte */

/* The values of Python's re module. */
enum regex_flags {
    REGEX_IGNORE_CASE = 2,
    REGEX_MULTI_LINE = 8,
    REGEX_DOT_ALL = 16,
    REGEX_UNICODE = 32, /* the default; accepted for its own sake */
    REGEX_VERBOSE = 64,
    REGEX_ASCII = 256,
};

enum regex_outcome {
    REGEX_NO_MATCH,
    REGEX_MATCH,
    REGEX_LIMIT, /* the subject or the pattern costs too much */
};

struct regex; /* opaque */

/* ERROR_TASK with "offset N: " for what the author can fix, ERROR_LIMIT past a limit. */
must_check int regex_compile(const char *pattern, unsigned flags, struct regex **ret,
                             struct error **err) nonnull(1, 3);
/* Flags as Python's integer, or as letters of "aimsux"; NULL and null are none. ERROR_TASK. */
must_check int regex_flags_parse(const json_t *value, unsigned *ret, struct error **err) nonnull(2);

/* Anywhere in the subject, as re.search. Invalid UTF-8 counts as U+FFFD. */
enum regex_outcome regex_search(struct regex *regex, const char *subject, size_t size) nonnull(1);

/*
 * Every match by the replacement, as re.sub: \1, \g<1> and \g<name> are what a group took, \n, \r,
 * \t and \\ the characters; a group that took no part is empty. *ret is the caller's. ERROR_TASK
 * with "offset N: " for the pattern, without for the replacement; ERROR_LIMIT when the search costs
 * too much or the text grows past REGEX_REPLACED_BYTES_MAX.
 */
#define REGEX_REPLACED_BYTES_MAX ((size_t)1 << 20)
must_check int regex_replace(const char *pattern, const char *text, const char *replacement,
                             char **ret, struct error **err) nonnull(1, 2, 3, 4);

void regex_free(struct regex *regex);
void regex_freep(struct regex **regex) nonnull(1);

/* Appends the version of the linked PCRE2. */
void regex_library_version(struct buf *buf) nonnull(1);
