/*
 * The worker's cell, with the prober as the worker: what would a program that hostile files took
 * over be able to do?
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/client.h"
#include "cell/test_cells.h"

#define OUTPUT_BYTES_MAX ((size_t)1 << 20)
/* A sanitizer's run time forks to look for leaks, so that builds with one let workers do it. */
#if defined(CELL_SANITIZED)
#define SANITIZED_OR(answer) "socket_unix EPERM"
#else
#define SANITIZED_OR(answer) answer
#endif

static void run(const char *const *args, struct worker_job *job, struct buf *output)
{
    struct error *err = NULL;

    job->args = args;
    job->output_max_bytes = OUTPUT_BYTES_MAX;
    assert_done(worker_run(fixture.monitor, job, output, &err), &err);
}

static void assert_answers(const struct buf *output, const char *const *lines)
{
    for (; *lines != NULL; lines++) {
        scoped(mem_freep) char *line = str_format("\n%s\n", *lines);

        if (strstr(buf_text(output), line) == NULL)
            fail_msg("no line '%s' in:\n%s", *lines, buf_text(output));
    }
}

static void can_do_next_to_nothing(void **state)
{
    static const char *const args[] = {"all", NULL};
    static const char *const expected[] = {"caps_get 0000000000000004",
                                           "socket_unix EPERM",
                                           "socket_inet EPERM",
                                           "socket_vsock EPERM",
                                           "keyctl EPERM",
                                           "io_uring_setup EPERM",
                                           "mount EPERM",
                                           "fsopen EPERM",
                                           "open_by_handle EPERM",
                                           "chroot EPERM",
                                           "unshare_nothing EPERM",
                                           "setns EPERM",
                                           "ptrace_1 EPERM",
                                           "kill_1 EPERM",
                                           "userns_unshare EPERM",
                                           SANITIZED_OR("fork EPERM"),
                                           "setuid_0 EPERM",
                                           "exec_self EPERM",
                                           "exec_by_fd EPERM",
                                           "exec_by_lost_fd EBADF",
                                           "create:/ EROFS",
                                           "create:/tmp ENOENT",
                                           "sys_present no",
                                           "/etc/shadow ENOENT",
                                           "setxattr EPERM",

                                           "open_files_at_most 512",
                                           NULL};
    scoped(buf_done) struct buf output = {0};
    struct worker_job job = {0};

    (void)state;
    buf_char(&output, '\n');
    run(args, &job, &output);
    assert_answers(&output, expected);
    assert_true(str_starts(buf_text(&output), "\ndescriptors 0,1,2\n"));
}

static void gets_its_trees_as_descriptors(void **state)
{
    static const char *const args[] = {"trees", NULL};
    static const char *const expected[] = {"descriptors 0,1,2,3,10,11,12",
                                           "create_in:10 EROFS",
                                           "create_in:11 ok",
                                           "list:10 secret",
                                           "read:10/secret ok",
                                           "read:3 ok",
                                           "write:12 ok",
                                           NULL};
    scoped(buf_done) struct buf output = {0};
    char *source = fixture_dir_new(), *destination = fixture_dir_new();
    scoped(mem_freep) char *secret = str_format("%s/secret", source);
    scoped(mem_freep) char *made = str_format("%s/made", destination);
    scoped(mem_freep) char *file = str_format("%s/file", source);
    struct worker_job job = {.mount_count = 3, .fd_count = 4};
    struct error *err = NULL;
    struct stat status;

    (void)state;
    /* Not its to read, but for the one capability that it has: files of agents look like this. */
    assert_done(
        fs_write_atomic(AT_FDCWD, secret, &(struct fs_content){"s\n", 2, 0000, FS_NO_SYNC}, &err),
        &err);
    assert_done(
        fs_write_atomic(AT_FDCWD, file, &(struct fs_content){"f\n", 2, 0600, FS_NO_SYNC}, &err),
        &err);
    job.mounts[0].fd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
    job.mounts[1].fd = open(destination, O_PATH | O_DIRECTORY | O_CLOEXEC);
    job.mounts[1].writable = true;
    job.mounts[2].fd = open(file, O_PATH | O_CLOEXEC);
    job.mounts[2].writable = true;
    job.fds[3] = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    buf_char(&output, '\n');
    run(args, &job, &output);
    assert_answers(&output, expected);
    /* What it makes is its master's. */
    assert_int_equal(stat(made, &status), 0);
    assert_int_equal(status.st_uid, geteuid());
    for (size_t i = 0; i < 3; i++)
        (void)close(job.mounts[i].fd);
    (void)close(job.fds[3]);
    fixture_dir_free(source);
    fixture_dir_free(destination);
}

/* A cell that leaves a workspace behind. */
static struct cell *leave_workspace(enum cell_workspace_kind kind, int layer_fd,
                                    const char *command)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.workspace.kind = kind;
    spec.workspace.layer_count = layer_fd >= 0;
    spec.workspace.layer_fds[0] = layer_fd;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "");
    assert_done(cell_end(cell, &receipt, &err), &err);
    fixture_output_done(&output);
    return cell;
}

