/*
 * How cells end: by request, by their own, and when the client or the monitor is killed at any
 * moment. After each no process of a cell may remain.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"
#include "cell/client.h"
#include "cell/sys.h"
#include "cell/test_cells.h"

#define SWEEP_STEPS 24
#define SWEEP_STEP_NS UINT64_C(700000)
#define STUBBORN 60
#define PATIENCE_NS UINT64_C(10000000000)

static unsigned marks;

/* An argument by which a cell's processes are found; owned. */
static char *new_mark(void)
{
    return str_format("closedbook-mark-%d-%u", getpid(), marks++);
}

/* A cell whose processes carry the mark: a tree that ignores all signals. */
static int start_marked(struct monitor *monitor, const char *mark, struct cell **ret,
                        struct error **err)
{
    const char *const argv[] = {"/bin/sh", "-c",
                                "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; "
                                "exec tail -f /dev/null --pid=1 -s 100 \"$0\"' $0 & "
                                "tail -f /dev/null -s 100 $0 & wait",
                                mark, NULL};
    struct fixture with = fixture;
    struct cell_spec spec;

    with.monitor = monitor;
    fixture_spec(&with, CELL_AGENT, argv, &spec);
    for (size_t i = 0; i < 3; i++)
        spec.command.fds[i] = -1;
    spec.command.fd_count = 3;
    return cell_start(monitor, &spec, ret, err);
}

static void kills_what_ignores_signals_and_hides(void **state)
{
    static const char *const argv[] = {
        "/bin/sh", "-c",
        "n=0; trap '' TERM HUP INT QUIT; while [ $n -lt 60 ]; do (setsid sh -c 'trap \"\" TERM; "
        "sleep 1000; sleep 1000' &) ; n=$((n+1)); done; echo ready; while :; do sleep 1000; done",
        NULL};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;
    char word[6];
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.command.fds[0] = spec.command.fds[2] = -1;
    spec.command.fds[1] = ends[1];
    spec.command.fd_count = 3;
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], word, sizeof(word)), 6);
    (void)close(ends[0]);
    assert_done(cell_end(cell, &receipt, &err), &err);
    assert_true(receipt.empty);
    if (receipt.kill_ns < UINT64_C(2000000000)) /* else init had no turn, and counted nothing */
        assert_in_range(receipt.processes, STUBBORN, 3 * STUBBORN);
    if (monitor_facts(fixture.monitor)->tier == TIER_A)
        assert_true(sys_uid_is_idle(cell_uid(cell)));
    cell_free(cell);
}

static void ends_the_cells_of_a_connection_that_closes(void **state)
{
    scoped(mem_freep) char *mark = new_mark();
    struct monitor *monitor = NULL;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(monitor_connect(fixture.monitor, &monitor, &err), &err);
    assert_done(start_marked(monitor, mark, &cell, &err), &err);
    assert_true(fixture_process_appears(mark));
    monitor_free(monitor);
    assert_true(fixture_process_vanishes(mark));
    cell_free(cell);
}

static void ends_all_with_the_control_connection(void **state)
{
    scoped(mem_freep) char *mark = new_mark();
    struct monitor *monitor = NULL;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(monitor_connect(fixture.monitor, &monitor, &err), &err);
    assert_done(start_marked(monitor, mark, &cell, &err), &err);
    monitor_freep(&fixture.monitor); /* returns when the server is gone */
    assert_false(fixture_process_exists(mark));
    cell_free(cell);
    monitor_free(monitor);
}

/* A client in a process of its own, with a monitor of its own, that starts marked cells for good.
 */
_Noreturn static void run_client(const char *mark, int ready_fd)
{
    struct fixture own;
    struct cell *cell = NULL;

    struct error *err = NULL;

    if (fixture_open(&own, CELL_NATIVE, &err) < 0) {
        (void)fprintf(stderr, "client: %s\n", error_message(err));
        _exit(1);
    }
    if (write(ready_fd, &own.monitor->pid, sizeof(pid_t)) != (ssize_t)sizeof(pid_t))
        _exit(1);
    for (;;) {
        if (start_marked(own.monitor, mark, &cell, &err) >= 0)
            continue;
        /* Its monitor is what some tests kill. */
        if (strstr(error_message(err), "the monitor") == NULL)
            (void)fprintf(stderr, "client: %s\n", error_message(err));
        _exit(2);
    }
}

