#include "base/message.h"

#include <errno.h>
#include <sys/socket.h>

/* Room for a full set of descriptors and, as the kernel may add them, credentials. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX) + 64];
};

int message_pair(int ret[static 2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
        return -errno;
    return 0;
}

int message_send(int socket, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
    union control control = {0};
    struct iovec part = {.iov_len = size};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t n;

    /* An empty datagram could not be told from the end of the stream. */
    ASSERT(size > 0 && fd_count <= MESSAGE_FDS_MAX);
    /* sendmsg() only reads, but iov_base is not const. */
    memcpy(&part.iov_base, &bytes, sizeof(bytes));
    if (fd_count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *item = CMSG_FIRSTHDR(&header);

        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(item), fds, sizeof(int) * fd_count);
    }
    do
        n = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == size ? 0 : -EMSGSIZE;
}

/* Collects the descriptors of all SCM_RIGHTS items; those that do not fit are closed. */
static size_t collect_fds(struct msghdr *header, int fds[static MESSAGE_FDS_MAX])
{
    size_t count = 0;

    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item != NULL;
         item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
            if (count < MESSAGE_FDS_MAX)
                fds[count++] = fd;
            else
                (void)close(fd); /* unused */
        }
    }
    return count;
}

int message_receive(int socket, void *bytes, size_t size, int fds[static MESSAGE_FDS_MAX],
                    size_t *ret_fd_count)
{
    union control control;
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    struct msghdr header = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n;
    int r = 0;

    do
        n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    size_t count = collect_fds(&header, fds);

    if (n == 0)
        r = -EPIPE;
    else if ((header.msg_flags & MSG_CTRUNC) != 0)
        r = -EPROTO;
    else if ((header.msg_flags & MSG_TRUNC) != 0 || (size_t)n != size)
        r = -EMSGSIZE;
    if (r < 0) {
        for (size_t i = 0; i < count; i++)
            (void)close(fds[i]); /* unused */
        return r;
    }
    *ret_fd_count = count;
    return 0;
}
