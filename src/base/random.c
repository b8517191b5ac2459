#include <errno.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/mem.h"

/* More is no name any more. getrandom() gives up to 256 bytes in one piece. */
#define RANDOM_BYTES_MAX 256

char *random_hex(size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[RANDOM_BYTES_MAX];

    ASSERT(bytes <= sizeof(random));
    char *text = mem_new(bytes * 2 + 1, 1);
    ssize_t n;

    do
        n = getrandom(random, bytes, 0);
    while (n < 0 && errno == EINTR);
    ASSERT(n == (ssize_t)bytes);
    for (size_t i = 0; i < bytes; i++) {
        text[2 * i] = digits[random[i] >> 4];
        text[2 * i + 1] = digits[random[i] & 15];
    }
    return text;
}
