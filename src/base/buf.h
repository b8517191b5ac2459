#pragma once
/*
 * buf: a growing run of bytes with a cap.
 *
 * data is NUL-terminated after every call (the NUL is not counted), so a buf of text is a C string.
 * Past the cap nothing more is appended and `overflowed` stays true: callers that care check it
 * once.
 */

#include <stdarg.h>

#include "base/base.h"

struct buf {
    char *data; /* never NULL after the first append; use buf_text() to be sure */
    size_t size_bytes;
    size_t capacity_bytes;
    size_t max_bytes; /* 0 means BUF_BYTES_MAX */
    bool overflowed;
};

#define BUF_BYTES_MAX ((size_t)1 << 30)

void buf_append(struct buf *buf, const void *bytes, size_t size) nonnull(1);
void buf_text_append(struct buf *buf, const char *s) nonnull(1, 2);
void buf_char(struct buf *buf, char c) nonnull(1);
void buf_format(struct buf *buf, const char *fmt, ...) printf_like(2, 3);
void buf_vformat(struct buf *buf, const char *fmt, va_list args)
    __attribute__((format(printf, 2, 0)));
/* RFC 4648, with padding, in one line. */
void buf_base64(struct buf *buf, const void *bytes, size_t size) nonnull(1);
/* Back to empty, memory and cap kept. */
void buf_clear(struct buf *buf) nonnull(1);
/* The text, "" when nothing was appended. The buf owns it. */
const char *buf_text(const struct buf *buf) nonnull(1);
/* The text as an owned string; the buf is empty afterwards. */
char *buf_take(struct buf *buf) malloc_like nonnull(1);
void buf_done(struct buf *buf) nonnull(1);
