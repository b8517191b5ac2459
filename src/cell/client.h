#pragma once
/*
 * client: the inside of struct monitor and struct cell, for this folder's client files.
 */

#include "cell/protocol.h"

struct cell_process {
    uint32_t number;
    bool exited;
    struct cell_exit exit;
};

struct cell {
    struct monitor *monitor; /* NULL once that was freed */
    struct cell *next;       /* of the monitor's cells */
    uint32_t id;
    uid_t uid;
    pid_t init_pid;
    enum cell_role role;
    uint64_t protections;
    bool layered, ended, workspace_empty, identity_root;
    struct cell_receipt receipt;
    uint32_t candidate_failures;
    struct cell_process *processes;
    size_t process_count;
};

struct monitor {
    int socket; /* -1: forgotten or broken */
    int pidfd;  /* the control connection's: of the server */
    pid_t pid;  /* likewise */
    struct monitor_facts facts;
    int worker_fd;
    int candidate_fd; /* as-candidate; -1: none */
    bool worker_is_dynamic;
    int root_fds[4]; /* /usr and, where it is not merged, /lib and so on: for a dynamic worker */
    struct cell *cells;
};

/* Descriptors of a request, each once. */
struct wire_fds {
    int fds[WIRE_FDS_MAX];
    size_t count;
    bool overflowed;
};

/* The position of fd among those of the request, -1 for fd -1. */
int32_t wire_fds_add(struct wire_fds *fds, int fd) nonnull(1);

/*
 * Sends a request and waits for its answer; exits that arrive meanwhile are noted. An answer with
 * an error is a success of this function.
 */
must_check int client_call(struct monitor *monitor, const void *request, size_t size,
                           const struct wire_fds *fds, struct message *ret, struct error **err)
    nonnull(1, 2, 5);
/* Reads one message and notes it if it is an exit. */
must_check int client_read(struct monitor *monitor, struct message *ret, struct error **err)
    nonnull(1, 2);
struct cell_process *client_find_process(struct cell *cell, uint32_t number) nonnull(1);

/* client_request.c */
must_check int client_fill_command(const struct cell_command *command, struct wire_command *wire,
                                   struct wire_fds *fds, struct buf *blob, struct error **err)
    nonnull(1, 2, 3, 4);
must_check int client_fill_start(const struct monitor *monitor, const struct cell_spec *spec,
                                 struct request_start *request, struct wire_fds *fds, int *ret_blob,
                                 struct error **err) nonnull(1, 2, 3, 4, 5);
must_check int client_seal_blob(const struct buf *blob, int *ret, struct error **err) nonnull(1, 2);

/* tempdir.c: serves in the calling process, which was forked for it. Never returns. */
struct monitor_options;
_Noreturn void tempdir_serve(int control_fd, const struct monitor_options *options) nonnull(2);
/* ERROR_USER with the path when $TMPDIR (else /tmp) is no place for new folders of the caller. */
must_check int tempdir_check(struct error **err);
