/*
 * Trees inside trees, and a root that is a directory of somebody else's.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "cell/test_cells.h"

static void put(const char *dir, const char *name, const char *text)
{
    scoped(mem_freep) char *path = path_join(dir, name);
    scoped(mem_freep) char *parent = path_dir(path);
    struct error *err = NULL;

    assert_done(fs_mkdirs(AT_FDCWD, parent, 0755, &err), &err);
    assert_done(fs_write_atomic(AT_FDCWD, path,
                                &(struct fs_content){text, strlen(text), 0644, FS_NO_SYNC}, &err),
                &err);
}

static void add_tree(struct cell_spec *spec, const char *path, const char *target)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    spec->mounts[spec->mount_count++] = (struct cell_mount){.fd = fd, .target = target};
}

static void close_trees(const struct cell_spec *spec)
{
    for (size_t i = 1; i < spec->mount_count; i++)
        (void)close(spec->mounts[i].fd);
}

static void assert_prints(struct cell_spec *spec, const char *expected)
{
    struct fixture_output output = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;

    assert_done(fixture_run(&fixture, spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), expected);
    fixture_output_done(&output);
    cell_free(cell);
}

static void shows_a_tree_inside_another_even_where_that_is_masked(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c",
                                       "ls /usr/local /usr/local/tool /usr/share/doc/ours /opt; "
                                       "cat /usr/local/tool/x /usr/share/doc/ours/y /opt/a/b/z;"
                                       "test -e /usr/bin/env && echo all else",
                                       NULL};
    struct cell_spec spec;
    char *dir = fixture_dir_new();
    scoped(mem_freep) char *inner = path_join(dir, "inner");
    scoped(mem_freep) char *file = path_join(dir, "z");

    (void)state;
    assert_int_equal(chmod(dir, 0755), 0);
    put(dir, "inner/x", "x\n");
    put(dir, "inner/y", "y\n");
    put(dir, "z", "z\n");
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    add_tree(&spec, inner, "/usr/local/tool");
    add_tree(&spec, inner, "/usr/share/doc/ours");
    add_tree(&spec, inner, "/opt/a");
    add_tree(&spec, file, "/opt/a/b/z");
    assert_prints(&spec, "/opt:\na\n\n/usr/local:\ntool\n\n/usr/local/tool:\nx\ny\n\n"
                         "/usr/share/doc/ours:\nx\ny\nx\ny\nz\nall else\n");
    close_trees(&spec);
    fixture_dir_free(dir);
}

/* --- a root */

/* A small system of the host's own programs, with things that must not work in it. */
static const char make_system[] =
    "set -e; cd \"$0\"; chmod 755 .; mkdir -p bin etc dev home/agent tmp usr/lib workspace/old;\n"
    "for p in sh cat ls grep stat id head; do\n"
    "  f=$(readlink -f $(command -v $p)); cp $f bin/$p\n"
    "  for l in $(ldd $f | grep -o '/[^ ]*'); do mkdir -p .${l%/*}; cp -nL $l .$l; done; done\n"
    "echo theirs > marker; echo theirs > etc/special; echo theirs > etc/passwd\n"
    "ln -s ../run/nowhere etc/resolv.conf; ln -s /marker usr/link; echo old > home/agent/old\n"
    "cp bin/id bin/setid; chmod 6755 bin/setid; chmod 4755 bin/setid\n"
    "if [ \"$(id -u)\" = 0 ]; then mknod dev/zero2 c 1 5; mknod zero c 1 5; chmod 666 zero; fi\n";

/* Runs it on the host; its $0 is the directory. */
static void run_on_host(const char *script, const char *dir)
{
    const char *const argv[] = {"/bin/sh", "-c", script, dir, NULL};
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    const int fds[] = {-1, -1, STDERR_FILENO};
    struct error *err = NULL;
    int pidfd = -1, status = -1;
    pid_t pid;

    assert_done(
        spawn_start(
            &(struct spawn_options){
                .argv = argv, .envp = envp, .cwd_fd = -1, .fds = fds, .fd_count = ARRAY_SIZE(fds)},
            &pidfd, &pid, &err),
        &err);
    assert_done(spawn_wait(pidfd, &status, &err), &err);
    assert_int_equal(status, 0);
    fd_closep(&pidfd);
}

static char *new_system(void)
{
    char *dir = fixture_dir_new();

    run_on_host(make_system, dir);
    return dir;
}

static void system_spec(const char *dir, const char *command, const char **argv,
                        struct cell_spec *spec)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = command;
    argv[3] = NULL;
    fixture_spec(&fixture, CELL_AGENT, argv, spec);
    spec->mount_count = 0;
    spec->has_root = true;
    spec->root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(spec->root_fd >= 0);
}

