/*
 * Fuzz target: the first byte gives the comments, a NUL ends the first text, the rest is the
 * second.
 *
 * Scores lie in 0..1, are the same both ways, and 1 of a text with itself; the scan ends.
 */
#include "grade/similarity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const char *text = (const char *)data + 1;
    const char *split = memchr(text, '\0', size - 1);
    size_t first = split == NULL ? size - 1 : (size_t)(split - text);
    size_t rest = split == NULL ? 0 : size - 1 - first - 1;
    struct similarity_text a = {text, first, data[0] & 7u};
    struct similarity_text b = {split == NULL ? "" : split + 1, rest, data[0] & 7u};

    for (int i = SIMILARITY_TOKEN; i <= (int)SIMILARITY_COMPLEXITY; i++) {
        enum similarity_method method = (enum similarity_method)i;
        double score = similarity(method, &a, &b);

        ASSERT(score >= 0 && score <= 1);
        ASSERT(!(score < similarity(method, &b, &a)) && !(score > similarity(method, &b, &a)));
        ASSERT(!(similarity(method, &a, &a) < 1));
    }
    return 0;
}
