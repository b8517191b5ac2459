#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/test_cells.h"

#define PROBER_PATH "/run/probe/prober"
#define ANSWER_BYTES 256

static bool is_root(void)
{
    return monitor_facts(fixture.monitor)->tier == TIER_A;
}

/* --- the prober */

static int open_prober(void)
{
    const char *path = getenv("CLOSEDBOOK_PROBER");

    assert_non_null(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void probe_cell(enum cell_role role, bool ptrace_denied, struct fixture_output *output)
{
    static const char *const argv[] = {PROBER_PATH, NULL};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, role, argv, &spec);
    spec.mounts[1] = (struct cell_mount){.fd = open_prober(), .target = PROBER_PATH};
    spec.mount_count = 2;
    spec.ptrace_denied = ptrace_denied;
    assert_done(fixture_run(&fixture, &spec, &cell, output, &err), &err);
    (void)close(spec.mounts[1].fd);
    assert_int_equal(output->exit.exit_code, 0);
    cell_free(cell);
}

/* The same questions without any sandbox. */
static void probe_host(struct buf *ret)
{
    const char *path = getenv("CLOSEDBOOK_PROBER");
    struct error *err = NULL;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();

    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(path, path, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    assert_done(fs_read_fd(ends[0], "prober", (size_t)1 << 20, ret, &err), &err);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The answer to a question, "" when it was not asked. */
static void answer(const char *text, const char *name, char ret[static ANSWER_BYTES])
{
    size_t length = strlen(name);

    ret[0] = '\0';
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != ' ')
            continue;
        (void)snprintf(ret, ANSWER_BYTES, "%.*s", (int)strcspn(line + length + 1, "\n"),
                       line + length + 1);
        return;
    }
}

struct question {
    const char *name;
    const char *in_cell; /* alternatives, separated by '|' */
};

/* True when the answer is one of the alternatives. */
static bool is_one_of(const char *given, const char *alternatives)
{
    size_t length = strlen(given);

    for (const char *part = alternatives; *part != '\0';) {
        size_t size = strcspn(part, "|");

        if (size == length && strncmp(part, given, size) == 0)
            return true;
        part += size + (part[size] == '|');
    }
    return false;
}

static const struct question questions[] = {
    {"descriptors", "0,1,2"},
    {"caps_effective", "0000000000000000"},
    {"caps_permitted", "0000000000000000"},
    {"caps_inheritable", "0000000000000000"},
    {"caps_bounding", "0000000000000000"},
    {"caps_ambient", "0000000000000000"},
    {"no_new_privs", "1"},
    {"seccomp", "2"},
    {"securebits", "0xef"},
    {"session", "own"},
    {"setuid_0", "EPERM|EINVAL"},
    {"core_limit", "0"},
    {"nproc_limit", "some"},
    {"socket_unix", "ok"},
    {"socket_inet", "ok"},
    {"socket_inet6", "ok"},
    {"socket_netlink_route", "ok"},
    {"socket_netlink_audit", "EPERM"},
    {"socket_vsock", "EPERM"},
    {"socket_vsock_high_bit", "EPERM"},
    {"socket_alg", "EPERM"},
    {"socket_packet", "EPERM"},
    {"socket_raw", "EPERM"},
    {"keyctl", "EPERM"},
    {"add_key", "EPERM"},
    {"io_uring_setup", "EPERM"},
    {"userfaultfd", "EPERM"},
    {"bpf", "EPERM"},
    {"perf_event_open", "EPERM"},
    {"kcmp", "EPERM"},
    {"pidfd_getfd", "EPERM"},
    {"process_vm_readv", "EPERM"},
    {"open_by_handle", "EPERM"},
    {"name_to_handle", "EPERM"},
    {"cachestat", "EPERM"},
    {"fanotify_init", "EPERM"},
    {"quotactl", "EPERM"},
    {"syslog", "EPERM"},
    {"memfd_secret", "EPERM"},
    {"too_new", "ENOSYS"},
    {"fchmodat2", "EBADF|ENOSYS"},
    {"clone3", "ENOSYS"},
    {"setns", "EPERM"},
    {"mount", "EPERM"},
    {"umount", "EPERM"},
    {"fsopen", "EPERM"},
    {"open_tree", "EPERM"},
    {"move_mount", "EPERM"},
    {"pivot_root", "EPERM"},
    {"chroot", "EPERM"},
    {"unshare_nothing", "EPERM"},
    {"userns_unshare", "exit1"},
    {"userns_clone", "exit1"},
    {"abi_i386", "SIGSYS|SIGSEGV"},
    {"abi_x32", "SIGSYS"},
    {"openpt", "ok"},
    {"open_pts", "ok"},
    {"tiocsti", "EPERM"},
    {"tiocsti_high_bit", "EPERM"},
    {"tioclinux", "EPERM"},
    {"tiocgwinsz", "ok"},
    {"stat_proc_1", "ENOENT"},
    {"proc_1_environ", "ENOENT"},
    {"proc_1_mem", "ENOENT"},
    {"ptrace_1", "EPERM"},
    {"kill_1", "EPERM"},
    {"ptrace_child", "exit0"},
    {"kill_child", "exit0"},
    {"create:/", "EACCES|EROFS"},
    {"create:/usr", "EACCES|EROFS"},
    {"create:/etc", "EACCES|EROFS"},
    {"create:/dev", "EACCES|EROFS"},
    {"create:/proc", "EACCES|ENOENT"},
    {"create:/run", "EACCES|EROFS"},
    {"create:/home", "EACCES|EROFS"},
    {"create:/usr/bin", "EACCES|EROFS"},
    {"create:/workspace", "ok"},
    {"create:/tmp", "ok"},
    {"create:/dev/shm", "ok"},
    {"create:/home/agent", "ok"},
    {"/proc/kallsyms", "empty"},
    {"/proc/keys", "empty|ENOENT"},
    {"/proc/key-users", "empty|ENOENT"},
    {"/proc/config.gz", "empty|ENOENT"},
    {"/proc/cmdline", "empty"},
    {"/proc/timer_list", "empty|ENOENT"},
    {"/proc/vmallocinfo", "empty|ENOENT"},
    {"/proc/kcore", "empty|ENOENT"},
    {"/proc/slabinfo", "empty|ENOENT"},
    {"/proc/sched_debug", "empty|ENOENT"},
    {"/proc/bus/pci", "ENOENT"},
    {"/proc/irq/0", "ENOENT"},
    {"/sys", "ENOENT"},
    {"/etc/shadow", "ENOENT"},
    {"write_core_pattern", "EACCES|EROFS"},
    {"write_sysrq", "EACCES|EROFS|ENOENT"},
    {"write_dev_null", "ok"},
    {"flock_usr", "ok"},
    {"mknod_device", "EPERM|EACCES"},
    {"mknod_whiteout", "EPERM"},
    {"mknod_block", "EACCES"}, /* by landlock; the want of a capability is EPERM */
    {"sys_present", "no"},
    {"abstract_own", "ok"},
    {"personality", "ok"},
    {"ioperm", "EPERM|ENOSYS"},
};

/* Questions that the host answers otherwise: else the prober would be blind. */
static const char *const controls[] = {
    "no_new_privs",   "seccomp",         "socket_vsock",     "socket_vsock_high_bit",
    "keyctl",         "io_uring_setup",  "userfaultfd",      "bpf",
    "kcmp",           "pidfd_getfd",     "process_vm_readv", "clone3",
    "setns",          "mount",           "unshare_nothing",  "userns_unshare",
    "userns_clone",   "abi_x32",         "stat_proc_1",      "sys_present",
    "/proc/kallsyms", "/proc/key-users", "/proc/cmdline",    "core_limit",
    "mknod_whiteout"};

/*
 * A user's PID 1 has the id of its programs, and only landlock of ABI 6 keeps their signals from
 * it. Without effect: it has no handler, and the kernel drops what would end the init of a
 * namespace.
 */
static bool may_signal_init(void)
{
    return !is_root() && monitor_facts(fixture.monitor)->landlock_abi < 6;
}

static bool is_expected(const struct question *question, const char *given)
{
    return is_one_of(given, question->in_cell) ||
           (str_equal(question->name, "kill_1") && may_signal_init() && str_equal(given, "ok"));
}

static void allows_in_a_cell_what_the_table_says_and_no_more(void **state)
{
    (void)state;
    for (enum cell_role role = CELL_AGENT; role <= CELL_GRADER; role++) {
        struct fixture_output output = {0};

        probe_cell(role, false, &output);
        for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
            char given[ANSWER_BYTES];

            answer(buf_text(&output.out), questions[i].name, given);
            if (!is_expected(&questions[i], given))
                fail_msg("%s: '%s' instead of '%s'", questions[i].name, given,
                         questions[i].in_cell);
        }
        fixture_output_done(&output);
    }
}

