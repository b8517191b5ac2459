#pragma once
/*
 * readings: the other ways in which bytes can be read: decoded base64 and hexadecimal digits, text
 * without its escapes (C, JSON, URL, HTML, terminal colours) and without line numbers, and what a
 * compressed file or an archive holds.
 *
 * Readings of readings are made, too, READING_LEVELS_MAX deep, within a budget of bytes. UTF-16 and
 * wrapped lines need none of their own: fingerprints do not see the difference (fingerprint.h).
 * The bytes may be anybody's. Archives are not opened here: the caller says how, since their
 * parsers belong into a cell. Depends on: base.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/error.h"

#define READING_LEVELS_MAX 2
#define READING_BYTES_MAX ((size_t)256 << 20) /* of all readings of one text */
#define READING_DIGITS_MIN 64                 /* fewer of base64 or hexadecimal are not decoded */

struct readings {
    /*
     * Called with each reading, but not with the text itself. how: "base64", "gzip in base64";
     * borrowed, as is the text.
     */
    void (*visit)(void *context, const char *how, const char *text, size_t size);
    /*
     * Appends the members of an archive, each as READING_MEMBER_FORMAT says. NULL: archives are not
     * opened. Bytes that turn out to be none are no error.
     */
    int (*unpack)(void *context, const char *bytes, size_t size, struct buf *ret,
                  struct error **err);
    void *context;
};

/* A member: eight digits of hexadecimal with the name's size, sixteen with the content's, both. */
#define READING_MEMBER_FORMAT "%08zx%016zx"
#define READING_MEMBER_HEAD 24

/* An error is one of unpack. */
must_check int readings_each(const struct readings *readings, const char *text, size_t size,
                             struct error **err) nonnull(1, 2);
/* "gzip", "zip", ...; NULL: it does not begin like what closedbook-unpack opens. */
const char *reading_archive_kind(const char *bytes, size_t size) nonnull(1);

/* The single readings, for tests: each appends, and returns false when there was nothing to do. */
bool reading_unescape(const char *text, size_t size, struct buf *ret) nonnull(1, 3);
bool reading_without_numbers(const char *text, size_t size, struct buf *ret) nonnull(1, 3);
