/*
 * closedbook-mock: stands in a cell for a program that is answered for from outside.
 *
 * It holds nothing: it sends how it was called to the broker and prints what comes back, or runs
 * the real program when it is told to. Static, libc only. It is started by a file of one line,
 * "#!CALL_PROGRAM_PATH", so the kernel gives it that file's path as first argument; with "-s"
 * behind it, it stands in for a sealed program, to whose server it hands its streams as well.
 * `--listen PATH` makes the socket, hands its listening end out by descriptor 3, and ends: before
 * the cell has any other program; so does `--listen-port N` with one of TCP. `--serve` and `--kept`
 * (mock_serve.c) run in a cell beside it.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/message.h"
#include "broker/call_frame.h"
#include "broker/mock_program.h"

#define STATUS_CANNOT_RUN 126
#define STATUS_NOT_FOUND 127
#define STATUS_SIGNAL 128
#define LISTEN_FD 3
#define BACKLOG 128
#define PATH_BYTES 4096

/* For ASSERT() in what is linked. */
_Noreturn void assert_failed(const char *expression, const char *file, int line)
{
    (void)fprintf(stderr, "mock: %s:%d: %s\n", file, line, expression);
    abort();
}

_Noreturn void mock_fail(const char *tool, const char *what, int error)
{
    (void)fprintf(stderr, "%s: %s%s%s\n", tool, what, error != 0 ? ": " : "",
                  error != 0 ? strerror(error) : "");
    exit(STATUS_CANNOT_RUN);
}

int mock_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        mock_fail("mock", "cannot make a socket", errno);
    return fd;
}

struct sockaddr_un mock_address(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof(address.sun_path))
        mock_fail("mock", "the socket's path is too long", 0);
    memcpy(address.sun_path, path, strlen(path));
    return address;
}

int mock_listen(const char *path)
{
    const struct sockaddr_un address = mock_address(path);
    int fd = mock_socket();

    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        mock_fail("mock", "cannot listen", errno);
    return fd;
}

static int hand_out_listener(const char *path)
{
    int fd = mock_listen(path);
    char byte = 'l';

    int r = message_send(LISTEN_FD, &byte, 1, &fd, 1);

    if (r < 0)
        mock_fail("mock", "cannot hand out the socket", -r);
    return 0;
}

/* The same over TCP, on the loopback of this network: for what speaks HTTP. */
static int hand_out_port(const char *text)
{
    char *end = NULL;
    unsigned long port = strtoul(text, &end, 10);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                        .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte = 'l';

    if (*end != '\0' || port == 0 || port > UINT16_MAX || fd < 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        mock_fail("mock", "cannot listen", errno);
    int r = message_send(LISTEN_FD, &byte, 1, &fd, 1);

    if (r < 0)
        mock_fail("mock", "cannot hand out the socket", -r);
    return 0;
}

/* --- the call */

static char frame[CALL_FRAME_BYTES_MAX];

static bool add_word(size_t *size, const char *word)
{
    size_t length = strlen(word) + 1;

    if (length > sizeof(frame) - *size)
        return false;
    memcpy(frame + *size, word, length);
    *size += length;
    return true;
}

/* The whole call, or that it does not fit. */
static size_t make_frame(const char *tool, char **args)
{
    struct call_header header = {.magic = CALL_MAGIC, .kind = CALL_MADE};
    char cwd[PATH_BYTES];
    size_t size = sizeof(header);
    bool fits = add_word(&size, tool) && add_word(&size, getcwd(cwd, sizeof(cwd)) ? cwd : "");

    header.word_count = 2;
    for (; fits && *args != NULL; args++) {
        fits = add_word(&size, *args) && header.word_count < CALL_WORDS_MAX;
        header.word_count++;
    }
    if (!fits) {
        header.kind = CALL_TOO_LARGE;
        header.word_count = 1;
        size = sizeof(header);
        if (!add_word(&size, tool))
            mock_fail("mock", "the name is too long", 0);
    }
    memcpy(frame, &header, sizeof(header));
    return size;
}

static void send_all(int fd, const void *bytes, size_t size, const char *tool)
{
    int r = message_send(fd, bytes, size, NULL, 0);

    if (r < 0)
        mock_fail(tool, "cannot speak to the recorder", -r);
}

static void write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return; /* as with any program whose reader is gone */
        bytes += n;
        size -= (size_t)n;
    }
}

/* --- the real program */

static void run_if_there(const char *dir, size_t length, const char *tool, char **argv)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%.*s/%s", (int)length, dir, tool);

    if (n < 0 || (size_t)n >= sizeof(path) || length == 0)
        return;
    (void)execv(path, argv); /* when it returns, the next folder is looked at */
}

/* Looked for where a shell would, but for our own folder. */
_Noreturn static void run_real(const char *tool, char **argv)
{
    const char *dir = getenv("PATH");

    while (dir != NULL && *dir != '\0') {
        size_t length = strcspn(dir, ":");

        if (length != strlen(CALL_TOOLS_DIR) || strncmp(dir, CALL_TOOLS_DIR, length) != 0)
            run_if_there(dir, length, tool, argv);
        dir += length + (dir[length] == ':');
    }
    (void)fprintf(stderr, "%s: not found\n", tool);
    _exit(STATUS_NOT_FOUND);
}

