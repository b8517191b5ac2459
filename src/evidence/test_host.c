#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "evidence/host.h"

/* A folder with a suite, a template and a run in it, and what is looked at. */
struct host {
    char *folder;
    struct str_list trees, parents, except;
    struct host_scope scope;
};

static int open_plainly(void *context, const char *path, int flags)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);

    (void)context;
    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {open_plainly, NULL};

static char *in(const struct host *host, const char *name)
{
    return str_format("%s/%s", host->folder, name);
}

static void put(const struct host *host, const char *name, const char *text)
{
    scoped(mem_freep) char *path = in(host, name);
    scoped(mem_freep) char *dir = path_dir(path);

    assert_int_equal(fs_mkdirs(AT_FDCWD, dir, 0755, NULL), 0);
    scoped(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fs_write_all(fd, path, text, strlen(text), NULL), 0);
}

static void setup(struct host *host, bool all_contents)
{
    *host = (struct host){.folder = str_dup("/tmp/closedbook-host-XXXXXX")};
    assert_non_null(mkdtemp(host->folder));
    put(host, "suite/task.yaml", "task\n");
    put(host, "suite/template/a.txt", "a\n");
    put(host, "suite/template/b.txt", "b\n");
    put(host, "suite/runs/one/run.json", "{}");
    put(host, "suite/runs/mine/trial.json", "1");
    put(host, "other.txt", "x");
    str_list_add_take(&host->trees, in(host, "suite"));
    str_list_add_take(&host->trees, in(host, "suite/template")); /* in the other one */
    str_list_add_take(&host->parents, in(host, "suite/runs"));
    str_list_add(&host->parents, host->folder);
    str_list_add(&host->parents, "/");
    str_list_add_take(&host->except, in(host, "suite/runs/mine"));
    host->scope = (struct host_scope){.trees = &host->trees,
                                      .parents = &host->parents,
                                      .except = &host->except,
                                      .reader = &reader,
                                      .all_contents = all_contents};
}

static void teardown(struct host *host)
{
    assert_int_equal(fs_remove_tree(AT_FDCWD, host->folder, NULL), 0);
    free(host->folder);
    str_list_done(&host->trees);
    str_list_done(&host->parents);
    str_list_done(&host->except);
}

static struct host_snapshot *snapshot(const struct host *host, const struct host_snapshot *before)
{
    struct host_snapshot *ret = NULL;
    struct error *err = NULL;

    if (host_snapshot_take(&host->scope, before, &ret, &err) < 0)
        fail_msg("%s", error_message(err));
    return ret;
}

/* What changed since before, the folder's random name left out; owned. */
static char *changes(const struct host *host, const struct host_snapshot *before)
{
    scoped(host_snapshot_freep) struct host_snapshot *after = snapshot(host, before);
    scoped(host_differences_done) struct host_differences found = {0};
    scoped(buf_done) struct buf text = {0};

    host_snapshot_compare(before, after, &found);
    for (size_t i = 0; i < found.lines.count; i++) {
        const char *line = found.lines.items[i], *at = strstr(line, host->folder);

        assert_non_null(at);
        buf_format(&text, "%.*s%s\n", (int)(at - line), line, at + strlen(host->folder) + 1);
    }
    assert_int_equal(found.count, found.lines.count);
    return buf_take(&text);
}

static void what_did_not_change_is_not_told(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct host host;

        setup(&host, full != 0);
        scoped(host_snapshot_freep) struct host_snapshot *before = snapshot(&host, NULL);

        assert_true(host_snapshot_count(before) >= 8);
        /* The run's own folder, another run, and what lies beside are not looked at. */
        put(&host, "suite/runs/mine/more.txt", "more");
        put(&host, "suite/runs/one/more.txt", "more");
        put(&host, "other.txt", "y");
        scoped(mem_freep) char *found = changes(&host, before);

        assert_string_equal(found, "");
        teardown(&host);
    }
}

static void each_change_is_told(void **state)
{
    (void)state;
    struct host host;

    setup(&host, false);
    scoped(host_snapshot_freep) struct host_snapshot *before = snapshot(&host, NULL);
    scoped(mem_freep) char *removed = in(&host, "suite/template/b.txt");
    scoped(mem_freep) char *mode = in(&host, "suite/task.yaml");

    put(&host, "suite/template/a.txt", "other\n");
    put(&host, "suite/template/new/c.txt", "c");
    put(&host, "suite/runs/stray", "s");
    assert_int_equal(unlink(removed), 0);
    assert_int_equal(chmod(mode, 0600), 0);
    scoped(mem_freep) char *found = changes(&host, before);

    /* The files are as young as the snapshot, so that their contents were read as well. */
    assert_non_null(strstr(found, "suite/template/a.txt\n"));
    assert_non_null(strstr(found, "changed (size 2 -> 6"));
    assert_non_null(strstr(found, "added: suite/template/new\n"));
    assert_non_null(strstr(found, "added: suite/template/new/c.txt\n"));
    assert_non_null(strstr(found, "added: suite/runs/stray\n"));
    assert_non_null(strstr(found, "removed: suite/template/b.txt\n"));
    assert_non_null(strstr(found, "changed (mode 0644 -> 0600, times): suite/task.yaml\n"));
    teardown(&host);
}

/* Who can set the times back (or change within one tick of the clock) is found by the content. */
static void a_change_that_the_times_hide_is_told_by_the_content(void **state)
{
    (void)state;
    struct host host;

    setup(&host, true);
    scoped(host_snapshot_freep) struct host_snapshot *before = snapshot(&host, NULL);

    put(&host, "suite/template/a.txt", "z\n");
    scoped(mem_freep) char *found = changes(&host, before);

    assert_non_null(strstr(found, "content"));
    assert_non_null(strstr(found, "suite/template/a.txt\n"));
    teardown(&host);
}

static void many_contents_are_read_by_several_processes(void **state)
{
    (void)state;
    struct host host;

    setup(&host, true);
    for (int i = 0; i < 300; i++) {
        scoped(mem_freep) char *name = str_format("suite/many/%d", i);
        scoped(mem_freep) char *text = str_format("%d", i % 10);

        put(&host, name, text);
    }
    scoped(host_snapshot_freep) struct host_snapshot *before = snapshot(&host, NULL);

    put(&host, "suite/many/299", "x");
    scoped(mem_freep) char *found = changes(&host, before);

    assert_non_null(strstr(found, "content"));
    assert_non_null(strstr(found, "suite/many/299\n"));
    assert_null(strchr(strchr(found, '\n') + 1, '\n')); /* the one line */
    teardown(&host);
}

static void what_cannot_be_looked_at_is_an_error(void **state)
{
    (void)state;
    struct host host;
    struct host_snapshot *ret = NULL;
    scoped(error_freep) struct error *err = NULL;

    setup(&host, false);
    str_list_add(&host.parents, "/nowhere/at all");
    assert_int_equal(host_snapshot_take(&host.scope, NULL, &ret, &err), -ERROR_SYSTEM);
    assert_non_null(strstr(error_message(err), "/nowhere/at all"));
    teardown(&host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_did_not_change_is_not_told),
        cmocka_unit_test(each_change_is_told),
        cmocka_unit_test(a_change_that_the_times_hide_is_told_by_the_content),
        cmocka_unit_test(many_contents_are_read_by_several_processes),
        cmocka_unit_test(what_cannot_be_looked_at_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
