#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#include "cell/setup.h"

#define MOVED_FDS_FROM 64 /* above every descriptor that a program is given */
#define TARGETS_MAX (CELL_WORKER_FD + CELL_MOUNTS_MAX + 1)
#define PROGRAM_PATH_BYTES 4096
#define CHILD_STACK_BYTES 65536
#define DEFAULT_SEARCH_PATH "/usr/local/bin:/usr/bin:/bin"
#define FAILED_STATUS 127

/* --- before the fork */

/* Splits the blob's strings into argv and env. The server has checked the sizes, not the content.
 */
static int split_strings(struct program *program, size_t available)
{
    const struct wire_command *command = program->command;
    size_t count = command->argc + command->envc;
    const char **pointers = calloc(count + 2, sizeof(*pointers));
    const char *next = program->strings, *end = program->strings + available;

    if (pointers == NULL)
        return -ENOMEM;
    program->pointers = pointers;
    for (size_t i = 0; i < count; i++) {
        const char *nul = memchr(next, '\0', (size_t)(end - next));

        if (nul == NULL)
            return -EBADMSG;
        /* argv, NULL, env, NULL */
        pointers[i < command->argc ? i : i + 1] = next;
        next = nul + 1;
    }
    return next == end ? 0 : -EBADMSG;
}

int program_prepare(struct program *program, const struct wire_command *command, const int *fds,
                    const char *blob)
{
    program->command = command;
    program->strings = blob;
    for (size_t i = 0; i < CELL_FDS_MAX; i++)
        program->fds[i] = i < command->fd_count && command->fds[i] >= 0 ? fds[command->fds[i]] : -1;
    return split_strings(program, command->strings_bytes);
}

/* --- in the child: it shares the parent's memory, so that it must leave no trace but its result */

int program_fail(struct program *program, enum cell_step step, int r)
{
    program->step = step;
    program->error = -r;
    return FAILED_STATUS;
}

static int open_null(const struct program *program)
{
    int fd = program->role == CELL_WORKER
                 ? fcntl(program->machine->null_fd, F_DUPFD_CLOEXEC, MOVED_FDS_FROM)
                 : open("/dev/null", O_RDWR | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* wanted[i]: what becomes descriptor i, -1: nothing. Moved out of the way first, then put in place.
 */
static int place_fds(const int *wanted, size_t count)
{
    int moved[TARGETS_MAX];

    for (size_t i = 0; i < count; i++) {
        moved[i] = wanted[i] < 0 ? -1 : fcntl(wanted[i], F_DUPFD_CLOEXEC, MOVED_FDS_FROM);
        if (wanted[i] >= 0 && moved[i] < 0)
            return -errno;
    }
    for (size_t i = 0; i < count; i++) {
        if (moved[i] >= 0 && dup2(moved[i], (int)i) < 0)
            return -errno;
    }
    return 0;
}

int program_set_fds(struct program *program)
{
    int wanted[TARGETS_MAX], keep[TARGETS_MAX + 1];
    size_t given = program->command->fd_count > 3 ? program->command->fd_count : 3;
    int null_fd = open_null(program);

    if (null_fd < 0)
        return null_fd;
    for (size_t i = 0; i < TARGETS_MAX; i++)
        wanted[i] = -1;
    for (size_t i = 0; i < given; i++)
        wanted[i] = program->fds[i] >= 0 ? program->fds[i] : null_fd;
    for (size_t i = 0; i < program->worker_fd_count; i++)
        wanted[CELL_WORKER_FD + i] = program->worker_fds[i];
    if (program->exec_fd >= 0) {
        int moved = fcntl(program->exec_fd, F_DUPFD_CLOEXEC, MOVED_FDS_FROM);

        if (moved < 0 || dup3(moved, WORKER_EXEC_FD, O_CLOEXEC) < 0)
            return -errno;
        program->exec_fd = WORKER_EXEC_FD;
    }
    int r = place_fds(wanted, TARGETS_MAX);

    if (r < 0)
        return r;
    for (size_t i = 0; i < TARGETS_MAX; i++)
        keep[i] = wanted[i] >= 0 ? (int)i : -1;
    for (size_t i = 0; i < program->worker_fd_count; i++)
        program->worker_fds[i] = CELL_WORKER_FD + (int)i;
    keep[TARGETS_MAX] = program->exec_fd;
    r = sys_close_except(keep, TARGETS_MAX + 1);
    if (r == 0)
        program->protections |= PROTECT_FDS;
    return r;
}

static void reset_signals(void)
{
    sigset_t none;

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL); /* cannot fail with these arguments */
}

static const char *search_path(char *const *env)
{
    for (; *env != NULL; env++) {
        if (strncmp(*env, "PATH=", strlen("PATH=")) == 0)
            return *env + strlen("PATH=");
    }
    return DEFAULT_SEARCH_PATH;
}

/* As execvpe() does, but for its fallback to a shell. Returns -errno. */
static int execute_by_search(char *const *argv, char *const *env)
{
    const char *part = search_path(env);
    size_t name_length = strlen(argv[0]);
    int r = -ENOENT;

    for (;;) {
        const char *end = strchrnul(part, ':');
        size_t length = (size_t)(end - part);
        char path[PROGRAM_PATH_BYTES];

        if (length > 0 && length + name_length + 2 <= sizeof(path)) {
            memcpy(path, part, length);
            path[length] = '/';
            memcpy(path + length + 1, argv[0], name_length + 1);
            (void)execve(path, argv, env); /* returns on failure only */
            if (errno != ENOENT && errno != ENOTDIR && errno != EACCES)
                return -errno;
            if (errno == EACCES)
                r = -EACCES;
        }
        if (*end == '\0')
            return r;
        part = end + 1;
    }
}

int program_execute(const struct program *program)
{
    char *const *argv = program->pointers;
    char *const *env = argv + program->command->argc + 1;

    reset_signals();
    if (program->exec_fd >= 0) {
        (void)execveat(program->exec_fd, "", argv, env, AT_EMPTY_PATH);
        return -errno;
    }
    if (argv[0][0] == '\0')
        return -ENOENT;
    if (strchr(argv[0], '/') == NULL)
        return execute_by_search(argv, env);
    (void)execve(argv[0], argv, env); /* returns on failure only */
    return -errno;
}

pid_t program_start(struct program *program, int (*child)(void *program))
{
    static char stack[CHILD_STACK_BYTES] __attribute__((aligned(16)));

    program->step = STEP_NONE;
    /* As vfork(): the caller sleeps until the program runs or the child gives up. */
    pid_t pid = clone(child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, program);

    if (pid < 0) {
        program->step = STEP_EXEC;
        program->error = errno;
    }
    return program->step == STEP_NONE ? pid : -1;
}
