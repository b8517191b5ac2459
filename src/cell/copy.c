#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cell/setup.h"

#define COPY_DEPTH_MAX 128
#define LINK_BYTES_MAX 4096
#define CHUNK_BYTES 65536
#define COPY_BYTES_AT_ONCE ((size_t)1 << 30)

static int copy_dir(int from_fd, int to_fd, const struct copy_options *options, int depth);

/*
 * Within the kernel: half the work, and no page of ours is touched. Where it cannot do that, or not
 * to the end, the file offsets are where it stopped.
 */
static void copy_inside(int from_fd, int to_fd)
{
    ssize_t n;

    do {
        n = copy_file_range(from_fd, NULL, to_fd, NULL, COPY_BYTES_AT_ONCE, 0);
    } while (n > 0 || (n < 0 && errno == EINTR));
}

int copy_file(int from_fd, int to_fd)
{
    static char chunk[CHUNK_BYTES];

    copy_inside(from_fd, to_fd);
    for (;;) {
        ssize_t n = read(from_fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (ssize_t done = 0; done < n;) {
            ssize_t written = write(to_fd, chunk + done, (size_t)(n - done));

            if (written < 0 && errno != EINTR)
                return -errno;
            done += written < 0 ? 0 : written;
        }
    }
}

/* Removes what an earlier layer left under the name, whatever it is. */
static int clear_name(int dir_fd, const char *name, int depth)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -errno;
    if (depth > COPY_DEPTH_MAX)
        return -ELOOP;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (dir == NULL)
        return -errno;
    int r = 0;
    struct dirent *entry;

    while (r == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = clear_name(fd, entry->d_name, depth + 1);
    }
    (void)closedir(dir); /* read only */
    if (r == 0 && unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}

static int set_owner(int fd, const struct copy_options *options)
{
    return options->set_owner && fchown(fd, options->uid, options->gid) < 0 ? -errno : 0;
}

/* One name, from a directory of the source to the one that takes its place. */
struct entry {
    int from_dir, to_dir;
    const char *name;
    struct stat status;
    const struct copy_options *options;
    int depth;
};

static int finish_regular(int to, const struct entry *entry)
{
    const struct timespec times[2] = {entry->status.st_atim, entry->status.st_mtim};
    int r = set_owner(to, entry->options);

    if (r == 0 && (fchmod(to, entry->status.st_mode & 0777) < 0 || futimens(to, times) < 0))
        r = -errno;
    return r;
}

static int copy_regular(const struct entry *entry)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int from = openat(entry->from_dir, entry->name, flags);

    if (from < 0)
        return -errno;
    int r = clear_name(entry->to_dir, entry->name, 0);
    int to = -1;

    if (r == 0) {
        to = openat(entry->to_dir, entry->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        r = to < 0 ? -errno : copy_file(from, to);
    }
    if (r == 0)
        r = finish_regular(to, entry);
    if (to >= 0 && close(to) < 0 && r == 0)
        r = -errno;
    (void)close(from); /* read only */
    return r;
}

static int copy_link(const struct entry *entry)
{
    const struct copy_options *options = entry->options;
    char target[LINK_BYTES_MAX];
    ssize_t n = readlinkat(entry->from_dir, entry->name, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    int r = clear_name(entry->to_dir, entry->name, 0);

    if (r < 0)
        return r;
    if (symlinkat(target, entry->to_dir, entry->name) < 0)
        return -errno;
    if (options->set_owner &&
        fchownat(entry->to_dir, entry->name, options->uid, options->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

/* An earlier layer's directory of the name is kept, anything else makes way. */
static int make_subdir(const struct entry *entry)
{
    struct stat existing;

    if (fstatat(entry->to_dir, entry->name, &existing, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(existing.st_mode))
        return 0;
    int r = clear_name(entry->to_dir, entry->name, 0);

    if (r < 0)
        return r;
    return mkdirat(entry->to_dir, entry->name, 0700) < 0 ? -errno : 0;
}

static int copy_subdir(const struct entry *entry)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int r = make_subdir(entry);

    if (r < 0)
        return r;
    int to = openat(entry->to_dir, entry->name, flags);

    if (to < 0)
        return -errno;
    int from = openat(entry->from_dir, entry->name, flags);

    r = from < 0 ? -errno : copy_dir(from, to, entry->options, entry->depth + 1);
    if (r == 0)
        r = set_owner(to, entry->options);
    if (r == 0 && fchmod(to, entry->status.st_mode & 01777) < 0)
        r = -errno;
    (void)close(to); /* a directory */
    return r;
}

static int copy_entry(struct entry *entry)
{
    if (fstatat(entry->from_dir, entry->name, &entry->status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(entry->status.st_mode))
        return copy_regular(entry);
    if (S_ISDIR(entry->status.st_mode))
        return copy_subdir(entry);
    if (S_ISLNK(entry->status.st_mode))
        return copy_link(entry);
    return -EINVAL; /* a store holds nothing else */
}

/* Takes from_fd. */
static int copy_dir(int from_fd, int to_fd, const struct copy_options *options, int depth)
{
    DIR *dir = depth > COPY_DEPTH_MAX ? NULL : fdopendir(from_fd);
    const struct dirent *found;
    int r = 0;

    if (dir == NULL) {
        r = depth > COPY_DEPTH_MAX ? -ELOOP : -errno;
        (void)close(from_fd); /* read only */
        return r;
    }
    while (r == 0 && (found = readdir(dir)) != NULL) {
        struct entry entry = {.from_dir = from_fd,
                              .to_dir = to_fd,
                              .name = found->d_name,
                              .options = options,
                              .depth = depth};

        if (strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0)
            r = copy_entry(&entry);
    }
    (void)closedir(dir); /* read only */
    return r;
}

int copy_tree(int from_fd, int to_fd, const struct copy_options *options)
{
    /* What was given may be a path only, or shared by others. */
    int from = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return from < 0 ? -errno : copy_dir(from, to_fd, options, 0);
}
