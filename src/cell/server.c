#include "cell/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "base/message.h"
#include "cell/request.h"

/* Room for a full set of descriptors and the sender's credentials. */
union control_bytes {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX) + CMSG_SPACE(sizeof(struct ucred))];
};

int server_watch(struct server *server, int fd, struct watch *watch)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void server_unwatch(const struct server *server, int *fd)
{
    if (*fd < 0)
        return;
    (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, *fd, NULL); /* it may not be watched */
    (void)close(*fd);                                            /* nothing is sent any more */
    *fd = -1;
}

void server_reply(struct connection *connection, struct message *message)
{
    if (connection == NULL)
        return;
    message->magic = PROTOCOL_MAGIC;
    if (message->kind == MESSAGE_REPLY)
        connection->waiting_kind = 0;
    /* A client that is gone, or does not read, is noticed when its socket is looked at. */
    if (message_send(connection->socket, message, sizeof(*message), NULL, 0) < 0)
        (void)shutdown(connection->socket, SHUT_RDWR);
}

static int new_connection(struct server *server, int socket, struct connection **ret)
{
    struct connection *connection;
    const int on = 1;

    if (server->connection_count >= SERVER_CONNECTIONS_MAX)
        return -EMFILE;
    if (setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
        fcntl(socket, F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    connection = mem_new(1, sizeof(*connection));
    connection->socket = socket;
    connection->watch = (struct watch){WATCH_CONNECTION, connection};
    int r = server_watch(server, socket, &connection->watch);

    if (r < 0) {
        free(connection);
        return r;
    }
    connection->next = server->connections;
    server->connections = connection;
    server->connection_count++;
    *ret = connection;
    return 0;
}

int server_add_connection(struct server *server, int socket, struct server_cell *grading)
{
    struct connection *connection = NULL;
    int r = new_connection(server, socket, &connection);

    if (r == 0)
        connection->grading = grading;
    return r;
}

void server_close_connection(struct server *server, struct connection *connection)
{
    struct connection **link = &server->connections;

    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    server->connection_count--;
    server->is_closing = server->is_closing || connection->is_control;
    server_forget_connection(server, connection);
    server_unwatch(server, &connection->socket);
    if (connection->grading != NULL)
        server_leave_grading(server, connection);
    free(connection);
}

/* --- one datagram */

static void read_control(struct msghdr *header, int *fds, struct input *input)
{
    for (struct cmsghdr *item = CMSG_FIRSTHDR(header); item != NULL;
         item = CMSG_NXTHDR(header, item)) {
        if (item->cmsg_level != SOL_SOCKET)
            continue;
        if (item->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;

            memcpy(&sender, CMSG_DATA(item), sizeof(sender));
            input->uid = sender.uid;
            input->gid = sender.gid;
        } else if (item->cmsg_type == SCM_RIGHTS) {
            input->fd_count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fds, CMSG_DATA(item), input->fd_count * sizeof(int));
        }
    }
}

/* 0, -EAGAIN, or another error: the connection is over. */
static int receive(int socket, union request *request, int *fds, struct input *input)
{
    union control_bytes control;
    struct iovec part = {.iov_base = request, .iov_len = sizeof(*request)};
    struct msghdr header = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes),
    };
    ssize_t n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);

    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    read_control(&header, fds, input);
    if (n == 0)
        return -EPIPE;
    if ((header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 ||
        (size_t)n < sizeof(struct request_header) || request->header.magic != PROTOCOL_MAGIC ||
        request->header.reserved != 0 || (size_t)n != request_size(request->header.kind))
        return -EBADMSG;
    return 0;
}

static int connect_further(struct server *server, struct connection *connection, int *fds,
                           const struct input *input)
{
    struct message reply = {.kind = MESSAGE_REPLY};

    if (!connection->is_control || input->fd_count != 1)
        return -EBADMSG;
    int r = server_add_connection(server, fds[0], NULL);

    reply.error = -r;
    reply.step = (uint32_t)(r < 0 ? STEP_REQUEST : STEP_NONE);
    if (r == 0)
        fds[0] = -1; /* the connection has it */
    server_reply(connection, &reply);
    return 0;
}

