#pragma once
/*
 * json: jansson behind one header: scoped(), strict reading, canonical writing, getters that say
 * what was expected.
 */

#include <jansson.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"

#define JSON_DEPTH_MAX 64

void json_freep(json_t **value) nonnull(1); /* for scoped(): drops a reference */

/* Strict: UTF-8, no duplicate keys, nothing after the value. ERROR_TASK with "name:line:column: ".
 */
must_check int json_parse(const char *name, const char *text, size_t length, json_t **ret,
                          struct error **err) nonnull(1, 2, 4);
must_check int json_load(int dir_fd, const char *path, size_t max_bytes, json_t **ret,
                         struct error **err) nonnull(2, 4);

/* Keys sorted, no spaces, one line: the form that is hashed. Invalid UTF-8 cannot occur: see
 * json_text(). */
void json_write_canonical(struct buf *buf, const json_t *value) nonnull(1, 2);
/* Insertion order, two spaces, final newline: the form that people read. */
void json_write_pretty(struct buf *buf, const json_t *value) nonnull(1, 2);
/* Insertion order, one line, no newline. */
void json_write_line(struct buf *buf, const json_t *value) nonnull(1, 2);

/* A JSON string from any bytes: invalid UTF-8 and NUL become U+FFFD. New reference. */
json_t *json_text(const void *bytes, size_t size);
json_t *json_text_or_null(const char *s); /* NULL becomes null */
/* object[key] = value, the reference is taken; aborts when out of memory. */
void json_put(json_t *object, const char *key, json_t *value) nonnull(1, 2, 3);
void json_put_text(json_t *object, const char *key, const char *s) nonnull(1, 2);
void json_put_int(json_t *object, const char *key, int64_t n) nonnull(1, 2);
void json_put_real(json_t *object, const char *key, double n) nonnull(1, 2);
void json_put_bool(json_t *object, const char *key, bool b) nonnull(1, 2);
/* array += value, the reference is taken. */
void json_push(json_t *array, json_t *value) nonnull(1, 2);

/* Borrowed members with a type check; NULL/default when absent or null or of another type. */
const char *json_get_text(const json_t *object, const char *key);
int64_t json_get_int(const json_t *object, const char *key, int64_t otherwise);
double json_get_real(const json_t *object, const char *key, double otherwise);
bool json_get_bool(const json_t *object, const char *key, bool otherwise);
json_t *json_get_object(const json_t *object, const char *key);
json_t *json_get_array(const json_t *object, const char *key);
