/*
 * Cgroups as the monitor makes them, without cells. Root's, where the machine has any.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/cgroup.h"
#include "cell/cgroup_find.h"

#define CHARGE_BYTES ((size_t)3 << 20)
#define CHARGED_FILE "/dev/shm/closedbook-test-cgroup"

static struct cgroup_bases bases;
static struct cgroups cgroups;

static int open_cgroups(void **state)
{
    (void)state;
    cgroup_find(&bases);
    cgroup_init(&cgroups);
    return cgroup_open(&cgroups, bases.fds);
}

static int close_cgroups(void **state)
{
    (void)state;
    cgroup_close(&cgroups);
    cgroup_bases_done(&bases);
    return 0;
}

static bool lacks(enum cell_cgroup kind)
{
    if ((cgroups.kinds & 1u << kind) != 0)
        return false;
    (void)fprintf(stderr, "skipped: no cgroup of this kind here: %s\n", bases.reason);
    return true;
}

/* The exit status of the function in a child inside the leaf. */
static int run_inside(int leaf, int (*run)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(cgroup_enter(&cgroups, leaf) < 0 ? 99 : run());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int take_leaf(uint64_t memory_bytes, uint64_t pids)
{
    int leaf =
        cgroup_take(&cgroups, &(struct cgroup_limits){.memory_bytes = memory_bytes, .pids = pids});

    assert_true(leaf >= 0);
    return leaf;
}

#define FORKS 20

/* How many of twenty processes can be made at once. All are gone when it returns. */
static int count_forks(void)
{
    pid_t made[FORKS];
    int count = 0, status;

    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();

        if (pid == 0) {
            (void)pause();
            _exit(0);
        }
        if (pid > 0)
            made[count++] = pid;
    }
    for (int i = 0; i < count; i++) {
        if (kill(made[i], SIGKILL) < 0 || waitpid(made[i], &status, 0) < 0)
            return 98;
    }
    return count;
}

static void stops_processes_whatever_their_ids(void **state)
{
    (void)state;
    if (lacks(CELL_CGROUP_PIDS))
        return;
    int leaf = take_leaf(0, 6);

    /* One is counting. */
    assert_int_equal(run_inside(leaf, count_forks), 5);
    cgroup_give(&cgroups, leaf);
    leaf = take_leaf(0, 0);
    assert_int_equal(run_inside(leaf, count_forks), FORKS);
    cgroup_give(&cgroups, leaf);
}

static int touch_memory(void)
{
    const size_t size = (size_t)64 << 20;
    volatile char *bytes = malloc(size);

    for (size_t i = 0; bytes != NULL && i < size; i += 4096)
        bytes[i] = 1;
    return bytes == NULL ? 1 : 0;
}

static void counts_memory_and_ends_of_each_cell_anew(void **state)
{
    struct cgroup_usage usage;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    int leaf = take_leaf((uint64_t)16 << 20, 0);

    assert_int_equal(run_inside(leaf, touch_memory), 128 + SIGKILL);
    cgroup_measure(&cgroups, leaf, &usage);
    assert_true(usage.has_memory);
    assert_int_equal(usage.oom_kills, 1);
    assert_in_range(usage.memory_peak_bytes, (uint64_t)14 << 20, (uint64_t)16 << 20);
    cgroup_give(&cgroups, leaf);
    /* The same without a limit: it has all that it wants, and nothing of the first is counted. */
    leaf = take_leaf(0, 0);
    assert_int_equal(run_inside(leaf, touch_memory), 0);
    cgroup_measure(&cgroups, leaf, &usage);
    assert_int_equal(usage.oom_kills, 0);
    /* A sanitizer's shadow is an eighth more, valgrind's a third. */
    assert_in_range(usage.memory_peak_bytes, (uint64_t)64 << 20, (uint64_t)96 << 20);
    cgroup_give(&cgroups, leaf);
    leaf = take_leaf(0, 0);
    cgroup_measure(&cgroups, leaf, &usage);
    assert_in_range(usage.memory_peak_bytes, 0, CGROUP_LEFT_BYTES_MAX);
    cgroup_give(&cgroups, leaf);
}

static int leave_pages(void)
{
    static char bytes[CHARGE_BYTES];
    int fd = open(CHARGED_FILE, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    return fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes) ? 0 : 1;
}

static void uses_no_leaf_again_that_holds_something(void **state)
{
    struct cgroup_usage usage;

    (void)state;
    if (lacks(CELL_CGROUP_MEMORY))
        return;
    int leaf = take_leaf(0, 0);

    assert_int_equal(run_inside(leaf, leave_pages), 0);
    cgroup_give(&cgroups, leaf);
    leaf = take_leaf(0, 0);
    cgroup_measure(&cgroups, leaf, &usage);
    assert_true(usage.memory_peak_bytes < CHARGE_BYTES);
    cgroup_give(&cgroups, leaf);
    assert_int_equal(unlink(CHARGED_FILE), 0);
}

static void refuses_a_limit_that_cannot_be_set(void **state)
{
    (void)state;
    cgroup_close(&cgroups);
    cgroups.bases[0] = cgroups.dirs[0] = -1;
    cgroup_init(&cgroups);
    assert_int_equal(cgroup_take(&cgroups, &(struct cgroup_limits){.memory_bytes = 1 << 20}),
                     -EOPNOTSUPP);
    assert_int_equal(cgroup_take(&cgroups, &(struct cgroup_limits){.cpu_millis = 500}),
                     -EOPNOTSUPP);
}

static void takes_cgroups_of_its_own_user_alone(void **state)
{
    const int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int wrong[CELL_CGROUP_KINDS] = {tmp, -1, -1};
    struct cgroups other;

    (void)state;
    cgroup_init(&other);
    assert_int_equal(cgroup_open(&other, wrong), -EPERM);
    cgroup_close(&other);
    (void)close(tmp);
}

static bool exists(const char *name)
{
    struct stat status;

    return fstatat(bases.fds[0], name, &status, 0) == 0;
}

static void removes_what_crashed_monitors_left(void **state)
{
    struct cgroups other;

    (void)state;
    if (bases.fds[0] < 0)
        return;
    assert_int_equal(mkdirat(bases.fds[0], "closedbook-left", 0755), 0);
    assert_int_equal(mkdirat(bases.fds[0], "closedbook-left/leaf", 0755), 0);
    assert_int_equal(mkdirat(bases.fds[0], "closedbook-held", 0755), 0);
    int held = openat(bases.fds[0], "closedbook-held", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
    cgroup_init(&other);
    assert_int_equal(cgroup_open(&other, bases.fds), 0);
    assert_false(exists("closedbook-left"));
    assert_true(exists("closedbook-held"));
    /* A living monitor's, too. */
    assert_true(exists(cgroups.names[0]));
    (void)close(held);
    scoped(mem_freep) char *name = str_dup(other.names[0]);

    assert_true(exists(name));
    cgroup_close(&other);
    assert_false(exists(name));
    assert_int_equal(unlinkat(bases.fds[0], "closedbook-held", AT_REMOVEDIR), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cgroups, close_cgroups)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stops_processes_whatever_their_ids),
        TEST(counts_memory_and_ends_of_each_cell_anew),
        TEST(uses_no_leaf_again_that_holds_something),
        TEST(refuses_a_limit_that_cannot_be_set),
        TEST(takes_cgroups_of_its_own_user_alone),
        TEST(removes_what_crashed_monitors_left),
    };

    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
