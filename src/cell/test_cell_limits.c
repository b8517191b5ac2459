/*
 * Memory and processor time of cells: as root, as an ordinary user to whom cgroups were delegated,
 * and as one who has none.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/cgroup_find.h"
#include "cell/test_cells.h"

#define MIB ((uint64_t)1 << 20)

static bool lacks(enum cell_cgroup kind)
{
    const struct monitor_facts *facts = monitor_facts(fixture.monitor);

    if ((facts->limits & 1u << kind) != 0)
        return false;
    (void)fprintf(stderr, "skipped, no cgroup: %s\n", facts->limits_reason);
    return true;
}

/* What one command of sh printed in a cell with these limits, and what the cell used. */
static char *run(const char *command, const struct cell_limits *limits, struct cell_receipt *ret,
                 struct cell_exit *ret_exit)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.limits = *limits;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_int_equal(output.result, CELL_EXITED);
    assert_done(cell_end(cell, ret, &err), &err);
    if (ret_exit != NULL)
        *ret_exit = output.exit;
    char *text = str_dup(buf_text(&output.out));

    fixture_output_done(&output);
    cell_free(cell);
    return text;
}

/* --- memory */

static const char hog[] = "exec perl -e '$x = \"x\" x 60000000; print length($x)'";

static void ends_a_program_that_takes_too_much_memory(void **state)
{
    const struct cell_limits limits = {.memory_bytes = 32 * MIB, .disk_bytes = MIB};
    struct cell_receipt receipt;
    struct cell_exit exit;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    scoped(mem_freep) char *text = run(hog, &limits, &receipt, &exit);

    assert_string_equal(text, "");
    assert_int_equal(exit.term_signal, SIGKILL);
    assert_true(receipt.has_memory);
    assert_int_equal(receipt.oom_kills, 1);
    assert_in_range(receipt.memory_peak_bytes, 32 * MIB, 36 * MIB);
}

/* Memory of its own, within what the limit adds for places; then more of it, a little at a time. */
static void ends_a_program_that_takes_the_places_part(void **state)
{
    const struct cell_limits limits = {.memory_bytes = 32 * MIB, .disk_bytes = 64 * MIB};
    struct cell_receipt receipt;
    struct cell_exit exit;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    scoped(mem_freep) char *text =
        run("exec perl -e '$x = \"x\" x 60000000; for (1 .. 500) { push @y, \"y\" x 50000; "
            "select undef, undef, undef, 0.02 } print length($x)'",
            &limits, &receipt, &exit);

    assert_string_equal(text, "");
    assert_int_equal(exit.term_signal, SIGKILL);
    assert_int_equal(receipt.oom_kills, 1);
    assert_true(receipt.memory_looks > 1);
    assert_in_range(receipt.private_peak_bytes, 32 * MIB, 90 * MIB);
    assert_in_range(receipt.shared_peak_bytes, 0, MIB);
}

static void places_may_take_it(void **state)
{
    const struct cell_limits limits = {.memory_bytes = 32 * MIB, .disk_bytes = 64 * MIB};
    struct cell_receipt receipt;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    scoped(mem_freep) char *text =
        run("head -c 60000000 /dev/zero >/tmp/x; perl -e 'for (1 .. 20) { push @y, \"y\" x 50000; "
            "select undef, undef, undef, 0.02 }'; stat -c %s /tmp/x",
            &limits, &receipt, NULL);

    assert_string_equal(text, "60000000\n");
    assert_int_equal(receipt.oom_kills, 0);
    assert_true(receipt.memory_looks > 1);
    assert_in_range(receipt.shared_peak_bytes, 57 * MIB, 64 * MIB);
    assert_in_range(receipt.private_peak_bytes, 0, 32 * MIB);
}

static void memory_is_there_without_a_limit(void **state)
{
    const struct cell_limits limits = {.disk_bytes = MIB};
    struct cell_receipt receipt;

    (void)state;
    scoped(mem_freep) char *text = run(hog, &limits, &receipt, NULL);

    assert_string_equal(text, "60000000");
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    assert_int_equal(receipt.oom_kills, 0);
    assert_in_range(receipt.memory_peak_bytes, 57 * MIB, 200 * MIB);
}

