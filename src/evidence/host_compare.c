#include "base/mem.h"
#include "evidence/host_internal.h"

static const char *type_name(mode_t mode)
{
    return S_ISREG(mode)   ? "file"
           : S_ISDIR(mode) ? "folder"
           : S_ISLNK(mode) ? "link"
                           : "special file";
}

/* Appends what differs, comma-separated. */
static void describe(const struct host_entry *was, const struct host_entry *is, struct buf *buf)
{
    bool contents = was->has_digest && is->has_digest && !sha256_equal(&was->digest, &is->digest);
    bool times = was->modified_ns != is->modified_ns || was->changed_ns != is->changed_ns ||
                 was->inode != is->inode || was->device != is->device;

    if ((was->mode & S_IFMT) != (is->mode & S_IFMT))
        buf_format(buf, ", %s -> %s", type_name(was->mode), type_name(is->mode));
    else if (was->mode != is->mode)
        buf_format(buf, ", mode %04o -> %04o", (unsigned)(was->mode & 07777),
                   (unsigned)(is->mode & 07777));
    if (was->uid != is->uid || was->gid != is->gid)
        buf_format(buf, ", owner %u:%u -> %u:%u", (unsigned)was->uid, (unsigned)was->gid,
                   (unsigned)is->uid, (unsigned)is->gid);
    if (was->loose || is->loose)
        return;
    if (was->size_bytes != is->size_bytes)
        buf_format(buf, ", size %llu -> %llu", (unsigned long long)was->size_bytes,
                   (unsigned long long)is->size_bytes);
    if (contents)
        buf_text_append(buf, ", content");
    if (times)
        buf_text_append(buf, ", times");
}

static void add(struct host_differences *differences, const char *what, const char *path)
{
    if (differences->count++ < HOST_DIFFERENCES_MAX)
        str_list_add_take(&differences->lines, str_format("%s: %s", what, path));
}

static void compare_entry(const struct host_entry *was, const struct host_entry *is,
                          struct host_differences *differences)
{
    scoped(buf_done) struct buf what = {0};

    describe(was, is, &what);
    if (what.size_bytes == 0)
        return;
    scoped(mem_freep) char *whole = str_format("changed (%s)", buf_text(&what) + 2);

    add(differences, whole, is->path);
}

void host_snapshot_compare(const struct host_snapshot *before, const struct host_snapshot *after,
                           struct host_differences *ret)
{
    struct host_differences differences = {0};
    size_t i = 0, j = 0;

    while (i < before->count || j < after->count) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : strcmp(before->entries[i].path, after->entries[j].path);

        if (order == 0)
            compare_entry(&before->entries[i], &after->entries[j], &differences);
        else if (order < 0)
            add(&differences, "removed", before->entries[i].path);
        else
            add(&differences, "added", after->entries[j].path);
        i += order <= 0;
        j += order >= 0;
    }
    *ret = differences;
}

void host_differences_done(struct host_differences *differences)
{
    str_list_done(&differences->lines);
    *differences = (struct host_differences){0};
}