static int take_cgroups(struct server *server, struct connection *connection,
                        const struct input *input)
{
    const struct request_cgroups *request = &input->request->cgroups;
    struct message reply = {.kind = MESSAGE_REPLY};
    int fds[CELL_CGROUP_KINDS];

    if (!connection->is_control || server->last_cell_id != 0 || request->reserved != 0)
        return -EBADMSG;
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        if (request->fds[i] < -1 || request->fds[i] >= (int64_t)input->fd_count)
            return -EBADMSG;
        fds[i] = request->fds[i] < 0 ? -1 : input->fds[request->fds[i]];
    }
    int r = server->driver->limit == NULL ? -EOPNOTSUPP
                                          : server->driver->limit(server, fds, &reply.facts.limits);

    reply.error = -r;
    reply.step = (uint32_t)(r < 0 ? STEP_CGROUP : STEP_NONE);
    server_reply(connection, &reply);
    return 0;
}

static void serve(struct server *server, struct connection *connection)
{
    static union request request;
    int fds[WIRE_FDS_MAX];
    struct input input = {.request = &request, .fds = fds, .uid = (uid_t)-1, .gid = (gid_t)-1};
    int r = receive(connection->socket, &request, fds, &input);

    if (r == -EAGAIN)
        return;
    /* One request at a time. */
    if (r == 0 && connection->waiting_kind != 0)
        r = -EBADMSG;
    if (r == 0 && connection->grading != NULL)
        r = server_handle_candidate(server, connection, &input);
    else if (r == 0 && request.header.kind == REQUEST_CONNECT)
        r = connect_further(server, connection, fds, &input);
    else if (r == 0 && request.header.kind == REQUEST_CGROUPS)
        r = take_cgroups(server, connection, &input);
    else if (r == 0)
        r = server_handle(server, connection, &input);
    for (size_t i = 0; i < input.fd_count; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]); /* the client's, read or path only */
    }
    if (r < 0)
        server_close_connection(server, connection);
}

static void dispatch(struct server *server, struct watch *watch)
{
    switch (watch->kind) {
    case WATCH_CONNECTION:
        serve(server, watch->owner);
        return;
    case WATCH_CHANNEL:
        server_child_reports(server, watch->owner);
        return;
    case WATCH_PID:
        server_child_ends(server, watch->owner);
        return;
    case WATCH_CANDIDATES:
        server_accept_candidate(server, watch->owner);
        return;
    }
}

int server_say_ready(const struct server *server, int control_fd, int error, enum cell_step step)
{
    const struct machine *machine = &server->machine;
    struct message ready = {
        .magic = PROTOCOL_MAGIC,
        .kind = MESSAGE_READY,
        .error = error,
        .step = step,
        .facts =
            {
                .tier = machine->tier,
                .landlock_abi = machine->landlock_abi,
                .overlay = machine->overlay,
                .idmap = machine->idmap,
                .tmpfs_xattr = machine->tmpfs_xattr,
                .subuid = machine->subuid,
                .lacking = machine->lacking,
                .lacking_error = machine->lacking_error,
                .protections = cell_tier_rows[machine->tier].mandatory,
            },
    };

    return message_send(control_fd, &ready, sizeof(ready), NULL, 0);
}

static void end_everything(struct server *server)
{
    while (server->connections != NULL)
        server_close_connection(server, server->connections);
}

/* How long the loop may sleep, in ms; -1: for good. */
static int patience(struct server *server)
{
    int look = server->driver->look == NULL ? -1 : server->driver->look(server);
    int press = server_press(server);

    return look < 0 || (press >= 0 && press < look) ? press : look;
}

int server_run(struct server *server, int control_fd)
{
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0)
        return -errno;
    struct connection *control = NULL;
    int r = new_connection(server, control_fd, &control);

    if (r < 0)
        return r;
    control->is_control = true;
    r = server_say_ready(server, control_fd, 0, STEP_NONE);
    if (r < 0)
        return r;
    while (!server->is_closing || server->cells != NULL) {
        struct epoll_event event;
        /* One event at a time: handling it may free what another one is about. */
        int n = epoll_wait(server->epoll_fd, &event, 1, patience(server));

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            dispatch(server, event.data.ptr);
        if (server->is_closing)
            end_everything(server);
    }
    return 0;
}
