#include "collect/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/tar.h"

#define COPY_BYTES ((size_t)256 << 10)

/* A directory that gets its mode at the end: until then its owner may write in it. */
struct late_mode {
    char *path;
    mode_t mode;
    bool is_wanted; /* by the archive: comes before a mode that was there */
    size_t number;  /* then the last of a path counts */
};

struct applying {
    int workspace_fd;
    struct late_mode *late;
    size_t late_count, late_capacity;
    char *parent; /* the folder of the entry handled last */
    int parent_fd;
    char *bytes; /* COPY_BYTES */
};

static void applying_done(struct applying *applying)
{
    for (size_t i = 0; i < applying->late_count; i++)
        free(applying->late[i].path);
    free(applying->late);
    free(applying->parent);
    free(applying->bytes);
    fd_closep(&applying->parent_fd);
}

static int failed(int errno_value, const char *what, const char *path, struct error **err)
{
    scoped(buf_done) struct buf name = {0};

    manifest_escape(&name, path);
    return error_errno(err, errno_value, "cannot %s '%s'", what, buf_text(&name));
}

static void set_late(struct applying *applying, const char *path, mode_t mode, bool is_wanted)
{
    if (applying->late_count == applying->late_capacity) {
        applying->late_capacity = applying->late_capacity == 0 ? 16 : 2 * applying->late_capacity;
        applying->late =
            mem_resize(applying->late, applying->late_capacity, sizeof(*applying->late));
    }
    applying->late[applying->late_count] = (struct late_mode){.path = str_dup(path),
                                                              .mode = mode,
                                                              .is_wanted = is_wanted,
                                                              .number = applying->late_count};
    applying->late_count++;
}

static void forget_parent(struct applying *applying)
{
    fd_closep(&applying->parent_fd);
    free(applying->parent);
    applying->parent = NULL;
}

/* A folder's mode. Where modes of paths cannot be set (tier C), by descriptor. */
static bool set_mode(const struct applying *applying, const char *path, mode_t mode)
{
    if (fchmodat(applying->workspace_fd, path, mode, 0) == 0)
        return true;
    if (errno != EPERM)
        return false;
    scoped(fd_closep) int fd =
        fs_open_beneath(applying->workspace_fd, path, O_RDONLY | O_DIRECTORY, 0, FS_NO_LINKS);

    if (fd < 0)
        return false; /* errno still says that it is not permitted */
    return fchmod(fd, mode) == 0;
}

