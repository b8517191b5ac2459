/*
 * The server of sealed programs, in a cell of their own beside the agent's.
 *
 * One process a call: it starts the program with the caller's streams, and watches both the
 * program and the caller, whose end is the program's, too. The caller chooses arguments, streams
 * and the folder; the environment is ours, as a variable could make the program run the agent's
 * code.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/message.h"
#include "broker/call_frame.h"
#include "broker/mock_program.h"

#define LISTEN_FD 3
#define KEPT_FD 3
#define CALLS_MAX 32  /* at a time; further ones wait */
#define PATIENCE_S 10 /* for the call of one that has connected */
#define STATUS_SIGNAL 128
#define STATUS_CANNOT_RUN 126
#define PATH_BYTES 4096
#define FOLDERS_VARIABLE "MOCK_FOLDERS"
#define WORKSPACE "/workspace"

/* --- a call */

struct request {
    char bytes[CALL_FRAME_BYTES_MAX + 1];
    struct call_frame frame;
    int fds[MESSAGE_FDS_MAX];
    size_t fd_count;
};
static struct request request;

/* False: it is gone, or said nothing that makes sense. */
static bool receive(int fd)
{
    ssize_t size = recv(fd, request.bytes, 1, MSG_PEEK | MSG_TRUNC);

    request.fd_count = 0;
    return size > 0 && (size_t)size < sizeof(request.bytes) &&
           message_receive(fd, request.bytes, (size_t)size, request.fds, &request.fd_count) == 0 &&
           call_frame_parse(request.bytes, (size_t)size, &request.frame);
}

static void answer(int fd, const struct answer_header *header, const char *text)
{
    static char bytes[sizeof(*header) + CALL_FRAME_BYTES_MAX];
    size_t size = header->out_bytes + header->err_bytes;

    memcpy(bytes, header, sizeof(*header));
    if (size > 0)
        memcpy(bytes + sizeof(*header), text, size);
    (void)!message_send(fd, bytes, sizeof(*header) + size, NULL, 0); /* who is gone hears nothing */
}

_Noreturn static void refuse(int fd, const char *why)
{
    const struct answer_header header = {
        .magic = CALL_MAGIC, .kind = ANSWER_REFUSED, .err_bytes = (uint32_t)strlen(why)};

    answer(fd, &header, why);
    _exit(1);
}

static void say_end(int fd, int exit_code)
{
    const struct answer_header header = {
        .magic = CALL_MAGIC, .kind = ANSWER_TEXT, .exit_code = (uint32_t)exit_code};

    answer(fd, &header, "");
}

/* --- the program */

static bool is_name(const char *tool)
{
    return tool[0] != '\0' && tool[0] != '.' && strchr(tool, '/') == NULL;
}

void mock_run_sealed(const char *tool, char **argv)
{
    const char *folder = getenv(FOLDERS_VARIABLE);
    char path[PATH_BYTES];

    while (folder != NULL && *folder != '\0' && is_name(tool)) {
        size_t length = strcspn(folder, ":");
        int n = snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, tool);

        if (n > 0 && (size_t)n < sizeof(path)) {
            argv[0] = path;
            (void)execv(path, argv); /* when it returns, the next folder is looked at */
        }
        folder += length + (folder[length] == ':');
    }
}

_Noreturn static void become_program(const char *ask)
{
    static char *argv[CALL_WORDS_MAX + 1];
    const char *tool = call_frame_word(&request.frame, 0);
    const char *cwd = call_frame_word(&request.frame, 1);
    const char *word = cwd;

    for (size_t i = 2; i < request.frame.word_count; i++) {
        word += strlen(word) + 1;
        argv[i - 1] = (char *)(uintptr_t)word;
    }
    (void)setsid(); /* a group of its own, to be ended as one */
    /* A folder that only the agent's cell has, such as one in its /tmp, is not here. */
    if (chdir(cwd) < 0 && chdir(WORKSPACE) < 0)
        _exit(STATUS_CANNOT_RUN);
    for (int i = 0; i < CALL_STREAMS; i++) {
        if (dup2(request.fds[i], i) < 0)
            _exit(STATUS_CANNOT_RUN);
    }
    if (setenv(CALL_ASK_VARIABLE, ask, 1) < 0 || setenv(CALL_TOOL_VARIABLE, tool, 1) < 0)
        _exit(STATUS_CANNOT_RUN);
    argv[0] = (char *)(uintptr_t)tool;
    mock_run_sealed(tool, argv);
    (void)fprintf(stderr, "%s: cannot run: %s\n", tool, strerror(errno));
    _exit(STATUS_CANNOT_RUN);
}

