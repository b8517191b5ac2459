#include "base/mem.h"

/* Nothing can be freed safely from here, and a message may need memory: write(2) and abort. */
_Noreturn static void out_of_memory(void)
{
    static const char text[] = "closedbook: out of memory\n";

    /* Nobody is left to tell when stderr is gone. */
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        abort();
    abort();
}

void *mem_new(size_t count, size_t size)
{
    /* calloc(0) may return NULL, which is no failure: one byte keeps the promise. */
    void *pointer = count == 0 || size == 0 ? calloc(1, 1) : calloc(count, size);

    if (pointer == NULL)
        out_of_memory();
    return pointer;
}

void *mem_resize(void *pointer, size_t count, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory();
    void *resized = realloc(pointer, bytes == 0 ? 1 : bytes);

    if (resized == NULL)
        out_of_memory();
    return resized;
}

void *mem_dup(const void *source, size_t size)
{
    void *copy = mem_new(1, size);

    if (size > 0)
        memcpy(copy, source, size);
    return copy;
}

void mem_freep(void *pointer)
{
    void *value;

    /* pointer is the address of a pointer of any type; memcpy keeps within the aliasing rules. */
    memcpy(&value, pointer, sizeof(value));
    free(value);
    value = NULL;
    memcpy(pointer, &value, sizeof(value));
}
