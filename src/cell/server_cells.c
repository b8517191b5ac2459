#include "cell/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/message.h"
#include "cell/request.h"

#define PATIENCE_NS ((uint64_t)2000000000) /* an init that was asked to end gets this long */
#define PRESS_MS 100

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* paths, sockets and the like: nothing is delayed */
    *fd = -1;
}

struct server_cell *server_find_cell(struct server *server, const struct connection *connection,
                                     uint32_t id)
{
    for (struct server_cell *cell = server->cells; cell != NULL; cell = cell->next) {
        if (cell->id == id && cell->connection == connection)
            return cell;
    }
    return NULL;
}

/* --- children */

static struct child *new_child(struct server_cell *cell, bool is_init, uint32_t process)
{
    struct child *child = mem_new(1, sizeof(*child));

    *child = (struct child){.cell = cell,
                            .channel = -1,
                            .pidfd = -1,
                            .far_end = -1,
                            .step = STEP_REQUEST,
                            .is_init = is_init,
                            .process = process,
                            .channel_watch = {WATCH_CHANNEL, child},
                            .pid_watch = {WATCH_PID, child}};
    return child;
}

static void send_exit(struct child *child, const struct wire_exit *exit)
{
    struct message message = {
        .kind = MESSAGE_EXIT, .cell_id = child->cell->id, .process = child->process, .exit = *exit};

    message.detail = child->cell->candidate_failures;
    if (child->process == 0 || child->has_exited || !child->is_ready)
        return;
    child->has_exited = true;
    message.exit.end_ns = sys_now_ns();
    if (child->cell->grading != NULL) {
        child->cell->candidate_exit = message.exit;
        return;
    }
    server_reply(child->cell->connection, &message);
}

static bool is_awaited(const struct child *child)
{
    const struct server_cell *cell = child->cell;
    const struct connection *connection = cell->connection;

    return connection != NULL && connection->waiting_for == cell &&
           (connection->waiting_kind == REQUEST_START ||
            connection->waiting_kind == REQUEST_CANDIDATE ||
            (connection->waiting_kind == REQUEST_EXEC &&
             connection->waiting_process == child->process));
}

static void reply_ready(struct server *server, struct child *child,
                        const struct child_report *report)
{
    struct server_cell *cell = child->cell;
    struct message reply = {
        .kind = MESSAGE_REPLY, .cell_id = cell->id, .process = child->process, .uid = cell->uid};

    child->is_ready = true;
    if (child->is_init) {
        /* A workspace that was taken over is what it was. */
        cell->layered =
            report->layered != 0 || (cell->workspace != NULL && cell->workspace->layered);
        cell->protections |= report->protections;
        cell->protections |= server->driver->inspect(server, cell);
        /* Others are looked at by who asked for them; a candidate's asker is not to be trusted. */
        if (cell->grading != NULL &&
            (cell_mandatory(server->machine.tier, false) & ~cell->protections) != 0)
            reply.error = EPERM;
        if (cell->state == SERVER_CELL_STARTING)
            cell->state = SERVER_CELL_LIVE;
    }
    reply.protections = child->is_init ? cell->protections : report->protections;
    reply.layered = cell->layered;
    reply.init_pid = cell->init_pid;
    if (is_awaited(child))
        server_reply(cell->connection, &reply);
    if (reply.error != 0)
        server_cell_end(server, cell);
}

static void take_report(struct server *server, struct child *child,
                        const struct child_report *report, int *fds, size_t count)
{
    switch ((enum report_kind)report->kind) {
    case REPORT_FDS:
        server_take_fds(child->cell, report, fds, count);
        return;
    case REPORT_READY:
        reply_ready(server, child, report);
        return;
    case REPORT_FAILED:
        /* Answered when the child is gone, so that nothing of it is left. */
        child->failure = *report;
        return;
    case REPORT_EXIT:
        send_exit(child, &report->exit);
        if (child->cell->grading != NULL)
            server_cell_end(server, child->cell); /* with all that its command left running */
        return;
    case REPORT_COUNT:
        child->cell->killed += report->count;
        return;
    }
}

