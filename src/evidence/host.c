#include "evidence/host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/host_internal.h"

#define NS_PER_SECOND 1000000000

/* --- life ------------------------------------------------------------------------------------ */

void host_snapshot_free(struct host_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (size_t i = 0; i < snapshot->count; i++)
        free(snapshot->entries[i].path);
    free(snapshot->entries);
    free(snapshot);
}

void host_snapshot_freep(struct host_snapshot **snapshot)
{
    host_snapshot_free(*snapshot);
    *snapshot = NULL;
}

size_t host_snapshot_count(const struct host_snapshot *snapshot)
{
    return snapshot->count;
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct host_entry *)a)->path, ((const struct host_entry *)b)->path);
}

const struct host_entry *host_find(const struct host_snapshot *snapshot, const char *path)
{
    scoped(mem_freep) char *copy = str_dup(path);
    const struct host_entry key = {.path = copy};

    return snapshot->count == 0
               ? NULL
               : bsearch(&key, snapshot->entries, snapshot->count, sizeof(key), compare_entries);
}

/* --- looking ----------------------------------------------------------------------------------*/

struct look {
    const struct host_scope *scope;
    const struct host_snapshot *before; /* NULL: none */
    struct host_snapshot *snapshot;
    int64_t tick_ns; /* what changed from here on could change again without its times showing it */
    struct error **err;
};

static int64_t ns_of(struct timespec time)
{
    return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

static bool is_excepted(const struct look *look, const char *path)
{
    const struct str_list *except = look->scope->except;

    for (size_t i = 0; except != NULL && i < except->count; i++) {
        size_t length = strlen(except->items[i]);

        if (strncmp(path, except->items[i], length) == 0 &&
            (path[length] == '\0' || path[length] == '/'))
            return true;
    }
    return false;
}

static bool wants_digest(const struct look *look, const char *path, const struct stat *status)
{
    const struct host_entry *was = look->before == NULL ? NULL : host_find(look->before, path);

    if (!S_ISREG(status->st_mode))
        return false;
    return look->scope->all_contents || (was != NULL && was->has_digest) ||
           (look->before == NULL && ns_of(status->st_ctim) >= look->tick_ns);
}

static int add(struct look *look, const char *path, const struct stat *status, size_t *ret_index)
{
    struct host_snapshot *snapshot = look->snapshot;

    if (snapshot->count >= HOST_ENTRIES_MAX)
        return error_set(look->err, ERROR_LIMIT, "more than %zu paths to look at",
                         HOST_ENTRIES_MAX);
    if ((snapshot->count & (snapshot->count - 1)) == 0)
        snapshot->entries = mem_resize(snapshot->entries, size_max(snapshot->count * 2, 1),
                                       sizeof(*snapshot->entries));
    *ret_index = snapshot->count;
    snapshot->entries[snapshot->count++] = (struct host_entry){
        .path = str_dup(path),
        .mode = status->st_mode,
        .uid = status->st_uid,
        .gid = status->st_gid,
        .size_bytes = S_ISDIR(status->st_mode) ? 0 : (uint64_t)status->st_size,
        .inode = status->st_ino,
        .device = status->st_dev,
        .modified_ns = ns_of(status->st_mtim),
        .changed_ns = ns_of(status->st_ctim),
        .wants_digest = wants_digest(look, path, status),
    };
    return 0;
}

/* With the caller's rights, else with the reader's. Returns a descriptor or -errno. */
static int open_path(const struct look *look, int parent, const char *name, const char *path)
{
    const struct task_reader *reader = look->scope->reader;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 || (errno != EACCES && errno != EPERM))
        return fd < 0 ? -errno : fd;
    return reader->open(reader->context, path, O_DIRECTORY);
}

static int stat_path(const struct look *look, int parent, const char *name, const char *path,
                     struct stat *ret)
{
    const struct task_reader *reader = look->scope->reader;

