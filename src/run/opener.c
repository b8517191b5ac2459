#include "run/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/message.h"
#include "run/identity.h"

struct opener {
    int socket; /* -1: plain */
    pid_t pid;
};

struct open_request {
    uint32_t directory;
    char path[PATH_MAX];
};

struct open_reply {
    int32_t error_number;
};

static int open_checked(const char *path, bool directory)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (directory ? O_DIRECTORY : 0);
    int fd = open(path, flags);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return fd;
    (void)close(fd); /* nothing was written */
    return -EINVAL;
}

static int serve_one(int socket, struct open_request *request, int *fds, size_t fd_count)
{
    struct open_reply reply = {0};
    int fd = -EPROTO;

    for (size_t i = 0; i < fd_count; i++)
        (void)close(fds[i]); /* a request carries none */
    if (memchr(request->path, 0, sizeof(request->path)) != NULL)
        fd = open_checked(request->path, request->directory != 0);
    if (fd < 0)
        reply.error_number = -fd;

    int r = message_send(socket, &reply, sizeof(reply), &fd, fd < 0 ? 0 : 1);

    if (fd >= 0)
        (void)close(fd); /* the client has its own */
    return r;
}

static _Noreturn void serve(int socket)
{
    static struct open_request request;
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count = 0;

    while (message_receive(socket, &request, sizeof(request), fds, &fd_count) == 0 &&
           serve_one(socket, &request, fds, fd_count) == 0)
        continue;
    _exit(0);
}

int opener_start(uid_t uid, gid_t gid, struct opener **ret, struct error **err)
{
    int pair[2];
    int r = message_pair(pair);

    if (r < 0)
        return error_errno(err, -r, "cannot make the opener's socket");

    pid_t pid = fork();

    if (pid < 0) {
        int saved = errno;

        (void)close(pair[0]);
        (void)close(pair[1]);
        return error_errno(err, saved, "cannot start the opener");
    }
    if (pid == 0) {
        (void)close(pair[0]);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
            identity_become(uid, gid, 1ull << CAP_DAC_READ_SEARCH, NULL) < 0)
            _exit(1);
        serve(pair[1]);
    }
    (void)close(pair[1]);

    struct opener *opener = mem_new(1, sizeof(*opener));

    opener->socket = pair[0];
    opener->pid = pid;
    *ret = opener;
    return 0;
}

struct opener *opener_plain(void)
{
    struct opener *opener = mem_new(1, sizeof(*opener));

    opener->socket = -1;
    return opener;
}

void opener_free(struct opener *opener)
{
    if (opener == NULL)
        return;
    if (opener->socket >= 0) {
        (void)close(opener->socket);
        (void)waitpid(opener->pid, NULL, 0); /* it ends at end of stream */
    }
    free(opener);
}

void opener_freep(struct opener **opener)
{
    opener_free(*opener);
}

int opener_open(void *context, const char *path, int flags)
{
    struct opener *opener = context;
    bool directory = (flags & O_DIRECTORY) != 0;

    if (opener->socket < 0)
        return open_checked(path, directory);

    struct open_request request = {.directory = directory};
    struct open_reply reply;
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count = 0;
    size_t length = strlen(path);

    if (length >= sizeof(request.path))
        return -ENAMETOOLONG;
    memcpy(request.path, path, length + 1);

    int r = message_send(opener->socket, &request, sizeof(request), NULL, 0);

    if (r == 0)
        r = message_receive(opener->socket, &reply, sizeof(reply), fds, &fd_count);
    if (r < 0)
        return r;
    if (fd_count != (reply.error_number == 0 ? 1u : 0u)) {
        for (size_t i = 0; i < fd_count; i++)
            (void)close(fds[i]);
        return -EPROTO;
    }
    return fd_count == 1 ? fds[0] : -reply.error_number;
}