/* False when there is nothing to read, now or for good. */
static bool read_report(struct server *server, struct child *child)
{
    struct child_report report;
    int fds[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_receive(child->channel, &report, sizeof(report), fds, &count);

    if (r == -EAGAIN)
        return false;
    if (r < 0) {
        /* Closed, or nonsense; its end follows. */
        server_unwatch(server, &child->channel);
        return false;
    }
    take_report(server, child, &report, fds, count);
    for (size_t i = 0; i < count; i++)
        close_fd(&fds[i]);
    return true;
}

void server_child_reports(struct server *server, struct child *child)
{
    (void)read_report(server, child); /* the loop comes again for what is left */
}

static void remove_child(const struct server *server, struct child *child)
{
    struct child **link = &child->cell->children;

    while (*link != child)
        link = &(*link)->next;
    *link = child->next;
    server_unwatch(server, &child->channel);
    server_unwatch(server, &child->pidfd);
    free(child);
}

static void reply_failure(struct child *child)
{
    struct message reply = {
        .kind = MESSAGE_REPLY,
        .cell_id = child->cell->id,
        .error = child->failure.kind == REPORT_FAILED ? child->failure.error : ECHILD,
        .step = child->failure.kind == REPORT_FAILED ? child->failure.step : STEP_INIT,
        .detail = child->failure.detail,
        .protections = child->failure.protections,
    };

    if (reply.error == 0)
        reply.error = ECHILD;
    /* Not those that asked for the impossible, or went away meanwhile. */
    if (child->cell->grading != NULL && child->cell->state == SERVER_CELL_STARTING &&
        reply.step != STEP_REQUEST && reply.step < STEP_CWD)
        child->cell->grading->candidate_failures++;
    if (is_awaited(child))
        server_reply(child->cell->connection, &reply);
}

/* What a candidate left behind is nobody's: its end is told, and that is all. */
static void candidate_ended(struct server *server, struct server_cell *cell)
{
    struct message message = {
        .kind = MESSAGE_EXIT, .cell_id = cell->id, .process = 1, .exit = cell->candidate_exit};

    server_reply(cell->connection, &message);
    server_cell_free(server, cell);
}

void server_cell_settle(struct server *server, struct server_cell *cell)
{
    struct connection *connection = cell->connection;
    struct message reply = {.kind = MESSAGE_REPLY, .cell_id = cell->id, .processes = cell->killed};

    if (cell->children != NULL || cell->candidate_count > 0)
        return;
    cell->state = SERVER_CELL_ENDED;
    cell->end_ns = sys_now_ns();
    server->driver->ended(server, cell);
    reply.usage = cell->usage;
    if (cell->workspace != NULL)
        cell->workspace->in_use = false;
    if (cell->collected != NULL) {
        cell->collected->in_use = false;
        server_workspace_unref(server, cell->collected);
        cell->collected = NULL;
    }
    if (cell->grading != NULL) {
        candidate_ended(server, cell);
        return;
    }
    if (connection == NULL) {
        server_cell_free(server, cell);
        return;
    }
    if (connection->waiting_for != cell || connection->waiting_kind != REQUEST_END)
        return;
    reply.kill_ns = cell->end_ns - cell->end_began_ns;
    reply.workspace_empty = cell->workspace_empty;
    server_reply(connection, &reply);
}

void server_child_ends(struct server *server, struct child *child)
{
    static const struct wire_exit killed = {.exit_code = -1, .term_signal = SIGKILL};
    struct server_cell *cell = child->cell;
    bool was_ready = child->is_ready, was_init = child->is_init;
    uint64_t cpu_us = 0;
    int status;

    /* What it said before it died comes first. */
    while (child->channel >= 0 && read_report(server, child))
        continue;
    was_ready = was_ready || child->is_ready;
    /* Reaped elsewhere: it is gone all the same. */
    (void)!sys_reap_used(child->pidfd, &status, &cpu_us);
    cell->usage.cpu_us += cpu_us;
    send_exit(child, &killed);
    if (!was_ready)
        reply_failure(child);
    remove_child(server, child);
    if (was_init && !was_ready) {
        cell->connection = NULL; /* nobody knows this cell's number */
    } else if (was_init && cell->state == SERVER_CELL_LIVE) {
        server_cell_end(server, cell);
    }
    server_cell_settle(server, cell);
}

/* --- cells */

static struct server_cell *new_cell(struct server *server, struct connection *connection,
                                    const struct request_start *request)
{
    struct server_cell *cell = mem_new(1, sizeof(*cell));

    *cell = (struct server_cell){
        .connection = connection,
        .id = ++server->last_cell_id,
        .role = request->role,
        .ptrace_denied = request->ptrace_denied != 0,
        .limits = request->limits,
        .leaf = -1,
        .listener_fd = -1,
        .listener_watch = {WATCH_CANDIDATES, cell},
        .grading = connection->grading,
        .next = server->cells,
        .ruleset_fd = -1,
    };
    for (size_t i = 0; i < NAMESPACE_FDS; i++)
        cell->namespace_fds[i] = -1;
    server->cells = cell;
    server->cell_count++;
    if (cell->grading != NULL)
        cell->grading->candidate_count++;
    return cell;
}

void server_cell_free(struct server *server, struct server_cell *cell)
{
    struct server_cell **link = &server->cells;
    struct server_cell *grading = cell->grading;

    ASSERT(cell->children == NULL && cell->candidate_count == 0);
    server->driver->ended(server, cell); /* one that never began */
    while (*link != cell)
        link = &(*link)->next;
    *link = cell->next;
    server->cell_count--;
    if (cell->workspace != NULL && cell->state != SERVER_CELL_ENDED)
        cell->workspace->in_use = false;
    server_workspace_unref(server, cell->workspace);
    server_workspace_unref(server, cell->collected);
    server_workspace_unref(server, cell->looked_at);
    for (size_t i = 0; i < NAMESPACE_FDS; i++)
        close_fd(&cell->namespace_fds[i]);
    server_unwatch(server, &cell->listener_fd);
    server_recipe_free(cell->recipe);
    close_fd(&cell->ruleset_fd);
    free(cell->places);
    free(cell);
    if (grading == NULL)
        return;
    grading->candidate_count--;
    if (grading->state == SERVER_CELL_ENDING)
        server_cell_settle(server, grading);
}

static void force(struct server_cell *cell)
{
    cell->is_forced = true;
    for (struct child *child = cell->children; child != NULL; child = child->next)
        (void)!sys_pidfd_kill(child->pidfd, SIGKILL); /* ESRCH: its end is about to be seen */
}

void server_cell_end(struct server *server, struct server_cell *cell)
{
    if (cell->state == SERVER_CELL_ENDING || cell->state == SERVER_CELL_ENDED)
        return;
    bool is_starting = cell->state == SERVER_CELL_STARTING;

    cell->state = SERVER_CELL_ENDING;
    cell->end_began_ns = sys_now_ns();
    server_end_candidates(server, cell);
    /* A set-up does not listen yet. */
    if (is_starting && !server->driver->is_patient)
        force(cell);
    for (struct child *child = cell->children; child != NULL; child = child->next) {
        if (!child->is_init && !child->has_exited && child->is_ready)
            cell->killed++;
        if (child->channel >= 0 && (child->is_init || server->driver->further_listen))
            (void)!send(child->channel, "e", 1, MSG_NOSIGNAL); /* gone: then it ends anyway */
    }
}

int server_press(struct server *server)
{
    bool is_ending = false;

    for (struct server_cell *cell = server->cells; cell != NULL; cell = cell->next) {
        if (cell->state != SERVER_CELL_ENDING)
            continue;
        is_ending = true;
        if (!cell->is_forced && !server->driver->is_patient &&
            sys_now_ns() - cell->end_began_ns > PATIENCE_NS)
            force(cell);
    }
    return is_ending ? PRESS_MS : -1;
}

void server_forget_connection(struct server *server, struct connection *connection)
{
    struct server_cell *next;

    for (struct server_cell *cell = server->cells; cell != NULL; cell = next) {
        next = cell->next;
        if (cell->connection != connection)
            continue;
        cell->connection = NULL;
        if (cell->state == SERVER_CELL_ENDED)
            server_cell_free(server, cell);
        else
            server_cell_end(server, cell);
    }
}

/* --- requests */

void server_reply_error(struct connection *connection, int r, enum cell_step step)
{
    struct message reply = {.kind = MESSAGE_REPLY, .error = -r, .step = step};

    server_reply(connection, &reply);
}

static int fork_child(struct server *server, struct child *child, const struct input *input)
{
    int ends[2];
    int r = message_pair(ends);

    if (r < 0)
        return r;
    child->channel = ends[0];
    child->far_end = ends[1];
    r = fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
    if (r == 0 && child->is_init)
        r = server->driver->start(server, child, input);
    else if (r == 0)
        r = server->driver->exec(server, child, input);
    close_fd(&child->far_end); /* the child has its own */
    if (r == 0)
        r = server_watch(server, child->pidfd, &child->pid_watch);
    return r < 0 ? r : server_watch(server, child->channel, &child->channel_watch);
}

/* Forks through the driver and watches the child; the answer comes with its report. */
static int launch(struct server *server, struct connection *connection, struct child *child,
                  const struct input *input)
{
    struct server_cell *cell = child->cell;
    int r = fork_child(server, child, input);

    if (r < 0) {
        int status;

        /* It has no watcher. */
        if (child->pidfd >= 0 && sys_pidfd_kill(child->pidfd, SIGKILL) == 0)
            (void)!sys_reap(child->pidfd, &status); /* its end is all that matters */
        server_reply_error(connection, r, child->step);
        server_unwatch(server, &child->channel);
        server_unwatch(server, &child->pidfd);
        free(child);
        return r;
    }
    child->next = cell->children;
    cell->children = child;
    connection->waiting_for = cell;
    connection->waiting_kind = input->request->header.kind;
    connection->waiting_process = child->process;
    return 0;
}

/*
 * A trial's process may hold nothing but what its parent opened for it, and what lies in its own
 * directory; but anyone may open anything O_PATH. Such a descriptor from a trial shows no right to
 * what it names, so it is not mounted for it; and the only workers are those of the start.
 */
bool server_has_rights(const struct server *server, const struct connection *connection,
                       const struct input *input)
{
    const struct request_start *request = &input->request->start;
    struct stat status;

    if (connection->is_control)
        return true;
    for (size_t i = 0; i < input->fd_count; i++) {
        int flags = fcntl(input->fds[i], F_GETFL);

        if (flags < 0 || (flags & O_PATH) != 0)
            return false;
    }
    if (request->role != CELL_WORKER)
        return true;
    bool is_file = fstat(input->fds[request->program_fd], &status) == 0, is_known = false;

    for (size_t i = 0; is_file && i < server->worker_count; i++)
        is_known = is_known || (status.st_dev == server->workers[i].st_dev &&
                                status.st_ino == server->workers[i].st_ino);
    return is_known;
}

bool server_start_cell(struct server *server, struct connection *connection,
                       const struct input *input)
{
    const struct request_start *request = &input->request->start;
    struct server_cell *cell = new_cell(server, connection, request);
    struct child *child = new_child(cell, true, request->command.argc > 0 ? 1 : 0);

    cell->process_count = 1;
    if (launch(server, connection, child, input) < 0) {
        server_cell_free(server, cell);
        return false;
    }
    cell->init_pid = child->pid;
    if (cell->workspace != NULL)
        cell->workspace->in_use = true;
    return true;
}

static int handle_start(struct server *server, struct connection *connection, struct input *input)
{
    const struct request_start *request = &input->request->start;
    int r = request_check_start(request, input->fds, input->fd_count);

    if (r < 0)
        return r;
    if (!server_has_rights(server, connection, input)) {
        server_reply_error(connection, -EPERM, STEP_REQUEST);
        return 0;
    }
    if (server->cell_count >= SERVER_CELLS_MAX || server->is_closing) {
        server_reply_error(connection, -EAGAIN, STEP_REQUEST);
        return 0;
    }
    uint64_t size = request_blob_bytes(&request->command, request->texts, request->text_count);

    r = request_map_blob(input->fds[request->blob_fd], size, &input->blob);
    if (r < 0)
        return r;
    input->strings = input->blob;
    (void)!server_start_cell(server, connection, input); /* has answered when it failed */
    void *mapped;

    memcpy(&mapped, &input->blob, sizeof(mapped));
    (void)munmap(mapped, size > 0 ? size : 1); /* cannot fail for what was mapped */
    return 0;
}

static int handle_exec(struct server *server, struct connection *connection, struct input *input)
{
    const struct request_exec *request = &input->request->exec;
    struct server_cell *cell = server_find_cell(server, connection, request->header.cell_id);
    int r = request_check_exec(request, input->fds, input->fd_count);

    if (r < 0)
        return r;
    if (cell == NULL || cell->state != SERVER_CELL_LIVE || cell->role == CELL_WORKER) {
        server_reply_error(connection, -ESRCH, STEP_REQUEST);
        return 0;
    }
    uint64_t size = request_blob_bytes(&request->command, NULL, 0);

    r = request_map_blob(input->fds[request->blob_fd], size, &input->blob);
    if (r < 0)
        return r;
    struct child *child = new_child(cell, false, ++cell->process_count);
    void *mapped;

    (void)!launch(server, connection, child, input); /* has answered when it failed */
    memcpy(&mapped, &input->blob, sizeof(mapped));
    (void)munmap(mapped, size > 0 ? size : 1); /* cannot fail for what was mapped */
    return 0;
}

static int handle_end(struct server *server, struct connection *connection, uint32_t id)
{
    struct server_cell *cell = server_find_cell(server, connection, id);
    struct message reply = {.kind = MESSAGE_REPLY, .cell_id = id};

    if (cell == NULL) {
        server_reply_error(connection, -ESRCH, STEP_REQUEST);
        return 0;
    }
    if (cell->state == SERVER_CELL_ENDED) {
        reply.processes = cell->killed;
        reply.kill_ns = cell->end_ns - cell->end_began_ns;
        reply.usage = cell->usage;
        reply.workspace_empty = cell->workspace_empty;
        server_reply(connection, &reply);
        return 0;
    }
    connection->waiting_for = cell;
    connection->waiting_kind = REQUEST_END;
    server_cell_end(server, cell);
    return 0;
}

static int handle_release(struct server *server, struct connection *connection, uint32_t id)
{
    struct server_cell *cell = server_find_cell(server, connection, id);
    struct message reply = {.kind = MESSAGE_REPLY, .cell_id = id};

    if (cell == NULL || cell->state != SERVER_CELL_ENDED) {
        server_reply_error(connection, -ESRCH, STEP_REQUEST);
        return 0;
    }
    server_cell_free(server, cell);
    server_reply(connection, &reply);
    return 0;
}

int server_handle(struct server *server, struct connection *connection, struct input *input)
{
    const struct request_header *header = &input->request->header;

    switch ((enum request_kind)header->kind) {
    case REQUEST_START:
        return handle_start(server, connection, input);
    case REQUEST_EXEC:
        return handle_exec(server, connection, input);
    case REQUEST_END:
        return input->fd_count > 0 ? -EBADMSG : handle_end(server, connection, header->cell_id);
    case REQUEST_RELEASE:
        return input->fd_count > 0 ? -EBADMSG : handle_release(server, connection, header->cell_id);
    case REQUEST_RECIPE:
        return server_handle_recipe(server, connection, input);
    case REQUEST_CONNECT:
    case REQUEST_CGROUPS:
    case REQUEST_CANDIDATE:
        break; /* the loop's, and grading cells' alone */
    }
    return -EBADMSG;
}
