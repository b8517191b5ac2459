#include "base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

/*
 * A tree can be deeper than we may have descriptors. A folder found this deep is first moved up
 * beside its oldest ancestor, then removed from there.
 */
#define REMOVE_DEPTH_MAX 32
#define MOVED_RANDOM_BYTES 16

static void dir_closep(DIR **dir)
{
    if (*dir != NULL)
        (void)closedir(*dir); /* was only read */
}

/* A stream of its own over the folder, so that offsets are not shared with dir_fd. */
static DIR *open_stream(int dir_fd)
{
    scoped(fd_closep) int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);

    if (dir != NULL)
        (void)take_fd(&fd); /* the stream owns it now */
    return dir;
}

/* The next name but . and ..; NULL at the end (errno 0) or on an error. */
static const char *next_name(DIR *dir)
{
    struct dirent *entry;

    errno = 0;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    }
    return NULL;
}

/* One level; an existing folder is fine. */
static int make_level(int dir_fd, const char *path, mode_t mode, struct error **err)
{
    struct stat status;

    if (mkdirat(dir_fd, path, mode) == 0)
        return 0;
    int saved = errno;

    /* EEXIST, or EROFS and EACCES on a level that is there already. */
    if (fstatat(dir_fd, path, &status, 0) == 0) {
        if (S_ISDIR(status.st_mode))
            return 0;
        saved = ENOTDIR;
    }
    return error_errno(err, saved, "cannot make the folder '%s'", path);
}

int fs_mkdirs(int dir_fd, const char *path, mode_t mode, struct error **err)
{
    scoped(mem_freep) char *level = str_dup(path);

    for (char *slash = level; *slash != '\0';) {
        slash += strspn(slash, "/");
        slash += strcspn(slash, "/");
        char saved = *slash;

        *slash = '\0';
        int r = make_level(dir_fd, level, mode, err);

        if (r < 0)
            return r;
        *slash = saved;
    }
    return 0;
}

int fs_open_dir(int dir_fd, const char *path, mode_t mode, int *ret, struct error **err)
{
    int r = fs_mkdirs(dir_fd, path, mode, err);

    if (r < 0)
        return r;
    int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open the folder '%s'", path);
    *ret = fd;
    return 0;
}

/* One removal: where names may be moved to, and how far down we are. */
struct removal {
    int top_fd;
    unsigned depth;
};

static int remove_name(struct removal *removal, int dir_fd, const char *name, struct error **err);

/* Removes what is in the folder. Names may appear again while it is read, hence the passes. */
static int empty_folder(struct removal *removal, int folder_fd, const char *name,
                        struct error **err)
{
    scoped(dir_closep) DIR *dir = open_stream(folder_fd);
    size_t removed;

    if (dir == NULL)
        return error_errno(err, errno, "cannot open the folder '%s'", name);
    do {
        const char *entry;

        removed = 0;
        while ((entry = next_name(dir)) != NULL) {
            int r = remove_name(removal, folder_fd, entry, err);

            if (r < 0)
                return r;
            removed++;
        }
        if (errno != 0)
            return error_errno(err, errno, "cannot read the folder '%s'", name);
        rewinddir(dir);
    } while (removed > 0);
    return 0;
}

static int remove_folder(struct removal *removal, int dir_fd, const char *name, struct error **err)
{
    int flags = O_RDONLY | O_DIRECTORY;
    int opened = fs_open_beneath(dir_fd, name, flags, 0, FS_NO_LINKS);

    /* The owner may have closed the folder to himself. */
    if (opened == -EACCES && fchmodat(dir_fd, name, 0700, 0) == 0)
        opened = fs_open_beneath(dir_fd, name, flags, 0, FS_NO_LINKS);
    if (opened < 0)
        return error_errno(err, -opened, "cannot open the folder '%s'", name);
    scoped(fd_closep) int fd = opened;
    struct stat status;

    if (fstat(fd, &status) == 0 && (status.st_mode & 0700) != 0700)
        (void)fchmod(fd, 0700); /* without the right to, removing what is in it says so */
    removal->depth++;
    int r = empty_folder(removal, fd, name, err);

    removal->depth--;
    if (r < 0)
        return r;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_errno(err, errno, "cannot remove the folder '%s'", name);
    return 0;
}

/* Moves a deep folder up beside the oldest one; the pass over that one meets it again. */
static int move_up(const struct removal *removal, int dir_fd, const char *name, struct error **err)
{
    scoped(mem_freep) char *random = random_hex(MOVED_RANDOM_BYTES);

    if (renameat(dir_fd, name, removal->top_fd, random) < 0)
        return error_errno(err, errno, "cannot remove the folder '%s'", name);
    return 0;
}

static int remove_name(struct removal *removal, int dir_fd, const char *name, struct error **err)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return error_errno(err, errno, "cannot remove '%s'", name);
    int unlink_errno = errno;
    struct stat status;

    if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(status.st_mode))
        return error_errno(err, unlink_errno, "cannot remove '%s'", name);
    if (removal->depth >= REMOVE_DEPTH_MAX)
        return move_up(removal, dir_fd, name, err);
    return remove_folder(removal, dir_fd, name, err);
}

int fs_remove_tree(int dir_fd, const char *path, struct error **err)
{
    scoped(mem_freep) char *parent = path_dir(path);
    scoped(mem_freep) char *trimmed = str_dup(path);

    for (size_t end = strlen(trimmed); end > 1 && trimmed[end - 1] == '/'; end--)
        trimmed[end - 1] = '\0';
    const char *name = path_base(trimmed);
    scoped(fd_closep) int parent_fd = openat(dir_fd, parent, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (parent_fd < 0 && errno == ENOENT)
        return 0;
    if (parent_fd < 0)
        return error_errno(err, errno, "cannot remove '%s'", path);
    /* Negative for what is no folder: then nothing is moved up, either. */
    scoped(fd_closep) int top_fd =
        fs_open_beneath(parent_fd, name, O_PATH | O_DIRECTORY, 0, FS_NO_LINKS);
    struct removal removal = {.top_fd = top_fd};

    if (top_fd == -ENOENT)
        return 0;
    return remove_name(&removal, parent_fd, name, err);
}

int fs_each(int dir_fd, fs_visit *visit, void *context, struct error **err)
{
    scoped(str_list_done) struct str_list names = {0};
    scoped(dir_closep) DIR *dir = open_stream(dir_fd);
    const char *name;

    if (dir == NULL)
        return error_errno(err, errno, "cannot open a folder");
    while ((name = next_name(dir)) != NULL) {
        if (names.count == FS_EACH_NAMES_MAX)
            return error_set(err, ERROR_LIMIT, "a folder has more than %zu names",
                             FS_EACH_NAMES_MAX);
        str_list_add(&names, name);
    }
    if (errno != 0)
        return error_errno(err, errno, "cannot read a folder");
    str_list_sort(&names);
    for (size_t i = 0; i < names.count; i++) {
        int r = visit(context, dir_fd, names.items[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}
