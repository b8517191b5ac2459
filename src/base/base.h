#pragma once
/*
 * base: the words that every file of the project uses: attributes, scoped(), take(), ASSERT().
 *
 * No state, no dependencies but libc. Everything else in base/ includes this header first.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/banned.h"

#define must_check __attribute__((warn_unused_result))
#define nonnull(...) __attribute__((nonnull(__VA_ARGS__)))
#define printf_like(fmt_index, first) __attribute__((format(printf, fmt_index, first)))
#define unused_ok __attribute__((unused))
#define malloc_like __attribute__((malloc, returns_nonnull))

/*
 * Runs done(&variable) when the variable leaves its scope. That may be all it is for: clang would
 * call it unused.
 */
#define scoped(done) __attribute__((cleanup(done), unused))

/* Hands a scoped pointer over: yields its value and leaves NULL behind. */
#define take(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) *taken_from_ = &(pointer);                                             \
        __typeof__(pointer) taken_ = *taken_from_;                                                 \
        *taken_from_ = NULL;                                                                       \
        taken_;                                                                                    \
    })

/* Hands a scoped file descriptor over: yields it and leaves -1 behind. */
static inline int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* A programmer's error ends the program, in release builds too. */
_Noreturn void assert_failed(const char *expression, const char *file, int line);
#define ASSERT(expression)                                                                         \
    do {                                                                                           \
        if (!(expression))                                                                         \
            assert_failed(#expression, __FILE__, __LINE__);                                        \
    } while (0)

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}