static void spin_until(uint64_t deadline_ns)
{
    while (clock_ns() < deadline_ns)
        continue;
}

enum victim { VICTIM_CLIENT, VICTIM_MONITOR };

/* Orphans come to this process, so that the last one reaped was the last there was. */
static bool nothing_is_left(void)
{
    uint64_t deadline = clock_ns() + PATIENCE_NS;
    pid_t pid;

    do {
        pid = waitpid(-1, NULL, WNOHANG);
        if (pid == 0)
            (void)poll(NULL, 0, 1); /* then it is looked again */
    } while (pid >= 0 && clock_ns() < deadline);
    return pid < 0 && errno == ECHILD;
}

/* Kills at a moment a little later each time, so that set-ups are hit at every step. */
static void sweep(enum victim victim)
{
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    for (unsigned i = 0; i < SWEEP_STEPS; i++) {
        scoped(mem_freep) char *mark = new_mark();
        int ends[2];
        pid_t monitor;

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pid_t client = fork();

        if (client == 0)
            run_client(mark, ends[1]);
        (void)close(ends[1]);
        assert_int_equal(read(ends[0], &monitor, sizeof(monitor)), sizeof(monitor));
        (void)close(ends[0]);
        uint64_t begin = clock_ns();

        spin_until(begin + i * SWEEP_STEP_NS);
        assert_int_equal(kill(victim == VICTIM_CLIENT ? client : monitor, SIGKILL), 0);
        if (victim == VICTIM_CLIENT)
            assert_true(nothing_is_left());
        assert_true(fixture_process_vanishes(mark));
        (void)kill(client, SIGKILL);
        assert_true(nothing_is_left());
    }
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static void leaves_nothing_when_the_client_is_killed_at_any_moment(void **state)
{
    (void)state;
    sweep(VICTIM_CLIENT);
}

static void leaves_nothing_when_the_monitor_is_killed_at_any_moment(void **state)
{
    (void)state;
    sweep(VICTIM_MONITOR);
}

static void says_that_the_monitor_is_gone(void **state)
{
    scoped(mem_freep) char *mark = new_mark();
    enum cell_wait_result result;
    struct cell_exit exit;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(start_marked(fixture.monitor, mark, &cell, &err), &err);
    assert_int_equal(sys_pidfd_kill(fixture.monitor->pidfd, SIGKILL), 0);
    assert_int_equal(
        cell_wait(cell, 0, &(struct cell_patience){NULL, 0, 0, NULL}, &result, &exit, &err),
        -ERROR_SYSTEM);
    assert_non_null(strstr(error_message(err), "the monitor is gone"));
    error_free(err);
    cell_free(cell);
    assert_true(fixture_process_vanishes(mark));
}

static void survives_the_death_of_an_init(void **state)
{
    scoped(mem_freep) char *mark = new_mark();
    enum cell_wait_result result;
    struct cell_receipt receipt;
    struct cell_exit exit;
    struct cell *cell = NULL, *other = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(start_marked(fixture.monitor, mark, &cell, &err), &err);
    /* As the OOM killer might. */
    if (kill(cell->init_pid, SIGKILL) < 0) {
        cell_free(cell);
        skip(); /* a user's init belongs to root in /proc's eyes only: it can be killed */
    }
    assert_done(cell_wait(cell, 0, &(struct cell_patience){NULL, 0, 0, NULL}, &result, &exit, &err),
                &err);
    assert_int_equal(exit.term_signal, SIGKILL);
    assert_done(cell_end(cell, &receipt, &err), &err);
    assert_true(receipt.empty);
    cell_free(cell);
    assert_done(start_marked(fixture.monitor, mark, &other, &err), &err);
    cell_free(other);
}

/* --- what a broken client gets */

static void assert_closed(struct monitor *monitor, const void *bytes, size_t size, const int *fds,
                          size_t count)
{
    struct message message;
    struct error *err = NULL;

    assert_int_equal(message_send(monitor->socket, bytes, size, fds, count), 0);
    assert_int_equal(client_read(monitor, &message, &err), -ERROR_SYSTEM);
    error_free(err);
}

static void closes_the_connection_of_who_sends_nonsense(void **state)
{
    static const char garbage[] = "garbage that is not a request of any kind";
    struct request_start start = {.header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_START},
                                  .role = 77};
    struct request_plain plain = {.header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_CONNECT}};
    const struct {
        const void *bytes;
        size_t size;
    } cases[] = {
        {garbage, sizeof(garbage)},
        {&start, sizeof(start)},
        {&start, sizeof(start) - 4},
        {&plain, sizeof(plain)}, /* connecting is the control connection's to ask */
        {&plain, 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *mark = new_mark();
        struct monitor *monitor = NULL;
        struct cell *cell = NULL;
        struct error *err = NULL;

        assert_done(monitor_connect(fixture.monitor, &monitor, &err), &err);
        assert_done(start_marked(monitor, mark, &cell, &err), &err);
        assert_closed(monitor, cases[i].bytes, cases[i].size, NULL, 0);
        assert_true(fixture_process_vanishes(mark));
        monitor_free(monitor);
        cell_free(cell);
    }
    /* Others go on. */
    scoped(mem_freep) char *mark = new_mark();
    struct cell *cell = NULL;
    struct error *err = NULL;

    assert_done(start_marked(fixture.monitor, mark, &cell, &err), &err);
    cell_free(cell);
}

