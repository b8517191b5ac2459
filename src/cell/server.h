#pragma once
/*
 * server: connections, cells and their children; the part that the monitor and the tempdir server
 * share. A driver makes the children.
 *
 * One thread, one epoll loop; every lengthy thing happens in a child. A child talks over its
 * channel (setup.h, struct child_report) and ends; a cell has ended when none of its children is
 * left. libc and base_core only.
 */

#include <sys/stat.h>

#include "cell/protocol.h"
#include "cell/setup.h"

#define SERVER_CELLS_MAX 4096
#define SERVER_WORKERS_MAX 2
#define SERVER_CONNECTIONS_MAX 1024
#define SERVER_LAYERED_FDS 2

struct server;
struct server_cell;

enum watch_kind { WATCH_CONNECTION, WATCH_CHANNEL, WATCH_PID, WATCH_CANDIDATES };

struct watch {
    enum watch_kind kind;
    void *owner;
};

struct connection {
    struct connection *next;
    struct watch watch;
    int socket;
    bool is_control;
    struct server_cell *waiting_for; /* the cell whose START, EXEC or END is under way */
    uint32_t waiting_kind;           /* enum request_kind, 0: none */
    uint32_t waiting_process;
    /* From within this grading cell: it may start one candidate, end it, and no more. */
    struct server_cell *grading;
    bool has_asked; /* that one was started, or refused */
};

/* A process of ours that belongs to a cell: its init, or the keeper of a further program. */
struct child {
    struct child *next;
    struct watch channel_watch, pid_watch;
    struct server_cell *cell;
    int channel, pidfd; /* the channel is -1 once the child has closed its end */
    int far_end;        /* the child's, while it is being made */
    enum cell_step step;
    pid_t pid;
    uint32_t process;                   /* of its program, 0: none */
    bool is_init, is_ready, has_exited; /* has_exited: its program's end was reported */
    struct child_report failure;        /* kind REPORT_FAILED when that came */
};

/* What is left of a cell, shared by those that keep it. Its ids belong to it. */
struct workspace {
    uint32_t references;
    uint32_t role;
    struct connection *connection;
    bool in_use, layered;
    int mount_fd, upper_fd; /* native; -1: none */
    int64_t slot;           /* native: the leased ids, -1: none */
    char *directory;        /* tempdir */
};

enum server_cell_state {
    SERVER_CELL_STARTING,
    SERVER_CELL_LIVE,
    SERVER_CELL_ENDING,
    SERVER_CELL_ENDED
};

struct server_cell {
    struct server_cell *next;
    struct connection *connection; /* NULL: it closed; the cell goes when it has ended */
    uint32_t id, role;
    enum server_cell_state state;
    struct child *children;
    struct workspace *workspace;
    struct workspace *collected; /* CELL_WORKER: whose workspace it reads */
    struct workspace *looked_at; /* CELL_GRADER: that of a live cell, whose ids it uses */
    uint32_t process_count;
    uint64_t protections;
    uint64_t end_began_ns, killed;
    uint64_t end_ns;
    bool is_forced; /* SIGKILL went out */
    uid_t uid, init_uid;
    gid_t gid;
    pid_t init_pid;
    bool identity_root; /* its programs are root of a user namespace */
    bool ptrace_denied, layered, workspace_empty;
    bool is_pressed; /* native: its programs have more memory than they may */
    struct cell_limits limits;
    int leaf; /* native: its cgroup, -1: none */
    struct wire_usage usage;
    int namespace_fds[NAMESPACE_FDS];
    /* CELL_GRADER: where its programs ask for candidates, what those are made of, how many are. */
    int listener_fd; /* -1: none */
    struct watch listener_watch;
    bool is_listening;
    struct recipe *recipe;
    uint32_t candidate_count;        /* cells */
    uint32_t candidate_connections;  /* their number has a limit, and each has one cell at most */
    uint32_t candidate_failures;     /* that the machine is to blame for */
    struct server_cell *grading;     /* CELL_CANDIDATE: whose workspace it shares */
    struct wire_exit candidate_exit; /* CELL_CANDIDATE: told when nothing of it is left */
    char *places;                    /* tempdir: paths of the cell that are elsewhere in truth */
    int ruleset_fd;                  /* walled: what its programs may reach; -1: none */
};

/* A request with what came along. */
struct input {
    const union request *request;
    const int *fds;
    size_t fd_count;
    const char *blob;
    const char *strings; /* of the command: the blob, but for a candidate */
    uid_t uid;           /* who sent it, as the kernel says */
    gid_t gid;
};

