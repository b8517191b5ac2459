#include "agent/wire_lines.h"

#include <errno.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define BLOCK_BYTES ((size_t)64 << 10)
#define HEAD_BYTES ((size_t)160) /* within which a line says its kind */

bool wire_line_is(const char *text, size_t size, const char *kind)
{
    scoped(mem_freep) char *head = str_ndup(text, size_min(size, HEAD_BYTES));
    scoped(mem_freep) char *spaced = str_format("\"kind\": \"%s\"", kind);
    scoped(mem_freep) char *dense = str_format("\"kind\":\"%s\"", kind);

    return strstr(head, spaced) != NULL || strstr(head, dense) != NULL;
}

static int take_lines(struct buf *pending, wire_line_visit *visit, void *context,
                      struct error **err)
{
    size_t from = 0;
    const char *text = buf_text(pending), *end = NULL;

    while ((end = memchr(text + from, '\n', pending->size_bytes - from)) != NULL) {
        size_t size = (size_t)(end - (text + from));
        int r = visit(context, text + from, size, err);

        if (r < 0)
            return r;
        from += size + 1;
    }
    if (from > 0) {
        struct buf rest = {.max_bytes = pending->max_bytes};

        buf_append(&rest, text + from, pending->size_bytes - from);
        buf_done(pending);
        *pending = rest;
    }
    return 0;
}

int wire_lines_each(int fd, wire_line_visit *visit, void *context, struct error **err)
{
    scoped(buf_done) struct buf pending = {.max_bytes = WIRE_LINE_BYTES_MAX};
    scoped(mem_freep) char *block = mem_new(BLOCK_BYTES, 1);

    for (;;) {
        ssize_t count = read(fd, block, BLOCK_BYTES);

        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_errno(err, errno, "cannot read wire.jsonl");
        if (count == 0)
            break;
        buf_append(&pending, block, (size_t)count);
        if (pending.overflowed)
            return error_set(err, ERROR_SYSTEM, "wire.jsonl has a line that is too long");
        if (memchr(block, '\n', (size_t)count) == NULL)
            continue;
        int r = take_lines(&pending, visit, context, err);

        if (r < 0)
            return r;
    }
    if (pending.size_bytes > 0)
        return error_set(err, ERROR_SYSTEM, "wire.jsonl ends within a line");
    return 0;
}