static void takes_its_whole_root_from_a_directory(void **state)
{
    static const char command[] =
        "cat /marker /usr/link /etc/special; cat /etc/hosts | head -n 1; id -un; ls /usr;"
        "ls /home/agent /workspace; ls /bin/env; test -L /etc/resolv.conf || echo no link;"
        "test -e /usr/bin && echo the host; test -c /dev/null && test -d /proc/self && echo places";
    const char *argv[4];
    struct cell_spec spec;
    char *dir = new_system();
    static const char resolv[] = "none\n";

    (void)state;
    system_spec(dir, command, argv, &spec);
    spec.texts[spec.text_count++] =
        (struct cell_text){.target = "/etc/resolv.conf", .bytes = resolv, .size_bytes = 5};
    assert_prints(&spec, "theirs\ntheirs\ntheirs\n127.0.0.1 localhost\nagent\nlib\nlink\n"
                         "/home/agent:\n\n/workspace:\n"
                         "ls: cannot access '/bin/env': No such file or directory\nno link\n"
                         "places\n");
    (void)close(spec.root_fd);
    fixture_dir_free(dir);
}

static void makes_nothing_of_that_root_grant_anything(void **state)
{
    static const char command[] =
        "(: > /new) 2>&1 | grep -c Read-only; (: > /marker) 2>&1 | grep -c Read-only;"
        "for a in ro nosuid nodev; do grep ' / / ' /proc/self/mountinfo | grep -c $a; done;"
        "/bin/setid -u | grep -cx 0;"
        "test ! -e /zero || head -c 1 /zero 2>&1 | grep -c 'Permission denied'; echo end";
    const char *argv[4];
    struct cell_spec spec;
    char *dir = new_system();
    bool is_root = monitor_facts(fixture.monitor)->tier == TIER_A;

    (void)state;
    system_spec(dir, command, argv, &spec);
    assert_prints(&spec, is_root ? "1\n1\n1\n1\n1\n0\n1\nend\n" : "1\n1\n1\n1\n1\n0\nend\n");
    (void)close(spec.root_fd);
    fixture_dir_free(dir);
}

static void lays_trees_and_texts_over_that_root(void **state)
{
    static const char command[] = "cat /opt/more/x /bin/tool; ls /opt /bin/sh; cat /usr/new/y";
    static const char tool[] = "tool\n";
    const char *argv[4];
    struct cell_spec spec;
    char *dir = new_system(), *trees = fixture_dir_new();

    (void)state;
    assert_int_equal(chmod(trees, 0755), 0);
    put(dir, "opt/theirs", "t\n");
    put(trees, "x", "x\n");
    put(trees, "y", "y\n");
    system_spec(dir, command, argv, &spec);
    add_tree(&spec, trees, "/opt/more");
    add_tree(&spec, trees, "/usr/new");
    spec.texts[spec.text_count++] = (struct cell_text){
        .target = "/bin/tool", .bytes = tool, .size_bytes = 5, .executable = true};
    assert_prints(&spec, "x\ntool\n/bin/sh\n\n/opt:\nmore\ntheirs\ny\n");
    for (size_t i = 0; i < spec.mount_count; i++)
        (void)close(spec.mounts[i].fd);
    (void)close(spec.root_fd);
    fixture_dir_free(trees);
    fixture_dir_free(dir);
}

static void says_that_a_root_has_no_shell(void **state)
{
    const char *argv[4];
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct fixture_output output = {0};
    struct error *err = NULL;
    char *dir = fixture_dir_new();

    (void)state;
    assert_int_equal(chmod(dir, 0755), 0);
    system_spec(dir, "true", argv, &spec);
    assert_int_equal(fixture_run(&fixture, &spec, &cell, &output, &err), -ERROR_AGENT);
    assert_int_equal(error_errno_of(err), ENOENT);
    error_free(err);
    (void)close(spec.root_fd);
    fixture_dir_free(dir);
}

/* --- programs that are root */

static const char as_root[] =
    "id -u; echo own >/usr/local/bin/x && echo changed >>/etc/hosts && rm /usr/bin/env && echo "
    "changed;"
    "mkdir -p /opt/a && chown 33:44 /opt/a && stat -c %u:%g /opt/a; touch /opt/given/x || echo "
    "kept;"
    "sed -n 's/^CapEff:\\s*//p' /proc/self/status; cat /proc/self/uid_map | wc -l;"
    "echo x >/proc/sys/kernel/core_pattern || echo settings; kill -9 1 || echo init;"
    "mount -t tmpfs none /opt || echo mount";

static void root_spec(const char *command, const char **argv, struct cell_spec *spec)
{
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = command;
    argv[3] = NULL;
    fixture_spec(&fixture, CELL_AGENT, argv, spec);
    spec->identity_root = true;
    spec->mounts[0].own = true;
}

static void assert_refused_as_root(struct cell_spec *spec)
{
    struct fixture_output output = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;

    assert_int_equal(fixture_run(&fixture, spec, &cell, &output, &err), -ERROR_SYSTEM);
    assert_non_null(strstr(error_message(err), "user namespace"));
    error_free(err);
    fixture_output_done(&output);
}

