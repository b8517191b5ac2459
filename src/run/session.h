#pragma once
/*
 * session: what a command has around it: helpers with rights, then no rights of its own.
 *
 * session_open() starts the opener, the claim helper and the monitor with the starter's rights,
 * then becomes the unprivileged identity. Only afterwards are tasks, records and configuration
 * read. Depends on: base, cell, stage, task (reader).
 */

#include "broker/broker.h"
#include "cell/cell.h"
#include "run/claim.h"
#include "run/opener.h"
#include "stage/store.h"
#include "task/task.h"

#define SESSION_HELD_MAX 5

struct session {
    struct identity identity;
    struct opener *opener;
    struct claim *claim;
    struct task_reader reader;
    bool allow_tier_c;
    struct monitor *native;     /* NULL when native_error is set or cells were not asked for */
    struct error *native_error; /* why there is no native cell here */
    struct monitor *tempdir;    /* started by the first session_monitor() that wants it */
    struct store *store;
    char *store_root;
    char *unpack_path; /* of unpack_program, which may be a descriptor */
    char *cell_program, *worker_program, *unpack_program, *probe_program, *candidate_program;
    char *broker_program, *mock_program;
    struct broker *broker; /* started by wire_prepare(), or the first session_broker() */
    struct broker *judges; /* another, which speaks with model endpoints; judges_prepare() */
    struct replay *replay; /* what keeps or answers what both are asked; owned; NULL: nothing */
    /* Keys that the environment had, for both; taken from it once: session_env_keys(). */
    int env_keys_fd;
    bool has_env_keys;
    bool has_mock;     /* mock_fd is open */
    int mock_fd;       /* what stands in for recorded and sealed programs */
    char *held_worker; /* root: the worker for later, by a descriptor; else NULL */
    int held_fds[SESSION_HELD_MAX];
    size_t held_count;
    struct sha256 *private_roots; /* of the trees that graders of this run read; owned */
    size_t private_root_count;
    struct sha256 suite_root, suite_look; /* of the last suite that was sealed */
};

struct session_options {
    bool cells;             /* start the monitor */
    bool store;             /* know where the store is, without cells */
    bool judges;            /* judges may be asked about, without cells */
    bool reads_nothing;     /* no task or configuration is read: no opener is needed */
    const char *allow_tier; /* "C": cells without namespaces will do; NULL */
    const char
        *owner_of; /* a run directory whose owner root becomes, so that it can be read; NULL */
    struct claim_place claims[CLAIMS_MAX];
    size_t claim_count;
};

must_check int session_open(const struct session_options *options, struct session *ret,
                            struct error **err) nonnull(1, 2);
/* Opens the store with a private part of its own named run_id (NULL: none). */
must_check int session_open_store(struct session *session, const char *run_id, struct error **err)
    nonnull(1);
/* The control connection for a driver. ERROR_SYSTEM with the reason when this machine has no native
 * cell. */
must_check int session_monitor(struct session *session, enum cell_driver driver,
                               struct monitor **ret, struct error **err) nonnull(1, 3);
must_check int session_stand_in(struct session *session, struct error **err) nonnull(1);
/* Takes keys out of the environment, the first time that it is called; names: NULL at the end. */
must_check int session_env_keys(struct session *session, const char *const *names,
                                struct error **err) nonnull(1, 2);
/* What answers for recorded programs, started when it is not. It holds no privilege. */
must_check int session_broker(struct session *session, struct broker **ret, struct error **err)
    nonnull(1, 2);
/*
 * Whether cells here are of the tier that the task named `name` requires. ERROR_SYSTEM says what
 * the machine lacks and what it has.
 */
must_check int session_check_tier(const struct session *session, const char *name,
                                  const struct task_public *task, struct error **err)
    nonnull(1, 2, 3);
/* Whether the limits that the task sets can be enforced here, or need not be. */
must_check int session_check_limits(const struct session *session, const char *name,
                                    const struct task_public *task, struct error **err)
    nonnull(1, 2, 3);
void session_close(struct session *session) nonnull(1);