static int pass_on(int fd, const char *tool, char **argv)
{
    struct call_header ended = {.magic = CALL_MAGIC, .kind = CALL_ENDED};
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        run_real(tool, argv);
    if (pid < 0)
        mock_fail(tool, "cannot start the real program", errno);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    ended.exit_code =
        (uint32_t)(WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status));
    send_all(fd, &ended, sizeof(ended), tool);
    return (int)ended.exit_code;
}

static ssize_t receive(int fd)
{
    ssize_t n;

    do
        n = recv(fd, frame, sizeof(frame), 0);
    while (n < 0 && errno == EINTR);
    return n;
}

/* The arguments and the folder that a sealed program hands on. */
static int run_handed_on(int fd, const struct answer_header *answer)
{
    static char *argv[CALL_WORDS_MAX + 1];
    char *word = frame + sizeof(*answer), *end = word + answer->out_bytes;
    char *tool = word, *cwd = NULL;
    size_t count = 0;

    if (answer->out_bytes == 0 || end[-1] != '\0')
        mock_fail("mock", "the answer makes no sense", 0);
    for (size_t i = 0; word < end && count < CALL_WORDS_MAX; i++, word += strlen(word) + 1) {
        if (i == 1)
            cwd = word;
        else
            argv[count++] = word;
    }
    if (cwd != NULL && cwd[0] != '\0' && chdir(cwd) < 0)
        mock_fail(tool, cwd, errno);
    return pass_on(fd, tool, argv);
}

static int obey(int fd, const char *tool, char **argv)
{
    for (;;) {
        ssize_t size = receive(fd);
        struct answer_header answer;

        if (size < (ssize_t)sizeof(answer))
            mock_fail(tool, "the recorder is gone", 0);
        memcpy(&answer, frame, sizeof(answer));
        if (answer.magic != CALL_MAGIC ||
            (uint64_t)answer.out_bytes + answer.err_bytes != (size_t)size - sizeof(answer))
            mock_fail(tool, "the recorder's answer makes no sense", 0);
        if (answer.kind == ANSWER_PASS)
            return pass_on(fd, tool, argv);
        if (answer.kind == ANSWER_RUN) {
            (void)run_handed_on(fd, &answer);
            continue;
        }
        write_all(STDOUT_FILENO, frame + sizeof(answer), answer.out_bytes);
        write_all(STDERR_FILENO, frame + sizeof(answer) + answer.out_bytes, answer.err_bytes);
        return answer.kind == ANSWER_TEXT ? (int)answer.exit_code : STATUS_CANNOT_RUN;
    }
}

/* Its own standard streams go along, /dev/null for one that is closed. */
static void take_streams(int fds[static CALL_STREAMS], const char *tool)
{
    for (int i = 0; i < CALL_STREAMS; i++) {
        fds[i] = fcntl(i, F_GETFD) >= 0 ? i : open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fds[i] < 0)
            mock_fail(tool, "cannot open /dev/null", errno);
    }
}

static int call(const char *path, const char *tool, char **argv, bool sealed)
{
    const struct sockaddr_un address = mock_address(path);
    int fd = mock_socket(), fds[CALL_STREAMS];

    take_streams(fds, tool);
    while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            mock_fail(tool, "cannot reach the recorder", errno);
    }
    size_t size = make_frame(tool, argv + 1);
    int r = message_send(fd, frame, size, fds, sealed ? CALL_STREAMS : 0);

    if (r < 0)
        mock_fail(tool, "cannot speak to the recorder", -r);
    return obey(fd, tool, argv);
}

/* In the cell of sealed programs: another one is simply run; the same means the real one. */
static int call_from_sealed(const char *ask, const char *tool, char **argv)
{
    const char *self = getenv(CALL_TOOL_VARIABLE);

    if (self != NULL && strcmp(self, tool) != 0 && setenv(CALL_TOOL_VARIABLE, tool, 1) == 0)
        mock_run_sealed(tool, argv);
    return call(ask, tool, argv, false);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--listen") == 0)
        return hand_out_listener(argv[2]);
    if (argc == 3 && strcmp(argv[1], "--listen-port") == 0)
        return hand_out_port(argv[2]);
    if (argc >= 2 && strcmp(argv[1], "--serve") == 0)
        return mock_serve(argv + 2);
    if (argc == 2 && strcmp(argv[1], "--kept") == 0)
        return mock_kept();
    bool sealed = argc >= 3 && strcmp(argv[1], CALL_SEALED_OPTION) == 0;
    const char *ask = getenv(CALL_ASK_VARIABLE);

    argv += sealed ? 2 : 1;
    if (argc < 2)
        mock_fail("mock", "started by the file of a program's name, not by hand", 0);
    const char *slash = strrchr(argv[0], '/');
    const char *tool = slash == NULL ? argv[0] : slash + 1;

    argv[0] = (char *)(uintptr_t)tool;
    if (sealed && ask != NULL)
        return call_from_sealed(ask, tool, argv);
    return call(sealed ? CALL_SEALED_SOCKET_PATH : CALL_SOCKET_PATH, tool, argv, sealed);
}
