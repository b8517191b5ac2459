/*
 * Candidates: what a grader runs by as-candidate has a cell of its own that shares the workspace
 * with the grading cell and nothing else, and ends with its command. Each denial has a control: the
 * same command in the grading cell itself, where it succeeds.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/probe.h"
#include "cell/sys.h"
#include "cell/test_cells.h"

#define CANDIDATE CELL_CANDIDATE_PATH " "
#define SECRET_PLACE "/graders/0123456789abcdef"
#define SECRET "the-answer-is-42"
#define PATIENCE_NS UINT64_C(10000000000)

static unsigned marks;
static char *secret_dir;
static int secret_fd = -1;

static int open_with_secret(void **state)
{
    (void)state;
    (void)open_fixture(state);
    secret_dir = fixture_dir_new();
    assert_int_equal(chmod(secret_dir, 0755), 0);
    secret_fd = open(secret_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(secret_fd >= 0);
    int fd = openat(secret_fd, "answer", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    assert_int_equal(write(fd, SECRET "\n", strlen(SECRET) + 1), strlen(SECRET) + 1);
    (void)close(fd);
    return 0;
}

static int close_with_secret(void **state)
{
    (void)state;
    fd_closep(&secret_fd);
    fixture_dir_free(secret_dir);
    fixture_close(&fixture);
    return 0;
}

static void add_mount(struct cell_spec *spec, const struct cell_mount *mount)
{
    spec->mounts[spec->mount_count++] = *mount;
}

/* A grading cell with the secret, as-candidate and, unless NULL, another cell's workspace. */
static struct cell *start_grading(const struct cell *keep, enum cell_workspace_kind kind)
{
    const struct cell_mount program = monitor_candidate_mount(fixture.monitor);
    struct cell_spec spec, recipe;
    struct cell *cell = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_GRADER, NULL, &spec);
    add_mount(&spec, &program);
    add_mount(&spec,
              &(struct cell_mount){.fd = secret_fd, .target = SECRET_PLACE, .hidden_parent = true});
    if (keep != NULL)
        spec.workspace =
            (struct cell_workspace){.kind = CELL_WORKSPACE_KEEP, .keep_cell_id = cell_id(keep)};
    else if (kind == CELL_WORKSPACE_OVERLAY)
        spec.workspace =
            (struct cell_workspace){.kind = kind, .layer_fds = {secret_fd}, .layer_count = 1};
    assert_done(cell_start(fixture.monitor, &spec, &cell, &err), &err);
    fixture_spec(&fixture, CELL_AGENT, NULL, &recipe);
    assert_done(cell_allow_candidates(cell, &recipe, &err), &err);
    return cell;
}

/* What a shell of the cell prints, and its status; owned. */
static char *ask(struct cell *cell, int status, const char *command)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    struct fixture_output output;
    struct error *err = NULL;

    assert_done(fixture_exec(cell, argv, &output, &err), &err);
    assert_int_equal(output.result, CELL_EXITED);
    if (status >= 0 && output.exit.exit_code != status)
        fail_msg("'%s' ended with %d: %s", command, output.exit.exit_code, buf_text(&output.out));
    char *text = str_dup(buf_text(&output.out));

    fixture_output_done(&output);
    return text;
}

static void assert_says(struct cell *cell, const char *command, const char *expected)
{
    scoped(mem_freep) char *text = ask(cell, 0, command);

    if (strcmp(text, expected) != 0)
        fail_msg("'%s' says '%s', not '%s'", command, text, expected);
}

static void assert_finds(struct cell *cell, const char *command, const char *expected)
{
    scoped(mem_freep) char *text = ask(cell, -1, command);

    if (strstr(text, expected) == NULL)
        fail_msg("'%s' says '%s', without '%s'", command, text, expected);
}

static void assert_misses(struct cell *cell, const char *command, const char *unwanted)
{
    scoped(mem_freep) char *text = ask(cell, -1, command);

    if (strstr(text, unwanted) != NULL)
        fail_msg("'%s' says '%s'", command, text);
}

/* The command in the grading cell prints the word, which as a candidate it does not. */
static void assert_denied(struct cell *cell, const char *command, const char *word)
{
    scoped(mem_freep) char *as_candidate = str_format(CANDIDATE "sh -c '%s'", command);

    assert_finds(cell, command, word);
    assert_misses(cell, as_candidate, word);
}

/* A cell that has a look at the live workspace of another one. */
static int start_looking(uint32_t looked_at, struct cell **ret, struct error **err)
{
    struct cell_spec spec;

    fixture_spec(&fixture, CELL_GRADER, NULL, &spec);
    spec.workspace =
        (struct cell_workspace){.kind = CELL_WORKSPACE_SHARED, .keep_cell_id = looked_at};
    return cell_start(fixture.monitor, &spec, ret, err);
}

