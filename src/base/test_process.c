/* Messages with descriptors, and programs that are started. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/spawn.h"
#include "base/str.h"

/* How many descriptors this process has. */
static size_t fd_count(void)
{
    scoped(fd_closep) int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(dup(fd));
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir);
    return count;
}

static void close_pair(int ends[2])
{
    fd_closep(&ends[0]);
    fd_closep(&ends[1]);
}

static void a_message_carries_bytes_and_descriptors(void **state)
{
    (void)state;
    int ends[2], fds[MESSAGE_FDS_MAX], sent[MESSAGE_FDS_MAX];
    char bytes[5];
    size_t count = 99;

    assert_int_equal(message_pair(ends), 0);
    for (size_t i = 0; i < MESSAGE_FDS_MAX; i++)
        sent[i] = ends[0];
    assert_int_equal(message_send(ends[0], "hello", 5, sent, MESSAGE_FDS_MAX), 0);
    assert_int_equal(message_receive(ends[1], bytes, 5, fds, &count), 0);
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(count, MESSAGE_FDS_MAX);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        (void)close(fds[i]);
    }
    assert_int_equal(message_send(ends[1], "x", 1, NULL, 0), 0);
    assert_int_equal(message_receive(ends[0], bytes, 1, fds, &count), 0);
    assert_int_equal(count, 0);
    close_pair(ends);
}

static void a_message_of_another_size_is_refused_and_its_descriptors_closed(void **state)
{
    (void)state;
    int ends[2], fds[MESSAGE_FDS_MAX];
    char bytes[8];
    size_t count = 99;

    assert_int_equal(message_pair(ends), 0);
    size_t before = fd_count();

    assert_int_equal(message_send(ends[0], "hello", 5, ends, 2), 0);
    assert_int_equal(message_receive(ends[1], bytes, 4, fds, &count), -EMSGSIZE);
    assert_int_equal(message_send(ends[0], "hello", 5, ends, 2), 0);
    assert_int_equal(message_receive(ends[1], bytes, 8, fds, &count), -EMSGSIZE);
    assert_int_equal(count, 99);
    assert_int_equal(fd_count(), before);
    /* The next one is not affected. */
    assert_int_equal(message_send(ends[0], "12345678", 8, NULL, 0), 0);
    assert_int_equal(message_receive(ends[1], bytes, 8, fds, &count), 0);
    close_pair(ends);
}

static void too_many_descriptors_are_a_protocol_error(void **state)
{
    (void)state;
    int ends[2], fds[MESSAGE_FDS_MAX], many[MESSAGE_FDS_MAX * 2];
    char control[CMSG_SPACE(sizeof(many))] = {0}, byte = 'x';
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *item = CMSG_FIRSTHDR(&header);
    size_t count = 99;

    assert_int_equal(message_pair(ends), 0);
    for (size_t i = 0; i < ARRAY_SIZE(many); i++)
        many[i] = ends[0];
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof(many));
    memcpy(CMSG_DATA(item), many, sizeof(many));
    size_t before = fd_count();

    assert_int_equal(sendmsg(ends[0], &header, 0), 1);
    assert_int_equal(message_receive(ends[1], &byte, 1, fds, &count), -EPROTO);
    assert_int_equal(fd_count(), before);
    close_pair(ends);
}