/* Of the machine's root or, as unpacked images are, of an ordinary user. */
static void lets_root_change_a_copy_of_its_root_alone(void **state)
{
    static const char command[] =
        "echo mine >/marker && echo mine >/etc/special && echo mine >/new && cat /marker /new;"
        "stat -c '%u %g' /bin/sh /new; test -c /zero && head -c 1 /zero 2>/dev/null || echo no "
        "device";
    const char *argv[4];
    struct cell_spec spec;

    (void)state;
    if (monitor_facts(fixture.monitor)->tier != TIER_A)
        skip();
    for (int owned = 0; owned < 2; owned++) {
        char *dir = new_system();
        scoped(buf_done) struct buf text = {0};
        scoped(mem_freep) char *marker = path_join(dir, "marker");
        scoped(mem_freep) char *added = path_join(dir, "new");
        struct error *err = NULL;

        if (owned)
            run_on_host("chown -R 4321:4321 \"$0\"", dir);
        system_spec(dir, command, argv, &spec);
        spec.identity_root = true;
        assert_prints(&spec, "mine\nmine\n0 0\n0 0\nno device\n");
        assert_done(fs_read_file(AT_FDCWD, marker, 100, &text, &err), &err);
        assert_string_equal(buf_text(&text), "theirs\n");
        assert_int_equal(access(added, F_OK), -1);
        (void)close(spec.root_fd);
        fixture_dir_free(dir);
    }
}

/*
 * Ids that it has in plenty are no way past the limit of processes: what an id of its own does not
 * count, the cgroup does, which has 64 more for a cell's init and its candidates.
 */
static void counts_processes_whatever_their_ids(void **state)
{
    static const char command[] =
        "i=1; while [ $i -le 150 ]; do setpriv --reuid $i --clear-groups sleep 100 2>/dev/null & "
        "i=$((i + 1)); done; echo unlimited";
    struct fixture_output output = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;
    struct cell_receipt receipt;
    struct cell_spec spec;
    const char *argv[4];

    (void)state;
    if (monitor_facts(fixture.monitor)->tier != TIER_A)
        skip();
    for (int limited = 0; limited < 2; limited++) {
        root_spec(command, argv, &spec);
        spec.limits.pids = limited ? 10 : 1000;
        assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
        assert_done(cell_end(cell, &receipt, &err), &err);
        if (limited)
            assert_in_range(receipt.processes, 1, 10 + 64);
        else
            assert_in_range(receipt.processes, 150, 151);
        fixture_output_done(&output);
        cell_free(cell);
    }
}

static void makes_programs_root_of_their_cell_alone(void **state)
{
    static const char *const second[] = {
        "/bin/sh", "-c", "cat /usr/local/bin/x; id -u; rm /usr/local/bin/x && echo gone", NULL};
    struct fixture_output output = {0}, further = {0};
    struct cell *cell = NULL;
    struct error *err = NULL;
    struct cell_receipt receipt;
    struct cell_spec spec;
    const char *argv[4];
    char *dir = fixture_dir_new();

    (void)state;
    assert_int_equal(chmod(dir, 0755), 0);
    root_spec(as_root, argv, &spec);
    add_tree(&spec, dir, "/opt/given");
    if (monitor_facts(fixture.monitor)->tier != TIER_A ||
        (monitor_facts(fixture.monitor)->limits & 1u << CELL_CGROUP_PIDS) == 0) {
        assert_refused_as_root(&spec);
    } else {
        assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
        if (strstr(buf_text(&output.out), "0\nchanged\n33:44\n") == NULL)
            fail_msg("%s", buf_text(&output.out));
        for (size_t i = 0; i < 5; i++) {
            static const char *const words[] = {"kept\n", "settings\n", "init\n", "mount\n",
                                                "00000000a00005fb\n2\n"};

            if (strstr(buf_text(&output.out), words[i]) == NULL)
                fail_msg("no %s in %s", words[i], buf_text(&output.out));
        }
        assert_done(fixture_exec(cell, second, &further, &err), &err);
        assert_string_equal(buf_text(&further.out), "own\n0\ngone\n");
        assert_true((cell_protections(cell) & PROTECT_USER_NS) != 0);
        assert_done(cell_end(cell, &receipt, &err), &err);
        assert_true(receipt.empty);
    }
    close_trees(&spec);
    fixture_output_done(&output);
    fixture_output_done(&further);
    cell_free(cell);
    fixture_dir_free(dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(shows_a_tree_inside_another_even_where_that_is_masked),
        TEST(takes_its_whole_root_from_a_directory),
        TEST(makes_nothing_of_that_root_grant_anything),
        TEST(lays_trees_and_texts_over_that_root),
        TEST(says_that_a_root_has_no_shell),
        TEST(makes_programs_root_of_their_cell_alone),
        TEST(lets_root_change_a_copy_of_its_root_alone),
        TEST(counts_processes_whatever_their_ids),
    };

    return cmocka_run_group_tests_name("roots", tests, NULL, NULL);
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
