#pragma once
/*
 * keys: the secrets of model endpoints, in the broker's memory only.
 *
 * Names and values from up to three texts; the first that names a key has the say. Values are wiped
 * when they are freed. None is ever in a message of an error or a log. Depends on: base.
 * Limits: KEYS_MAX, KEYS_BYTES_MAX.
 */

#include "base/error.h"

#define KEYS_MAX 64
#define KEYS_BYTES_MAX ((size_t)64 << 10) /* of a file */
#define KEY_BYTES_MAX ((size_t)8192)

struct key {
    char *name, *value;
};
struct keys {
    struct key items[KEYS_MAX];
    size_t count;
};

enum keys_form {
    KEYS_ENV,  /* NAME=value; `export ` before it, quotes around the value, # lines are fine */
    KEYS_YAML, /* NAME: value, one a line; quotes around the value, # lines are fine */
};

/*
 * Adds what the text names and *keys lacks. Lines of KEYS_ENV that are no key of a model are left
 * out (a .env holds all sorts of things); in KEYS_YAML they are ERROR_USER, with name and line.
 */
must_check int keys_parse(struct keys *keys, enum keys_form form, const char *name,
                          const char *text, struct error **err) nonnull(1, 3, 4);
/*
 * The same from a descriptor. One that is no regular file holds nothing. KEYS_YAML: ERROR_USER
 * when others than its owner may read or write it.
 */
must_check int keys_read(struct keys *keys, enum keys_form form, const char *name, int fd,
                         struct error **err) nonnull(1, 3);
/* NULL when there is none. */
const char *keys_get(const struct keys *keys, const char *name) nonnull(1, 2);
void keys_done(struct keys *keys) nonnull(1);

/*
 * Moves the keys that the environment of this process has under these names (NULL-terminated) into
 * a file of memory, as KEYS_ENV text, and wipes them from the environment. *ret is the caller's.
 */
must_check int keys_take_env(const char *const *names, int *ret, struct error **err) nonnull(1, 2);