static void would_notice_if_nothing_were_denied(void **state)
{
    scoped(buf_done) struct buf host = {0};

    (void)state;
    probe_host(&host);
    for (size_t i = 0; i < ARRAY_SIZE(controls); i++) {
        char given[ANSWER_BYTES];
        const char *in_cell = NULL;

        for (size_t j = 0; j < ARRAY_SIZE(questions); j++) {
            if (str_equal(questions[j].name, controls[i]))
                in_cell = questions[j].in_cell;
        }
        assert_non_null(in_cell);
        answer(buf_text(&host), controls[i], given);
        if (given[0] == '\0' || is_one_of(given, in_cell))
            fail_msg("%s: '%s' outside, too", controls[i], given);
    }
}

static void denies_ptrace_when_told(void **state)
{
    struct fixture_output output = {0};
    char given[ANSWER_BYTES];

    (void)state;
    probe_cell(CELL_AGENT, true, &output);
    answer(buf_text(&output.out), "ptrace_child", given);
    assert_string_equal(given, "exit1");
    answer(buf_text(&output.out), "personality", given);
    assert_string_equal(given, "EPERM");
    fixture_output_done(&output);
}

static void gives_a_further_program_no_more_than_the_first(void **state)
{
    static const char *const argv[] = {PROBER_PATH, NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, NULL, &spec);
    spec.mounts[1] = (struct cell_mount){.fd = open_prober(), .target = PROBER_PATH};
    spec.mount_count = 2;
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    (void)close(spec.mounts[1].fd);
    assert_done(fixture_exec(cell, argv, &output, &err), &err);
    for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
        char given[ANSWER_BYTES];

        answer(buf_text(&output.out), questions[i].name, given);
        if (!is_expected(&questions[i], given))
            fail_msg("%s: '%s' instead of '%s'", questions[i].name, given, questions[i].in_cell);
    }
    fixture_output_done(&output);
    cell_free(cell);
}

