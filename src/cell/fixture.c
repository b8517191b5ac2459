#include "cell/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define WAIT_NS (UINT64_C(20) * 1000000000)
#define OUTPUT_BYTES_MAX ((size_t)4 << 20)
#define VANISH_MS 10000
#define LOOK_MS 5
#define CMDLINE_BYTES 4096

static const char *const default_env[] = {"PATH=/usr/bin:/bin", "HOME=/home/agent", "LANG=C.UTF-8",
                                          NULL};

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
static const char group[] = "root:x:0:\nnogroup:x:65534:\n";
static const char hosts[] = "127.0.0.1 localhost\n";

int fixture_open(struct fixture *fixture, enum cell_driver driver, struct error **err)
{
    const char *cell_program = getenv("CLOSEDBOOK_CELL_PROGRAM");
    const char *worker_program = getenv("CLOSEDBOOK_PROBER");
    struct monitor_options options = {
        .driver = driver,
        .cell_program = cell_program,
        .worker_program = worker_program,
        .candidate_program = getenv("CLOSEDBOOK_CANDIDATE_PROGRAM"),
    };

    *fixture = (struct fixture){.usr_fd = -1};
    if (cell_program == NULL)
        return error_set(err, ERROR_USER, "CLOSEDBOOK_CELL_PROGRAM is not set");
    fixture->usr_fd = open("/usr", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fixture->usr_fd < 0)
        return error_errno(err, errno, "cannot open '/usr'");
    return monitor_start(&options, &fixture->monitor, err);
}

void fixture_close(struct fixture *fixture)
{
    monitor_freep(&fixture->monitor);
    fd_closep(&fixture->usr_fd);
}

void fixture_output_done(struct fixture_output *output)
{
    buf_done(&output->out);
}

void fixture_spec(const struct fixture *fixture, enum cell_role role, const char *const *argv,
                  struct cell_spec *ret)
{
    *ret = (struct cell_spec){
        .role = role,
        .mounts = {{.fd = fixture->usr_fd, .target = "/usr", .masks = {"local", "src"}}},
        .mount_count = 1,
        .texts = {{.target = "/etc/passwd", .bytes = passwd, .size_bytes = sizeof(passwd) - 1},
                  {.target = "/etc/group", .bytes = group, .size_bytes = sizeof(group) - 1},
                  {.target = "/etc/hosts", .bytes = hosts, .size_bytes = sizeof(hosts) - 1}},
        .text_count = 3,
        .etc_fd = -1,
        .workspace = {.kind = CELL_WORKSPACE_COPY},
        .command = {.argv = argv, .envp = default_env},
    };
}

static int capture(struct cell *cell, uint32_t process, int *read_end, struct fixture_output *ret,
                   struct error **err)
{
    struct cell_capture captures[] = {{.fd = take_fd(read_end), .buf = &ret->out}};
    int r = cell_wait(
        cell, process,
        &(struct cell_patience){captures, ARRAY_SIZE(captures), clock_ns() + WAIT_NS, NULL},
        &ret->result, &ret->exit, err);

    fd_closep(&captures[0].fd);
    return r;
}

int fixture_run(const struct fixture *fixture, struct cell_spec *spec, struct cell **ret_cell,
                struct fixture_output *ret, struct error **err)
{
    int ends[2];

    *ret = (struct fixture_output){.out = {.max_bytes = OUTPUT_BYTES_MAX}};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int read_end = ends[0];
    scoped(fd_closep) int write_end = ends[1];
    scoped(cell_freep) struct cell *cell = NULL;

    if (spec->command.fd_count < 3) {
        spec->command.fds[0] = -1;
        spec->command.fds[1] = spec->command.fds[2] = write_end;
        spec->command.fd_count = 3;
    }
    int r = cell_start(fixture->monitor, spec, &cell, err);

    if (r < 0)
        return r;
    fd_closep(&write_end);
    r = capture(cell, 1, &read_end, ret, err);
    if (r < 0)
        return r;
    *ret_cell = take(cell);
    return 0;
}

int fixture_exec(struct cell *cell, const char *const *argv, struct fixture_output *ret,
                 struct error **err)
{
    int ends[2];
    uint32_t process;

    *ret = (struct fixture_output){.out = {.max_bytes = OUTPUT_BYTES_MAX}};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    scoped(fd_closep) int read_end = ends[0];
    scoped(fd_closep) int write_end = ends[1];
    const struct cell_command command = {
        .argv = argv, .envp = default_env, .fds = {-1, write_end, write_end}, .fd_count = 3};
    int r = cell_exec(cell, &command, &process, err);

    if (r < 0)
        return r;
    fd_closep(&write_end);
    return capture(cell, process, &read_end, ret, err);
}

int fixture_shell(const struct fixture *fixture, const char *command, struct fixture_output *ret,
                  struct error **err)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    scoped(cell_freep) struct cell *cell = NULL;
    struct cell_receipt receipt;
    struct cell_spec spec;

    fixture_spec(fixture, CELL_AGENT, argv, &spec);
    int r = fixture_run(fixture, &spec, &cell, ret, err);

    return r < 0 ? r : cell_end(cell, &receipt, err);
}

static int run_as_user(int (*run)(void))
{
    const char *cell_program = getenv("CLOSEDBOOK_CELL_PROGRAM");

    if (syscall(SYS_setgroups, 0, NULL) < 0 ||
        syscall(SYS_setresgid, FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0 ||
        syscall(SYS_setresuid, FIXTURE_USER, FIXTURE_USER, FIXTURE_USER) < 0)
        return 1;
    if (cell_program == NULL || access(cell_program, X_OK) < 0) {
        (void)fprintf(stderr, "skipped as an ordinary user: the build cannot be reached\n");
        return 0;
    }
    return run();
}

int fixture_run_as_all(int (*run)(void))
{
    int status = 0;

    if (geteuid() == 0) {
        pid_t pid = fork();

        if (pid == 0)
            exit(run_as_user(run));
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
            return 1;
    }
    return run() != 0 || status != 0;
}

static bool has_argument(const char *pid, const char *argument)
{
    scoped(mem_freep) char *path = str_format("/proc/%s/cmdline", pid);
    char text[CMDLINE_BYTES];
    scoped(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

    return n > 0 && memmem(text, (size_t)n, argument, strlen(argument)) != NULL;
}

bool fixture_process_exists(const char *argument)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool found = false;

    while (proc != NULL && !found && (entry = readdir(proc)) != NULL)
        found = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                strtol(entry->d_name, NULL, 10) != getpid() &&
                has_argument(entry->d_name, argument);
    if (proc != NULL)
        (void)closedir(proc); /* read only */
    return found;
}

static bool await_process(const char *argument, bool wanted)
{
    for (int waited = 0; waited < VANISH_MS; waited += LOOK_MS) {
        if (fixture_process_exists(argument) == wanted)
            return true;
        (void)poll(NULL, 0, LOOK_MS); /* then it is looked again */
    }
    return false;
}

bool fixture_process_appears(const char *argument)
{
    return await_process(argument, true);
}

bool fixture_process_vanishes(const char *argument)
{
    return await_process(argument, false);
}

char *fixture_dir_new(void)
{
    char *path = str_dup("/tmp/closedbook-cell-test-XXXXXX");

    ASSERT(mkdtemp(path) != NULL);
    return path;
}

void fixture_dir_free(char *path)
{
    (void)!fs_remove_tree(AT_FDCWD, path, NULL); /* a test's leavings */
    free(path);
}
