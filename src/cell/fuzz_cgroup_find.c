/*
 * Any bytes as the kernel's texts of mounts and of cgroups, split at the first NUL: whatever is
 * found is an absolute path without "..", at or below its mount point.
 */

#include "base/mem.h"
#include "base/str.h"
#include "cell/cgroup_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t first = strnlen(text, size);
    scoped(mem_freep) char *mounts = str_ndup(text, first);
    scoped(mem_freep) char *membership =
        first < size ? str_ndup(text + first + 1, size - first - 1) : str_dup("0::/\n");
    struct cgroup_places places;

    cgroup_places_parse(mounts, membership, &places);
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        ASSERT(places.plain[i] == NULL || places.plain[i][0] == '/');
    ASSERT((places.unified == NULL) == (places.unified_top == NULL));
    ASSERT(places.unified == NULL || str_starts(places.unified, places.unified_top));
    cgroup_places_done(&places);
    return 0;
}