/* --- what it sees */

static void shell(const char *command, struct fixture_output *output)
{
    struct error *err = NULL;

    assert_done(fixture_shell(&fixture, command, output, &err), &err);
}

static void assert_prints(const char *command, const char *expected)
{
    struct fixture_output output = {0};

    shell(command, &output);
    assert_string_equal(buf_text(&output.out), expected);
    fixture_output_done(&output);
}

static void shows_no_path_of_the_host_among_its_mounts(void **state)
{
    struct fixture_output output = {0};

    (void)state;
    /* Roots within their file systems, types, and options. */
    shell("cut -d' ' -f4 /proc/self/mountinfo | sort -u | tr '\\n' ' '; echo; "
          "sed 's/.* - //' /proc/self/mountinfo | cut -d' ' -f1,2 | sort -u | tr '\\n' ' '; echo; "
          "grep -c . /proc/self/mountinfo; grep -E 'lowerdir' /proc/self/mountinfo",
          &output);
    const char *text = buf_text(&output.out);

    if (is_root())
        assert_true(str_starts(text, "/ /d /empty /r /sys /void \n"
                                     "devpts none overlay none proc none tmpfs none \n"));
    else
        assert_true(str_starts(text, "/ /d /empty /full /null /r /random /sys /tty /urandom /void "
                                     "/zero \ndevpts none devtmpfs"));
    /* Before 6.8 overlay takes its layers as one string: of names by which nobody finds them. */
    if (strstr(text, "lowerdir=/proc/self/fd/") == NULL)
        assert_non_null(strstr(text, "lowerdir+=/m0,lowerdir+=/l0"));
    assert_null(strstr(text, "/home/"));
    assert_null(strstr(text, "ext4"));
    fixture_output_done(&output);
}

