#include "collect/manifest.h"

#include "base/mem.h"
#include "base/str.h"

/* '/' is below every byte that a name can hold, the end is below '/'. */
static int order_of(char c)
{
    if (c == '\0')
        return -1;
    if (c == '/')
        return 0;
    return (unsigned char)c;
}

int manifest_path_compare(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return order_of(*a) - order_of(*b);
}

bool manifest_path_below(const char *path, const char *ancestor)
{
    size_t length = strlen(ancestor);

    return strncmp(path, ancestor, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

size_t manifest_lower_bound(const struct manifest *manifest, const char *path)
{
    size_t low = 0, high = manifest->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (manifest_path_compare(manifest->entries[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct manifest_entry *manifest_find(const struct manifest *manifest, const char *path)
{
    size_t i = manifest_lower_bound(manifest, path);

    if (i == manifest->count || strcmp(manifest->entries[i].path, path) != 0)
        return NULL;
    return &manifest->entries[i];
}

/* The capacity is the next power of two, so that it need not be kept. */
static struct manifest_entry *next_slot(struct manifest *manifest)
{
    size_t count = manifest->count;

    ASSERT(count < MANIFEST_ENTRIES_MAX);
    if ((count & (count - 1)) == 0)
        manifest->entries =
            mem_resize(manifest->entries, count == 0 ? 1 : 2 * count, sizeof(*manifest->entries));
    manifest->count++;
    return &manifest->entries[count];
}

void manifest_add(struct manifest *manifest, const struct manifest_entry *entry)
{
    struct manifest_entry *slot = next_slot(manifest);

    *slot = *entry;
    slot->path = str_dup(entry->path);
    slot->target = entry->target == NULL ? NULL : str_dup(entry->target);
    if (entry->type == MANIFEST_FILE)
        manifest->bytes += entry->size_bytes;
}

static void entry_done(struct manifest_entry *entry)
{
    free(entry->path);
    free(entry->target);
}

void manifest_done(struct manifest *manifest)
{
    for (size_t i = 0; i < manifest->count; i++)
        entry_done(&manifest->entries[i]);
    free(manifest->entries);
    *manifest = (struct manifest){0};
}

struct numbered {
    struct manifest_entry entry;
    size_t index;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int order = manifest_path_compare(x->entry.path, y->entry.path);

    if (order != 0)
        return order;
    return x->index < y->index ? -1 : 1;
}

static bool is_sorted(const struct manifest *manifest)
{
    for (size_t i = 1; i < manifest->count; i++)
        if (manifest_path_compare(manifest->entries[i - 1].path, manifest->entries[i].path) >= 0)
            return false;
    return true;
}

static void sort_and_unify(struct manifest *manifest)
{
    if (is_sorted(manifest))
        return;
    size_t count = manifest->count, kept = 0;
    scoped(mem_freep) struct numbered *all = mem_new(count, sizeof(*all));

    for (size_t i = 0; i < count; i++)
        all[i] = (struct numbered){.entry = manifest->entries[i], .index = i};
    qsort(all, count, sizeof(*all), compare_numbered);
    manifest->bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && strcmp(all[i].entry.path, all[i + 1].entry.path) == 0) {
            entry_done(&all[i].entry);
            continue;
        }
        manifest->entries[kept++] = all[i].entry;
        if (all[i].entry.type == MANIFEST_FILE)
            manifest->bytes += all[i].entry.size_bytes;
    }
    /* Shrinking breaks the rule that the capacity is the next power of two; a resize restores it.
     */
    size_t capacity = 1;

    while (capacity < kept)
        capacity *= 2;
    manifest->entries = mem_resize(manifest->entries, capacity, sizeof(*manifest->entries));
    manifest->count = kept;
}

/* Adds the missing ancestors of one path; returns how many. */
static size_t add_parents(struct manifest *manifest, size_t sorted_count, const char *path)
{
    struct manifest sorted = {.entries = manifest->entries, .count = sorted_count};
    scoped(mem_freep) char *parent = str_dup(path);
    size_t added = 0;

    for (char *slash; (slash = strrchr(parent, '/')) != NULL;) {
        *slash = '\0';
        sorted.entries = manifest->entries;
        if (manifest_find(&sorted, parent) != NULL)
            break;
        manifest_add(manifest,
                     &(struct manifest_entry){.path = parent, .type = MANIFEST_DIR, .mode = 0755});
        added++;
    }
    return added;
}

void manifest_sort(struct manifest *manifest)
{
    sort_and_unify(manifest);

    size_t sorted_count = manifest->count, added = 0;

    for (size_t i = 0; i < sorted_count; i++)
        added += add_parents(manifest, sorted_count, manifest->entries[i].path);
    if (added > 0)
        sort_and_unify(manifest);
}

/* True when entry i of lower is not hidden by upper. */
static bool shows_through(const struct manifest *upper, const char *path)
{
    if (manifest_find(upper, path) != NULL)
        return false;
    scoped(mem_freep) char *parent = str_dup(path);

    for (char *slash; (slash = strrchr(parent, '/')) != NULL;) {
        *slash = '\0';
        const struct manifest_entry *above = manifest_find(upper, parent);

        if (above != NULL)
            return above->type == MANIFEST_DIR;
    }
    return true;
}

void manifest_compose(const struct manifest *lower, const struct manifest *upper,
                      struct manifest *ret)
{
    struct manifest result = {0};
    size_t i = 0, j = 0;

    while (i < lower->count || j < upper->count) {
        if (j == upper->count ||
            (i < lower->count &&
             manifest_path_compare(lower->entries[i].path, upper->entries[j].path) < 0)) {
            if (shows_through(upper, lower->entries[i].path))
                manifest_add(&result, &lower->entries[i]);
            i++;
            continue;
        }
        if (i < lower->count && strcmp(lower->entries[i].path, upper->entries[j].path) == 0)
            i++;
        manifest_add(&result, &upper->entries[j]);
        j++;
    }
    *ret = result;
}
