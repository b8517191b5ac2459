#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

/* openat2() says EAGAIN when a rename somewhere made it unsure; more than this is an attack. */
#define OPEN_TRIES_MAX 32
#define READ_CHUNK_BYTES 32768
#define TEMPORARY_RANDOM_BYTES 8

void fd_closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd); /* nothing can be done about it; writers fsync before */
    *fd = -1;
    errno = saved;
}

int fs_open_beneath(int dir_fd, const char *path, int flags, mode_t mode, enum fs_follow follow)
{
    bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = creates ? mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV |
                   (follow == FS_LINKS_IN_ROOT ? RESOLVE_IN_ROOT : RESOLVE_BENEATH),
    };

    if (follow == FS_NO_LINKS)
        how.resolve |= RESOLVE_NO_SYMLINKS;
    for (int i = 0; i < OPEN_TRIES_MAX; i++) {
        long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
    }
    return -EAGAIN;
}

int fs_open_regular(int dir_fd, const char *name)
{
    /* Opening a pipe waits for somebody who writes, unless it is told not to. */
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? take_fd(&fd) : -EINVAL;
}

int fs_read_fd(int fd, const char *name, size_t max_bytes, struct buf *ret, struct error **err)
{
    char chunk[READ_CHUNK_BYTES];
    size_t total = 0;

    for (;;) {
        ssize_t n = read(fd, chunk, sizeof(chunk));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s'", name);
        if (n == 0)
            return 0;
        if ((size_t)n > max_bytes - total)
            return error_set(err, ERROR_LIMIT, "'%s' is larger than %zu bytes", name, max_bytes);
        total += (size_t)n;
        buf_append(ret, chunk, (size_t)n);
        if (ret->overflowed)
            return error_set(err, ERROR_LIMIT, "'%s' is too large", name);
    }
}

int fs_read_file(int dir_fd, const char *path, size_t max_bytes, struct buf *ret,
                 struct error **err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    scoped(fd_closep) int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;

    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s'", path);
    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_SYSTEM, "'%s' is not a regular file", path);
    return fs_read_fd(fd, path, max_bytes, ret, err);
}

int fs_write_all(int fd, const char *name, const void *bytes, size_t size, struct error **err)
{
    const char *next = bytes;

    while (size > 0) {
        ssize_t n = write(fd, next, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot write '%s'", name);
        next += n;
        size -= (size_t)n;
    }
    return 0;
}

static int write_and_sync(int fd, const char *path, const void *bytes, size_t size,
                          struct error **err)
{
    int r = fs_write_all(fd, path, bytes, size, err);

    if (r < 0)
        return r;
    if (fsync(fd) < 0)
        return error_errno(err, errno, "cannot sync '%s'", path);
    return 0;
}

static int rename_and_sync(int folder_fd, const char *from, const char *path, enum fs_sync sync,
                           struct error **err)
{
    if (renameat(folder_fd, from, folder_fd, path_base(path)) < 0)
        return error_errno(err, errno, "cannot write '%s'", path);
    if (sync == FS_SYNC && fsync(folder_fd) < 0)
        return error_errno(err, errno, "cannot sync the folder of '%s'", path);
    return 0;
}

int fs_write_atomic(int dir_fd, const char *path, const struct fs_content *content,
                    struct error **err)
{
    scoped(mem_freep) char *folder = path_dir(path);
    scoped(mem_freep) char *random = random_hex(TEMPORARY_RANDOM_BYTES);
    scoped(mem_freep) char *temporary = str_format(".tmp-%s", random);
    scoped(fd_closep) int folder_fd = openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder_fd < 0)
        return error_errno(err, errno, "cannot open the folder of '%s'", path);
    scoped(fd_closep) int fd = openat(
        folder_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, content->mode);

    if (fd < 0)
        return error_errno(err, errno, "cannot write '%s'", path);
    int r = content->sync != FS_NO_SYNC
                ? write_and_sync(fd, path, content->bytes, content->size, err)
                : fs_write_all(fd, path, content->bytes, content->size, err);

    if (r == 0)
        r = rename_and_sync(folder_fd, temporary, path, content->sync, err);
    if (r < 0)
        (void)unlinkat(folder_fd, temporary, 0); /* the first failure is the one to tell */
    return r;
}

int fs_memfd(const char *name, const void *bytes, size_t size, int *ret, struct error **err)
{
    scoped(fd_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

    if (fd < 0)
        return error_errno(err, errno, "cannot make the memory file '%s'", name);
    int r = fs_write_all(fd, name, bytes, size, err);

    if (r < 0)
        return r;
    if (lseek(fd, 0, SEEK_SET) < 0 || fchmod(fd, 0444) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
        return error_errno(err, errno, "cannot seal the memory file '%s'", name);
    *ret = take_fd(&fd);
    return 0;
}