static void the_end_of_the_stream_is_told(void **state)
{
    (void)state;
    int ends[2], fds[MESSAGE_FDS_MAX];
    char byte;
    size_t count;

    assert_int_equal(message_pair(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(message_receive(ends[1], &byte, 1, fds, &count), -EAGAIN);
    fd_closep(&ends[0]);
    assert_int_equal(message_receive(ends[1], &byte, 1, fds, &count), -EPIPE);
    assert_int_equal(message_send(ends[1], "x", 1, NULL, 0), -EPIPE);
    close_pair(ends);
}

/* --- spawn --- */

static int run(struct spawn_options *options, struct error **err)
{
    scoped(fd_closep) int pidfd = -1;
    pid_t pid = 0;
    int status = -1, r = spawn_start(options, &pidfd, &pid, err);

    if (r < 0)
        return r;
    assert_true(pid > 0);
    assert_int_equal(fcntl(pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(spawn_wait(pidfd, &status, err), 0);
    return status;
}

/* What a shell line writes to its stdout; owned. */
static char *output_of(struct spawn_options options, const char *line)
{
    const char *argv[] = {"/bin/sh", "-c", line, NULL};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    scoped(fd_closep) int read_end = ends[0];
    int fds[3] = {-1, ends[1], STDERR_FILENO};
    scoped(buf_done) struct buf text = {0};

    options.argv = argv;
    options.fds = fds;
    options.fd_count = 3;
    assert_int_equal(run(&options, NULL), 0);
    (void)close(ends[1]);
    assert_int_equal(fs_read_fd(read_end, "pipe", 1 << 16, &text, NULL), 0);
    return buf_take(&text);
}

static void a_program_gets_exactly_what_was_asked_for(void **state)
{
    (void)state;
    static const char *const envp[] = {"A=b c", NULL};
    /* Not close-on-exec: it would leak from a careless fork. */
    scoped(fd_closep) int stray = open("/dev/null", O_RDONLY);
    scoped(fd_closep) int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(stray >= 0);
    scoped(mem_freep) char *seen =
        output_of((struct spawn_options){.envp = envp, .cwd_fd = root},
                  "echo \"$A\"; pwd; cd /proc/self/fd; echo *; readlink 0");

    /* The fourth is the one that the shell reads the folder with. */
    assert_string_equal(seen, "b c\n/\n0 1 2 3\n/dev/null\n");
    scoped(mem_freep) char *bare =
        output_of((struct spawn_options){.cwd_fd = -1}, "/usr/bin/env | grep -v -e ^PWD= -e ^_= "
                                                        "-e ^SHLVL= -e ^OLDPWD=; true");

    assert_string_equal(bare, "");
}

/* Gives a pipe's ends numbers above those that a program here is started with. */
static void move_up(int ends[2])
{
    for (int i = 0; i < 2; i++) {
        int high = fcntl(ends[i], F_DUPFD_CLOEXEC, 30);

        assert_true(high >= 30);
        (void)close(ends[i]);
        ends[i] = high;
    }
}

static void descriptors_may_be_given_crosswise(void **state)
{
    (void)state;
    static const char *const argv[] = {"/bin/sh", "-c", "echo three >&3; echo four >&4", NULL};
    int three[2], four[2];

    assert_int_equal(pipe2(three, O_CLOEXEC), 0);
    assert_int_equal(pipe2(four, O_CLOEXEC), 0);
    /* Descriptors 3 and 4 are free, so that what is copied could land where others go to. */
    move_up(three);
    move_up(four);
    int fds[] = {four[1], three[1], -1, three[1], four[1]};
    struct spawn_options options = {
        .argv = argv, .cwd_fd = -1, .fds = fds, .fd_count = ARRAY_SIZE(fds)};
    char text[16] = "";

    assert_int_equal(run(&options, NULL), 0);
    assert_int_equal(read(three[0], text, sizeof(text)), 6);
    assert_memory_equal(text, "three\n", 6);
    assert_int_equal(read(four[0], text, sizeof(text)), 5);
    assert_memory_equal(text, "four\n", 5);
    close_pair(three);
    close_pair(four);
}

static void the_end_of_a_program_is_told(void **state)
{
    (void)state;
    static const char *const exits[] = {"/bin/sh", "-c", "exit 7", NULL};
    static const char *const dies[] = {"/bin/sh", "-c", "kill -9 $$", NULL};
    struct spawn_options options = {.argv = exits, .cwd_fd = -1};
    int status = run(&options, NULL);

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    options.argv = dies;
    status = run(&options, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), 9);
}

static void what_cannot_run_is_an_error_here(void **state)
{
    (void)state;
    static const char *const none[] = {"/nowhere/program", NULL};
    static const char *const not_executable[] = {"/etc/passwd", NULL};
    scoped(error_freep) struct error *err = NULL;
    scoped(fd_closep) int file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    struct spawn_options options = {.argv = none, .cwd_fd = -1};
    size_t before = fd_count();

    assert_int_equal(run(&options, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err),
                        "cannot run '/nowhere/program': No such file or directory");
    assert_int_equal(error_errno_of(err), ENOENT);
    error_freep(&err);
    options.argv = not_executable;
    assert_int_equal(run(&options, &err), -ERROR_SYSTEM);
    error_freep(&err);
    options.cwd_fd = file;
    assert_int_equal(run(&options, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "cannot start '/etc/passwd': cannot set up its "
                                            "folder: Not a directory");
    /* Many descriptors do not bury the one that failures are reported by. */
    static const int many[16] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

    options = (struct spawn_options){
        .argv = none, .cwd_fd = -1, .fds = many, .fd_count = ARRAY_SIZE(many)};
    assert_int_equal(run(&options, NULL), -ERROR_SYSTEM);
    assert_int_equal(fd_count(), before);
    /* No zombie is left. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void signals_are_as_in_a_fresh_program(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    sigset_t blocked, old;

    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGTERM);
    assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
    assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &old), 0);
    scoped(mem_freep) char *seen = output_of((struct spawn_options){.cwd_fd = -1},
                                             "grep -E '^Sig(Blk|Ign)' /proc/self/status");

    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
    assert_string_equal(seen, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void a_program_can_have_another_identity(void **state)
{
    (void)state;
    gid_t before[64], extra[] = {12345};
    int count = getgroups(ARRAY_SIZE(before), before);

    if (getuid() != 0 || count < 0 || setgroups(1, extra) < 0)
        skip();
    scoped(mem_freep) char *seen =
        output_of((struct spawn_options){.cwd_fd = -1, .uid = 65534, .gid = 65533},
                  "grep -E '^(Uid|Gid|Groups|CapEff)' /proc/self/status");

    assert_int_equal(setgroups((size_t)count, before), 0);

    assert_string_equal(seen, "Uid:\t65534\t65534\t65534\t65534\n"
                              "Gid:\t65533\t65533\t65533\t65533\n"
                              "Groups:\t \nCapEff:\t0000000000000000\n");
}

static void a_session_of_its_own_is_on_request(void **state)
{
    (void)state;
    scoped(mem_freep) char *own =
        output_of((struct spawn_options){.cwd_fd = -1, .new_session = true},
                  "cut -d' ' -f6 /proc/$$/stat; echo $$");
    scoped(mem_freep) char *same =
        output_of((struct spawn_options){.cwd_fd = -1}, "cut -d' ' -f6 /proc/$$/stat");
    scoped(mem_freep) char *ours = str_format("%d\n", (int)getsid(0));
    size_t half = strlen(own) / 2;

    assert_memory_equal(own, own + half, half);
    assert_string_equal(same, ours);
}

/* Starts a program that would run for ever, says its id, and ends without waiting for it. */
_Noreturn static void start_and_die(int report_fd, bool outlive)
{
    static const char *const argv[] = {"/bin/sh", "-c", "read x <&3", NULL};
    int ends[2], pidfd;
    pid_t pid;

    if (pipe(ends) < 0)
        _exit(1);
    int fds[] = {-1, -1, -1, ends[0]};
    struct spawn_options options = {.argv = argv,
                                    .cwd_fd = -1,
                                    .fds = fds,
                                    .fd_count = ARRAY_SIZE(fds),
                                    .outlive_parent = outlive};

    if (spawn_start(&options, &pidfd, &pid, NULL) < 0 ||
        write(report_fd, &pid, sizeof(pid)) != (ssize_t)sizeof(pid))
        _exit(1);
    _exit(0);
}

static void a_program_dies_with_its_parent(void **state)
{
    (void)state;
    int ends[2], status;
    pid_t grandchild = 0;

    /* The orphan becomes ours, so that its end can be waited for. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();

    if (child == 0)
        start_and_die(ends[1], false);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    assert_int_equal(waitpid(grandchild, &status, 0), grandchild);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close_pair(ends);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_carries_bytes_and_descriptors),
        cmocka_unit_test(a_message_of_another_size_is_refused_and_its_descriptors_closed),
        cmocka_unit_test(too_many_descriptors_are_a_protocol_error),
        cmocka_unit_test(the_end_of_the_stream_is_told),
        cmocka_unit_test(a_program_gets_exactly_what_was_asked_for),
        cmocka_unit_test(descriptors_may_be_given_crosswise),
        cmocka_unit_test(the_end_of_a_program_is_told),
        cmocka_unit_test(what_cannot_run_is_an_error_here),
        cmocka_unit_test(signals_are_as_in_a_fresh_program),
        cmocka_unit_test(a_program_can_have_another_identity),
        cmocka_unit_test(a_session_of_its_own_is_on_request),
        cmocka_unit_test(a_program_dies_with_its_parent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
