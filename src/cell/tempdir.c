#include "cell/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cell/client.h"
#include "cell/walls.h"

static const char *base_directory(void)
{
    const char *base = getenv("TMPDIR");

    return base != NULL && base[0] == '/' ? base : "/tmp";
}

int tempdir_check(struct error **err)
{
    const char *base = base_directory();

    if (faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    return error_errno_as(err, ERROR_USER, errno,
                          "user %u cannot make folders in '%s', where TMPDIR says that they go",
                          (unsigned)geteuid(), base);
}

static char *new_directory(void)
{
    char *path = str_format("%s/closedbook-XXXXXX", base_directory());

    if (mkdtemp(path) != NULL)
        return path;
    free(path);
    return NULL;
}

/* HOME, the temporary folder and what was laid out go with a cell; its workspace alone stays. */
static int forget_all_but_workspace(const char *directory)
{
    static const char *const names[] = {"home", "root"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        scoped(mem_freep) char *path = path_join(directory, names[i]);

        if (fs_remove_tree(AT_FDCWD, path, NULL) < 0)
            return -EBUSY;
    }
    return 0;
}

static int take_workspace(struct server *server, struct server_cell *cell,
                          const struct request_start *request)
{
    struct connection *connection = cell->connection;

    if (request->collect_cell_id != 0) {
        struct workspace *collected =
            server_find_workspace(server, connection, request->collect_cell_id);

        if (collected == NULL)
            return -ESTALE;
        collected->references++;
        collected->in_use = true;
        cell->collected = collected;
    }
    if (request->workspace_kind == CELL_WORKSPACE_KEEP) {
        struct workspace *kept = server_find_workspace(server, connection, request->keep_cell_id);

        if (kept == NULL || kept->role != cell->role)
            return -ESTALE;
        kept->references++;
        cell->workspace = kept;
        return forget_all_but_workspace(kept->directory);
    }
    if (request->workspace_kind == CELL_WORKSPACE_SHARED)
        return -EOPNOTSUPP; /* nothing here is read-only */
    cell->workspace = server_workspace_new(connection, cell->role);
    if (cell->role == CELL_WORKER)
        return 0;
    cell->workspace->directory = new_directory();
    return cell->workspace->directory == NULL ? -errno : 0;
}

/*
 * What makes a workspace what the agent left sets its modes. Nobody else's program can stand at
 * that path: it lies where the cell's programs may not write.
 */
static bool is_apply(const struct keeper *keeper, const struct wire_command *command)
{
    const char *const *argv = keeper->program.pointers;

    return keeper->program.role != CELL_WORKER && command->argc == 2 &&
           str_equal(argv[0], CELL_WORKER_PATH) && str_equal(argv[1], "apply");
}

static int fork_keeper(struct keeper *keeper, struct child *child,
                       const struct wire_command *command)
{
    keeper->channel = child->far_end;
    keeper->has_program = command->argc > 0;
    keeper->program.exec_fd = -1;
    keeper->program.role = child->cell->role;
    keeper->program.limits = child->cell->limits;
    keeper->program.ruleset_fd = child->cell->ruleset_fd;
    child->step = STEP_REQUEST;
    int r = program_prepare(&keeper->program, command, keeper->input->fds, keeper->input->blob);

    if (r == 0) {
        keeper->program.sets_modes = is_apply(keeper, command);
        child->step = STEP_NAMESPACES;
        r = sys_fork(0, &child->pidfd);
        if (r == 0)
            keeper_run(keeper);
    }
    free(keeper->program.pointers);
    if (r < 0)
        return r;
    child->pid = r;
    return 0;
}

static int start(struct server *server, struct child *child, const struct input *input)
{
    struct server_cell *cell = child->cell;
    const struct request_start *request = &input->request->start;

    child->step = STEP_ROOT;
    if (request->root_fd >= 0)
        return -EOPNOTSUPP;
    child->step = STEP_CGROUP;
    if (request->limits.memory_bytes > 0 || request->limits.cpu_millis > 0)
        return -EOPNOTSUPP;
    child->step = STEP_WORKSPACE;
    cell->uid = cell->init_uid = getuid();
    cell->gid = getgid();
    int r = take_workspace(server, cell, request);

    if (r < 0)
        return r;
    bool is_worker = cell->role == CELL_WORKER;
    struct workspace *source = is_worker ? cell->collected : cell->workspace;

    if (server->machine.tier == TIER_C && !is_worker) {
        child->step = STEP_LANDLOCK;
        r = walls_make(&server->machine, request, input->fds, cell->workspace->directory);
        if (r < 0)
            return r;
        cell->ruleset_fd = r;
    }
    cell->places = tempdir_places(request, input->fds, server->machine.tier == TIER_C);
    struct keeper keeper = {
        .program = {.machine = &server->machine},
        .input = input,
        .directory = source == NULL ? NULL : source->directory,
        .places = cell->places,
        .fills = !is_worker,
    };

    return fork_keeper(&keeper, child, &request->command);
}

static int exec(struct server *server, struct child *child, const struct input *input)
{
    struct keeper keeper = {
        .program = {.machine = &server->machine},
        .input = input,
        .directory = child->cell->workspace->directory,
        .places = child->cell->places,
    };

    return fork_keeper(&keeper, child, &input->request->exec.command);
}

static uint64_t inspect(struct server *server, const struct server_cell *cell)
{
    (void)server;
    (void)cell;
    return 0;
}

static void drop(struct server *server, struct workspace *workspace)
{
    (void)server;
    if (workspace->directory != NULL)
        (void)!fs_remove_tree(AT_FDCWD, workspace->directory, NULL); /* /tmp is swept by others */
}

static void ended(struct server *server, struct server_cell *cell)
{
    (void)server;
    (void)cell;
}

static const struct server_driver tempdir_driver = {.start = start,
                                                    .exec = exec,
                                                    .inspect = inspect,
                                                    .drop = drop,
                                                    .ended = ended,
                                                    .further_listen = true};

static const struct server_driver walled_driver = {.start = start,
                                                   .exec = exec,
                                                   .inspect = inspect,
                                                   .drop = drop,
                                                   .ended = ended,
                                                   .further_listen = true,
                                                   .is_patient = true};

static int become(uid_t uid, gid_t gid)
{
    if (geteuid() != 0 || uid == 0)
        return 0;
    if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
        syscall(SYS_setresuid, uid, uid, uid) < 0)
        return -errno;
    return 0;
}