static void knows_only_the_cells_of_the_own_connection(void **state)
{
    scoped(mem_freep) char *mark = new_mark();
    struct monitor *monitor = NULL;
    struct cell *cell = NULL;
    struct error *err = NULL;
    struct message reply;

    (void)state;
    assert_done(start_marked(fixture.monitor, mark, &cell, &err), &err);
    assert_done(monitor_connect(fixture.monitor, &monitor, &err), &err);
    struct request_plain plain = {
        .header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_END, .cell_id = cell_id(cell)}};

    assert_done(client_call(monitor, &plain, sizeof(plain), NULL, &reply, &err), &err);
    assert_int_equal(reply.error, ESRCH);
    assert_true(fixture_process_appears(mark));
    monitor_free(monitor);
    cell_free(cell);
}

static void leases_an_id_to_one_cell_at_a_time(void **state)
{
    struct fixture other;
    struct cell *cells[4] = {0};
    struct error *err = NULL;

    (void)state;
    if (monitor_facts(fixture.monitor)->tier != TIER_A)
        skip(); /* a user has one id */
    scoped(mem_freep) char *mark = new_mark();

    assert_done(fixture_open(&other, CELL_NATIVE, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
        struct monitor *monitor = i % 2 == 0 ? fixture.monitor : other.monitor;

        assert_done(start_marked(monitor, mark, &cells[i], &err), &err);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(cell_uid(cells[i]), cell_uid(cells[j]));
        assert_false(sys_uid_is_idle(cell_uid(cells[i])));
    }
    for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
        cell_free(cells[i]);
    fixture_close(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(kills_what_ignores_signals_and_hides),
        TEST(ends_the_cells_of_a_connection_that_closes),
        TEST(ends_all_with_the_control_connection),
        cmocka_unit_test(leaves_nothing_when_the_client_is_killed_at_any_moment),
        cmocka_unit_test(leaves_nothing_when_the_monitor_is_killed_at_any_moment),
        TEST(says_that_the_monitor_is_gone),
        TEST(survives_the_death_of_an_init),
        TEST(closes_the_connection_of_who_sends_nonsense),
        TEST(knows_only_the_cells_of_the_own_connection),
        TEST(leases_an_id_to_one_cell_at_a_time),
    };

    return cmocka_run_group_tests_name("lives", tests, NULL, NULL);
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
