#include "cell/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "cell/request.h"

/*
 * What candidates of one grading cell are made of: the request that its trial sent, checked, with
 * its descriptors. What a grading cell's programs send may only add a command to it.
 */
struct recipe {
    struct request_start start;
    int fds[WIRE_FDS_MAX];
    size_t fd_count;
    const char *blob;
    size_t blob_bytes;
};

static void unmap(const char *bytes, size_t size)
{
    void *mapped;

    memcpy(&mapped, &bytes, sizeof(mapped));
    if (bytes != NULL)
        (void)munmap(mapped, size > 0 ? size : 1); /* cannot fail for what was mapped */
}

void server_recipe_free(struct recipe *recipe)
{
    if (recipe == NULL)
        return;
    for (size_t i = 0; i < recipe->fd_count; i++)
        (void)close(recipe->fds[i]); /* read only */
    unmap(recipe->blob, recipe->blob_bytes);
    free(recipe);
}

static int new_recipe(const struct input *input, struct recipe **ret)
{
    const struct request_start *request = &input->request->start;
    struct recipe *recipe = mem_new(1, sizeof(*recipe));
    int r = 0;

    recipe->start = *request;
    recipe->blob_bytes = request_blob_bytes(&request->command, request->texts, request->text_count);
    for (size_t i = 0; r == 0 && i < input->fd_count; i++) {
        int fd = fcntl(input->fds[i], F_DUPFD_CLOEXEC, 0);

        r = fd < 0 ? -errno : 0;
        if (r == 0)
            recipe->fds[recipe->fd_count++] = fd;
    }
    if (r == 0)
        r = request_map_blob(recipe->fds[request->blob_fd], recipe->blob_bytes, &recipe->blob);
    if (r < 0) {
        server_recipe_free(recipe);
        return r;
    }
    *ret = recipe;
    return 0;
}

static int listen_again(struct server *server, struct server_cell *grading)
{
    if (grading->is_listening || grading->listener_fd < 0)
        return 0;
    int r = server_watch(server, grading->listener_fd, &grading->listener_watch);

    grading->is_listening = r == 0;
    return r;
}

int server_handle_recipe(struct server *server, struct connection *connection, struct input *input)
{
    const struct request_header *header = &input->request->header;
    struct server_cell *cell = server_find_cell(server, connection, header->cell_id);
    struct message reply = {.kind = MESSAGE_REPLY, .cell_id = header->cell_id};
    int r = request_check_recipe(&input->request->start, input->fds, input->fd_count);

    if (r < 0)
        return r;
    if (cell == NULL || cell->state != SERVER_CELL_LIVE || cell->role != CELL_GRADER ||
        cell->listener_fd < 0 || cell->recipe != NULL)
        r = -ESRCH;
    else if (!server_has_rights(server, connection, input))
        r = -EPERM;
    if (r == 0)
        r = new_recipe(input, &cell->recipe);
    if (r == 0)
        r = listen_again(server, cell);
    reply.error = -r;
    reply.step = (uint32_t)(r < 0 ? STEP_REQUEST : STEP_NONE);
    server_reply(connection, &reply);
    return 0;
}

/* Beyond the limit nobody is let in: who asks waits in the socket's queue. */
void server_accept_candidate(struct server *server, struct server_cell *grading)
{
    int socket = accept4(grading->listener_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (socket < 0)
        return; /* gone again */
    if (server_add_connection(server, socket, grading) < 0) {
        (void)close(socket); /* the asker hears of it by that */
        return;
    }
    if (++grading->candidate_connections < CELL_CANDIDATES_MAX)
        return;
    (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, grading->listener_fd, NULL); /* it was there */
    grading->is_listening = false;
}

void server_leave_grading(struct server *server, struct connection *connection)
{
    connection->grading->candidate_connections--;
    if (listen_again(server, connection->grading) < 0)
        server_cell_end(server,
                        connection->grading); /* better than to leave its programs waiting */
}

void server_end_candidates(struct server *server, struct server_cell *grading)
{
    struct connection *next = server->connections;

    server_unwatch(server, &grading->listener_fd);
    grading->is_listening = false;
    while (next != NULL) {
        struct connection *connection = next;

        next = connection->next;
        if (connection->grading == grading)
            server_close_connection(server, connection);
    }
}

static struct server_cell *cell_of(struct server *server, const struct connection *connection)
{
    for (struct server_cell *cell = server->cells; cell != NULL; cell = cell->next) {
        if (cell->connection == connection)
            return cell;
    }
    return NULL;
}

static int32_t moved(int32_t position, size_t by)
{
    return position < 0 ? -1 : position + (int32_t)by;
}

/* The recipe's request with the asker's command in it, whose descriptors come after the recipe's.
 */
static void combine(const struct recipe *recipe, const struct request_exec *request,
                    struct request_start *ret)
{
    *ret = recipe->start;
    ret->header = request->header;
    ret->command = request->command;
    for (size_t i = 0; i < CELL_FDS_MAX; i++)
        ret->command.fds[i] = moved(request->command.fds[i], recipe->fd_count);
}

static int start_candidate(struct server *server, struct connection *connection,
                           const struct input *input)
{
    static union request request;
    const struct request_exec *asked = &input->request->exec;
    const struct recipe *recipe = connection->grading->recipe;
    struct input start = {.request = &request, .blob = recipe->blob};
    int fds[WIRE_FDS_MAX];

    memcpy(fds, recipe->fds, recipe->fd_count * sizeof(fds[0]));
    memcpy(fds + recipe->fd_count, input->fds, input->fd_count * sizeof(fds[0]));
    start.fds = fds;
    start.fd_count = recipe->fd_count + input->fd_count;
    combine(recipe, asked, &request.start);
    /* Mapped, not read: that is for the child that becomes the cell. */
    int r =
        request_map_blob(input->fds[asked->blob_fd], asked->command.strings_bytes, &start.strings);

    if (r < 0)
        return r;
    if (!server_start_cell(server, connection, &start))
        connection->grading->candidate_failures++;
    unmap(start.strings, asked->command.strings_bytes);
    return 0;
}

int server_handle_candidate(struct server *server, struct connection *connection,
                            struct input *input)
{
    struct server_cell *cell = cell_of(server, connection);

    if (input->request->header.kind == REQUEST_END) {
        if (input->fd_count > 0 || !connection->has_asked)
            return -EBADMSG;
        /* None: its end is told already. */
        if (cell != NULL)
            server_cell_end(server, cell);
        return 0;
    }
    if (input->request->header.kind != REQUEST_CANDIDATE || connection->has_asked)
        return -EBADMSG;
    int r = request_check_candidate(&input->request->exec, input->fds, input->fd_count);

    if (r < 0)
        return r;
    connection->has_asked = true;
    if (server->cell_count >= SERVER_CELLS_MAX || server->is_closing) {
        server_reply_error(connection, -EAGAIN, STEP_REQUEST);
        return 0;
    }
    return start_candidate(server, connection, input);
}
