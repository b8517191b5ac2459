/*
 * launch: what a cell of /bin/true costs, beside other launchers, in pairs within one run.
 *
 * Usage: launch [PAIRS [CONCURRENT]] with CLOSEDBOOK_CELL_PROGRAM set. A cell is timed from START
 * to the receipt on a running monitor; the others from spawn to wait. Programs that are not
 * installed are left out. Prints a table.
 */

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/fixture.h"

#define PAIRS_DEFAULT 100
#define CONCURRENT_DEFAULT 100
#define ROUNDS_EACH 5
#define ARGS_MAX 40

extern char **environ;

struct contender {
    const char *name;
    const char *argv[ARGS_MAX]; /* argv[0] NULL: a cell */
    uint64_t *samples_ns;
    bool missing;
};

static struct contender contenders[] = {
    {.name = "closedbook, START to receipt"},
    {.name = "bare spawn", .argv = {"/bin/true"}},
    {.name = "bubblewrap --unshare-all",
     .argv = {"/usr/bin/bwrap", "--unshare-all", "--die-with-parent",
              "--ro-bind",      "/usr",          "/usr",
              "--symlink",      "usr/bin",       "/bin",
              "--symlink",      "usr/lib",       "/lib",
              "--symlink",      "usr/lib64",     "/lib64",
              "--symlink",      "usr/sbin",      "/sbin",
              "--dir",          "/etc",          "--proc",
              "/proc",          "--dev",         "/dev",
              "--tmpfs",        "/tmp",          "--tmpfs",
              "/home/agent",    "--tmpfs",       "/workspace",
              "--chdir",        "/workspace",    "/bin/true"}},
    {.name = "unshare(1), namespaces only",
     .argv = {"/usr/bin/unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts",
              "--cgroup", "--mount-proc", "/bin/true"}},
    {.name = "podman run --rootfs",
     .argv = {"/usr/bin/podman", "run", "--rm", "--network=none", "--rootfs", "/", "/bin/true"}},
};

static int run_cell(const struct fixture *fixture, struct monitor *monitor, struct error **err)
{
    static const char *const argv[] = {"/bin/true", NULL};
    scoped(cell_freep) struct cell *cell = NULL;
    struct cell_spec spec;
    enum cell_wait_result result;
    struct cell_exit exit;
    struct cell_receipt receipt;

    fixture_spec(fixture, CELL_AGENT, argv, &spec);
    for (size_t i = 0; i < 3; i++)
        spec.command.fds[i] = -1;
    spec.command.fd_count = 3;
    int r = cell_start(monitor, &spec, &cell, err);

    if (r == 0)
        r = cell_wait(cell, 0, &(struct cell_patience){NULL, 0, 0, NULL}, &result, &exit, err);
    if (r == 0)
        r = cell_end(cell, &receipt, err);
    if (r == 0 && exit.exit_code != 0)
        return error_set(err, ERROR_SYSTEM, "/bin/true failed in the cell");
    return r;
}

