#include "image/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

#define MARKS_MIN 1024
#define TIMES_BYTES_MAX ((size_t)64 << 20) /* of folders whose times are kept until the end */
#define DEPTH_MAX 256 /* of folders that a whiteout goes through name by name */
#define FILE_MODES 0777
#define DIR_MODES 01777

/* A name that this layer made in a directory: by inode, as links give directories many paths. */
struct mark {
    uint64_t inode; /* 0: free */
    uint64_t name; /* hashed: two alike make a whiteout hide too little, in the layer's own image */
};

struct dir_time {
    char *path;
    struct timespec modified;
};

struct rootfs {
    int fd;
    struct rootfs_limits limits;
    uint64_t bytes, entries;
    struct mark *marks; /* open addressing; a power of two */
    size_t mark_count, mark_capacity;
    struct dir_time *times;
    size_t time_count, time_capacity, time_bytes;
    uint64_t passed_by; /* entries that marks looked at and left */
    /* the folder of the last entry; -1: none */
    char *parent_path;
    int parent_fd;
    uint64_t parent_inode;
};

static void forget_parent(struct rootfs *rootfs)
{
    fd_closep(&rootfs->parent_fd);
    free(take(rootfs->parent_path));
}

static void clear_marks(struct rootfs *rootfs)
{
    free(take(rootfs->marks));
    rootfs->mark_count = rootfs->mark_capacity = 0;
}

struct rootfs *rootfs_new(int fd, const struct rootfs_limits *limits)
{
    struct rootfs *rootfs = mem_new(1, sizeof(*rootfs));

    *rootfs = (struct rootfs){.fd = fd, .limits = *limits, .parent_fd = -1};
    return rootfs;
}

void rootfs_free(struct rootfs *rootfs)
{
    if (rootfs == NULL)
        return;
    forget_parent(rootfs);
    clear_marks(rootfs);
    for (size_t i = 0; i < rootfs->time_count; i++)
        free(rootfs->times[i].path);
    free(rootfs->times);
    free(rootfs);
}

void rootfs_freep(struct rootfs **rootfs)
{
    rootfs_free(*rootfs);
    *rootfs = NULL;
}

void rootfs_next_layer(struct rootfs *rootfs)
{
    forget_parent(rootfs);
    clear_marks(rootfs);
}

uint64_t rootfs_bytes(const struct rootfs *rootfs)
{
    return rootfs->bytes;
}

uint64_t rootfs_bytes_max(const struct rootfs *rootfs)
{
    return rootfs->limits.bytes;
}

uint64_t rootfs_entries(const struct rootfs *rootfs)
{
    return rootfs->entries;
}

/* --- marks */

static uint64_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *name != '\0'; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return hash;
}

static struct mark *find_mark(const struct rootfs *rootfs, uint64_t inode, uint64_t name)
{
    size_t mask = rootfs->mark_capacity - 1;
    size_t i = (size_t)(name ^ (inode * 0x9e3779b97f4a7c15u)) & mask;

    while (rootfs->marks[i].inode != 0 &&
           (rootfs->marks[i].inode != inode || rootfs->marks[i].name != name))
        i = (i + 1) & mask;
    return &rootfs->marks[i];
}

static void grow_marks(struct rootfs *rootfs)
{
    size_t old_capacity = rootfs->mark_capacity;
    scoped(mem_freep) struct mark *old = take(rootfs->marks);

    rootfs->mark_capacity = old_capacity == 0 ? MARKS_MIN : 2 * old_capacity;
    rootfs->marks = mem_new(rootfs->mark_capacity, sizeof(*rootfs->marks));
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].inode != 0)
            *find_mark(rootfs, old[i].inode, old[i].name) = old[i];
    }
}

static void add_mark(struct rootfs *rootfs, uint64_t inode, const char *name)
{
    if (2 * (rootfs->mark_count + 1) > rootfs->mark_capacity)
        grow_marks(rootfs);
    uint64_t hash = hash_name(name);
    struct mark *mark = find_mark(rootfs, inode, hash);

    rootfs->mark_count += mark->inode == 0;
    *mark = (struct mark){.inode = inode, .name = hash};
}