static void looks_on(enum cell_workspace_kind kind)
{
    scoped(cell_freep) struct cell *looking = NULL;
    scoped(cell_freep) struct cell *late = NULL;
    scoped(error_freep) struct error *problem = NULL;
    struct cell_receipt receipt;
    struct cell_spec spec;
    struct cell *agent = NULL;
    struct error *err = NULL;

    fixture_spec(&fixture, CELL_AGENT, NULL, &spec);
    if (kind == CELL_WORKSPACE_OVERLAY)
        spec.workspace =
            (struct cell_workspace){.kind = kind, .layer_fds = {secret_fd}, .layer_count = 1};
    assert_done(cell_start(fixture.monitor, &spec, &agent, &err), &err);
    assert_done(start_looking(cell_id(agent), &looking, &err), &err);
    /* What comes later is seen, also what only its owner may read; nothing goes the other way. */
    assert_says(agent, "umask 077; mkdir d; echo one >d/x; cat d/x", "one\n");
    assert_says(looking, "cat d/x", "one\n");
    assert_says(agent, "mv d/x d/y; echo two >d/x; echo z >z; rm z; cat d/x", "two\n");
    assert_says(looking, "cat d/x d/y; test -e z || echo none", "two\none\nnone\n");
    assert_finds(looking, "echo x >new 2>&1; rm d/x 2>&1; mkdir e 2>&1", "Read-only file system");
    assert_misses(agent, "ls -A . d", "new");
    assert_misses(agent, "ls -A . d", "e\n");
    assert_says(agent, "ls d", "x\ny\n");
    /* Neither sees the other's processes, HOME or /tmp. */
    assert_says(agent, "echo a >/tmp/a; echo a >~/a; sleep 77 & echo", "\n");
    assert_misses(looking, "cat /tmp/a ~/a; cat /proc/[0-9]*/cmdline | tr '\\0' ' '", "sleep 7");
    assert_done(cell_end(agent, &receipt, &err), &err);
    assert_says(looking, "cat d/x", "two\n");
    assert_int_not_equal(start_looking(cell_id(agent), &late, &problem), 0);
    cell_free(agent);
}

static void a_cell_may_look_on_at_a_live_one(void **state)
{
    (void)state;
    looks_on(CELL_WORKSPACE_COPY);
    if (monitor_facts(fixture.monitor)->overlay)
        looks_on(CELL_WORKSPACE_OVERLAY);
}

static void passes_streams_status_and_directory(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    assert_says(cell, "echo in | " CANDIDATE "tr i o", "on\n");
    assert_says(cell, CANDIDATE "sh -c 'echo x >&2' 2>&1 >/dev/null", "x\n");
    assert_says(cell, CANDIDATE "sh -c 'exit 7'; echo $?", "7\n");
    assert_says(cell, CANDIDATE "sh -c 'kill -9 $$'; echo $?", "137\n");
    assert_says(cell, CANDIDATE "/nowhere 2>/dev/null; echo $?", "127\n");
    assert_says(cell, "mkdir -p a/b; cd a/b; " CANDIDATE "pwd", "/workspace/a/b\n");
    assert_says(cell, "cd /tmp; " CANDIDATE "pwd", "/workspace\n");
    assert_says(cell, CANDIDATE "--timeout 0.1 sleep 100 2>/dev/null; echo $?", "124\n");
    assert_says(cell, CANDIDATE "true <&- >&- 2>&-; echo $?", "0\n");
    assert_says(cell, CANDIDATE "cat </ 2>/dev/null; echo $?", "125\n");
}

static void shares_the_workspace_and_no_other_place(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    assert_says(cell, "echo one >f; " CANDIDATE "sh -c 'cat f; echo two >>f; mkdir d; >d/e'; cat f",
                "one\none\ntwo\n");
    assert_says(cell, "rm -r d/e d f; ls", "");
    assert_says(cell,
                CANDIDATE "sh -c 'echo word >/tmp/t2'; ls /tmp /home/agent /dev/shm | grep t2; "
                          "true",
                "");
    assert_says(cell, "echo word >/tmp/t3; " CANDIDATE "ls /tmp", "");
    assert_misses(cell,
                  CANDIDATE "sh -c 'for i in / /etc /run /usr /usr/bin /dev /proc /home; do "
                            ">$i/x && echo written; done'",
                  "written");
}

