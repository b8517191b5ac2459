/*
 * What a set-up hands over, and how long a workspace lives.
 */

#include "cell/server.h"

#include "base/mem.h"

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* paths and sockets: nothing is delayed */
    *fd = -1;
}

struct workspace *server_workspace_new(struct connection *connection, uint32_t role)
{
    struct workspace *workspace = mem_new(1, sizeof(*workspace));

    *workspace = (struct workspace){.references = 1,
                                    .role = role,
                                    .connection = connection,
                                    .mount_fd = -1,
                                    .upper_fd = -1,
                                    .slot = -1};
    return workspace;
}

void server_workspace_unref(struct server *server, struct workspace *workspace)
{
    if (workspace == NULL || --workspace->references > 0)
        return;
    server->driver->drop(server, workspace);
    close_fd(&workspace->mount_fd);
    close_fd(&workspace->upper_fd);
    free(workspace->directory);
    free(workspace);
}

struct workspace *server_find_workspace(struct server *server, struct connection *connection,
                                        uint32_t cell_id)
{
    struct server_cell *cell = server_find_cell(server, connection, cell_id);

    if (cell == NULL || cell->state != SERVER_CELL_ENDED || cell->workspace == NULL ||
        cell->workspace->in_use)
        return NULL;
    return cell->workspace;
}

/* Descriptors that a set-up handed over, in the order workspace, upper, namespaces. */
static void take_workspace(struct server_cell *cell, const struct child_report *report, int *fds)
{
    struct workspace *workspace = cell->collected != NULL ? cell->collected : cell->workspace;
    size_t next = 0;

    if (report->workspace_fds > 0 && workspace != NULL) {
        bool is_upper = cell->collected != NULL && workspace->layered;
        int *slot = is_upper ? &workspace->upper_fd : &workspace->mount_fd;

        close_fd(slot);
        *slot = fds[next];
        fds[next++] = -1;
    }
    if (report->workspace_fds > 1 && workspace != NULL) {
        close_fd(&workspace->upper_fd);
        workspace->upper_fd = fds[next];
        fds[next++] = -1;
        workspace->layered = true;
    }
    if (report->namespace_fds != NAMESPACE_FDS)
        return;
    for (size_t i = 0; i < NAMESPACE_FDS; i++) {
        cell->namespace_fds[i] = fds[next];
        fds[next++] = -1;
    }
}

static void take_listener(struct server_cell *cell, const struct child_report *report, int *fds,
                          size_t count)
{
    /* The last one. */
    if (report->listener_fds != 1 || count == 0 || cell->listener_fd >= 0)
        return;
    cell->listener_fd = fds[count - 1];
    fds[count - 1] = -1;
}

void server_take_fds(struct server_cell *cell, const struct child_report *report, int *fds,
                     size_t count)
{
    take_workspace(cell, report, fds);
    take_listener(cell, report, fds, count);
}