static bool has_mark(const struct rootfs *rootfs, uint64_t inode, const char *name)
{
    return rootfs->mark_count > 0 && find_mark(rootfs, inode, hash_name(name))->inode != 0;
}

/* --- what goes wrong */

/* Whether the layer or the machine is to blame shows in errno. */
static int fail(int errno_value, const struct entry_name *name, struct error **err)
{
    scoped(mem_freep) char *path = str_format("%s/%s", name->parent, name->base);
    scoped(mem_freep) char *quoted = term_quoted(path);

    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EEXIST:
    case EISDIR:
    case EMLINK:
    case EXDEV:
    case EPERM:
        return error_set(err, ERROR_TASK, "the entry '%.300s' cannot be made: %s", quoted,
                         strerror(errno_value));
    default:
        return error_errno(err, errno_value, "cannot make '%.300s'", quoted);
    }
}

static int count_entry(struct rootfs *rootfs, struct error **err)
{
    if (++rootfs->entries > rootfs->limits.entries)
        return error_set(err, ERROR_LIMIT, "the image holds more than %ju entries",
                         (uintmax_t)rootfs->limits.entries);
    return 0;
}

int rootfs_count_bytes(struct rootfs *rootfs, uint64_t bytes, struct error **err)
{
    if (bytes > rootfs->limits.bytes - rootfs->bytes)
        return error_set(err, ERROR_LIMIT, "the image holds more than %ju bytes",
                         (uintmax_t)rootfs->limits.bytes);
    rootfs->bytes += bytes;
    return 0;
}

/* --- folders */

static int open_dir(const struct rootfs *rootfs, const char *path)
{
    return fs_open_beneath(rootfs->fd, path[0] == '\0' ? "." : path, O_PATH | O_DIRECTORY, 0,
                           FS_LINKS_IN_ROOT);
}

/* The folder and those above it, made where they are not. Returns a descriptor or -errno. */
static int make_dir(const struct rootfs *rootfs, const char *path)
{
    scoped(mem_freep) char *part = str_dup(path);
    scoped(fd_closep) int above = open_dir(rootfs, "");

    for (char *name = part; above >= 0;) {
        char *end = strchrnul(name, '/');
        bool is_last = *end == '\0';

        *end = '\0';
        int fd = open_dir(rootfs, part);

        if (fd == -ENOENT) {
            if (mkdirat(above, name, 0755) < 0)
                return -errno;
            fd = open_dir(rootfs, part);
        }
        fd_closep(&above);
        above = fd;
        if (is_last)
            break;
        *end = '/';
        name = end + 1;
    }
    return above < 0 ? above : take_fd(&above);
}