static void collects_a_copied_workspace_and_again(void **state)
{
    static const char *const args[] = {"trees", NULL};
    static const char *const expected[] = {"descriptors 0,1,2,10", "create_in:10 EROFS",
                                           "read:10/secret ok", NULL};
    struct cell *cell =
        leave_workspace(CELL_WORKSPACE_COPY, -1, "echo x > secret; chmod 000 secret; mkdir -m 0 d");

    (void)state;
    for (int i = 0; i < 3; i++) {
        scoped(buf_done) struct buf output = {0};
        struct worker_job job = {.collect_cell_id = cell_id(cell)};

        buf_char(&output, '\n');
        run(args, &job, &output);
        assert_answers(&output, expected);
    }
    cell_free(cell);
}

static void collects_what_an_overlay_holds_with_its_marks(void **state)
{
    static const char *const args[] = {"trees", NULL};
    scoped(buf_done) struct buf output = {0};
    char *layer = fixture_dir_new();
    scoped(mem_freep) char *gone = str_format("%s/gone", layer);
    scoped(mem_freep) char *same = str_format("%s/same", layer);
    scoped(mem_freep) char *folder = str_format("%s/folder", layer);
    struct error *err = NULL;
    bool is_root = monitor_facts(fixture.monitor)->tier == TIER_A;

    (void)state;
    if (!is_root && !monitor_facts(fixture.monitor)->tmpfs_xattr) {
        fixture_dir_free(layer);
        skip(); /* this kernel's tmpfs cannot hold a user's marks: such workspaces are copied */
    }
    assert_int_equal(chmod(layer, 0755), 0);
    assert_done(
        fs_write_atomic(AT_FDCWD, gone, &(struct fs_content){"g\n", 2, 0644, FS_NO_SYNC}, &err),
        &err);
    assert_done(
        fs_write_atomic(AT_FDCWD, same, &(struct fs_content){"s\n", 2, 0644, FS_NO_SYNC}, &err),
        &err);
    assert_int_equal(mkdir(folder, 0755), 0);
    int layer_fd = open(layer, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct cell *cell = leave_workspace(CELL_WORKSPACE_OVERLAY, layer_fd,
                                        "rm gone; rm -r folder; mkdir folder; echo x > secret");
    struct worker_job job = {.collect_cell_id = cell_id(cell)};

    assert_true(cell_workspace_layered(cell));
    buf_char(&output, '\n');
    run(args, &job, &output);
    const char *const expected[] = {"list:10 folder",
                                    "list:10 gone",
                                    "list:10 secret",
                                    "whiteout:10/gone yes",
                                    is_root ? "trusted_opaque:10/folder y"
                                            : "user_opaque:10/folder y",
                                    NULL};

    assert_answers(&output, expected);
    assert_null(strstr(buf_text(&output), "list:10 same"));
    (void)close(layer_fd);
    cell_free(cell);
    fixture_dir_free(layer);
}

static void says_when_nothing_is_in_a_workspace_or_over_its_layers(void **state)
{
    static const struct {
        const char *command;
        bool layered, empty;
    } cases[] = {
        {"true", false, true},
        {"echo x > f", false, false},
        {"mkdir d", false, false},
        {"ln -s f link", false, false},
        {"echo x > f; rm f", false, true},
        {"true", true, true},
        {"cat same > /dev/null", true, true},
        {"rm same", true, false},
        {"mv folder moved", true, false},
        {"chmod 600 same", true, false},
        {"echo x >> folder/inner", true, false},
        {"echo x > new", true, false},
    };
    char *layer = fixture_dir_new();
    struct error *err = NULL;

    (void)state;
    assert_int_equal(chmod(layer, 0755), 0);
    scoped(fd_closep) int layer_fd = open(layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(mkdirat(layer_fd, "folder", 0755), 0);
    assert_done(
        fs_write_atomic(layer_fd, "same", &(struct fs_content){"s", 1, 0644, FS_NO_SYNC}, &err),
        &err);
    assert_done(fs_write_atomic(layer_fd, "folder/inner",
                                &(struct fs_content){"i", 1, 0644, FS_NO_SYNC}, &err),
                &err);
    const struct monitor_facts *facts = monitor_facts(fixture.monitor);
    /* On such a kernel a workspace of layers is copied; then the layer's files are in it. */
    bool can_overlay = facts->tier == TIER_A || facts->tmpfs_xattr;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool layered = cases[i].layered, is_empty = cases[i].empty;
        struct cell *cell = leave_workspace(layered ? CELL_WORKSPACE_OVERLAY : CELL_WORKSPACE_COPY,
                                            layered ? layer_fd : -1, cases[i].command);

        assert_true(cell_workspace_layered(cell) == (layered && can_overlay));
        if (layered && !can_overlay)
            is_empty = false;
        if (cell_workspace_empty(cell) != is_empty)
            fail_msg("'%s'", cases[i].command);
        cell_free(cell);
    }
    /* Copied, so the layer's files are in it. */
    struct cell *cell = leave_workspace(CELL_WORKSPACE_COPY, layer_fd, "true");

    assert_false(cell_workspace_empty(cell));
    cell_free(cell);
    fixture_dir_free(layer);
}

static void turns_a_complaint_into_an_error(void **state)
{
    static const struct {
        const char *args[4];
        enum error_code code;
        const char *message;
    } cases[] = {
        {{"complain", "limit: too much of it\n", NULL}, ERROR_LIMIT, "too much of it"},
        {{"complain", "task: a.yaml: no\n", NULL}, ERROR_TASK, "a.yaml: no"},
        {{"complain", "nothing of ours", NULL},
         ERROR_BUG,
         "the worker failed with status 1: nothing of ours"},
        {{"complain", "", NULL}, ERROR_BUG, "the worker failed with status 1"},
        {{"die", NULL}, ERROR_SYSTEM, "the worker was killed by signal 9"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct worker_job job = {.args = cases[i].args};
        scoped(buf_done) struct buf output = {0};
        scoped(error_freep) struct error *err = NULL;

        assert_int_equal(worker_run(fixture.monitor, &job, &output, &err), -(int)cases[i].code);
        assert_string_equal(error_message(err), cases[i].message);
    }
}

/* A file with the bytes of the worker's program, open for reading. */
static int copy_of_worker(int worker_fd, const char *path)
{
    scoped(buf_done) struct buf program = {0};
    scoped(mem_freep) char *from = str_format("/proc/self/fd/%d", worker_fd);
    struct error *err = NULL;

    assert_done(fs_read_file(AT_FDCWD, from, (size_t)64 << 20, &program, &err), &err);
    assert_done(fs_write_atomic(
                    AT_FDCWD, path,
                    &(struct fs_content){program.data, program.size_bytes, 0755, FS_NO_SYNC}, &err),
                &err);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Who took a trial process over must not choose the program that gets a worker's rights. */
static void starts_no_worker_for_a_trial_but_the_one_that_it_was_given(void **state)
{
    static const char *const args[] = {"complain", "task: here\n", NULL};
    const struct worker_job job = {.args = args};
    char *folder = fixture_dir_new();
    scoped(mem_freep) char *path = str_format("%s/worker", folder);
    scoped(buf_done) struct buf output = {0};
    scoped(error_freep) struct error *ours = NULL, *refusal = NULL, *given = NULL;
    struct monitor *trial = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(monitor_connect(fixture.monitor, &trial, &err), &err);
    assert_int_equal(worker_run(trial, &job, &output, &ours), -ERROR_TASK);
    scoped(fd_closep) int other = copy_of_worker(trial->worker_fd, path);

    assert_true(other >= 0);
    assert_true(dup3(other, trial->worker_fd, O_CLOEXEC) >= 0);
    assert_int_equal(worker_run(trial, &job, &output, &refusal), -ERROR_SYSTEM);
    assert_int_equal(error_errno_of(refusal), EPERM);
    /* The same program starts for who may choose it: it is the refusal that was seen. */
    assert_true(dup3(other, fixture.monitor->worker_fd, O_CLOEXEC) >= 0);
    assert_int_equal(worker_run(fixture.monitor, &job, &output, &given), -ERROR_TASK);
    monitor_free(trial);
    fixture_dir_free(folder);
}

static void refuses_more_output_than_wanted(void **state)
{
    static const char *const args[] = {"all", NULL};
    struct worker_job job = {.args = args, .output_max_bytes = 10};
    scoped(buf_done) struct buf output = {0};
    scoped(error_freep) struct error *err = NULL;

    (void)state;
    assert_int_equal(worker_run(fixture.monitor, &job, &output, &err), -ERROR_LIMIT);
}

static void ends_one_that_takes_too_long(void **state)
{
    static const char *const args[] = {"spin", NULL};
    struct worker_job job = {.args = args, .output_max_bytes = 10, .timeout_ms = 20};
    scoped(buf_done) struct buf output = {0};
    scoped(error_freep) struct error *err = NULL;

    (void)state;
    assert_int_equal(worker_run(fixture.monitor, &job, &output, &err), -ERROR_LIMIT);
    assert_string_equal(error_message(err), "the worker took longer than 20 ms");
}

static void gives_graders_the_worker_as_a_program(void **state)
{
    static const char *const argv[] = {CELL_WORKER_PATH, "complain", "task: here\n", NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_GRADER, argv, &spec);
    spec.mounts[1] = monitor_worker_mount(fixture.monitor);
    spec.mount_count = 2;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "task: here\n");
    assert_int_equal(output.exit.exit_code, 1);
    fixture_output_done(&output);
    cell_free(cell);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(can_do_next_to_nothing),
        TEST(gets_its_trees_as_descriptors),
        TEST(collects_a_copied_workspace_and_again),
        TEST(collects_what_an_overlay_holds_with_its_marks),
        TEST(says_when_nothing_is_in_a_workspace_or_over_its_layers),
        TEST(turns_a_complaint_into_an_error),
        TEST(starts_no_worker_for_a_trial_but_the_one_that_it_was_given),
        TEST(refuses_more_output_than_wanted),
        TEST(ends_one_that_takes_too_long),
        TEST(gives_graders_the_worker_as_a_program),
    };

    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