static void a_full_disk_is_no_want_of_memory(void **state)
{
    const struct cell_limits limits = {.memory_bytes = 16 * MIB, .disk_bytes = 16 * MIB};
    struct cell_receipt receipt;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    scoped(mem_freep) char *text =
        run("for d in /workspace /tmp /home/agent /dev/shm; do head -c 40000000 /dev/zero 2>&1 "
            ">$d/x | grep -c 'No space'; stat -c %s $d/x; done",
            &limits, &receipt, NULL);

    assert_string_equal(text, "1\n16777216\n1\n16777216\n1\n16777216\n1\n16777216\n");
    assert_int_equal(receipt.oom_kills, 0);
    assert_in_range(receipt.memory_peak_bytes, 64 * MIB, 80 * MIB);
}

static void limits_the_further_programs_with_the_first(void **state)
{
    static const char *const sleeper[] = {"/bin/sleep", "1000", NULL};
    static const char *const argv[] = {"/bin/sh", "-c", hog, NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    fixture_spec(&fixture, CELL_GRADER, sleeper, &spec);
    spec.limits = (struct cell_limits){.memory_bytes = 32 * MIB, .disk_bytes = MIB};
    spec.command.fds[0] = spec.command.fds[1] = spec.command.fds[2] = -1;
    spec.command.fd_count = 3;
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    assert_done(fixture_exec(cell, argv, &output, &err), &err);
    assert_int_equal(output.exit.term_signal, SIGKILL);
    assert_done(cell_end(cell, &receipt, &err), &err);
    assert_int_equal(receipt.oom_kills, 1);
    fixture_output_done(&output);
    cell_free(cell);
}

/* --- processors */

/* Spins until it has used so many seconds of processor time. */
#define SPIN(seconds) "perl -e '1 while (times)[0] + (times)[1] < " seconds "'"

static bool is_slowed(uint64_t cpu_millis, const char *command)
{
    const struct cell_limits limits = {.cpu_millis = cpu_millis};
    struct cell_receipt receipt;
    uint64_t begin = clock_ns();
    scoped(mem_freep) char *text = run(command, &limits, &receipt, NULL);
    uint64_t wall_us = (clock_ns() - begin) / 1000;

    assert_string_equal(text, "");
    /* Some milliseconds of it are spent outside of the quota. */
    return receipt.cpu_us <= wall_us * 20 / 1000 + 12000;
}

static void holds_back_a_program_that_spins(void **state)
{
    (void)state;
    if (lacks(CELL_CGROUP_CPU))
        return;
    assert_true(is_slowed(20, SPIN("0.03")));
}

static void a_program_spins_without_a_limit(void **state)
{
    (void)state;
    assert_false(is_slowed(0, SPIN("0.3")));
}

static void shows_as_many_processors_as_are_limited(void **state)
{
    const struct cell_limits limits = {.cpu_millis = 700}, all = {0};
    struct cell_receipt receipt;
    scoped(mem_freep) char *host = str_format("%ld\n", sysconf(_SC_NPROCESSORS_ONLN));

    (void)state;
    scoped(mem_freep) char *text = run("nproc", &all, &receipt, NULL);

    assert_string_equal(text, host);
    if (lacks(CELL_CGROUP_CPU))
        return;
    scoped(mem_freep) char *limited = run("nproc", &limits, &receipt, NULL);

    assert_string_equal(limited, "1\n");
}

static void counts_the_time_of_those_that_outlived_their_parents(void **state)
{
    const struct cell_limits limits = {0};
    struct cell_receipt receipt;

    (void)state;
    /* The orphan says that it is done through the pipe that the command waits for. */
    scoped(mem_freep) char *text =
        run("( ( " SPIN("0.15") "; echo spun ) & ) | cat", &limits, &receipt, NULL);

    assert_string_equal(text, "spun\n");
    assert_in_range(receipt.cpu_us, 150000, 20000000);
}

/* --- what a cell sees of it */

static void sees_neither_its_cgroup_nor_its_name(void **state)
{
    const struct cell_limits limits = {0};
    struct cell_receipt receipt;

    (void)state;
    scoped(mem_freep) char *text =
        run("cat /proc/self/cgroup /proc/1/cgroup 2>/dev/null | grep -v ':/$'; ls /sys 2>&1 | "
            "grep -c 'No such'; grep -c -- '- cgroup' /proc/self/mountinfo",
            &limits, &receipt, NULL);

    assert_string_equal(text, "1\n0\n");
}

static void refuses_a_limit_that_it_cannot_enforce(void **state)
{
    static const char *const argv[] = {"/bin/true", NULL};
    const struct monitor_facts *facts = monitor_facts(fixture.monitor);
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    if (facts->limits != 0)
        return; /* the other two runs are for those */
    assert_true(facts->limits_reason[0] != '\0');
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.limits.memory_bytes = 64 * MIB;
    assert_int_equal(cell_start(fixture.monitor, &spec, &cell, &err), -ERROR_SYSTEM);
    assert_int_equal(error_errno_of(err), EOPNOTSUPP);
    error_free(err);
}

/* --- who runs them */

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ends_a_program_that_takes_too_much_memory),
        TEST(ends_a_program_that_takes_the_places_part),
        TEST(places_may_take_it),
        TEST(memory_is_there_without_a_limit),
        TEST(a_full_disk_is_no_want_of_memory),
        TEST(limits_the_further_programs_with_the_first),
        TEST(holds_back_a_program_that_spins),
        TEST(a_program_spins_without_a_limit),
        TEST(shows_as_many_processors_as_are_limited),
        TEST(counts_the_time_of_those_that_outlived_their_parents),
        TEST(sees_neither_its_cgroup_nor_its_name),
        TEST(refuses_a_limit_that_it_cannot_enforce),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

