/*
 * Input: a pattern, a newline, a path. Properties: a text without special characters matches itself
 * and nothing else; what lies below a match is within it, too; nothing takes long or reads too far.
 */

#include "base/mem.h"
#include "base/str.h"
#include "collect/glob.h"
#include "collect/tree.h"

#define INPUT_BYTES_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX || memchr(data, 0, size) != NULL)
        return 0;
    scoped(mem_freep) char *pattern = str_ndup((const char *)data, size);
    char *newline = strchr(pattern, '\n');

    if (newline == NULL)
        return 0;
    *newline = '\0';
    const char *path = newline + 1;
    struct glob glob;
    bool matches = glob_name_match(pattern, path);

    if (!glob_is_pattern(pattern))
        ASSERT(matches == (strcmp(pattern, path) == 0));
    if (glob_parse(pattern, &glob)) {
        scoped(mem_freep) char *below = str_format("%s/x", path);

        if (glob_relate(&glob, path) == GLOB_WITHIN)
            ASSERT(glob_relate(&glob, below) == GLOB_WITHIN);
        if (glob_relate(&glob, path) == GLOB_APART)
            ASSERT(glob_relate(&glob, below) == GLOB_APART);
        glob_done(&glob);
    }
    char *items[] = {pattern, NULL};
    struct str_list patterns = {items, 1};
    struct tree_rules rules = {.ignore = &patterns};

    (void)tree_is_ignored(&rules, path, true);
    return 0;
}
