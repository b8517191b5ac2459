#pragma once
/*
 * str: C strings that we own, string lists, and numbers from text.
 */

#include "base/base.h"
#include "base/error.h"

char *str_dup(const char *s) malloc_like nonnull(1);
char *str_ndup(const char *s, size_t length) malloc_like nonnull(1);
char *str_format(const char *fmt, ...) malloc_like printf_like(1, 2);

bool str_equal(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix) nonnull(1, 2);
bool str_ends(const char *s, const char *suffix) nonnull(1, 2);

/*
 * The whole of s as a decimal number: no sign, space or leading '+'. Returns false, *ret untouched,
 * on anything else or out of range.
 */
must_check bool str_to_u64(const char *s, uint64_t *ret) nonnull(1, 2);
must_check bool str_to_i64(const char *s, int64_t *ret) nonnull(1, 2);
/* Finite decimal numbers only, '.' as the point whatever the locale. */
must_check bool str_to_double(const char *s, double *ret) nonnull(1, 2);

/* Edit distance for "did you mean": the nearest of count names, NULL when none is near. */
const char *str_nearest(const char *s, const char *const *names, size_t count) nonnull(1);

/* An owned list of owned strings. items is NULL-terminated when count > 0, so it serves as argv. */
struct str_list {
    char **items;
    size_t count;
};

void str_list_add(struct str_list *list, const char *s) nonnull(1, 2);
void str_list_add_take(struct str_list *list, char *s) nonnull(1, 2);
bool str_list_has(const struct str_list *list, const char *s) nonnull(1, 2);
void str_list_sort(struct str_list *list) nonnull(1); /* byte order */
void str_list_copy(struct str_list *to, const struct str_list *from) nonnull(1, 2);
void str_list_done(struct str_list *list) nonnull(1);
