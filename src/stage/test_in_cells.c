/*
 * The way of a workspace through real cells: staged by the worker in its cell, changed by an agent
 * in its, collected, applied in a grader's and read there. For the drivers that this machine has.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/test_trees.h"
#include "stage/stage.h"

#define WAIT_NS (UINT64_C(60) * 1000000000)

/* One walk through everything that a program can see of a tree. */
#define LIST                                                                                       \
    "find . -printf '%y %m %p %l\\n' | LC_ALL=C sort; "                                            \
    "find . -type f -exec sha256sum {} + | LC_ALL=C sort\n"

static const char agent_script[] = "set -e\n"
                                   "mv dir moved\n"
                                   "echo more >> moved/one\n"
                                   "rm gone\n"
                                   "rm -r turn; echo file > turn\n"
                                   "rm keep; mkdir keep; echo in > keep/in\n"
                                   "mkdir -p new/deep; echo x > new/deep/x; chmod 700 new\n"
                                   "rm -r again; mkdir again; echo fresh > again/fresh\n"
                                   "ln -s /usr/bin/env env; ln -s moved/one link\n"
                                   "chmod 755 tool\n" LIST;

struct place {
    int fd;
    char *base;
    struct monitor *monitor;
    struct store *store;
};

static int open_plainly(void *context, const char *path, int flags)
{
    int fd = open(path, flags);

    (void)context;
    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {.open = open_plainly};

/* False when this machine cannot: the test is skipped with the reason. */
static bool open_place(struct place *place, enum cell_driver driver)
{
    struct monitor_options options = {
        .driver = driver,
        .cell_program = getenv("CLOSEDBOOK_CELL_PROGRAM"),
        .worker_program = getenv("CLOSEDBOOK_TEST_WORKER"),
    };
    scoped(error_freep) struct error *err = NULL;
    char path[4096];

    *place = (struct place){.fd = -1};
    if (options.cell_program == NULL || options.worker_program == NULL) {
        print_message("SKIPPED: CLOSEDBOOK_CELL_PROGRAM and CLOSEDBOOK_TEST_WORKER are not set\n");
        return false;
    }
    if (monitor_start(&options, &place->monitor, &err) < 0) {
        print_message("SKIPPED: no cells here: %s\n", error_message(err));
        return false;
    }
    place->fd = temporary_folder();
    scoped(mem_freep) char *link = str_format("/proc/self/fd/%d", place->fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);

    assert_true(length > 0);
    place->base = str_ndup(path, (size_t)length);
    scoped(mem_freep) char *root = path_join(place->base, "store");

    assert_int_equal(store_open(root, "run", &place->store, NULL), 0);
    return true;
}

static void close_place(struct place *place)
{
    store_close(place->store);
    monitor_free(place->monitor);
    free(place->base);
    remove_temporary_folder(&place->fd);
}

static void put_template(const struct place *place, size_t large_bytes)
{
    static const char *const files[] = {"dir/one", "dir/two", "dir/sub/three", "gone", "turn/in",
                                        "keep",    "tool",    "again/old",     "same"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        scoped(mem_freep) char *path = str_format("template/%s", files[i]);

        put_file(place->fd, path, files[i]);
    }
    if (large_bytes == 0)
        return;
    scoped(mem_freep) char *large = mem_new(large_bytes + 1, 1);

    memset(large, 'x', large_bytes);
    put_file(place->fd, "template/dir/large", large);
}

/* Runs the shell over a script in the cell and takes what it prints; owned. */
static char *run_script(struct cell *cell, const char *script)
{
    scoped(str_list_done) struct str_list env = {0};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    struct buf output = {0};
    struct cell_exit end;
    enum cell_wait_result how;
    uint32_t process;
    struct error *err = NULL;
    int ends[2];

    cell_env_default(&env);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct cell_command command = {.argv = argv,
                                   .envp = (const char *const *)env.items,
                                   .fds = {-1, ends[1], ends[1]},
                                   .fd_count = 3};
    struct cell_capture capture = {.fd = ends[0], .buf = &output};

    if (cell_exec(cell, &command, &process, &err) < 0)
        fail_msg("%s", error_message(err));
    (void)close(ends[1]);
    if (cell_wait(cell, process, &(struct cell_patience){&capture, 1, clock_ns() + WAIT_NS, NULL},
                  &how, &end, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_int_equal(how, CELL_EXITED);
    if (end.exit_code != 0)
        fail_msg("status %d: %s", end.exit_code, buf_text(&output));
    return buf_take(&output);
}

static struct cell *start(const struct place *place, const struct view *view, enum cell_role role)
{
    struct cell_spec spec = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;

    if (view_fill_cell(view, place->monitor, role, &spec, &err) < 0 ||
        cell_start(place->monitor, &spec, &cell, &err) < 0)
        fail_msg("%s", error_message(err));
    return cell;
}

static void check_reads(struct cell *grader)
{
    static const struct {
        const char *path;
        enum collect_file_state state;
        const char *content;
    } cases[] = {
        {"moved/one", COLLECT_FILE_OK, "dir/onemore\n"},
        {"**/fresh", COLLECT_FILE_OK, "fresh\n"},
        {"link", COLLECT_FILE_OK, "dir/onemore\n"},
        {"env", COLLECT_FILE_NOT_REGULAR, ""},
        {"gone", COLLECT_FILE_ABSENT, ""},
        {"moved", COLLECT_FILE_NOT_REGULAR, ""},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(collect_file_done) struct collect_file file = {0};
        struct error *err = NULL;

        if (collect_read(grader, cases[i].path, 1000, &file, &err) < 0)
            fail_msg("%s", error_message(err));
        assert_int_equal(file.state, cases[i].state);
        assert_string_equal(buf_text(&file.content), cases[i].content);
    }
}

static void grade(const struct place *place, const struct view *view, const char *wanted)
{
    scoped(cell_freep) struct cell *grader = start(place, view, CELL_GRADER);
    scoped(fd_closep) int archive = openat(place->fd, "artifacts.tar", O_RDONLY | O_CLOEXEC);
    scoped(fd_closep) int changes = openat(place->fd, "changes.json", O_RDONLY | O_CLOEXEC);
    struct error *err = NULL;

    if (collect_apply(grader, archive, changes, &err) < 0)
        fail_msg("%s", error_message(err));
    scoped(mem_freep) char *listing = run_script(grader, LIST);

    assert_string_equal(listing, wanted);
    check_reads(grader);
}

static void go_through(enum cell_driver driver, size_t large_bytes)
{
    struct place place;

    if (!open_place(&place, driver))
        skip();
    put_template(&place, large_bytes);
    scoped(mem_freep) char *template = path_join(place.base, "template");
    struct task_source source = {.kind = SOURCE_TEMPLATE_DIR, .path = template};
    struct task_public task = {.sources = &source, .source_count = 1};
    scoped(view_freep) struct view *view = NULL;
    struct error *err = NULL;

    if (view_build(
            &(struct view_source){
                .store = place.store, .monitor = place.monitor, .reader = &reader, .task = &task},
            &view, &err) < 0)
        fail_msg("%s", error_message(err));
    {
        scoped(cell_freep) struct cell *agent = start(&place, view, CELL_AGENT);
        scoped(mem_freep) char *listing = run_script(agent, agent_script);
        scoped(collect_result_done) struct collect_result result = {0};
        struct collect_source collected = view_collect_source(view);
        struct cell_receipt receipt;

        if (cell_end(agent, &receipt, &err) < 0 ||
            collect_run(place.monitor, agent, &collected, place.fd, &result, &err) < 0)
            fail_msg("%s", error_message(err));
        print_message("%s, %s: %llu files, %llu bytes\n",
                      cell_tier_name(monitor_facts(place.monitor)->tier),
                      cell_workspace_layered(agent) ? "layered" : "copied",
                      (unsigned long long)result.files, (unsigned long long)result.bytes);
        assert_int_equal(result.refused, 0);
        assert_true(result.moved >= 2);
        grade(&place, view, listing);
    }
    view_freep(&view);
    close_place(&place);
}

static void a_copied_workspace_goes_its_way(void **state)
{
    (void)state;
    go_through(CELL_NATIVE, 0);
}

static void a_layered_workspace_goes_its_way(void **state)
{
    (void)state;
    go_through(CELL_NATIVE, STAGE_COPY_BYTES_MAX + 1);
}

static void a_workspace_without_protection_goes_its_way(void **state)
{
    (void)state;
    go_through(CELL_TEMPDIR, 0);
}

/* As closedbook does it: root starts the cells and opens the source, then becomes somebody else. */
static void stage_as(uid_t uid, const struct place *place, struct monitor *connection, int source)
{
    struct store_source stored = {.fd = source, .label = "template", .mount_point = "."};
    scoped(mem_freep) char *root = path_join(place->base, "cache");
    struct store *store;
    struct layer layer;
    struct stat status;
    struct error *err = NULL;

    monitor_forget(place->monitor);
    assert_int_equal(setresgid(uid, uid, uid), 0);
    assert_int_equal(setresuid(uid, uid, uid), 0);
    assert_int_equal(store_open(root, "run", &store, NULL), 0);
    if (store_add(store, STORE_PRIVATE, connection, &stored, &layer, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_int_equal(fstatat(layer.tree_fd, "secret", &status, 0), 0);
    assert_int_equal(status.st_uid, uid);
    assert_int_equal(status.st_mode & 07777, 0600);
    layer_done(&layer);
    store_close(store);
}

static void what_only_root_may_read_is_staged_for_who_it_became(void **state)
{
    const uid_t uid = 0x6ffffff0;
    struct monitor *connection;
    struct place place;
    int source, status;

    (void)state;
    if (geteuid() != 0) {
        print_message("SKIPPED: needs root\n");
        skip();
    }
    if (!open_place(&place, CELL_NATIVE))
        skip();
    put_file(place.fd, "template/secret", "of root");
    assert_int_equal(fchmodat(place.fd, "template/secret", 0600, 0), 0);
    assert_int_equal(fchmodat(place.fd, "template", 0700, 0), 0);
    source = openat(place.fd, "template", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(mkdirat(place.fd, "cache", 0700), 0);
    assert_int_equal(fchownat(place.fd, "cache", uid, uid, 0), 0);
    assert_int_equal(fchmodat(place.fd, ".", 0755, 0), 0);
    assert_int_equal(monitor_connect(place.monitor, &connection, NULL), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        stage_as(uid, &place, connection, source);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    monitor_free(connection);
    (void)close(source);
    close_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copied_workspace_goes_its_way),
        cmocka_unit_test(a_layered_workspace_goes_its_way),
        cmocka_unit_test(a_workspace_without_protection_goes_its_way),
        cmocka_unit_test(what_only_root_may_read_is_staged_for_who_it_became),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