static void sees_nothing_of_the_graders(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    assert_denied(cell, "cat " SECRET_PLACE "/answer", SECRET);
    assert_denied(cell, "cat /proc/self/mountinfo", "/graders");
    assert_denied(cell, "ls /run/closedbook", "candidates");
    assert_misses(cell, CANDIDATE "find / -name answer -type f 2>/dev/null", "answer");
    /* Nor its processes: this shell's own mark is in its arguments. */
    assert_finds(cell, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; : mark-of-grader",
                 "mark-of-grader");
    assert_misses(cell,
                  "mark=of-grader; " CANDIDATE "sh -c 'cat /proc/[0-9]*/cmdline' | tr '\\0' ' '",
                  "of-grader");
    assert_says(cell,
                "sleep 100 & " CANDIDATE
                "sh -c 'kill -9 -1 2>/dev/null; true'; kill -0 $! && echo lives",
                "lives\n");
}

static void gets_no_environment_and_no_descriptor_of_the_graders(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    assert_misses(cell, "TASK_DIR=/t " CANDIDATE "env", "TASK_DIR");
    assert_finds(cell, CANDIDATE "--env A=1 --env A=2 --env PATH=/bin env", "A=2\n");
    assert_misses(cell, CANDIDATE "--env A=1 --env A=2 --env PATH=/bin env", "A=1");
    assert_misses(cell, CANDIDATE "--env PATH=/bin env", "PATH=/usr");
    assert_finds(cell, "exec 5<" SECRET_PLACE "/answer; cat <&5", SECRET);
    assert_misses(cell,
                  "exec 5<" SECRET_PLACE "/answer 6<" SECRET_PLACE "; " CANDIDATE
                  "sh -c 'cat <&5; cat /proc/self/fd/6/answer; cat ../proc/self/fd/5'",
                  SECRET);
    assert_says(cell,
                "exec 5</ 6</; " CANDIDATE
                "sh -c 'test -e /proc/$$/fd/5 || test -e /proc/$$/fd/6 || echo none'",
                "none\n");
}

static void cannot_ask_for_candidates_itself(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);
    struct fixture_output output;
    struct error *err = NULL;

    (void)state;
    assert_says(cell, "cp " CANDIDATE "mine; ./mine echo yes", "yes\n");
    assert_says(cell, CANDIDATE "./mine echo yes 2>/dev/null; echo $?", "125\n");
    /* Nor can an agent. */
    assert_done(fixture_shell(&fixture, "ls -d /run/closedbook; ls /run", &output, &err), &err);
    assert_null(strstr(buf_text(&output.out), "candidates"));
    fixture_output_done(&output);
}

static void is_someone_else_where_that_can_be(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);
    static struct cell_probe probe;

    (void)state;
    cell_probe(&probe);
    /* Linux 6.3, tried as the monitor tries it. */
    bool can_be =
        monitor_facts(fixture.monitor)->tier == TIER_A && probe.facts[PROBE_IDMAP_TMPFS].available;

    assert_says(cell, "test $(id -u) = $(" CANDIDATE "id -u) && echo same; true",
                can_be ? "" : "same\n");
    assert_says(cell, CANDIDATE "touch f; test $(stat -c %u f) = $(id -u) && echo mine", "mine\n");
    assert_says(cell,
                CANDIDATE "grep -c '^NoNewPrivs:.1\\|^Seccomp:.2\\|^CapBnd:.0*$' "
                          "/proc/self/status",
                "3\n");
    assert_says(cell,
                CANDIDATE "ls /proc/self/net/dev >/dev/null; " CANDIDATE
                          "sh -c 'tail -n +3 /proc/net/dev | cut -d: -f1'",
                "    lo\n");
}

static void works_over_an_overlay(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_OVERLAY);

    (void)state;
    assert_says(cell, CANDIDATE "sh -c 'cat answer; echo new >answer; rm answer; echo x >y'; ls",
                SECRET "\ny\n");
}

static char *new_mark(void)
{
    return str_format("closedbook-candidate-%d-%u", getpid(), marks++);
}

static void leaves_nothing_running(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);
    scoped(mem_freep) char *mark = new_mark();
    scoped(mem_freep) char *command = str_format(
        CANDIDATE "sh -c 'trap \"\" TERM; setsid tail -f /dev/null %s & >up; true'; ls", mark);

    (void)state;
    assert_says(cell, command, "up\n");
    assert_false(fixture_process_exists(mark));
}

