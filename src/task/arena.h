#pragma once
/*
 * arena: memory of trees that die together. Nothing in it is freed alone.
 *
 * A zeroed struct arena is empty and ready. Depends on: base.
 */

#include "base/base.h"

struct arena_block; /* opaque */
struct arena {
    struct arena_block *last;
    size_t left_bytes; /* free in the last block */
};

/* size zeroed bytes, aligned for any type. */
void *arena_new(struct arena *arena, size_t count, size_t size) malloc_like nonnull(1);
char *arena_text(struct arena *arena, const char *s, size_t length) malloc_like nonnull(1, 2);
char *arena_format(struct arena *arena, const char *fmt, ...) malloc_like printf_like(2, 3)
    nonnull(1, 2);
/* A copy of count elements with room for one more than before when the array is full. */
void *arena_grow(struct arena *arena, const void *items, size_t count, size_t size) malloc_like
    nonnull(1);
void arena_done(struct arena *arena) nonnull(1);