/* A cgroup of the ordinary user's in each hierarchy of version 1, which this process enters. */
static bool delegate(const struct cgroup_bases *bases, const char *name)
{
    static const char *const files[] = {".", "tasks", "cgroup.procs"};
    bool done = bases->fds[CELL_CGROUP_MEMORY] >= 0;

    for (size_t i = 0; i < CELL_CGROUP_KINDS && done; i++) {
        if (bases->fds[i] < 0)
            continue;
        done = mkdirat(bases->fds[i], name, 0755) == 0;
        scoped(fd_closep) int dir = openat(bases->fds[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        scoped(fd_closep) int tasks = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);

        for (size_t j = 0; j < ARRAY_SIZE(files) && done; j++)
            done = fchownat(dir, files[j], FIXTURE_USER, FIXTURE_USER, 0) == 0;
        done = done && tasks >= 0 && write(tasks, "0", 1) == 1;
    }
    return done;
}

static void withdraw(const struct cgroup_bases *bases, const char *name)
{
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        if (bases->fds[i] >= 0)
            (void)unlinkat(bases->fds[i], name, AT_REMOVEDIR);
    }
}

static int run_delegated(void)
{
    scoped(mem_freep) char *name = str_format("cb-test-limits-%d", getpid());
    scoped(cgroup_bases_done) struct cgroup_bases bases;
    int status = 0;

    cgroup_find(&bases);
    pid_t pid = fork();

    if (pid == 0) {
        if (!delegate(&bases, name)) {
            (void)fprintf(stderr, "skipped: cgroups cannot be delegated here\n");
            _exit(0);
        }
        if (syscall(SYS_setgroups, 0, NULL) < 0 ||
            syscall(SYS_setresgid, FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 ||
            syscall(SYS_setresuid, FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0)
            _exit(1);
        if (access(getenv("CLOSEDBOOK_CELL_PROGRAM"), X_OK) < 0)
            _exit(0);
        exit(run_groups());
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 1;
    withdraw(&bases, name);
    return status != 0;
}

int main(void)
{
    int status = geteuid() == 0 && getenv("CLOSEDBOOK_CELL_PROGRAM") != NULL ? run_delegated() : 0;

    return fixture_run_as_all(run_groups) != 0 || status != 0;
}