/* Where the host's own link of the name points: "net:[4026531840]". */
static void host_namespace(const char *name, char ret[static ANSWER_BYTES])
{
    scoped(mem_freep) char *path = str_format("/proc/self/ns/%s", name);
    ssize_t n = readlink(path, ret, ANSWER_BYTES - 1);

    assert_true(n > 0);
    ret[n] = '\0';
}

static void lives_in_namespaces_of_its_own(void **state)
{
    static const char *const names[] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"};
    struct fixture_output output = {0};

    (void)state;
    shell("for n in mnt pid net ipc uts cgroup user; do readlink /proc/self/ns/$n; done", &output);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        char host[ANSWER_BYTES];
        bool is_shared = is_root() && str_equal(names[i], "user");

        host_namespace(names[i], host);
        if ((strstr(buf_text(&output.out), host) != NULL) != is_shared)
            fail_msg("%s", host);
    }
    fixture_output_done(&output);
}

static void mounts_nothing_that_grants_anything(void **state)
{
    (void)state;
    /* Without nosuid; without nodev, where no devices are wanted; writable, but for the five
     * places. */
    assert_prints("grep -v nosuid /proc/self/mountinfo | wc -l; "
                  "grep -v nodev /proc/self/mountinfo | grep -v ' /dev' | wc -l; "
                  "cut -d' ' -f5,6 /proc/self/mountinfo | grep ' rw' | grep -v '^/dev/[a-ru-z]' "
                  "| grep -v '^/dev/tty' | cut -d' ' -f1 | sort | tr '\\n' ' '",
                  "0\n0\n/dev/shm /home/agent /proc /tmp /workspace ");
}

static void has_nothing_above_its_root(void **state)
{
    (void)state;
    assert_prints("cd /..; ls -d */ | tr '\\n' ' '",
                  access("/lib32", F_OK) == 0
                      ? "bin/ dev/ etc/ home/ lib/ lib32/ lib64/ proc/ sbin/ tmp/ usr/ workspace/ "
                      : "bin/ dev/ etc/ home/ lib/ lib64/ proc/ sbin/ tmp/ usr/ workspace/ ");
}

static void sees_only_its_own_processes(void **state)
{
    (void)state;
    assert_prints("sleep 1000 & set -- /proc/[0-9]*; echo $#; ls -d /proc/1 2>&1 | grep -c such",
                  "2\n1\n");
}

static void has_its_own_host_name(void **state)
{
    struct fixture_output first = {0}, second = {0};

    (void)state;
    shell("cat /proc/sys/kernel/hostname", &first);
    shell("cat /proc/sys/kernel/hostname", &second);
    assert_int_equal(first.out.size_bytes, 17);
    assert_string_not_equal(buf_text(&first.out), buf_text(&second.out));
    fixture_output_done(&first);
    fixture_output_done(&second);
}

static void has_loopback_and_no_other_route(void **state)
{
    (void)state;
    assert_prints("grep -c '10.77.0.1' /proc/net/fib_trie; grep -c '127.0.0.1' /proc/net/fib_trie; "
                  "ls /proc/sys/net/ipv4/conf | tr '\\n' ' '; "
                  "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' 2>&1 | grep -c unreachable",
                  "2\n2\nall default lo 2\n");
}

static void knows_its_user(void **state)
{
    (void)state;
    assert_prints("id -un; id -gn; echo ~agent; [ $(id -u) != 0 ] && echo not root",
                  "agent\nagent\n/home/agent\nnot root\n");
}

