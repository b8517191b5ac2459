#pragma once
/* wire_lines: wire.jsonl line by line, whatever its size. Depends on: base. */

#include "base/error.h"

#define WIRE_LINE_BYTES_MAX ((size_t)512 << 20) /* of one line of wire.jsonl */

typedef int wire_line_visit(void *context, const char *text, size_t size, struct error **err);
/* From the file's offset on. ERROR_SYSTEM for a line that is too long, or has no end. */
must_check int wire_lines_each(int fd, wire_line_visit *visit, void *context, struct error **err)
    nonnull(2);
/* Whether the line, which is not parsed, says to be of this kind. */
bool wire_line_is(const char *text, size_t size, const char *kind) nonnull(1, 3);
