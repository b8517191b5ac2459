/*
 * as-candidate: runs a command in a cell of its own, from within a grading cell. See
 * as-candidate(1).
 *
 * It holds nothing and decides nothing: it hands the command, its three standard streams and the
 * environment that was asked for to the monitor, by the socket of its cell, and waits. Static, libc
 * only. When it ends, however it does, its connection closes, and with that the candidate ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/message.h"
#include "cell/protocol.h"

/* As timeout(1) and env(1) have them. */
#define STATUS_TIMEOUT 124
#define STATUS_FAILED 125
#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL 128

#define ENV_MAX 256 /* of --env */
#define MS_PER_S 1000
#define TIMEOUT_S_MAX 1000000
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct order {
    char **argv;
    const char *env[ENV_MAX];
    size_t env_count;
    int timeout_ms; /* 0: none */
};

static const char usage[] =
    "usage: as-candidate [--timeout SECONDS] [--env NAME=VALUE]... [--] COMMAND [ARGUMENT]...\n";

/* What every candidate's environment begins with; nothing of the caller's is passed on. The first
 * folders are those of stage/env.h, absent when the agent had none. */
static const char *const first_env[] = {
    "PATH=/run/env/python/bin:/run/env/node/bin:/usr/bin:/bin",
    ("HOME=" CELL_HOME_PATH),
    "LANG=C.UTF-8",
    "TERM=dumb",
    "TMPDIR=/tmp",
    "USER=agent",
    "SHELL=/bin/sh",
};

/* For ASSERT() in what is linked. */
_Noreturn void assert_failed(const char *expression, const char *file, int line)
{
    (void)fprintf(stderr, "as-candidate: %s:%d: %s\n", file, line, expression);
    abort();
}

_Noreturn static void fail(int status, int error, const char *what)
{
    if (error != 0)
        (void)fprintf(stderr, "as-candidate: %s: %s\n", what, strerror(error));
    else
        (void)fprintf(stderr, "as-candidate: %s\n", what);
    exit(status);
}

/* --- the command line */

static bool is_variable(const char *text)
{
    const char *equals = strchr(text, '=');

    return equals != NULL && equals != text;
}

static int read_seconds(const char *text)
{
    char *end = NULL;

    errno = 0;
    double seconds = strtod(text, &end);

    if (errno != 0 || end == text || *end != '\0' || !(seconds > 0) || seconds > TIMEOUT_S_MAX)
        fail(STATUS_FAILED, 0, "--timeout: a number of seconds above 0 expected");
    return (int)(seconds * MS_PER_S) > 0 ? (int)(seconds * MS_PER_S) : 1;
}

static void read_options(int argc, char **argv, struct order *order)
{
    static const struct option options[] = {{"timeout", required_argument, NULL, 't'},
                                            {"env", required_argument, NULL, 'e'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'h') {
            (void)fputs(usage, stdout);
            exit(0);
        }
        if (option == 't') {
            order->timeout_ms = read_seconds(optarg);
        } else if (option == 'e' && is_variable(optarg) && order->env_count < ENV_MAX) {
            order->env[order->env_count++] = optarg;
        } else if (option == 'e') {
            fail(STATUS_FAILED, 0, "--env: NAME=VALUE expected, at most 256 of them");
        } else {
            (void)fputs(usage, stderr);
            exit(STATUS_FAILED);
        }
    }
    order->argv = argv + optind;
    if (order->argv[0] == NULL) {
        (void)fputs(usage, stderr);
        exit(STATUS_FAILED);
    }
}

/* --- the request */

static void add(int fd, const char *text, struct wire_command *command)
{
    size_t size = strlen(text) + 1;

    command->strings_bytes += size;
    if (command->strings_bytes > CELL_ARGS_BYTES_MAX)
        fail(STATUS_FAILED, E2BIG, "the command");
    if (write(fd, text, size) != (ssize_t)size)
        fail(STATUS_FAILED, errno, "cannot hand over the command");
}

/* A later variable of the same name wins. */
static bool is_overridden(const struct order *order, const char *variable, size_t from)
{
    size_t length = (size_t)(strchr(variable, '=') - variable) + 1;

    for (size_t i = from; i < order->env_count; i++) {
        if (strncmp(order->env[i], variable, length) == 0)
            return true;
    }
    return false;
}

static void add_env(int fd, const struct order *order, struct wire_command *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(first_env); i++) {
        if (is_overridden(order, first_env[i], 0))
            continue;
        add(fd, first_env[i], command);
        command->envc++;
    }
    for (size_t i = 0; i < order->env_count; i++) {
        if (is_overridden(order, order->env[i], i + 1))
            continue;
        add(fd, order->env[i], command);
        command->envc++;
    }
}