static void hides_masked_names_and_what_lies_beside_a_hidden_tree(void **state)
{
    static const char *const argv[] = {
        "/bin/sh", "-c",
        "ls /usr/src 2>&1 | grep -c such; ls /usr | grep -c -x -e local -e src; "
        "ls /secret 2>&1 | grep -c denied; ls /secret/a1b2 | wc -l; "
        "touch /secret/a1b2/x 2>&1 | grep -c -e denied -e only; "
        "chmod 755 /secret 2>&1 | grep -c -e denied -e permitted -e only",
        NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;
    char *dir = fixture_dir_new();

    (void)state;
    fixture_spec(&fixture, CELL_GRADER, argv, &spec);
    spec.mounts[1] = (struct cell_mount){.fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC),
                                         .target = "/secret/a1b2",
                                         .hidden_parent = true};
    spec.mount_count = 2;
    assert_int_equal(chmod(dir, 0755), 0);
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "1\n0\n1\n0\n1\n1\n");
    (void)close(spec.mounts[1].fd);
    fixture_output_done(&output);
    cell_free(cell);
    fixture_dir_free(dir);
}

static void lays_texts_over_etc_and_proc(void **state)
{
    static const char *const argv[] = {
        "/bin/sh", "-c",
        "cat /etc/hosts /etc/deep/er /etc/lower /proc/meminfo /opt/tool; /opt/tool", NULL};
    static const char hosts[] = "h\n", deep[] = "d\n", memory[] = "m\n", tool[] = "#!/bin/echo\n";
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;
    char *dir = fixture_dir_new();
    scoped(mem_freep) char *lower = str_format("%s/lower", dir);

    (void)state;
    assert_int_equal(chmod(dir, 0755), 0);
    assert_done(
        fs_write_atomic(AT_FDCWD, lower, &(struct fs_content){"l\n", 2, 0644, FS_NO_SYNC}, &err),
        &err);
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    spec.etc_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    spec.texts[0] = (struct cell_text){.target = "/etc/hosts", .bytes = hosts, .size_bytes = 2};
    spec.texts[1] = (struct cell_text){.target = "/etc/deep/er", .bytes = deep, .size_bytes = 2};
    spec.texts[2] = (struct cell_text){.target = "/proc/meminfo", .bytes = memory, .size_bytes = 2};
    spec.texts[3] = (struct cell_text){
        .target = "/opt/tool", .bytes = tool, .size_bytes = sizeof(tool) - 1, .executable = true};
    spec.text_count = 4;
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    assert_string_equal(buf_text(&output.out), "h\nd\nl\nm\n#!/bin/echo\n/opt/tool\n");
    (void)close(spec.etc_fd);
    fixture_output_done(&output);
    cell_free(cell);
    fixture_dir_free(dir);
}

static void has_the_protections_that_its_tier_promises(void **state)
{
    static const char *const argv[] = {"/bin/true", NULL};
    struct fixture_output output = {0};
    struct cell_spec spec;
    struct cell *cell = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, argv, &spec);
    assert_done(fixture_run(&fixture, &spec, &cell, &output, &err), &err);
    uint64_t mandatory = cell_tier_rows[monitor_facts(fixture.monitor)->tier].mandatory;

    assert_int_equal(cell_protections(cell) & mandatory, mandatory);
    if (is_root())
        assert_in_range(cell_uid(cell), 0x70000000, 0x70003000);
    fixture_output_done(&output);
    cell_free(cell);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fixture, close_fixture)

static int run_groups(void)
{
    const struct CMUnitTest tests[] = {
        TEST(allows_in_a_cell_what_the_table_says_and_no_more),
        TEST(would_notice_if_nothing_were_denied),
        TEST(denies_ptrace_when_told),
        TEST(gives_a_further_program_no_more_than_the_first),
        TEST(shows_no_path_of_the_host_among_its_mounts),
        TEST(has_nothing_above_its_root),
        TEST(lives_in_namespaces_of_its_own),
        TEST(mounts_nothing_that_grants_anything),
        TEST(sees_only_its_own_processes),
        TEST(has_its_own_host_name),
        TEST(has_loopback_and_no_other_route),
        TEST(knows_its_user),
        TEST(hides_masked_names_and_what_lies_beside_a_hidden_tree),
        TEST(lays_texts_over_etc_and_proc),
        TEST(has_the_protections_that_its_tier_promises),
    };

    return cmocka_run_group_tests_name("protections", tests, NULL, NULL);
}

int main(void)
{
    return fixture_run_as_all(run_groups);
}