    if (fstatat(parent, name, ret, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (errno != EACCES)
        return -errno;
    /* A link would be followed: nothing but its target's state is known then. */
    scoped(fd_closep) int fd = reader->open(reader->context, path, 0);

    if (fd < 0)
        return fd;
    return fstat(fd, ret) < 0 ? -errno : 0;
}

static int look_at(struct look *look, int parent, const char *name, const char *path,
                   unsigned depth);

struct level {
    struct look *look;
    const char *path;
    unsigned depth;
    bool is_loose;
};

static int visit(void *context, int dir_fd, const char *name, struct error **err)
{
    struct level *level = context;
    scoped(mem_freep) char *path =
        str_format("%s/%s", strcmp(level->path, "/") == 0 ? "" : level->path, name);

    (void)err; /* the same one as in look */
    if (is_excepted(level->look, path)) {
        level->is_loose = true;
        return 0;
    }
    int r = look_at(level->look, dir_fd, name, path, level->depth + 1);

    if (r > 0)
        level->is_loose = true;
    return r < 0 ? r : 0;
}

static bool is_run(int dir_fd)
{
    struct stat status;

    return fstatat(dir_fd, "run.json", &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* 0: it is an entry now; 1: it is not looked at. */
static int look_at(struct look *look, int parent, const char *name, const char *path,
                   unsigned depth)
{
    scoped(fd_closep) int fd = -1;
    struct level level = {.look = look, .path = path, .depth = depth};
    struct stat status;
    size_t index = 0;
    int r = stat_path(look, parent, name, path, &status);

    if (r == -ENOENT)
        return 0; /* gone between listing and looking: the other snapshot says so */
    if (r < 0)
        return error_errno(look->err, -r, "cannot look at '%s'", path);
    if (S_ISDIR(status.st_mode)) {
        fd = open_path(look, parent, name, path);
        if (fd < 0)
            return error_errno(look->err, -fd, "cannot look into '%s'", path);
        if (depth > 0 && is_run(fd))
            return 1;
    }
    r = add(look, path, &status, &index);
    if (r < 0 || fd < 0)
        return r;
    if (depth >= HOST_DEPTH_MAX)
        return error_set(look->err, ERROR_LIMIT, "'%s' is deeper than %d folders", path,
                         HOST_DEPTH_MAX);
    r = fs_each(fd, visit, &level, look->err);
    look->snapshot->entries[index].loose = level.is_loose;
    return r;
}

/* A tree that another one holds is looked at with that. */
static bool is_covered(const struct str_list *trees, size_t index)
{
    for (size_t i = 0; i < trees->count; i++) {
        size_t length = strlen(trees->items[i]);

        if (i != index && strncmp(trees->items[index], trees->items[i], length) == 0 &&
            (trees->items[index][length] == '/' ||
             (trees->items[index][length] == '\0' && i < index)))
            return true;
    }
    return false;
}

/* --- parents: others work in them, so that only who may do what there counts ------------------ */

static int visit_name(void *context, int dir_fd, const char *name, struct error **err)
{
    struct level *level = context;
    scoped(mem_freep) char *path =
        str_format("%s/%s", strcmp(level->path, "/") == 0 ? "" : level->path, name);
    scoped(fd_closep) int fd = -1;
    struct stat status;
    size_t index = 0;

    (void)err; /* the same one as in look */
    if (is_excepted(level->look, path) || fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (S_ISDIR(status.st_mode))
        fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && is_run(fd))
        return 0;
    int r = add(level->look, path, &status, &index);

    if (r < 0)
        return r;
    level->look->snapshot->entries[index].loose = true;
    level->look->snapshot->entries[index].wants_digest = false;
    return 0;
}

static int look_at_parent(struct look *look, const char *path, bool with_names)
{
    struct level level = {.look = look, .path = path};
    struct stat status;
    size_t index = 0;
    int r = stat_path(look, AT_FDCWD, path, path, &status);

    if (r < 0)
        return error_errno(look->err, -r, "cannot look at '%s'", path);
    r = add(look, path, &status, &index);
    if (r < 0)
        return r;
    look->snapshot->entries[index].loose = true;
    if (!with_names)
        return 0;
    scoped(fd_closep) int fd = open_path(look, AT_FDCWD, path, path);

    if (fd < 0)
        return error_errno(look->err, -fd, "cannot look into '%s'", path);
    return fs_each(fd, visit_name, &level, look->err);
}

/* --- snapshots ------------------------------------------------------------------------------- */

/* Sorted; of two entries for one path (a parent inside a tree) the stricter stays. */
static void sort(struct host_snapshot *snapshot)
{
    size_t kept = 0;

    if (snapshot->count > 0)
        qsort(snapshot->entries, snapshot->count, sizeof(*snapshot->entries), compare_entries);
    for (size_t i = 0; i < snapshot->count; i++) {
        struct host_entry *last = kept == 0 ? NULL : &snapshot->entries[kept - 1];

        if (last == NULL || strcmp(last->path, snapshot->entries[i].path) != 0) {
            snapshot->entries[kept++] = snapshot->entries[i];
            continue;
        }
        free(snapshot->entries[i].path);
        last->wants_digest |= snapshot->entries[i].wants_digest;
        last->loose &= snapshot->entries[i].loose;
    }
    snapshot->count = kept;
}

int host_snapshot_take(const struct host_scope *scope, const struct host_snapshot *before,
                       struct host_snapshot **ret, struct error **err)
{
    scoped(host_snapshot_freep) struct host_snapshot *snapshot = mem_new(1, sizeof(*snapshot));
    struct look look = {.scope = scope, .before = before, .snapshot = snapshot, .err = err};
    struct timespec now;
    int r = 0;

    if (clock_gettime(CLOCK_REALTIME_COARSE, &now) < 0)
        return error_errno(err, errno, "cannot read the clock");
    look.tick_ns = ns_of(now);
    for (size_t i = 0; r >= 0 && i < scope->trees->count; i++) {
        const char *path = scope->trees->items[i];

        if (!is_covered(scope->trees, i) && !is_excepted(&look, path))
            r = look_at(&look, AT_FDCWD, path, path, 0);
    }
    for (size_t i = 0; r >= 0 && i < scope->parents->count; i++)
        r = look_at_parent(&look, scope->parents->items[i], i == 0);
    if (r < 0)
        return r;
    sort(snapshot);
    r = host_digest(snapshot, scope->reader, err);
    if (r < 0)
        return r;
    *ret = take(snapshot);
    return 0;
}