/* The walls, when they are asked for; what this machine lacks for them is said to the client. */
static int find_walls(struct server *server, int control_fd)
{
    enum cell_step step = STEP_LANDLOCK;
    int r = walls_find(&server->machine);

    if (r == 0 && geteuid() == 0) {
        step = STEP_IDENTITY;
        r = -EPERM;
    }
    if (r < 0)
        (void)!server_say_ready(server, control_fd, -r, step); /* it sees our end anyway */
    return r;
}

_Noreturn void tempdir_serve(int control_fd, const struct monitor_options *options)
{
    bool is_walled = options->driver == CELL_WALLED;
    struct server server = {.driver = is_walled ? &walled_driver : &tempdir_driver,
                            .machine = {.tier = TIER_NONE}};
    const int keep[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, control_fd};
    const char *const workers[SERVER_WORKERS_MAX] = {options->worker_program,
                                                     options->unpack_program};

    /* First, as the path may go through a descriptor that is not kept. */
    for (size_t i = 0; i < ARRAY_SIZE(workers); i++)
        server.worker_count +=
            workers[i] != NULL && stat(workers[i], &server.workers[server.worker_count]) == 0;
    if (sys_close_except(keep, ARRAY_SIZE(keep)) < 0 || become(options->uid, options->gid) < 0)
        _exit(1);
    if (is_walled && find_walls(&server, control_fd) < 0)
        _exit(1);
    server.machine.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (server.machine.null_fd < 0)
        _exit(1);
    _exit(server_run(&server, control_fd) < 0 ? 1 : 0);
}