/* Gives the owner his rights on a folder and all above it; the modes come back at the end. */
static int open_up(struct applying *applying, const char *folder, struct error **err)
{
    for (const char *slash = folder; *slash != '\0';) {
        slash += *slash == '/';
        slash += strcspn(slash, "/");
        scoped(mem_freep) char *path = str_ndup(folder, (size_t)(slash - folder));
        struct stat status;

        if (fstatat(applying->workspace_fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
            return failed(errno, "look at", path, err);
        if (!S_ISDIR(status.st_mode) || (status.st_mode & 0700) == 0700)
            continue;
        if (!set_mode(applying, path, (status.st_mode & 07777) | 0700))
            return failed(errno, "open up", path, err);
        set_late(applying, path, status.st_mode & 07777, false);
    }
    return 0;
}

static bool is_writable_dir(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (status.st_mode & 0700) == 0700;
}

/*
 * Opens the folder that path lies in and makes it writable; it stays open for its next entry.
 * parent_fd is -1 when there is no such folder.
 */
static int open_parent(struct applying *applying, const char *path, struct error **err)
{
    scoped(mem_freep) char *parent = path_dir(path);
    int flags = O_RDONLY | O_DIRECTORY;

    if (applying->parent != NULL && str_equal(parent, applying->parent))
        return 0;
    forget_parent(applying);
    int fd = fs_open_beneath(applying->workspace_fd, parent, flags, 0, FS_NO_LINKS);

    if (fd == -EACCES || (fd >= 0 && !is_writable_dir(fd))) {
        if (fd >= 0)
            (void)close(fd); /* only looked at */
        int r = open_up(applying, parent, err);

        if (r < 0)
            return r;
        fd = fs_open_beneath(applying->workspace_fd, parent, flags, 0, FS_NO_LINKS);
    }
    if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR)
        return failed(-fd, "open", parent, err);
    applying->parent_fd = fd < 0 ? -1 : fd;
    applying->parent = take(parent);
    return 0;
}

static int delete_path(struct applying *applying, const char *path, struct error **err)
{
    int r = open_parent(applying, path, err);

    if (r < 0 || applying->parent_fd < 0)
        return r;
    const char *name = path_base(path);

    if (unlinkat(applying->parent_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return failed(errno, "delete", path, err);
    if (unlinkat(applying->parent_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return failed(errno, "delete", path, err);
}

static int delete_listed(struct applying *applying, const json_t *changes, struct error **err)
{
    const json_t *deleted = json_get_array(changes, "deleted");

    if (!str_equal(json_get_text(changes, "schema"), "closedbook/changes/1"))
        return error_set(err, ERROR_SYSTEM, "changes.json: not closedbook/changes/1");

    if (deleted == NULL)
        return error_set(err, ERROR_SYSTEM, "changes.json: no list of deleted paths");
    /* From the end: what is in a directory goes before it. */
    for (size_t i = json_array_size(deleted); i-- > 0;) {
        const char *text = json_string_value(json_array_get(deleted, i));
        scoped(mem_freep) char *path = text == NULL ? NULL : manifest_unescape(text);

        if (path == NULL || !path_is_inside(path))
            return error_set(err, ERROR_SYSTEM, "changes.json: deleted[%zu] is no path", i);
        int r = delete_path(applying, path, err);

        if (r < 0)
            return r;
    }
    forget_parent(applying);
    return 0;
}

/* Makes room at path for an entry; *ret_exists: it is a directory there and one is wanted. */
static int make_room(struct applying *applying, const struct tar_entry *entry, bool *ret_exists,
                     struct error **err)
{
    const char *name = path_base(entry->path);
    struct stat status;

    *ret_exists = false;
    if (fstatat(applying->parent_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : failed(errno, "look at", entry->path, err);
    if (S_ISDIR(status.st_mode) && entry->type == MANIFEST_DIR) {
        *ret_exists = true;
        return 0;
    }
    return fs_remove_tree(applying->parent_fd, name, err);
}

static int copy_content(struct applying *applying, int archive_fd, uint64_t offset,
                        const struct tar_entry *entry, int to, struct error **err)
{
    for (uint64_t done = 0; done < entry->size_bytes;) {
        ssize_t n = pread(archive_fd, applying->bytes,
                          size_min(entry->size_bytes - done, COPY_BYTES), (off_t)(offset + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(n < 0 ? errno : EIO, "read from the archive", entry->path, err);
        int r = fs_write_all(to, entry->path, applying->bytes, (size_t)n, err);

        if (r < 0)
            return r;
        done += (uint64_t)n;
    }
    return 0;
}

static int make_file(struct applying *applying, int archive_fd, uint64_t offset,
                     const struct tar_entry *entry, struct error **err)
{
    scoped(fd_closep) int to = openat(applying->parent_fd, path_base(entry->path),
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (to < 0)
        return failed(errno, "make", entry->path, err);
    int r = copy_content(applying, archive_fd, offset, entry, to, err);

    if (r == 0 && fchmod(to, entry->mode) < 0)
        return failed(errno, "finish", entry->path, err);
    return r;
}

static int make_entry(struct applying *applying, int archive_fd, uint64_t offset,
                      const struct tar_entry *entry, struct error **err)
{
    const char *name = path_base(entry->path);
    bool exists;
    int r = open_parent(applying, entry->path, err);

    if (r < 0)
        return r;
    if (applying->parent_fd < 0)
        return error_set(err, ERROR_SYSTEM, "artifacts.tar: '%s' has no folder in the workspace",
                         entry->path);
    r = make_room(applying, entry, &exists, err);
    if (r < 0)
        return r;
    switch (entry->type) {
    case MANIFEST_FILE:
        return make_file(applying, archive_fd, offset, entry, err);
    case MANIFEST_LINK:
        return symlinkat(entry->target, applying->parent_fd, name) < 0
                   ? failed(errno, "make", entry->path, err)
                   : 0;
    case MANIFEST_DIR:
        if (!exists && mkdirat(applying->parent_fd, name, 0700) < 0)
            return failed(errno, "make", entry->path, err);
        set_late(applying, entry->path, entry->mode, true);
        return 0;
    }
    return 0;
}

static int make_entries(struct applying *applying, int archive_fd, struct error **err)
{
    scoped(tar_reader_done) struct tar_reader reader = {0};
    int r = tar_reader_init(&reader, archive_fd, "artifacts.tar", err);

    while (r >= 0) {
        struct tar_entry entry;
        uint64_t offset;

        r = tar_reader_next(&reader, &entry, &offset, err);
        if (r <= 0)
            return r;
        r = make_entry(applying, archive_fd, offset, &entry, err);
    }
    return r;
}

static int compare_late(const void *a, const void *b)
{
    const struct late_mode *x = a, *y = b;
    int order = manifest_path_compare(y->path, x->path);

    if (order == 0)
        order = y->is_wanted - x->is_wanted;
    return order != 0 ? order : (x->number > y->number ? -1 : 1);
}

/* What is deepest first, so that no folder is closed before what is in it. */
static int set_modes(struct applying *applying, struct error **err)
{
    struct late_mode *late = applying->late;

    if (applying->late_count > 1)
        qsort(late, applying->late_count, sizeof(*late), compare_late);
    for (size_t i = 0; i < applying->late_count; i++) {
        struct stat status;

        if (i > 0 && strcmp(late[i - 1].path, late[i].path) == 0)
            continue; /* the last word on it came first */
        if (fstatat(applying->workspace_fd, late[i].path, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISDIR(status.st_mode))
            continue; /* deleted or replaced since */
        if (!set_mode(applying, late[i].path, late[i].mode))
            return failed(errno, "finish", late[i].path, err);
    }
    return 0;
}

int apply_changes(int workspace_fd, int archive_fd, int changes_fd, struct error **err)
{
    scoped(applying_done) struct applying applying = {
        .workspace_fd = workspace_fd,
        .parent_fd = -1,
        .bytes = mem_new(COPY_BYTES, 1),
    };
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *changes = NULL;
    int r = fs_read_fd(changes_fd, "changes.json", APPLY_CHANGES_BYTES_MAX, &text, err);

    if (r == 0)
        r = json_parse("changes.json", buf_text(&text), text.size_bytes, &changes, err);
    if (r == 0)
        r = delete_listed(&applying, changes, err);
    if (r == 0)
        r = make_entries(&applying, archive_fd, err);
    if (r == 0)
        r = set_modes(&applying, err);
    return r;
}
