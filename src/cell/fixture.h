#pragma once
/*
 * fixture: cells for this folder's tests and benchmarks: a monitor of this build, a cell with the
 * host's /usr, a command's output. Not part of the program.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "cell/cell.h"

/* Who ordinary users' tests run as: an id that nobody has. */
#define FIXTURE_USER 12345

struct fixture {
    struct monitor *monitor;
    int usr_fd;
};

struct fixture_output {
    struct buf out; /* stdout and stderr together */
    struct cell_exit exit;
    enum cell_wait_result result;
};

/* The monitor of this build (environment: CLOSEDBOOK_CELL_PROGRAM, or beside the test). */
must_check int fixture_open(struct fixture *fixture, enum cell_driver driver, struct error **err)
    nonnull(1);
void fixture_close(struct fixture *fixture) nonnull(1);
void fixture_output_done(struct fixture_output *output) nonnull(1);

/* A spec with /usr, a small /etc, an empty workspace, and the command. envp NULL: PATH and HOME. */
void fixture_spec(const struct fixture *fixture, enum cell_role role, const char *const *argv,
                  struct cell_spec *ret) nonnull(1, 4);
/* Starts the spec's cell with its output captured, waits at most 20 s; *ret_cell is still live. */
must_check int fixture_run(const struct fixture *fixture, struct cell_spec *spec,
                           struct cell **ret_cell, struct fixture_output *ret, struct error **err)
    nonnull(1, 2, 3, 4);
/* Runs one command of sh in a cell of the role and ends that; the output is what it printed. */
must_check int fixture_shell(const struct fixture *fixture, const char *command,
                             struct fixture_output *ret, struct error **err) nonnull(1, 2, 3);
/*
 * The group of tests as whoever runs this, and when that is root, first once more as an ordinary
 * user. Returns what main() returns.
 */
int fixture_run_as_all(int (*run)(void)) nonnull(1);
/* True when a process of this machine has the text among its arguments. */
bool fixture_process_exists(const char *argument) nonnull(1);
/* Waits until there is one, or none, at most 10 s. (exec() is seen a moment after it is done.) */
bool fixture_process_appears(const char *argument) nonnull(1);
bool fixture_process_vanishes(const char *argument) nonnull(1);
/* A new empty directory below /tmp, and its end. */
char *fixture_dir_new(void);
void fixture_dir_free(char *path);

/* The same for one more program in the cell. */
must_check int fixture_exec(struct cell *cell, const char *const *argv, struct fixture_output *ret,
                            struct error **err) nonnull(1, 2, 3);
