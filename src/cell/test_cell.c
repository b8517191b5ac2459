#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/test_cells.h"
#include "cell/walls.h"

#define SECOND_NS UINT64_C(1000000000)

static void assert_prints(const char *command, const char *expected)
{
    struct fixture_output output = {0};
    struct error *err = NULL;

    assert_done(fixture_shell(&fixture, command, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), expected);
    fixture_output_done(&output);
}

/* --- programs */

static void runs_a_program_and_ends_with_a_receipt(void **state)
{
    static const char *const argv[] = {"sh", "-c", "echo out; echo err >&2; exit 3", NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_int_equal(output.result, CELL_EXITED);
    assert_int_equal(output.exit.exit_code, 3);
    assert_int_equal(output.exit.term_signal, 0);
    assert_string_equal(buf_text(&output.out), "out\nerr\n");
    assert_done(cell_end(cell, &receipt, &err), &err);
    assert_true(receipt.empty);
    assert_int_equal(receipt.processes, 0);
    fixture_output_done(&output);
    cell_free(cell);
}

static void tells_signals_from_exit_codes(void **state)
{
    struct fixture_output output = {0};
    struct error *err = NULL;

    (void)state;
    assert_done(fixture_shell(&fixture, "kill -TERM $$", &output, &err), &err);
    assert_int_equal(output.exit.exit_code, -1);
    assert_int_equal(output.exit.term_signal, SIGTERM);
    fixture_output_done(&output);
}

static void runs_further_programs_in_a_live_cell(void **state)
{
    static const char *const first[] = {"sh", "-c", "echo one > file; exit 0", NULL};
    static const char *const second[] = {"sh", "-c", "cat file; exit 7", NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_GRADER, first, &spec);
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    fixture_output_done(&output);
    for (int i = 0; i < 3; i++) {
        assert_done(fixture_exec(cell, second, &output, &err), &err);
        assert_string_equal(buf_text(&output.out), "one\n");
        assert_int_equal(output.exit.exit_code, 7);
        fixture_output_done(&output);
    }
    assert_done(cell_end(cell, &receipt, &err), &err);
    cell_free(cell);
}

static void starts_a_cell_without_a_program(void **state)
{
    static const char *const argv[] = {"/bin/echo", "here", NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_GRADER, NULL, &spec);
    spec.command.argv = NULL;
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    assert_done(fixture_exec(cell, argv, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "here\n");
    fixture_output_done(&output);
    cell_free(cell);
}

static void blames_the_command_that_cannot_run(void **state)
{
    static const struct {
        const char *argv[3];
        const char *cwd;
        int errno_value;
    } cases[] = {
        {{"/bin/no-such-program", NULL}, NULL, ENOENT},
        {{"no-such-program", NULL}, NULL, ENOENT},
        {{"/usr", NULL}, NULL, EACCES},
        {{"", NULL}, NULL, ENOENT},
        {{"/bin/true", NULL}, "/no/such/folder", ENOENT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fixture_output output = {0};
        struct cell_spec spec;
        struct cell *cell = NULL;
        struct error *err = NULL;

        fixture_spec(&fixture, CELL_AGENT, cases[i].argv, &spec);
        spec.command.cwd = cases[i].cwd;
        assert_int_equal(fixture_run(&fixture, &spec, &cell, &output, &err), -ERROR_AGENT);
        assert_int_equal(error_errno_of(err), cases[i].errno_value);
        assert_null(cell);
        error_free(err);
    }
}

static void passes_arguments_environment_and_folder(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c", "echo \"$0|$1|$A|$#\"; pwd",
                                       "a b",     "",   NULL};
    static const char *const env[] = {"A=x y", "PATH=/usr/bin", NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.command.envp = env;
    spec.command.cwd = "/usr/lib";
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "a b||x y|1\n/usr/lib\n");
    fixture_output_done(&output);
    cell_free(cell);
}

static void gives_up_at_the_deadline_and_when_told(void **state)
{
    static const char *const argv[] = {"/bin/sleep", "1000", NULL};
    static const volatile int stop = 1;
    enum cell_wait_result result;
    struct cell_receipt receipt;
    struct cell_exit exit;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    assert_done(cell_wait(cell, 0,
                          &(struct cell_patience){NULL, 0, clock_ns() + SECOND_NS / 50, NULL},
                          &result, &exit, &err),
                &err);
    assert_int_equal(result, CELL_DEADLINE);
    assert_done(
        cell_wait(cell, 0, &(struct cell_patience){NULL, 0, 0, &stop}, &result, &exit, &err), &err);
    assert_int_equal(result, CELL_STOPPED);
    assert_done(cell_end(cell, &receipt, &err), &err);
    /* An init that had no turn for that long was ended from outside, which counts nothing. */
    assert_true(receipt.processes == 1 || receipt.kill_ns > 2 * SECOND_NS);
    assert_done(cell_wait(cell, 0, &(struct cell_patience){NULL, 0, 0, NULL}, &result, &exit, &err),
                &err);
    assert_int_equal(result, CELL_EXITED);
    assert_int_equal(exit.term_signal, SIGKILL);
    cell_free(cell);
}

static void does_not_wait_for_orphans_that_hold_the_output(void **state)
{
    (void)state;
    assert_prints("sleep 1000 & echo done", "done\n");
}

static void caps_what_it_keeps_and_counts_the_rest(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c", "head -c 300000 /dev/zero", NULL};
    scoped(buf_done) struct buf kept = {.max_bytes = 1000};
    enum cell_wait_result result;
    struct cell_exit exit;
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;
    int ends[2];

    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.command.fds[0] = spec.command.fds[2] = -1;
    spec.command.fds[1] = ends[1];
    spec.command.fd_count = 3;
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    (void)close(ends[1]);
    struct cell_capture captures[] = {{.fd = ends[0], .buf = &kept}};

    assert_done(
        cell_wait(cell, 0, &(struct cell_patience){captures, 1, 0, NULL}, &result, &exit, &err),
        &err);
    assert_int_equal(captures[0].bytes_seen, 300000);
    assert_true(kept.overflowed);
    fd_closep(&captures[0].fd);
    cell_free(cell);
}

/* --- workspaces */

static void write_file(const char *dir, const char *name, const char *content, mode_t mode)
{
    scoped(mem_freep) char *path = str_format("%s/%s", dir, name);
    struct error *err = NULL;

    assert_done(fs_write_atomic(AT_FDCWD, path,
                                &(struct fs_content){content, strlen(content), mode, FS_NO_SYNC},
                                &err),
                &err);
    assert_int_equal(chmod(path, mode), 0);
}

static void make_dir(const char *dir, const char *name)
{
    scoped(mem_freep) char *path = str_format("%s/%s", dir, name);

    assert_int_equal(mkdir(path, 0755), 0);
}

/* Two layers: the second replaces a file by another, a directory by a file, and a file by a
 * directory. */
static void make_layers(char *layers[static 2])
{
    layers[0] = fixture_dir_new();
    layers[1] = fixture_dir_new();
    (void)chmod(layers[0], 0755);
    (void)chmod(layers[1], 0755);
    write_file(layers[0], "both", "first\n", 0644);
    write_file(layers[0], "only", "kept\n", 0600);
    write_file(layers[0], "tool", "#!/bin/sh\necho tool\n", 04755);
    make_dir(layers[0], "dir-then-file");
    write_file(layers[0], "dir-then-file/x", "x\n", 0644);
    write_file(layers[0], "file-then-dir", "x\n", 0644);
    make_dir(layers[0], "folder");
    write_file(layers[0], "folder/inner", "inner\n", 0644);
    scoped(mem_freep) char *link = str_format("%s/link", layers[0]);

    assert_int_equal(symlink("/no/where", link), 0);
    write_file(layers[1], "both", "second\n", 0644);
    write_file(layers[1], "dir-then-file", "file\n", 0644);
    make_dir(layers[1], "file-then-dir");
    write_file(layers[1], "file-then-dir/y", "y\n", 0644);
}

static void start_with_layers(enum cell_workspace_kind kind, char *layers[static 2],
                              const char *command, struct cell **ret, struct fixture_output *output)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct cell_spec spec;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.workspace.kind = kind;
    spec.workspace.layer_count = 2;
    for (size_t i = 0; i < 2; i++) {
        spec.workspace.layer_fds[i] = open(layers[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        assert_true(spec.workspace.layer_fds[i] >= 0);
    }
    assert_done(fixture_run(&fixture, &spec, ret, output, &err), &err);
    for (size_t i = 0; i < 2; i++)
        (void)close(spec.workspace.layer_fds[i]);
}

static void free_layers(char *layers[static 2])
{
    fixture_dir_free(layers[0]);
    fixture_dir_free(layers[1]);
}

static const char show_layers[] =
    "cat both only dir-then-file file-then-dir/y folder/inner; ./tool; readlink link; "
    "stat -c '%a %n' only tool; find . -uid $(id -u) | wc -l; "
    "echo new >> both && mv folder moved && rm only && mkdir more && echo x > more/x && echo "
    "edited";
static const char shown_layers[] = "second\nkept\nfile\ny\ninner\ntool\n/no/where\n600 only\n755 "
                                   "tool\n10\nedited\n";

static void copies_layers_in_order(void **state)
{
    struct fixture_output output = {0};
    struct cell *cell = NULL;
    char *layers[2];

    (void)state;
    make_layers(layers);
    start_with_layers(CELL_WORKSPACE_COPY, layers, show_layers, &cell, &output);
    assert_string_equal(buf_text(&output.out), shown_layers);
    assert_false(cell_workspace_layered(cell));
    fixture_output_done(&output);
    cell_free(cell);
    free_layers(layers);
}

/* Without user attributes on a tmpfs (Linux 6.6) a user's overlay could not mark deletions. */
static bool can_overlay(void)
{
    const struct monitor_facts *facts = monitor_facts(fixture.monitor);

    return driver == CELL_NATIVE && (facts->tier == TIER_A || facts->tmpfs_xattr);
}

static void overlays_layers_that_the_agent_can_edit(void **state)
{
    scoped(buf_done) struct buf untouched = {0};
    struct fixture_output output = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;
    char *layers[2];

    (void)state;
    make_layers(layers);
    /* What a store holds has no set-id bits; an overlay would show them, to no effect. */
    scoped(mem_freep) char *tool = str_format("%s/tool", layers[0]);

    assert_int_equal(chmod(tool, 0755), 0);
    start_with_layers(CELL_WORKSPACE_OVERLAY, layers, show_layers, &cell, &output);
    assert_string_equal(buf_text(&output.out), shown_layers);
    assert_int_equal(cell_workspace_layered(cell), can_overlay());
    fixture_output_done(&output);
    cell_free(cell);
    scoped(mem_freep) char *both = str_format("%s/both", layers[1]);

    assert_done(fs_read_file(AT_FDCWD, both, 100, &untouched, &err), &err);
    assert_string_equal(buf_text(&untouched), "second\n");
    free_layers(layers);
}

static void keeps_a_workspace_for_the_next_cell_of_its_role(void **state)
{
    static const char *const writes[] = {"/bin/sh", "-c", "echo kept > f; chmod 600 f", NULL};
    static const char *const reads[] = {"/bin/sh", "-c", "cat f; echo more >> f; cat f", NULL};
    struct fixture_output output = {0};
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *first = NULL, *second = NULL, *third = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_GRADER, writes, &spec);
    assert_done(fixture_run(&fixture, &spec, &first, &output, &err), &err);
    fixture_output_done(&output);
    fixture_spec(&fixture, CELL_GRADER, reads, &spec);
    spec.workspace =
        (struct cell_workspace){.kind = CELL_WORKSPACE_KEEP, .keep_cell_id = cell_id(first)};
    /* Not while it is in use. */
    assert_true(fixture_run(&fixture, &spec, &second, &output, &err) < 0);
    error_freep(&err);
    assert_done(cell_end(first, &receipt, &err), &err);
    assert_done(fixture_run(&fixture, &spec, &second, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "kept\nkept\nmore\n");
    assert_int_equal(cell_uid(first), cell_uid(second));
    fixture_output_done(&output);
    /* Nor by two at a time, though the first has ended. */
    assert_true(fixture_run(&fixture, &spec, &third, &output, &err) < 0);
    error_freep(&err);
    assert_done(cell_end(second, &receipt, &err), &err);
    cell_free(first);
    spec.role = CELL_AGENT;
    spec.workspace.keep_cell_id = cell_id(second);
    assert_true(fixture_run(&fixture, &spec, &third, &output, &err) < 0);
    error_freep(&err);
    spec.role = CELL_GRADER;
    assert_done(fixture_run(&fixture, &spec, &third, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "kept\nmore\nkept\nmore\nmore\n");
    fixture_output_done(&output);
    cell_free(second);
    cell_free(third);
}

static void serves_many_connections(void **state)
{
    struct monitor *control = fixture.monitor;
    struct monitor *monitors[5] = {0};
    struct error *err = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(monitors); i++) {
        assert_done(monitor_connect(control, &monitors[i], &err), &err);
        fixture.monitor = monitors[i];
        assert_prints("echo hello", "hello\n");
    }
    fixture.monitor = control;
    for (size_t i = 0; i < ARRAY_SIZE(monitors); i++)
        monitor_free(monitors[i]);
    assert_prints("echo still", "still\n");
}

/* A trial's process can open anything O_PATH; that shows no right to see what is in it. */
static void mounts_nothing_that_a_connection_only_has_the_path_of(void **state)
{
    static const char *const argv[] = {"/bin/true", NULL};
    static const int flags[] = {O_RDONLY, O_PATH}; /* the first is the control */
    struct monitor *monitor = NULL;
    struct error *err = NULL;

    (void)state;
    assert_done(monitor_connect(fixture.monitor, &monitor, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        scoped(error_freep) struct error *refusal = NULL;
        scoped(cell_freep) struct cell *cell = NULL;
        scoped(fd_closep) int usr_fd = open("/usr", flags[i] | O_DIRECTORY | O_CLOEXEC);
        struct cell_spec spec;

        fixture_spec(&fixture, CELL_AGENT, argv, &spec);
        spec.mounts[0].fd = usr_fd;
        assert_int_equal(cell_start(monitor, &spec, &cell, &refusal),
                         flags[i] == O_PATH ? -ERROR_SYSTEM : 0);
        if (flags[i] == O_PATH)
            assert_int_equal(error_errno_of(refusal), EPERM);
    }
    monitor_free(monitor);
}

static void says_where_a_temporary_folder_cannot_be_made(void **state)
{
    struct monitor_options options = {.driver = CELL_TEMPDIR};
    scoped(error_freep) struct error *err = NULL;
    scoped(mem_freep) char *before = getenv("TMPDIR") == NULL ? NULL : str_dup(getenv("TMPDIR"));
    struct monitor *monitor = NULL;

    (void)state;
    assert_int_equal(setenv("TMPDIR", "/nowhere/at all", 1), 0);
    int r = monitor_start(&options, &monitor, &err);

    assert_int_equal(before == NULL ? unsetenv("TMPDIR") : setenv("TMPDIR", before, 1), 0);
    assert_int_equal(r, -ERROR_USER);
    assert_non_null(strstr(error_message(err), "cannot make folders in '/nowhere/at all'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(runs_a_program_and_ends_with_a_receipt),
        TEST(tells_signals_from_exit_codes),
        TEST(runs_further_programs_in_a_live_cell),
        TEST(starts_a_cell_without_a_program),
        TEST(blames_the_command_that_cannot_run),
        TEST(passes_arguments_environment_and_folder),
        TEST(gives_up_at_the_deadline_and_when_told),
        TEST(does_not_wait_for_orphans_that_hold_the_output),
        TEST(caps_what_it_keeps_and_counts_the_rest),
        TEST(copies_layers_in_order),
        TEST(overlays_layers_that_the_agent_can_edit),
        TEST(keeps_a_workspace_for_the_next_cell_of_its_role),
        TEST(serves_many_connections),
        cmocka_unit_test(says_where_a_temporary_folder_cannot_be_made),
        TEST(mounts_nothing_that_a_connection_only_has_the_path_of),
    };
    int failed = 0;

    driver = CELL_NATIVE;
    failed += cmocka_run_group_tests_name("native cells", tests, NULL, NULL);
    driver = CELL_TEMPDIR;
    failed += cmocka_run_group_tests_name("tempdir cells", tests, NULL, NULL);
    /* Root has none; an ordinary user's run of these tests has. */
    driver = CELL_WALLED;
    if (geteuid() != 0 && sys_landlock_abi() >= WALLS_LANDLOCK_MIN)
        failed += cmocka_run_group_tests_name("walled cells", tests, NULL, NULL);
    return failed;
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
