/* Reading files and folders through the reader, and the environment that was handed in. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "task/internal.h"

const char *environment_get(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    }
    return NULL;
}

static int open_by(const struct task_reader *reader, const char *path, int flags)
{
    return reader->open(reader->context, path,
                        flags | O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static char *say(const char *what, int errno_value)
{
    return str_format("%s: %s", what, strerror(errno_value));
}

/* A readable regular file as a descriptor, or -1 with what is wrong. */
static int open_regular(const struct task_reader *reader, const char *path, char **ret_wrong)
{
    scoped(fd_closep) int fd = open_by(reader, path, 0);
    struct stat status;

    if (fd < 0) {
        *ret_wrong =
            fd == -EINVAL ? str_dup("is not a regular file") : say("cannot be opened", -fd);
        return fd == -ENOENT || fd == -ENOTDIR ? -ENOENT : -1;
    }
    if (fstat(fd, &status) != 0)
        *ret_wrong = say("cannot be looked at", errno);
    else if (S_ISDIR(status.st_mode))
        *ret_wrong = str_dup("is a folder, a file expected");
    else if (!S_ISREG(status.st_mode))
        *ret_wrong = str_dup("is not a regular file");
    else
        return take_fd(&fd);
    return -1;
}

int source_read(const struct task_reader *reader, const char *path, size_t max_bytes,
                struct buf *ret, char **ret_wrong)
{
    scoped(mem_freep) char *wrong = NULL;
    scoped(fd_closep) int fd = open_regular(reader, path, &wrong);
    scoped(error_freep) struct error *err = NULL;

    if (fd == -ENOENT)
        return fd; /* the text that says so is not handed over */
    if (fd >= 0 && fs_read_fd(fd, "it", max_bytes, ret, &err) == 0)
        return 0;
    if (err != NULL && error_code_of(err) == ERROR_LIMIT)
        wrong = str_format("larger than %zu bytes", max_bytes);
    else if (err != NULL)
        wrong = say("cannot be read", error_errno_of(err));
    *ret_wrong = take(wrong);
    return -1;
}

char *source_check_file(const struct task_reader *reader, const char *path)
{
    char *wrong = NULL;
    scoped(fd_closep) int fd = open_regular(reader, path, &wrong);

    return fd >= 0 ? NULL : wrong;
}

char *source_check_program(const struct task_reader *reader, const char *path)
{
    char *wrong = NULL;
    scoped(fd_closep) int fd = open_regular(reader, path, &wrong);
    struct stat status;

    if (fd < 0)
        return wrong;
    if (fstat(fd, &status) != 0)
        return say("cannot be looked at", errno);
    return (status.st_mode & S_IXUSR) != 0 ? NULL : str_dup("is not executable: chmod +x");
}

char *source_check_dir(const struct task_reader *reader, const char *path, bool *ret_empty)
{
    scoped(fd_closep) int fd = open_by(reader, path, O_DIRECTORY);

    if (fd == -ENOTDIR)
        return str_dup("is not a folder");
    if (fd < 0)
        return say("cannot be opened", -fd);
    DIR *dir = fdopendir(fd);

    if (dir == NULL)
        return say("cannot be listed", errno);
    (void)take_fd(&fd); /* closedir() closes it */
    errno = 0;
    size_t count = 0;

    for (const struct dirent *entry = readdir(dir); entry != NULL && count == 0;
         entry = readdir(dir))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    int failure = count > 0 ? 0 : errno;

    (void)closedir(dir); /* only read from */
    if (failure != 0)
        return say("cannot be listed", failure);
    *ret_empty = count == 0;
    return NULL;
}

bool source_exists(const struct task_reader *reader, const char *path)
{
    scoped(fd_closep) int fd = open_by(reader, path, 0);

    return fd >= 0;
}
