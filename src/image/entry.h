#pragma once
/*
 * entry: what the name of an entry in a layer means: a path of the image, or a mark that hides what
 * lower layers have.
 *
 * Names are hostile: nothing here opens anything. A path is taken from the root of the image,
 * whether it begins with "/", "./" or neither; ".." in it is an error. Depends on: base.
 */

#include "base/base.h"
#include "base/error.h"

#define ENTRY_PATH_BYTES_MAX 4095
#define ENTRY_NAME_BYTES_MAX 255

enum entry_kind {
    ENTRY_PLAIN,
    ENTRY_ROOT,     /* the image's root itself: parent and base are "" */
    ENTRY_WHITEOUT, /* ".wh.NAME": base is NAME, which lower layers lose */
    ENTRY_OPAQUE,   /* ".wh..wh..opq": parent loses all that lower layers have; base is "" */
    ENTRY_IGNORED,  /* ".wh..wh.*": book-keeping of some union file systems */
};

struct entry_name {
    enum entry_kind kind;
    char *parent; /* relative, without "." and empty parts; "" is the root */
    char *base;
};

/* ERROR_TASK says what is wrong with the name; *ret is the caller's: entry_name_done(). */
must_check int entry_name_parse(const char *name, struct entry_name *ret, struct error **err)
    nonnull(1, 2);
void entry_name_done(struct entry_name *name) nonnull(1);