static bool run_program(const char *const *argv)
{
    char *args[ARGS_MAX];
    pid_t pid;
    int status;

    memcpy(args, argv, sizeof(args));
    if (posix_spawn(&pid, argv[0], NULL, NULL, args, environ) != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int compare(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

static uint64_t percentile(const uint64_t *sorted, size_t count, size_t percent)
{
    return sorted[(count - 1) * percent / 100];
}

static void print_row(struct contender *contender, size_t pairs)
{
    qsort(contender->samples_ns, pairs, sizeof(uint64_t), compare);
    (void)printf("| %-30s | %7.2f | %7.2f | %7.2f |\n", contender->name,
                 ns_to_ms(contender->samples_ns[0]),
                 ns_to_ms(percentile(contender->samples_ns, pairs, 50)),
                 ns_to_ms(percentile(contender->samples_ns, pairs, 90)));
}

static int run_pairs(const struct fixture *fixture, size_t pairs, struct error **err)
{
    for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
        struct contender *contender = &contenders[i];

        contender->samples_ns = mem_new(pairs, sizeof(uint64_t));
        contender->missing = contender->argv[0] != NULL && (access(contender->argv[0], X_OK) < 0 ||
                                                            !run_program(contender->argv));
    }
    for (size_t i = 0; i < pairs; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(contenders); j++) {
            struct contender *contender = &contenders[j];
            uint64_t begin = clock_ns();

            if (contender->missing)
                continue;
            if (contender->argv[0] == NULL) {
                int r = run_cell(fixture, fixture->monitor, err);

                if (r < 0)
                    return r;
            } else if (!run_program(contender->argv)) {
                return error_set(err, ERROR_SYSTEM, "%s failed", contender->name);
            }
            contender->samples_ns[i] = clock_ns() - begin;
        }
    }
    (void)printf("| /bin/true, %zu rounds             |  min ms |  p50 ms |  p90 ms |\n"
                 "|--------------------------------|---------|---------|---------|\n",
                 pairs);
    for (size_t i = 0; i < ARRAY_SIZE(contenders); i++) {
        if (!contenders[i].missing)
            print_row(&contenders[i], pairs);
    }
    return 0;
}

/* One of many at a time: a process with a connection of its own, or one that spawns. */
static int run_child(const struct fixture *fixture, struct monitor *monitor,
                     const char *const *argv)
{
    scoped(error_freep) struct error *err = NULL;

    for (int i = 0; i < ROUNDS_EACH; i++) {
        if (argv != NULL ? run_program(argv) : run_cell(fixture, monitor, &err) == 0)
            continue;
        (void)fprintf(stderr, "launch: %s\n", err != NULL ? error_message(err) : "failed");
        return 1;
    }
    return 0;
}

static int run_concurrent(const struct fixture *fixture, const struct contender *contender,
                          size_t count, struct error **err)
{
    bool is_cell = contender->argv[0] == NULL;
    struct monitor **monitors = mem_new(count, sizeof(struct monitor *));
    size_t failed = 0;

    for (size_t i = 0; i < count && is_cell; i++) {
        int r = monitor_connect(fixture->monitor, &monitors[i], err);

        if (r < 0)
            return r;
    }
    uint64_t begin = clock_ns();

    for (size_t i = 0; i < count; i++) {
        if (fork() == 0)
            _exit(run_child(fixture, monitors[i], is_cell ? NULL : contender->argv));
    }
    for (size_t i = 0; i < count; i++) {
        int status;

        if (wait(&status) < 0 || status != 0)
            failed++;
    }
    double seconds = ns_to_ms(clock_ns() - begin) / 1000;

    (void)printf("| %-30s | %7.0f | %7zu |\n", contender->name,
                 (double)(count * ROUNDS_EACH) / seconds, failed);
    for (size_t i = 0; i < count; i++)
        monitor_free(monitors[i]);
    free(monitors);
    return 0;
}

static uint64_t number(int argc, char **argv, int index, uint64_t otherwise)
{
    uint64_t value = otherwise;

    return argc > index && str_to_u64(argv[index], &value) ? value : otherwise;
}

static int measure(const struct fixture *fixture, size_t pairs, size_t concurrent,
                   struct error **err)
{
    int r = run_pairs(fixture, pairs, err);

    (void)printf("\n| %3zu at a time                  | cells/s |  failed |\n"
                 "|--------------------------------|---------|---------|\n",
                 concurrent);
    for (size_t i = 0; i < 3 && r == 0; i++) {
        if (!contenders[i].missing)
            r = run_concurrent(fixture, &contenders[i], concurrent, err);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct fixture fixture;
    scoped(error_freep) struct error *err = NULL;
    int r = fixture_open(&fixture, CELL_NATIVE, &err);

    if (r == 0)
        r = measure(&fixture, number(argc, argv, 1, PAIRS_DEFAULT),
                    number(argc, argv, 2, CONCURRENT_DEFAULT), &err);
    fixture_close(&fixture);
    for (size_t i = 0; i < ARRAY_SIZE(contenders); i++)
        free(contenders[i].samples_ns);
    if (r < 0)
        (void)fprintf(stderr, "launch: %s\n", error_message(err));
    return r < 0 ? 1 : 0;
}
