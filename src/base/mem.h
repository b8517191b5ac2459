#pragma once
/*
 * mem: heap memory that never fails: out of memory aborts. Sizes from input are capped before.
 */

#include "base/base.h"

/* count zeroed elements of size bytes; aborts on overflow. */
void *mem_new(size_t count, size_t size) malloc_like;
/* Resizes; new bytes are not zeroed. pointer may be NULL. */
void *mem_resize(void *pointer, size_t count, size_t size) must_check;
void *mem_dup(const void *source, size_t size) malloc_like;

/* For scoped(): frees *pointer, whatever its type. */
void mem_freep(void *pointer);
