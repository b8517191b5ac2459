/*
 * Where cgroups may be made: what the kernel's two texts say.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"
#include "cell/cgroup_find.h"

struct expected {
    const char *mounts, *membership;
    const char *memory, *pids, *cpu, *unified, *top;
};

static void assert_same(const char *found, const char *wanted)
{
    if (!str_equal(found, wanted))
        fail_msg("'%s' instead of '%s'", found == NULL ? "(none)" : found,
                 wanted == NULL ? "(none)" : wanted);
}

static void check(const struct expected *expected)
{
    struct cgroup_places places;

    cgroup_places_parse(expected->mounts, expected->membership, &places);
    assert_same(places.plain[CELL_CGROUP_MEMORY], expected->memory);
    assert_same(places.plain[CELL_CGROUP_PIDS], expected->pids);
    assert_same(places.plain[CELL_CGROUP_CPU], expected->cpu);
    assert_same(places.unified, expected->unified);
    assert_same(places.unified_top, expected->top);
    cgroup_places_done(&places);
}

#define TAIL " rw,nosuid shared:9 - "
#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static void finds_own_cgroups(void **state)
{
    static const struct expected cases[] = {
        {V2, "0::/user.slice/a.scope\n", NULL, NULL, NULL, "/sys/fs/cgroup/user.slice/a.scope",
         "/sys/fs/cgroup"},
        {V2, "0::/\n", NULL, NULL, NULL, "/sys/fs/cgroup", "/sys/fs/cgroup"},
        /* A container without a cgroup namespace: the mount shows a part. */
        {"30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/x/y\n", NULL,
         NULL, NULL, "/sys/fs/cgroup/y", "/sys/fs/cgroup"},
        {"30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/docker/xy\n", NULL,
         NULL, NULL, NULL, NULL},
        {"30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup rw\n", "0::/../z\n", NULL, NULL,
         NULL, NULL, NULL},
        /* A hybrid machine; a controller alone or with another; a blank in a path. */
        {"1 0 0:1 / /c/memory" TAIL "cgroup cgroup rw,memory\n"
         "2 0 0:2 / /c/cpu,cpuacct" TAIL "cgroup cgroup rw,cpu,cpuacct\n"
         "3 0 0:3 / /c/two\\040words" TAIL "cgroup cgroup rw,pids\n"
         "4 0 0:4 / /c/unified" TAIL "cgroup2 cgroup2 rw\n"
         "5 0 0:5 / /c/cpuset" TAIL "cgroup cgroup rw,cpuset\n",
         "9:pids:/\n4:memory:/a/b\n3:cpuset:/s\n1:cpu,cpuacct:/c\n0::/\n", "/c/memory/a/b",
         "/c/two words", "/c/cpu,cpuacct/c", "/c/unified", "/c/unified"},
        /* Nothing, and nonsense. */
        {"", "", NULL, NULL, NULL, NULL, NULL},
        {"- - -\n\n1 2 3 4\n1 2 3 4 5 6 - cgroup2\n", "::\n:\n0\n0:\n", NULL, NULL, NULL, NULL,
         NULL},
        {"1 0 0:1 / /c/memory" TAIL "tmpfs tmpfs rw,memory\n", "4:memory:/a\n", NULL, NULL, NULL,
         NULL, NULL},
        {"1 0 0:1 / /c/memory" TAIL "cgroup cgroup rw,memory\n", "4:memory", NULL, NULL, NULL, NULL,
         NULL},
        /* No end of line. */
        {"1 0 0:1 / /c/memory" TAIL "cgroup cgroup rw,memory", "4:memory:/a", "/c/memory/a", NULL,
         NULL, NULL, NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check(&cases[i]);
}

static void says_why_there_are_none(void **state)
{
    struct cgroup_bases bases;
    bool has_any = false;

    (void)state;
    cgroup_find(&bases);
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        has_any = has_any || bases.fds[i] >= 0;
    assert_true(has_any || bases.reason[0] != '\0');
    cgroup_bases_done(&bases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_own_cgroups),
        cmocka_unit_test(says_why_there_are_none),
    };

    return cmocka_run_group_tests_name("cgroup_find", tests, NULL, NULL);
}