/* Starts a candidate that lasts. */
static void start_lasting(struct cell *cell, const char *mark)
{
    scoped(mem_freep) char *command =
        str_format("exec " CANDIDATE "sh -c '>up; exec tail -f /dev/null \"$0\"x' %s", mark);
    scoped(mem_freep) char *whole = str_format("%sx", mark);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const struct cell_command wanted = {
        .argv = argv, .envp = env, .fds = {-1, -1, -1}, .fd_count = 3};
    struct error *err = NULL;
    uint32_t process = 0;

    assert_done(cell_exec(cell, &wanted, &process, &err), &err);
    assert_true(fixture_process_appears(whole)); /* as its command alone has it */
}

static void ends_with_its_grading_cell(void **state)
{
    struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);
    scoped(mem_freep) char *mark = new_mark();
    struct cell_receipt receipt;
    struct error *err = NULL;

    (void)state;
    start_lasting(cell, mark);
    assert_done(cell_end(cell, &receipt, &err), &err);
    assert_false(fixture_process_exists(mark));
    /* And the next cell with that workspace has candidates of its own. */
    scoped(cell_freep) struct cell *next = start_grading(cell, CELL_WORKSPACE_KEEP);

    assert_says(next, CANDIDATE "ls", "up\n");
    cell_free(cell);
}

static void ends_with_as_candidate(void **state)
{
    static const struct {
        const char *signal, *status;
    } cases[] = {{"TERM", "143\n"}, {"HUP", "129\n"}, {"KILL", "137\n"}};
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *mark = new_mark();
        scoped(mem_freep) char *command =
            str_format("exec 2>/dev/null; rm -f up; " CANDIDATE
                       "sh -c '>up; exec tail -f /dev/null %s >/dev/null' & "
                       "while [ ! -e up ]; do :; done; kill -%s $!; wait $!; echo $?",
                       mark, cases[i].signal);

        assert_says(cell, command, cases[i].status);
        assert_true(fixture_process_vanishes(mark));
    }
}

static void lets_the_surplus_wait(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    assert_says(cell,
                "n=0; while [ $n -lt 24 ]; do " CANDIDATE "sh -c 'sleep 0.1; echo x >>all' & "
                "n=$((n+1)); done; wait; grep -c x all",
                "24\n");
}

static void is_refused_without_a_recipe_twice_or_elsewhere(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);
    struct cell_spec recipe, spec;
    struct cell *agent = NULL;
    struct error *err = NULL;

    (void)state;
    fixture_spec(&fixture, CELL_AGENT, NULL, &recipe);
    assert_int_equal(cell_allow_candidates(cell, &recipe, NULL), -ERROR_SYSTEM);
    fixture_spec(&fixture, CELL_AGENT, NULL, &spec);
    assert_done(cell_start(fixture.monitor, &spec, &agent, &err), &err);
    assert_int_equal(cell_allow_candidates(agent, &recipe, NULL), -ERROR_SYSTEM);
    cell_free(agent);
}

/* The socket takes a command, once; to anything else the monitor hangs up instead of answering. */
static void hangs_up_on_whatever_is_no_command(void **state)
{
    scoped(cell_freep) struct cell *cell = start_grading(NULL, CELL_WORKSPACE_COPY);

    (void)state;
    /* REQUEST_CONNECT, END and RELEASE; the control: the same socket lets a candidate run. */
    assert_says(cell,
                "python3 -c \"\nimport socket, struct\nfor kind in (1, 4, 5):\n"
                " s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                " s.connect('/run/closedbook/candidates')\n"
                " s.send(struct.pack('4I', 0x63624b31, kind, 1, 0))\n"
                " try: print(len(s.recv(65536)))\n except ConnectionError: print(0)\n\"; " CANDIDATE
                "echo control",
                "0\n0\n0\ncontrol\n");
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_streams_status_and_directory),
        cmocka_unit_test(a_cell_may_look_on_at_a_live_one),
        cmocka_unit_test(shares_the_workspace_and_no_other_place),
        cmocka_unit_test(sees_nothing_of_the_graders),
        cmocka_unit_test(gets_no_environment_and_no_descriptor_of_the_graders),
        cmocka_unit_test(cannot_ask_for_candidates_itself),
        cmocka_unit_test(is_someone_else_where_that_can_be),
        cmocka_unit_test(works_over_an_overlay),
        cmocka_unit_test(leaves_nothing_running),
        cmocka_unit_test(ends_with_its_grading_cell),
        cmocka_unit_test(ends_with_as_candidate),
        cmocka_unit_test(lets_the_surplus_wait),
        cmocka_unit_test(is_refused_without_a_recipe_twice_or_elsewhere),
        cmocka_unit_test(hangs_up_on_whatever_is_no_command),
    };

    return cmocka_run_group_tests_name("cell_candidate", tests, open_with_secret,
                                       close_with_secret);
}

int main(void)
{
    return fixture_run_as_all(run);
}
