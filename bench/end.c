/*
 * end: how long a cell takes to end that holds many processes which ignore what can be ignored.
 *
 * Usage: end [PROCESSES [ROUNDS]] with CLOSEDBOOK_CELL_PROGRAM set. Prints the receipts' times,
 * from the end's beginning until no process existed.
 */

#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/fixture.h"

#define PROCESSES_DEFAULT 1000
#define ROUNDS_DEFAULT 5

static uint64_t number(int argc, char **argv, int index, uint64_t otherwise)
{
    uint64_t value = otherwise;

    return argc > index && str_to_u64(argv[index], &value) && value > 0 ? value : otherwise;
}

/* Returns once all of them are there. */
static int start(const struct fixture *fixture, uint64_t processes, struct cell **ret,
                 struct error **err)
{
    /* Shells that wait to open what nobody writes to. */
    scoped(mem_freep) char *program =
        str_format("trap '' TERM INT HUP QUIT; mkfifo f; n=1; while [ $n -lt %llu ]; do "
                   "(read x <f) & n=$((n+1)); done; echo; read x <f",
                   (unsigned long long)processes);
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
        (void)printf("%llu processes: %.1f ms\n", (unsigned long long)receipt.processes,
                     ns_to_ms(receipt.kill_ns));
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
