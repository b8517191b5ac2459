/*
 * end: how long a cell takes to end that holds many processes which ignore what can be ignored.
 *
 * Usage: end [PROCESSES [ROUNDS]] with CLOSEDBOOK_CELL_PROGRAM set, as root. Prints, in turn, the
 * receipts' times, from the end's beginning until no process existed, and beside them what the
 * kernel needs at least: the same processes in a bare pid namespace, from SIGKILL for its init
 * until that could be waited for.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/fixture.h"

#define PROCESSES_DEFAULT 1000
#define ROUNDS_DEFAULT 5
#define STACK_BYTES 65536

static uint64_t number(int argc, char **argv, int index, uint64_t otherwise)
{
    uint64_t value = otherwise;

    return argc > index && str_to_u64(argv[index], &value) && value > 0 ? value : otherwise;
}

/* Shells that wait to open what nobody writes to, then a line; owned. */
static char *shells(uint64_t processes)
{
    return str_format("trap '' TERM INT HUP QUIT; mkfifo f; n=1; while [ $n -lt %llu ]; do "
                      "(read x <f) & n=$((n+1)); done; echo; read x <f",
                      (unsigned long long)processes);
}

/* --- the bare pid namespace */

struct bare {
    const char *program, *folder;
    int out;
};

static int bare_init(void *context)
{
    const struct bare *bare = context;

    if (dup2(bare->out, 1) < 0 || chdir(bare->folder) < 0)
        return 1;
    return execl("/bin/sh", "sh", "-c", bare->program, (char *)NULL);
}

static int measure_bare_in(const char *folder, uint64_t processes, struct error **err)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    scoped(mem_freep) char *program = shells(processes);
    int ends[2], status;
    char word;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int read_end = ends[0];
    scoped(fd_closep) int write_end = ends[1];
    struct bare bare = {program, folder, write_end};
    pid_t pid = clone(bare_init, stack + sizeof(stack), CLONE_NEWPID | SIGCHLD, &bare);

    if (pid < 0)
        return error_errno(err, errno, "cannot make a pid namespace");
    fd_closep(&write_end);
    bool there = read(read_end, &word, 1) == 1;
    uint64_t start_ns = clock_ns();

    if (kill(pid, SIGKILL) < 0 || waitpid(pid, &status, 0) < 0)
        return error_errno(err, errno, "cannot end the pid namespace");
    if (!there)
        return error_set(err, ERROR_SYSTEM, "the processes could not be made");
    (void)printf("bare pid namespace: %.1f ms\n", ns_to_ms(clock_ns() - start_ns));
    return 0;
}

static int measure_bare(uint64_t processes, struct error **err)
{
    char folder[] = "/tmp/closedbook-end-XXXXXX";

    if (mkdtemp(folder) == NULL)
        return error_errno(err, errno, "cannot make a folder in /tmp");
    scoped(mem_freep) char *queue = str_format("%s/f", folder);
    int r = measure_bare_in(folder, processes, err);

    (void)unlink(queue); /* what the shells waited at, if they came to make it */
    (void)rmdir(folder);
    return r;
}

/* --- the cell */

/* Returns once all of them are there. */
static int start(const struct fixture *fixture, uint64_t processes, struct cell **ret,
                 struct error **err)
{
    scoped(mem_freep) char *program = shells(processes);
    const char *const argv[] = {"/bin/sh", "-c", program, NULL};
    struct cell_spec spec;
    int ends[2];
    char word;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int read_end = ends[0];
    scoped(fd_closep) int write_end = ends[1];

    fixture_spec(fixture, CELL_AGENT, argv, &spec);
    spec.limits.pids = processes + 10;
    spec.command.fds[0] = spec.command.fds[2] = -1;
    spec.command.fds[1] = write_end;
    spec.command.fd_count = 3;
    int r = cell_start(fixture->monitor, &spec, ret, err);

    if (r < 0)
        return r;
    fd_closep(&write_end);
    if (read(read_end, &word, 1) != 1)
        return error_set(err, ERROR_SYSTEM, "the processes could not be made");
    return 0;
}

static int measure(const struct fixture *fixture, uint64_t processes, uint64_t rounds,
                   struct error **err)
{
    for (uint64_t i = 0; i < rounds; i++) {
        scoped(cell_freep) struct cell *cell = NULL;
        struct cell_receipt receipt;
        int r = start(fixture, processes, &cell, err);

        if (r == 0)
            r = cell_end(cell, &receipt, err);
        if (r < 0)
            return r;
        (void)printf("cell of %llu processes: %.1f ms\n", (unsigned long long)receipt.processes,
                     ns_to_ms(receipt.kill_ns));
        (void)fflush(stdout); /* before anything is cloned with it */
        r = measure_bare(processes, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    scoped(error_freep) struct error *err = NULL;
    int r = fixture_open(&fixture, CELL_NATIVE, &err);

    if (r == 0)
        r = measure(&fixture, number(argc, argv, 1, PROCESSES_DEFAULT),
                    number(argc, argv, 2, ROUNDS_DEFAULT), &err);
    fixture_close(&fixture);
    if (r < 0)
        (void)fprintf(stderr, "end: %s\n", error_message(err));
    return r < 0 ? 1 : 0;
}