/* --- what it hands on */

/* The real program runs where the caller is, who says how it ended. False: the caller is gone. */
static bool hand_on(int listener, int caller)
{
    int asker = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int exit_code = STATUS_CANNOT_RUN;

    if (asker < 0)
        return true;
    if (receive(asker) && request.frame.kind == CALL_MADE) {
        const char *last = call_frame_word(&request.frame, request.frame.word_count - 1);
        const struct answer_header header = {
            .magic = CALL_MAGIC,
            .kind = ANSWER_RUN,
            .out_bytes = (uint32_t)(last + strlen(last) + 1 - request.frame.words),
        };

        answer(caller, &header, request.frame.words);
        if (!receive(caller) || request.frame.kind != CALL_ENDED)
            return false;
        exit_code = (int)request.frame.exit_code;
    }
    say_end(asker, exit_code);
    (void)close(asker);
    return true;
}

static int watch(pid_t pid, int caller, int listener)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;
    struct pollfd polls[] = {{.fd = pidfd, .events = POLLIN},
                             {.fd = listener, .events = POLLIN},
                             {.fd = caller, .events = POLLIN}};

    while (pidfd >= 0) {
        if (poll(polls, ARRAY_SIZE(polls), -1) < 0 && errno != EINTR)
            break;
        if (polls[0].revents != 0)
            break;
        /* The caller says nothing unasked: it is gone. */
        if (polls[2].revents != 0 || (polls[1].revents != 0 && !hand_on(listener, caller))) {
            (void)kill(-pid, SIGKILL);
            break;
        }
    }
    if (pidfd < 0)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static bool are_streams(void)
{
    for (size_t i = 0; i < request.fd_count; i++) {
        struct stat status;

        if (fstat(request.fds[i], &status) < 0 || S_ISDIR(status.st_mode))
            return false;
    }
    return request.fd_count == CALL_STREAMS;
}

_Noreturn static void serve_call(int caller)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S}, none = {0};
    char ask[64];

    (void)setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (!receive(caller))
        refuse(caller, "no call\n");
    if (request.frame.kind != CALL_MADE)
        refuse(caller, "the arguments are too long\n");
    if (!are_streams() || !is_name(call_frame_word(&request.frame, 0)))
        refuse(caller, "no call\n");
    (void)setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
    (void)snprintf(ask, sizeof(ask), "/dev/shm/.ask-%d", getpid());
    int listener = mock_listen(ask);
    pid_t pid = fork();

    if (pid == 0)
        become_program(ask);
    if (pid < 0)
        refuse(caller, "cannot start the program\n");
    for (size_t i = 0; i < request.fd_count; i++)
        (void)close(request.fds[i]); /* the program's */
    int exit_code = watch(pid, caller, listener);

    (void)unlink(ask); /* nobody asks any more */
    say_end(caller, exit_code);
    _exit(0);
}

static void set_folders(char **folders)
{
    static char list[PATH_BYTES];
    size_t size = 0;

    for (; *folders != NULL; folders++) {
        int n = snprintf(list + size, sizeof(list) - size, "%s%s", size > 0 ? ":" : "", *folders);

        if (n < 0 || (size_t)n >= sizeof(list) - size)
            mock_fail("mock", "the folders' names are too long", 0);
        size += (size_t)n;
    }
    if (setenv(FOLDERS_VARIABLE, list, 1) < 0)
        mock_fail("mock", "cannot set a variable", errno);
}

