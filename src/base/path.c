#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

char *path_join(const char *base, const char *path)
{
    if (path[0] == '/' || base[0] == '\0')
        return str_dup(path);
    if (path[0] == '\0')
        return str_dup(base);
    return str_format("%s%s%s", base, str_ends(base, "/") ? "" : "/", path);
}

/* The length of path without slashes at its end; "/" keeps its one. */
static size_t trimmed(const char *path, size_t length)
{
    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

char *path_dir(const char *path)
{
    size_t length = trimmed(path, strlen(path));

    while (length > 0 && path[length - 1] != '/')
        length--;
    if (length == 0)
        return str_dup(".");
    return str_ndup(path, trimmed(path, length));
}

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* The part of a path that starts at s: its length, up to the next slash or the end. */
static size_t part_length(const char *s)
{
    return strcspn(s, "/");
}

static bool is_dots(const char *part, size_t length, size_t dots)
{
    return length == dots && strncmp(part, "..", dots) == 0;
}

bool path_is_inside(const char *path)
{
    for (const char *part = path;;) {
        size_t length = part_length(part);

        if (length == 0 || is_dots(part, length, 2))
            return false;
        if (part[length] == '\0')
            return true;
        part += length + 1;
    }
}

/* Takes the last part off; false when there is none to take, or it is "..". */
static bool drop_last(struct buf *normal, size_t root_size)
{
    if (normal->size_bytes == root_size)
        return false;
    const char *last = path_base(normal->data);

    if (strcmp(last, "..") == 0)
        return false;
    size_t end = (size_t)(last - normal->data);

    normal->size_bytes = size_max(end > root_size ? end - 1 : end, root_size);
    normal->data[normal->size_bytes] = '\0';
    return true;
}

char *path_normal(const char *path)
{
    scoped(buf_done) struct buf normal = {0};
    bool absolute = path[0] == '/';
    size_t root_size = absolute ? 1 : 0;

    buf_text_append(&normal, absolute ? "/" : "");
    for (const char *part = path; *part != '\0';) {
        size_t length = part_length(part);
        bool up = is_dots(part, length, 2);

        if (length > 0 && !is_dots(part, length, 1) && !(up && drop_last(&normal, root_size)) &&
            !(up && absolute)) {
            if (normal.size_bytes > root_size)
                buf_char(&normal, '/');
            buf_append(&normal, part, length);
        }
        part += length + (part[length] == '/' ? 1 : 0);
    }
    if (normal.size_bytes == 0)
        buf_char(&normal, '.');
    return buf_take(&normal);
}
