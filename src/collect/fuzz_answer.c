/*
 * The worker's answer to `read`, as closedbook parses it. Property: refused with a reason, or the
 * content is exactly what follows the first line.
 */

#include "base/mem.h"
#include "collect/collect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(mem_freep) char *text = mem_dup(size > 0 ? (const void *)data : "", size_max(size, 1));
    scoped(collect_file_done) struct collect_file file = {0};
    scoped(error_freep) struct error *err = NULL;
    int r = collect_file_parse(text, size, &file, &err);

    ASSERT((r < 0) == (err != NULL));
    if (r < 0)
        return 0;
    const char *newline = memchr(text, '\n', size);

    ASSERT(newline != NULL && file.content.size_bytes == size - (size_t)(newline + 1 - text));
    return 0;
}
