#include "task/arena.h"

#include <stdarg.h>

#include "base/mem.h"

#define ARENA_ALIGN 16
#define ARENA_BLOCK_BYTES ((size_t)16 << 10)

struct arena_block {
    struct arena_block *before;
    size_t size_bytes;
    _Alignas(ARENA_ALIGN) char bytes[];
};

void *arena_new(struct arena *arena, size_t count, size_t size)
{
    size_t bytes;

    ASSERT(!__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2);
    bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (bytes == 0)
        bytes = ARENA_ALIGN;
    if (bytes > arena->left_bytes) {
        size_t room = size_max(bytes, ARENA_BLOCK_BYTES);
        struct arena_block *block = mem_new(1, sizeof(*block) + room);

        block->before = arena->last;
        block->size_bytes = room;
        arena->last = block;
        arena->left_bytes = room;
    }
    char *place = arena->last->bytes + (arena->last->size_bytes - arena->left_bytes);

    arena->left_bytes -= bytes;
    return place;
}

char *arena_text(struct arena *arena, const char *s, size_t length)
{
    char *copy = arena_new(arena, length + 1, 1);

    memcpy(copy, s, length);
    return copy;
}

char *arena_format(struct arena *arena, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);

    va_end(args);
    ASSERT(length >= 0);
    char *text = arena_new(arena, (size_t)length + 1, 1);

    (void)vsnprintf(text, (size_t)length + 1, fmt, again); /* measured above */
    va_end(again);
    return text;
}

void *arena_grow(struct arena *arena, const void *items, size_t count, size_t size)
{
    /* Full exactly at 4, 8, 16, ...: the capacity needs no field of its own. */
    if (count != 0 && (count < 4 || (count & (count - 1)) != 0)) {
        void *same;

        memcpy(&same, &items, sizeof(same));
        return same;
    }
    void *grown = arena_new(arena, count == 0 ? 4 : count * 2, size);

    if (count > 0)
        memcpy(grown, items, count * size);
    return grown;
}

void arena_done(struct arena *arena)
{
    while (arena->last != NULL) {
        struct arena_block *before = arena->last->before;

        free(arena->last);
        arena->last = before;
    }
    arena->left_bytes = 0;
}