static int seal_strings(const struct order *order, struct wire_command *command)
{
    int fd = memfd_create("command", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        fail(STATUS_FAILED, errno, "cannot hand over the command");
    for (char **argument = order->argv; *argument != NULL; argument++) {
        add(fd, *argument, command);
        command->argc++;
    }
    add_env(fd, order, command);
    if (command->argc > WIRE_ARGS_COUNT_MAX)
        fail(STATUS_FAILED, E2BIG, "the command");
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
        fail(STATUS_FAILED, errno, "cannot hand over the command");
    return fd;
}

/* The directory that we are in, when that is one of the workspace's. */
static void fill_cwd(struct wire_command *command)
{
    static const char root[] = CELL_WORKSPACE_PATH;
    char path[WIRE_CWD_BYTES];

    if (getcwd(path, sizeof(path)) == NULL) {
        if (errno == ERANGE)
            fail(STATUS_FAILED, ENAMETOOLONG, "the working directory");
        return;
    }
    if (strncmp(path, root, strlen(root)) == 0 &&
        (path[strlen(root)] == '/' || path[strlen(root)] == '\0'))
        memcpy(command->cwd, path, strlen(path) + 1);
}

static void fill_streams(struct wire_command *command, int *fds, size_t *fd_count)
{
    command->fd_count = 3;
    for (int i = 0; i < CELL_FDS_MAX; i++)
        command->fds[i] = -1;
    for (int i = 0; i < 3; i++) {
        struct stat status;
        int flags = fcntl(i, F_GETFL);

        if (flags < 0)
            continue; /* closed: the candidate gets /dev/null */
        if ((flags & O_PATH) != 0 || (fstat(i, &status) == 0 && S_ISDIR(status.st_mode)))
            fail(STATUS_FAILED, EISDIR, "a standard stream");
        command->fds[i] = (int32_t)*fd_count;
        fds[(*fd_count)++] = i;
    }
}

static int connect_monitor(void)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = CELL_CANDIDATE_SOCKET};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        fail(STATUS_FAILED, errno, "cannot make a socket");
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno == ENOENT)
            fail(STATUS_FAILED, 0, "not in a grading cell: only graders run candidates");
        if (errno != EINTR)
            fail(STATUS_FAILED, errno, "cannot reach the monitor");
    }
    return fd;
}

static void send_order(int socket_fd, const struct order *order)
{
    struct request_exec request = {.header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_CANDIDATE}};
    int fds[CANDIDATE_FDS_MAX];
    size_t fd_count = 1;

    fds[0] = seal_strings(order, &request.command);
    request.blob_fd = 0;
    fill_cwd(&request.command);
    fill_streams(&request.command, fds, &fd_count);
    int r = message_send(socket_fd, &request, sizeof(request), fds, fd_count);

    (void)close(fds[0]); /* the monitor has it */
    if (r < 0)
        fail(STATUS_FAILED, -r, "cannot speak to the monitor");
}

/* --- waiting */

static int watch_signals(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGQUIT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* cannot fail with these arguments */
    int fd = signalfd(-1, &set, SFD_CLOEXEC);

    if (fd < 0)
        fail(STATUS_FAILED, errno, "cannot watch for signals");
    return fd;
}

static void receive(int socket_fd, struct message *message)
{
    int fds[MESSAGE_FDS_MAX];
    size_t count = 0;
    int r = message_receive(socket_fd, message, sizeof(*message), fds, &count);

    if (r < 0 || message->magic != PROTOCOL_MAGIC)
        fail(STATUS_FAILED, r == -EPIPE ? 0 : -r, "the monitor refused the request or is gone");
}

static void check_reply(const struct message *reply, const char *program)
{
    if (reply->error == 0)
        return;
    if (reply->step == STEP_EXEC || reply->step == STEP_CWD)
        fail(reply->error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN, reply->error, program);
    (void)fprintf(stderr, "as-candidate: cannot make the cell (step %u): %s\n", reply->step,
                  strerror(reply->error));
    exit(STATUS_FAILED);
}

/* Ends as the caller expects of a program that got the signal. */
_Noreturn static void die_of(int number)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t set;

    (void)sigaction(number, &action, NULL); /* cannot fail for these signals */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)raise(number);                        /* blocked still */
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* it comes now */
    exit(STATUS_SIGNAL + number);
}

static int read_signal(int signal_fd)
{
    struct signalfd_siginfo info;

    if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        fail(STATUS_FAILED, errno, "cannot read a signal");
    return (int)info.ssi_signo;
}

static void end_candidate(int socket_fd, struct message *message)
{
    const struct request_plain request = {.header = {.magic = PROTOCOL_MAGIC, .kind = REQUEST_END}};

    /* Gone: then the candidate is. */
    if (message_send(socket_fd, &request, sizeof(request), NULL, 0) < 0)
        return;
    receive(socket_fd, message);
}

/* Returns the status to end with. */
static int await_end(int socket_fd, int signal_fd, const struct order *order)
{
    struct pollfd watched[2] = {{.fd = socket_fd, .events = POLLIN},
                                {.fd = signal_fd, .events = POLLIN}};
    struct message message;
    int n = poll(watched, ARRAY_SIZE(watched), order->timeout_ms > 0 ? order->timeout_ms : -1);

    if (n < 0)
        fail(STATUS_FAILED, errno, "cannot wait");
    if (n == 0) {
        end_candidate(socket_fd, &message);
        (void)fprintf(stderr, "as-candidate: '%s' ran for longer than %.3g s and was ended\n",
                      order->argv[0], (double)order->timeout_ms / MS_PER_S);
        return STATUS_TIMEOUT;
    }
    if (watched[1].revents != 0) {
        int number = read_signal(signal_fd);

        end_candidate(socket_fd, &message);
        die_of(number);
    }
    receive(socket_fd, &message);
    if (message.kind != MESSAGE_EXIT)
        fail(STATUS_FAILED, 0, "the monitor speaks another protocol");
    return message.exit.term_signal != 0 ? STATUS_SIGNAL + message.exit.term_signal
                                         : message.exit.exit_code;
}

int main(int argc, char **argv)
{
    struct order order = {0};
    struct message reply;

    read_options(argc, argv, &order);
    int socket_fd = connect_monitor();

    send_order(socket_fd, &order);
    /* Until the answer a signal ends us, and with us what is being made. */
    receive(socket_fd, &reply);
    int signal_fd = watch_signals();

    check_reply(&reply, order.argv[0]);
    return await_end(socket_fd, signal_fd, &order);
}