/* The folder that an entry lies in, as parent_fd. */
static int enter_parent(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
{
    struct stat status;

    if (rootfs->parent_fd >= 0 && strcmp(rootfs->parent_path, name->parent) == 0)
        return 0;
    forget_parent(rootfs);
    int fd = open_dir(rootfs, name->parent);

    if (fd == -ENOENT)
        fd = make_dir(rootfs, name->parent);
    if (fd < 0)
        return fail(-fd, name, err);
    rootfs->parent_fd = fd;
    rootfs->parent_path = str_dup(name->parent);
    if (fstat(fd, &status) < 0)
        return fail(errno, name, err);
    rootfs->parent_inode = status.st_ino;
    return 0;
}

static int begin_entry(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
{
    int r = count_entry(rootfs, err);

    if (r == 0 && name->kind != ENTRY_PLAIN)
        r = error_set(err, ERROR_TASK, "an entry that is the root, or a mark, and no folder");
    if (r == 0)
        r = enter_parent(rootfs, name, err);
    if (r == 0)
        add_mark(rootfs, rootfs->parent_inode, name->base);
    return r;
}

static int remove_entry(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
{
    if (unlinkat(rootfs->parent_fd, name->base, 0) == 0 || errno == ENOENT)
        return 0;
    return errno == EISDIR ? fs_remove_tree(rootfs->parent_fd, name->base, err)
                           : fail(errno, name, err);
}

static int note_time(struct rootfs *rootfs, const struct entry_name *name,
                     const struct timespec *modified, struct error **err)
{
    rootfs->time_bytes +=
        sizeof(*rootfs->times) + strlen(name->parent) + strlen(name->base) + sizeof("/");
    if (rootfs->time_bytes > TIMES_BYTES_MAX)
        return error_set(err, ERROR_LIMIT, "the image names more folders than fit in %zu bytes",
                         TIMES_BYTES_MAX);
    if (rootfs->time_count == rootfs->time_capacity) {
        rootfs->time_capacity = 2 * rootfs->time_capacity + 64;
        rootfs->times = mem_resize(rootfs->times, rootfs->time_capacity, sizeof(*rootfs->times));
    }
    rootfs->times[rootfs->time_count++] = (struct dir_time){
        .path = str_format("%s/%s", name->parent, name->base),
        .modified = *modified,
    };
    return 0;
}

/* --- entries */

int rootfs_add_dir(struct rootfs *rootfs, const struct entry_name *name,
                   const struct rootfs_status *status, struct error **err)
{
    struct stat there;

    if (name->kind == ENTRY_ROOT)
        return count_entry(rootfs, err);
    int r = begin_entry(rootfs, name, err);

    if (r < 0)
        return r;
    bool exists = fstatat(rootfs->parent_fd, name->base, &there, AT_SYMLINK_NOFOLLOW) == 0;

    if (exists && !S_ISDIR(there.st_mode)) {
        r = remove_entry(rootfs, name, err);
        exists = false;
    }
    if (r == 0 && !exists && mkdirat(rootfs->parent_fd, name->base, 0700) < 0)
        r = fail(errno, name, err);
    if (r == 0 && fchmodat(rootfs->parent_fd, name->base, (status->mode & DIR_MODES) | 0700, 0) < 0)
        r = fail(errno, name, err);
    return r < 0 ? r : note_time(rootfs, name, &status->modified, err);
}

int rootfs_add_link(struct rootfs *rootfs, const struct entry_name *name, const char *text,
                    const struct rootfs_status *status, struct error **err)
{
    const struct timespec times[] = {status->modified, status->modified};
    int r = begin_entry(rootfs, name, err);

    if (r == 0)
        r = remove_entry(rootfs, name, err);
    if (r == 0 && symlinkat(text, rootfs->parent_fd, name->base) < 0)
        r = fail(errno, name, err);
    if (r == 0 && utimensat(rootfs->parent_fd, name->base, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = fail(errno, name, err);
    return r;
}

int rootfs_add_hard_link(struct rootfs *rootfs, const struct entry_name *name,
                         const struct entry_name *target, struct error **err)
{
    struct stat from, to;
    int r = begin_entry(rootfs, name, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int fd = open_dir(rootfs, target->parent);

    if (target->kind != ENTRY_PLAIN || fd < 0 ||
        fstatat(fd, target->base, &from, AT_SYMLINK_NOFOLLOW) < 0 ||
        !(S_ISREG(from.st_mode) || S_ISLNK(from.st_mode))) {
        scoped(mem_freep) char *path = str_format("%s/%s", target->parent, target->base);
        scoped(mem_freep) char *quoted = term_quoted(path);

        return error_set(err, ERROR_TASK, "a hard link to '%.300s', which is no file of the image",
                         quoted);
    }
    if (fstatat(rootfs->parent_fd, name->base, &to, AT_SYMLINK_NOFOLLOW) == 0 &&
        from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return 0;
    r = remove_entry(rootfs, name, err);
    if (r == 0 && linkat(fd, target->base, rootfs->parent_fd, name->base, 0) < 0)
        r = fail(errno, name, err);
    return r;
}

int rootfs_begin_file(struct rootfs *rootfs, const struct entry_name *name, int *ret_fd,
                      struct error **err)
{
    const int flags = O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC;
    int r = begin_entry(rootfs, name, err);

    if (r < 0)
        return r;
    int fd = openat(rootfs->parent_fd, name->base, flags, 0600);

    if (fd < 0 && errno == EEXIST) {
        r = remove_entry(rootfs, name, err);
        if (r < 0)
            return r;
        fd = openat(rootfs->parent_fd, name->base, flags, 0600);
    }
    if (fd < 0)
        return fail(errno, name, err);
    *ret_fd = fd;
    return 0;
}

int rootfs_end_file(struct rootfs *rootfs, int fd, const struct rootfs_status *status,
                    struct error **err)
{
    const struct timespec times[] = {status->modified, status->modified};
    int r = 0;

    (void)rootfs;
    if (fchmod(fd, (status->mode & FILE_MODES) | 0400) < 0 || futimens(fd, times) < 0)
        r = error_errno(err, errno, "cannot finish a file");
    if (close(fd) < 0 && r == 0)
        r = error_errno(err, errno, "cannot close a file");
    return r;
}

int rootfs_drop(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
{
    int r = begin_entry(rootfs, name, err);

    return r < 0 ? r : remove_entry(rootfs, name, err);
}

/* --- whiteouts */

struct hiding {
    struct rootfs *rootfs;
    uint64_t inode; /* of the folder that is gone through */
    unsigned depth;
};

static int hide_lower(void *context, int dir_fd, const char *name, struct error **err);

/* All that this layer did not make goes, then the folder itself if it is not this layer's. */
static int hide_dir(struct hiding *above, int dir_fd, const char *name, bool is_ours,
                    struct error **err)
{
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot open a folder of the image");
    if (above->depth >= DEPTH_MAX)
        return error_set(err, ERROR_LIMIT, "a whiteout over more than %d folders", DEPTH_MAX);
    struct hiding hiding = {
        .rootfs = above->rootfs, .inode = status.st_ino, .depth = above->depth + 1};
    int r = fs_each(fd, hide_lower, &hiding, err);

    if (r == 0 && !is_ours && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY &&
        errno != EEXIST)
        r = error_errno(err, errno, "cannot remove a folder of the image");
    return r;
}

static int hide_lower(void *context, int dir_fd, const char *name, struct error **err)
{
    struct hiding *hiding = context;
    bool is_ours = has_mark(hiding->rootfs, hiding->inode, name);
    struct stat status;

    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "cannot look at the image");
    if (S_ISDIR(status.st_mode) && hiding->rootfs->mark_count == 0)
        return fs_remove_tree(dir_fd, name, err);
    /* What is removed is looked at once; what stays, by each mark above it again. */
    if ((is_ours || S_ISDIR(status.st_mode)) &&
        ++hiding->rootfs->passed_by > hiding->rootfs->limits.entries)
        return error_set(err, ERROR_LIMIT, "the image's marks pass by more than %ju entries",
                         (uintmax_t)hiding->rootfs->limits.entries);
    if (S_ISDIR(status.st_mode))
        return hide_dir(hiding, dir_fd, name, is_ours, err);
    if (!is_ours && unlinkat(dir_fd, name, 0) < 0)
        return error_errno(err, errno, "cannot remove a file of the image");
    return 0;
}

int rootfs_hide(struct rootfs *rootfs, const struct entry_name *name, struct error **err)
{
    int r = count_entry(rootfs, err);

    if (r == 0)
        r = enter_parent(rootfs, name, err);
    if (r < 0)
        return r;
    struct hiding hiding = {.rootfs = rootfs, .inode = rootfs->parent_inode};

    if (name->kind == ENTRY_WHITEOUT) {
        r = hide_lower(&hiding, rootfs->parent_fd, name->base, err);
    } else {
        scoped(fd_closep) int fd =
            openat(rootfs->parent_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        r = fd < 0 ? error_errno(err, errno, "cannot open a folder of the image")
                   : fs_each(fd, hide_lower, &hiding, err);
    }
    forget_parent(rootfs);
    return r;
}

int rootfs_finish(struct rootfs *rootfs, struct error **err)
{
    forget_parent(rootfs);
    for (size_t i = 0; i < rootfs->time_count; i++) {
        const struct timespec times[] = {rootfs->times[i].modified, rootfs->times[i].modified};
        scoped(fd_closep) int fd =
            fs_open_beneath(rootfs->fd, rootfs->times[i].path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                            0, FS_LINKS_IN_ROOT);

        /* A later layer may have put something else there. */
        if (fd >= 0 && futimens(fd, times) < 0)
            return error_errno(err, errno, "cannot set a folder's time");
    }
    return 0;
}