int mock_serve(char **folders)
{
    int calls = 0;

    set_folders(folders);
    for (;;) {
        while (calls > 0 && waitpid(-1, NULL, calls < CALLS_MAX ? WNOHANG : 0) > 0)
            calls--;
        int caller = accept4(LISTEN_FD, NULL, NULL, SOCK_CLOEXEC);

        if (caller < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (caller < 0)
            mock_fail("mock", "cannot take calls", errno);
        pid_t pid = fork();

        if (pid == 0) {
            (void)close(LISTEN_FD); /* the parent's */
            serve_call(caller);
        }
        calls += pid > 0;
        (void)close(caller); /* the child's; without one the caller sees its end */
    }
}

/* --- what they wrote */

struct keeping {
    char path[PATH_BYTES]; /* below both folders */
    size_t count;
    uint64_t bytes;
};

_Noreturn static void fail_by_limit(const char *what)
{
    (void)fprintf(stderr, "mock: %s\n", what);
    exit(KEPT_STATUS_LIMIT);
}

static void put(const void *bytes, size_t size)
{
    const char *at = bytes;

    while (size > 0) {
        ssize_t n = write(KEPT_FD, at, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            mock_fail("mock", "cannot tell what was written", errno);
        at += n;
        size -= (size_t)n;
    }
}

static bool are_same(int a, int b)
{
    static char one[65536], other[65536];
    off_t at = 0;

    for (;;) {
        ssize_t n = pread(a, one, sizeof(one), at);

        if (n < 0 || pread(b, other, sizeof(other), at) != n || memcmp(one, other, (size_t)n) != 0)
            return false;
        if (n == 0)
            return true;
        at += n;
    }
}

static void put_file(struct keeping *keeping, int fd, const struct stat *status)
{
    static char bytes[65536];
    const struct kept_header header = {
        .magic = KEPT_MAGIC,
        .mode = status->st_mode & 0777,
        .path_bytes = (uint32_t)strlen(keeping->path),
        .size_bytes = (uint64_t)status->st_size,
    };
    uint64_t left = header.size_bytes;

    keeping->bytes += left;
    if (++keeping->count > KEPT_FILES_MAX || keeping->bytes > KEPT_BYTES_MAX)
        fail_by_limit("sealed programs wrote more than 256 files or 64 MiB");
    put(&header, sizeof(header));
    put(keeping->path, header.path_bytes);
    while (left > 0) {
        ssize_t n = read(fd, bytes, left < sizeof(bytes) ? (size_t)left : sizeof(bytes));

        if (n <= 0)
            mock_fail("mock", "cannot read what was written", n < 0 ? errno : 0);
        put(bytes, (size_t)n);
        left -= (uint64_t)n;
    }
}

static void look_at(struct keeping *keeping, int dir_fd, int original_fd, unsigned depth);

static void look_at_entry(struct keeping *keeping, int dir_fd, int original_fd, const char *name,
                          unsigned depth)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int original = openat(original_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            look_at(keeping, fd, original, depth + 1);
        else if (S_ISREG(status.st_mode) && (original < 0 || !are_same(fd, original)))
            put_file(keeping, fd, &status);
    }
    if (fd >= 0)
        (void)close(fd); /* only read */
    if (original >= 0)
        (void)close(original); /* only read */
}

static void look_at(struct keeping *keeping, int dir_fd, int original_fd, unsigned depth)
{
    if (depth > KEPT_DEPTH_MAX)
        fail_by_limit("sealed programs wrote folders that are too deep");
    DIR *dir = fdopendir(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
    size_t length = strlen(keeping->path);
    struct dirent *entry;

    if (dir == NULL)
        mock_fail("mock", "cannot look at what was written", errno);
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int n = snprintf(keeping->path + length, sizeof(keeping->path) - length, "%s%s",
                         length > 0 ? "/" : "", entry->d_name);

        if (n < 0 || (size_t)n >= sizeof(keeping->path) - length)
            fail_by_limit("a path of a file that a sealed program wrote is too long");
        look_at_entry(keeping, dir_fd, original_fd, entry->d_name, depth);
        keeping->path[length] = '\0';
    }
    (void)closedir(dir); /* only read */
}

int mock_kept(void)
{
    static struct keeping keeping;
    int dir = open(CALL_SEALED_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int original = open(CALL_SEALED_SOURCE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0 || original < 0)
        mock_fail("mock", "the sealed folders are not there", errno);
    (void)kill(-1, SIGKILL); /* what is left of calls: all but this one and the cell's first */
    look_at(&keeping, dir, original, 0);
    return 0;
}
