/*
 * What a cell's own limits stop, and what one cell can tell another.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/file.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "cell/test_cells.h"

static bool is_root(void)
{
    return monitor_facts(fixture.monitor)->tier == TIER_A;
}

static void shell(const char *command, struct fixture_output *output)
{
    struct error *err = NULL;

    assert_done(fixture_shell(&fixture, command, output, &err), &err);
}

/* --- limits */

static void stops_a_full_disk_and_too_many_files(void **state)
{
    static const char *const argv[] = {
        "/bin/sh", "-c",
        "for d in /workspace /tmp /home/agent /dev/shm; do "
        "head -c 2000000 /dev/zero 2>&1 > $d/x | grep -c space; stat -c %s $d/x; rm $d/x; done; "
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do : > f$i; done 2>&1 | grep -c space",
        NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.limits.disk_bytes = (uint64_t)1 << 20;
    spec.limits.inodes = 10;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_true(
        str_starts(buf_text(&output.out), "1\n1048576\n1\n1048576\n1\n1048576\n1\n1048576\n"));
    assert_false(str_ends(buf_text(&output.out), "\n0\n"));
    fixture_output_done(&output);
    cell_free(cell);
}

static void stops_a_fork_bomb(void **state)
{
    static const char *const argv[] = {
        "/bin/sh", "-c", "n=0; while [ $n -lt 60 ]; do sleep 1000 & n=$((n+1)); done; wait", NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.limits.pids = 20;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_non_null(strstr(buf_text(&output.out), "annot fork"));
    assert_done(cell_end(cell, &receipt, &err), &err);
    if (receipt.kill_ns < UINT64_C(2000000000)) /* else init had no turn, and counted nothing */
        assert_in_range(receipt.processes, 5, 20);
    fixture_output_done(&output);
    cell_free(cell);
}

/* What a command of sh prints in a cell with these limits. */
static void assert_prints(const struct cell_limits *limits, const char *command, const char *text)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.limits = *limits;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), text);
    fixture_output_done(&output);
    cell_free(cell);
}

static void stops_too_many_open_files_and_too_long_ones(void **state)
{
    static const char open_many[] =
        "perl -e 'while (@f < 100 && open(my $f, \"<\", \"/dev/null\")) { push @f, $f } "
        "print @f < 100 ? \"few\" : \"many\"'";
    static const char write_much[] =
        "(trap '' XFSZ; head -c 100000 /dev/zero >f) 2>/dev/null; stat -c %s f";

    (void)state;
    assert_prints(&(struct cell_limits){.open_files = 32}, open_many, "few");
    assert_prints(&(struct cell_limits){0}, open_many, "many");
    assert_prints(&(struct cell_limits){.file_bytes = 8192}, write_much, "8192\n");
    assert_prints(&(struct cell_limits){0}, write_much, "100000\n");
}

static void lets_through_what_is_within_the_limits(void **state)
{
    (void)state;
    assert_prints(&(struct cell_limits){0},
                  "n=0; while [ $n -lt 60 ]; do sleep 1000 & n=$((n+1)); done; echo $n; "
                  "for d in /workspace /tmp /home/agent /dev/shm; do "
                  "head -c 2000000 /dev/zero >$d/x && stat -c %s $d/x; done",
                  "60\n2000000\n2000000\n2000000\n2000000\n");
}

/* --- channels between cells */

/* A lock that one cell holds and another asks for. */
static bool lock_is_seen(const char *path)
{
    scoped(mem_freep) char *hold = str_format("flock -x %s sh -c 'echo held; sleep 1000'", path);
    scoped(mem_freep) char *ask = str_format("flock -n -x %s echo free || echo taken", path);
    const char *const argv[] = {"/bin/sh", "-c", hold, NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *holder = NULL;
    struct error *err = NULL;
    char word[5];
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.command.fds[0] = -1;
    spec.command.fds[1] = spec.command.fds[2] = ends[1];
    spec.command.fd_count = 3;
    assert_done(cell_start(fixture.monitor, &spec, &holder, &err), &err);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], word, sizeof(word)), 5); /* "held\n": from here on it is */
    (void)close(ends[0]);
    shell(ask, &output);
    bool seen = !str_equal(buf_text(&output.out), "free\n");

    fixture_output_done(&output);
    cell_free(holder);
    return seen;
}

static void locks_of_one_cell_are_not_seen_in_another(void **state)
{
    (void)state;
    assert_false(lock_is_seen("/usr/bin/env"));
    assert_false(lock_is_seen("/usr/lib"));
    /* In a user's cell this is the host's node: docs say so. */
    if (is_root())
        assert_false(lock_is_seen("/dev/null"));
}

static void locks_of_one_file_would_be_seen(void **state)
{
    int first = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    int second = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(flock(first, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(flock(second, LOCK_EX | LOCK_NB), -1);
    (void)close(first);
    (void)close(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stops_a_full_disk_and_too_many_files),
        TEST(stops_a_fork_bomb),
        TEST(stops_too_many_open_files_and_too_long_ones),
        TEST(lets_through_what_is_within_the_limits),
        TEST(locks_of_one_cell_are_not_seen_in_another),
        TEST(locks_of_one_file_would_be_seen),
    };

    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
