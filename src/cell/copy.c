#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cell/setup.h"

#define COPY_DEPTH_MAX 128
#define LINK_BYTES_MAX 4096
#define CHUNK_BYTES 65536

static int copy_dir(int from_fd, int to_fd, const struct copy_options *options, int depth);

int copy_file(int from_fd, int to_fd)
{
    static char chunk[CHUNK_BYTES];

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

static int copy_regular(int from_dir, int to_dir, const char *name, const struct stat *status,
                        const struct copy_options *options)
{
    int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (from < 0)
        return -errno;
    int r = clear_name(to_dir, name, 0);
    int to = r < 0 ? r : openat(to_dir, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

    if (to >= 0) {
        const struct timespec times[2] = {status->st_atim, status->st_mtim};

        r = copy_file(from, to);
        if (r == 0)
            r = set_owner(to, options);
        if (r == 0 && (fchmod(to, status->st_mode & 0777) < 0 || futimens(to, times) < 0))
            r = -errno;
        if (close(to) < 0 && r == 0)
            r = -errno;
    } else if (r == 0) {
        r = -errno;
    }
    (void)close(from); /* read only */
    return r;
}

static int copy_link(int from_dir, int to_dir, const char *name, const struct copy_options *options)
{
    char target[LINK_BYTES_MAX];
    ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

    if (n < 0)
        return -errno;
    target[n] = '\0';
    int r = clear_name(to_dir, name, 0);

    if (r < 0)
        return r;
    if (symlinkat(target, to_dir, name) < 0)
        return -errno;
    if (options->set_owner &&
        fchownat(to_dir, name, options->uid, options->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

static int copy_subdir(int from_dir, int to_dir, const char *name, const struct stat *status,
                       const struct copy_options *options, int depth)
{
    struct stat existing;

    if (fstatat(to_dir, name, &existing, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(existing.st_mode)) {
        int r = clear_name(to_dir, name, 0);

        if (r < 0)
            return r;
        if (mkdirat(to_dir, name, 0700) < 0)
            return -errno;
    }
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int from = openat(from_dir, name, flags);
    int to = openat(to_dir, name, flags);
    int r = from < 0 || to < 0 ? -errno : copy_dir(from, to, options, depth + 1);

    if (r == 0)
        r = set_owner(to, options);
    if (r == 0 && fchmod(to, status->st_mode & 01777) < 0)
        r = -errno;
    if (to >= 0)
        (void)close(to); /* a directory */
    return r;
}

static int copy_entry(int from_dir, int to_dir, const char *name,
                      const struct copy_options *options, int depth)
{
    struct stat status;

    if (fstatat(from_dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(status.st_mode))
        return copy_regular(from_dir, to_dir, name, &status, options);
    if (S_ISDIR(status.st_mode))
        return copy_subdir(from_dir, to_dir, name, &status, options, depth);
    if (S_ISLNK(status.st_mode))
        return copy_link(from_dir, to_dir, name, options);
    return -EINVAL; /* a store holds nothing else */
}

/* Takes from_fd. */
static int copy_dir(int from_fd, int to_fd, const struct copy_options *options, int depth)
{
    DIR *dir = depth > COPY_DEPTH_MAX ? NULL : fdopendir(from_fd);
    struct dirent *entry;
    int r = 0;

    if (dir == NULL) {
        r = depth > COPY_DEPTH_MAX ? -ELOOP : -errno;
        (void)close(from_fd); /* read only */
        return r;
    }
    while (r == 0 && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            r = copy_entry(from_fd, to_fd, entry->d_name, options, depth);
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
