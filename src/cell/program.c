#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "cell/setup.h"

#define MOVED_FDS_FROM 64 /* above every descriptor that a program is given */
#define TARGETS_MAX (CELL_WORKER_FD + CELL_MOUNTS_MAX + 1)
#define PROGRAM_PATH_BYTES 4096
#define CHILD_STACK_BYTES 65536
#define MEMLOCK_BYTES ((uint64_t)8 << 20)
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

static int fail(struct program *program, enum cell_step step, int r)
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

static int set_fds(struct program *program)
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

static int set_limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        return -errno;
    /* A monitor without CAP_SYS_RESOURCE cannot raise what it was given. */
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < value)
        value = limit.rlim_max;
    limit = (struct rlimit){.rlim_cur = value, .rlim_max = value};
    return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

static int set_limits(struct program *program)
{
    const struct cell_limits *limits = &program->limits;
    bool is_worker = program->role == CELL_WORKER;
    int r = set_limit(RLIMIT_CORE, 0);

    if (r == 0)
        r = set_limit(RLIMIT_MEMLOCK, MEMLOCK_BYTES);
    if (r == 0)
        r = set_limit(RLIMIT_NOFILE, is_worker ? WORKER_OPEN_FILES : limits->open_files);
    if (r == 0 && limits->file_bytes > 0)
        r = set_limit(RLIMIT_FSIZE, limits->file_bytes);
    /* A worker may not fork at all, and its id has processes elsewhere. */
    if (r == 0 && !is_worker) {
        r = set_limit(RLIMIT_NPROC, limits->pids);
        if (r == 0)
            program->protections |= PROTECT_NPROC;
    }
    return r;
}

static int set_identity(struct program *program)
{
    struct identity identity = {
        .uid = program->uid,
        .gid = program->gid,
        .keep_groups = program->machine->tier != TIER_A,
    };

    if (program->role == CELL_WORKER) {
        identity.keep_caps = UINT64_C(1) << CAP_DAC_READ_SEARCH;
        /* trusted.* attributes, which its filter lets it read and not set, are root's to see. */
        if (program->worker_sees_marks)
            identity.keep_caps |= UINT64_C(1) << CAP_SYS_ADMIN;
    }
    int r = identity_take(&identity);

    if (r < 0)
        return r;
    if (identity.keep_caps == 0)
        program->protections |= PROTECT_NO_CAPS;
    /* After the last change of identity, which clears it. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
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

static int execute(const struct program *program)
{
    char *const *argv = program->pointers;
    char *const *env = argv + program->command->argc + 1;

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

static const char *working_directory(const struct program *program)
{
    if (program->command->cwd[0] != '\0')
        return program->command->cwd;
    return program->role == CELL_WORKER ? "/" : CELL_WORKSPACE_PATH;
}

static int confine(struct program *program)
{
    enum filter filter = program->role == CELL_WORKER ? FILTER_WORKER
                         : program->ptrace_denied     ? FILTER_CELL_NO_PTRACE
                                                      : FILTER_CELL;

    program->step = STEP_IDENTITY;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    program->protections |= PROTECT_NO_NEW_PRIVS;
    program->step = STEP_LANDLOCK;
    int r = landlock_confine(program);

    if (r < 0)
        return r;
    program->protections |= PROTECT_LANDLOCK;
    program->step = STEP_SECCOMP;
    r = filter_load(filter);
    if (r == 0)
        program->protections |= PROTECT_SECCOMP;
    return r;
}

int program_child(void *argument)
{
    struct program *program = argument;

    (void)umask(022);
    if (setsid() < 0)
        return fail(program, STEP_TTY, -errno);
    int r = set_fds(program);

    if (r < 0)
        return fail(program, STEP_DESCRIPTORS, r);
    if (program->command->controlling_tty != 0 && ioctl(0, TIOCSCTTY, 0) < 0)
        return fail(program, STEP_TTY, -errno);
    r = set_limits(program);
    if (r < 0)
        return fail(program, STEP_LIMITS, r);
    r = set_identity(program);
    if (r < 0)
        return fail(program, STEP_IDENTITY, r);
    if (chdir(working_directory(program)) < 0)
        return fail(program, STEP_CWD, -errno);
    r = confine(program);
    if (r < 0)
        return fail(program, program->step, r);
    program->step = STEP_NONE; /* stays so if the program runs */
    reset_signals();
    return fail(program, STEP_EXEC, execute(program));
}

pid_t program_start(struct program *program)
{
    static char stack[CHILD_STACK_BYTES] __attribute__((aligned(16)));

    program->step = STEP_NONE;
    /* As vfork(): the caller sleeps until the program runs or the child gives up. */
    pid_t pid =
        clone(program_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, program);

    if (pid < 0) {
        program->step = STEP_EXEC;
        program->error = errno;
    }
    return program->step == STEP_NONE ? pid : -1;
}