struct server_driver {
    /* Both fork a child that owns child->far_end; on failure child->step says where. */
    int (*start)(struct server *server, struct child *child, const struct input *input);
    int (*exec)(struct server *server, struct child *child, const struct input *input);
    /* Right before the answer to START: protections that are seen from outside. */
    uint64_t (*inspect)(struct server *server, const struct server_cell *cell);
    void (*drop)(struct server *server, struct workspace *workspace);
    /* Once no process of the cell exists, before the client hears of it. */
    void (*ended)(struct server *server, struct server_cell *cell);
    /* Takes directories for cgroups; *ret_limits says what they limit. NULL: nothing of the kind.
     */
    int (*limit)(struct server *server, const int *fds, uint64_t *ret_limits);
    /* From time to time; says in how many ms at the latest again, -1: not at all. NULL: nothing. */
    int (*look)(struct server *server);
    /*
     * The children of EXEC end when told to, as inits do. Others are not told: a child that ends
     * with a word unread resets its channel, and its own last word is lost.
     */
    bool further_listen;
    /*
     * What keeps a cell's programs must not be killed, as they would outlive it; it ends by itself
     * once they have.
     */
    bool is_patient;
};

struct server {
    const struct server_driver *driver;
    struct machine machine;
    void *state; /* the driver's */
    int epoll_fd;
    struct connection *connections;
    struct server_cell *cells;
    size_t cell_count, connection_count;
    uint32_t last_cell_id;
    bool is_closing; /* the control connection closed */
    size_t worker_count;
    struct stat workers[SERVER_WORKERS_MAX]; /* the programs that workers are, as at the start */
};

/* Serves until the control connection has closed and no cell is left. */
must_check int server_run(struct server *server, int control_fd) nonnull(1);
/* The first word on the control connection. error 0: ready. */
must_check int server_say_ready(const struct server *server, int control_fd, int error,
                                enum cell_step step) nonnull(1);

struct workspace *server_workspace_new(struct connection *connection, uint32_t role);
/* The workspace of an ended cell of this connection that nobody uses, or NULL. */
struct workspace *server_find_workspace(struct server *server, struct connection *connection,
                                        uint32_t cell_id) nonnull(1);

void server_workspace_unref(struct server *server, struct workspace *workspace) nonnull(1);
/* Descriptors of a report, of which it leaves -1 where it took one. */
void server_take_fds(struct server_cell *cell, const struct child_report *report, int *fds,
                     size_t count) nonnull(1, 2, 3);

/* server_cells.c */
void server_child_reports(struct server *server, struct child *child) nonnull(1, 2);
void server_child_ends(struct server *server, struct child *child) nonnull(1, 2);
void server_cell_end(struct server *server, struct server_cell *cell) nonnull(1, 2);
void server_cell_free(struct server *server, struct server_cell *cell) nonnull(1, 2);
/* Forces what does not end by itself; returns how long the loop may sleep, in ms (-1: for good). */
int server_press(struct server *server) nonnull(1);
void server_forget_connection(struct server *server, struct connection *connection) nonnull(1, 2);
/* 0: answered or under way; negative: the connection is to be closed. */
must_check int server_handle(struct server *server, struct connection *connection,
                             struct input *input) nonnull(1, 2, 3);
void server_reply(struct connection *connection, struct message *message) nonnull(2);
must_check int server_watch(struct server *server, int fd, struct watch *watch) nonnull(1, 3);
/*
 * Stops watching and closes. Closing alone is not enough: a child forked meanwhile may hold the
 * same open file, and the loop would hear of it with the watch already freed.
 */
void server_unwatch(const struct server *server, int *fd) nonnull(1, 2);
must_check int server_add_connection(struct server *server, int socket, struct server_cell *grading)
    nonnull(1);
void server_close_connection(struct server *server, struct connection *connection) nonnull(1, 2);

/* server_cells.c, for server_candidates.c */
struct server_cell *server_find_cell(struct server *server, const struct connection *connection,
                                     uint32_t id) nonnull(1);
void server_reply_error(struct connection *connection, int r, enum cell_step step);
/* Makes a cell of what was checked; false: it failed and is answered. Else its child's word is. */
bool server_start_cell(struct server *server, struct connection *connection,
                       const struct input *input) nonnull(1, 2, 3);
must_check bool server_has_rights(const struct server *server, const struct connection *connection,
                                  const struct input *input) nonnull(1, 2, 3);
/* For a cell that ends: nothing, unless it waited for its last candidate. */
void server_cell_settle(struct server *server, struct server_cell *cell) nonnull(1, 2);

/* server_candidates.c */
must_check int server_handle_recipe(struct server *server, struct connection *connection,
                                    struct input *input) nonnull(1, 2, 3);
/* All that a connection from within a grading cell may say. */
must_check int server_handle_candidate(struct server *server, struct connection *connection,
                                       struct input *input) nonnull(1, 2, 3);
void server_accept_candidate(struct server *server, struct server_cell *grading) nonnull(1, 2);
/* Ends the grading cell's candidates and takes no more. */
void server_end_candidates(struct server *server, struct server_cell *grading) nonnull(1, 2);
void server_leave_grading(struct server *server, struct connection *connection) nonnull(1, 2);
void server_recipe_free(struct recipe *recipe);
