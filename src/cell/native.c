#include "cell/native.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define PROC_NAME_BYTES 24
#define LOOK_MS 100 /* between two looks at what cells have of memory */
#define NS_IN_MS UINT64_C(1000000)

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* paths only */
    *fd = -1;
}

/* --- the ids and the workspace of a cell */

static int keep_workspace(struct server *server, struct server_cell *cell,
                          const struct request_start *request)
{
    struct workspace *workspace =
        server_find_workspace(server, cell->connection, request->keep_cell_id);

    if (workspace == NULL || workspace->role != cell->role || workspace->mount_fd < 0)
        return -ESTALE;
    workspace->references++;
    cell->workspace = workspace;
    return 0;
}

static int collect_workspace(struct server *server, struct server_cell *cell,
                             const struct request_start *request)
{
    if (request->collect_cell_id == 0)
        return 0;
    struct workspace *workspace =
        server_find_workspace(server, cell->connection, request->collect_cell_id);

    if (workspace == NULL || (workspace->layered ? workspace->upper_fd : workspace->mount_fd) < 0)
        return -ESTALE;
    workspace->references++;
    workspace->in_use = true;
    cell->collected = workspace;
    return 0;
}

static int take_ids(struct server *server, struct server_cell *cell, const struct input *input)
{
    struct native *native = server->state;
    struct workspace *workspace = cell->workspace;

    if (server->machine.tier != TIER_A) {
        cell->uid = cell->init_uid = getuid();
        cell->gid = getgid();
        return 0;
    }
    if (workspace->slot < 0) {
        int slot = lease_take(&native->pool);

        if (slot < 0)
            return slot;
        workspace->slot = slot;
    }
    cell->init_uid = lease_uid((int)workspace->slot, LEASE_INIT);
    cell->uid = lease_uid((int)workspace->slot, LEASE_PROGRAM);
    cell->gid = cell->uid;
    if (cell->role != CELL_WORKER) {
        cell->protections |= PROTECT_LEASED_UID;
        return 0;
    }
    /* What a worker writes belongs to who asked for it. */
    if (input->uid == (uid_t)-1)
        return -EPERM;
    cell->uid = input->uid;
    cell->gid = input->gid;
    return 0;
}

/* A worker, one short program of ours, has none. */
static int take_leaf(struct server *server, struct server_cell *cell)
{
    struct native *native = server->state;
    const struct cell_limits *limits = &cell->limits;
    const struct cgroup_limits wanted = {
        .memory_bytes =
            limits->memory_bytes > 0
                ? limits->memory_bytes +
                      (CELL_PLACES + (cell->identity_root ? 1u : 0u)) * limits->disk_bytes
                : 0,
        .pids = limits->pids + CGROUP_EXTRA_PIDS,
        .cpu_millis = limits->cpu_millis,
    };

    if (cell->role == CELL_WORKER)
        return 0;
    if (native->cgroups.kinds == 0)
        return limits->memory_bytes > 0 || limits->cpu_millis > 0 ? -EOPNOTSUPP : 0;
    int leaf = cgroup_take(&native->cgroups, &wanted);

    if (leaf < 0)
        return leaf;
    cell->leaf = leaf;
    cell->protections |=
        (limits->memory_bytes > 0 ? PROTECT_MEMORY : 0u) |
        (limits->cpu_millis > 0 ? PROTECT_CPU : 0u) |
        ((native->cgroups.kinds & 1u << CELL_CGROUP_PIDS) != 0 ? PROTECT_PIDS : 0u);
    return 0;
}

/* Version 2: born into its cgroup, where clone3() is to be had; else the child enters itself. */
static pid_t fork_into_leaf(const struct native *native, int leaf, uint64_t flags, int *ret_pidfd,
                            bool *ret_entered)
{
    int fd = cgroup_clone_fd(&native->cgroups, leaf);
    pid_t pid = fd < 0 ? -ENOSYS : sys_fork_into(flags, fd, ret_pidfd);

    *ret_entered = pid >= 0 || leaf < 0;
    return pid >= 0 ? pid : sys_fork(flags, ret_pidfd);
}

static int prepare_own(struct server *server, struct server_cell *cell, const struct input *input,
                       enum cell_step *step)
{
    const struct request_start *request = &input->request->start;

    *step = STEP_WORKSPACE;
    if (request->workspace_kind == CELL_WORKSPACE_KEEP) {
        int r = keep_workspace(server, cell, request);

        if (r < 0)
            return r;
    } else {
        cell->workspace = server_workspace_new(cell->connection, cell->role);
    }
    int r = collect_workspace(server, cell, request);

    if (r < 0)
        return r;
    *step = STEP_LEASE;
    return take_ids(server, cell, input);
}

static int prepare_cell(struct server *server, struct server_cell *cell, const struct input *input,
                        int *ret_shared, enum cell_step *step)
{
    bool shares = input->request->start.workspace_kind == CELL_WORKSPACE_SHARED;

    *step = STEP_WORKSPACE;
    int r = shares ? candidate_prepare(server, cell, input->request->start.keep_cell_id, ret_shared)
                   : prepare_own(server, cell, input, step);

    if (r < 0)
        return r;
    *step = STEP_CGROUP;
    return take_leaf(server, cell);
}

/* --- clones, which tier A makes here, where the client's descriptors are at home */

/*
 * A tree that the root of a user namespace may change: its files are that root's. Of one that is
 * not the host root's but an ordinary user's, as unpacked images are, all are.
 */
static int own_tree(struct native *native, const struct setup *setup, int slot, int tree)
{
    struct stat status;

    if (fstat(tree, &status) < 0)
        return -errno;
    int user_ns = status.st_uid == 0
                      ? setup->root_ns_fd
                      : lease_idmap(&native->pool, slot, status.st_uid, status.st_gid);

    return user_ns < 0 ? user_ns : sys_idmap_mount(tree, user_ns);
}

static int clone_tree(const struct server *server, int fd)
{
    if (server->machine.tier != TIER_A)
        return -1;
    return sys_open_tree(fd, "", OPEN_TREE_CLONE | (unsigned)AT_EMPTY_PATH);
}

static int clone_system(const struct server *server, const struct setup *setup, int slot, int fd)
{
    int tree = clone_tree(server, fd);

    if (tree < 0 || setup->root_ns_fd < 0)
        return tree;
    int r = own_tree(server->state, setup, slot, tree);

    if (r < 0)
        close_fd(&tree);
    return r < 0 ? r : tree;
}

static int clone_trees(const struct server *server, struct setup *setup, int slot,
                       enum cell_step *step)
{
    const struct request_start *request = setup->request;

    if (server->machine.tier != TIER_A)
        return 0;
    *step = STEP_MOUNT;
    for (uint32_t i = 0; i < request->mount_count; i++) {
        int fd = setup->fds[request->mounts[i].fd];
        struct stat status;

        if (fstat(fd, &status) == 0 && view_is_copied(setup, &status))
            continue;
        setup->trees[i] = (request->mounts[i].flags & WIRE_MOUNT_OWN) != 0
                              ? clone_system(server, setup, slot, fd)
                              : clone_tree(server, fd);
        if (setup->trees[i] < 0)
            return setup->trees[i];
    }
    *step = STEP_ETC;
    if (request->etc_fd >= 0)
        setup->etc_tree = clone_system(server, setup, slot, setup->fds[request->etc_fd]);
    if (request->etc_fd >= 0 && setup->etc_tree < 0)
        return setup->etc_tree;
    *step = STEP_ROOT;
    if (request->root_fd >= 0)
        setup->root_tree = clone_system(server, setup, slot, setup->fds[request->root_fd]);
    return request->root_fd >= 0 && setup->root_tree < 0 ? setup->root_tree : 0;
}

static int clone_layer(struct server *server, const struct server_cell *cell, int fd)
{
    struct native *native = server->state;
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    int user_ns =
        lease_idmap(&native->pool, (int)cell->workspace->slot, status.st_uid, status.st_gid);

    if (user_ns < 0)
        return user_ns;
    int tree = clone_tree(server, fd);

    if (tree < 0)
        return tree;
    int r = sys_idmap_mount(tree, user_ns);

    if (r < 0) {
        close_fd(&tree);
        return r;
    }
    return tree;
}

/* Where a layer cannot be made the agent's by mapping its owner, the layers are copied. */
static void clone_layers(struct server *server, const struct server_cell *cell, struct setup *setup)
{
    const struct request_start *request = setup->request;

    if (request->workspace_kind != CELL_WORKSPACE_OVERLAY)
        return;
    setup->copy_instead = !server->machine.overlay;
    for (uint32_t i = 0;
         i < request->layer_count && !setup->copy_instead && server->machine.tier == TIER_A; i++) {
        setup->layers[i] = clone_layer(server, cell, setup->fds[request->layer_fds[i]]);
        setup->copy_instead = setup->layers[i] < 0;
    }
}

static void close_clones(struct setup *setup)
{
    for (size_t i = 0; i < CELL_MOUNTS_MAX; i++)
        close_fd(&setup->trees[i]);
    for (size_t i = 0; i < CELL_LAYERS_MAX; i++)
        close_fd(&setup->layers[i]);
    close_fd(&setup->etc_tree);
    close_fd(&setup->root_tree);
}

/* --- START */

static void fill_setup(struct server *server, const struct server_cell *cell,
                       const struct input *input, int channel, struct setup *setup)
{
    *setup = (struct setup){
        .machine = &server->machine,
        .cgroups = &((struct native *)server->state)->cgroups,
        .request = &input->request->start,
        .fds = input->fds,
        .fd_count = input->fd_count,
        .etc_tree = -1,
        .root_tree = -1,
        .workspace_fd = -1,
        .collect_fd = -1,
        .listener_fd = -1,
        .root_ns_fd = -1,
        .channel = channel,
        .uid = cell->uid,
        .gid = cell->gid,
        .init_uid = cell->init_uid,
        .blob = input->blob,
        .strings = input->strings,
        .program = {.number = cell->id},
        .scratch_fd = -1,
        .root_fd = -1,
        .own_fd = -1,
    };
    for (size_t i = 0; i < CELL_MOUNTS_MAX; i++)
        setup->trees[i] = -1;
    for (size_t i = 0; i < CELL_LAYERS_MAX; i++)
        setup->layers[i] = -1;
    if (setup->request->workspace_kind == CELL_WORKSPACE_KEEP)
        setup->workspace_fd = cell->workspace->mount_fd;
    if (cell->collected != NULL) {
        setup->collect_has_marks = cell->collected->layered;
        setup->collect_fd =
            cell->collected->layered ? cell->collected->upper_fd : cell->collected->mount_fd;
    }
}

/* The ids of a cell whose programs are root. Its processes can take any: a cgroup counts them. */
static int take_root(struct server *server, struct server_cell *cell, enum cell_step *step)
{
    struct native *native = server->state;

    *step = STEP_USER_NAMESPACE;
    if (server->machine.tier != TIER_A)
        return -EOPNOTSUPP;
    int fd = lease_root_ns(&native->pool, (int)cell->workspace->slot);

    *step = fd < 0 ? *step : STEP_CGROUP;
    return fd < 0 || (cell->protections & PROTECT_PIDS) != 0 ? fd : -EOPNOTSUPP;
}

static int start(struct server *server, struct child *child, const struct input *input)
{
    static struct setup setup;
    struct server_cell *cell = child->cell;
    bool is_root = server->machine.tier == TIER_A;
    int shared_fd = -1;

    cell->identity_root = input->request->start.identity_root != 0;
    int r = prepare_cell(server, cell, input, &shared_fd, &child->step);

    if (r < 0)
        return r;
    fill_setup(server, cell, input, child->far_end, &setup);
    if (shared_fd >= 0)
        setup.workspace_fd = shared_fd;
    if (cell->identity_root)
        r = setup.root_ns_fd = take_root(server, cell, &child->step);
    if (r >= 0)
        r = clone_trees(server, &setup, cell->identity_root ? (int)cell->workspace->slot : -1,
                        &child->step);
    if (r == 0) {
        clone_layers(server, cell, &setup);
        child->step = STEP_NAMESPACES;
        bool entered;

        /* The cgroup namespace comes last, when the cell is where it shall see the root. */
        r = fork_into_leaf(server->state, cell->leaf,
                           (CELL_NAMESPACES & ~(uint64_t)CLONE_NEWCGROUP) |
                               (is_root ? 0 : CLONE_NEWUSER),
                           &child->pidfd, &entered);
        if (r == 0) {
            setup.leaf = entered ? -1 : cell->leaf;
            setup_run(&setup);
        }
    }
    close_clones(&setup);
    close_fd(&shared_fd);
    if (r < 0)
        return r;
    child->pid = r;
    if (!is_root)
        cell->uid = CELL_INNER_UID;
    return 0;
}

/* --- EXEC */

static int exec(struct server *server, struct child *child, const struct input *input)
{
    static struct join join;
    const struct server_cell *cell = child->cell;
    const struct request_exec *request = &input->request->exec;
    bool is_root = server->machine.tier == TIER_A;

    join = (struct join){
        .program =
            {
                .machine = &server->machine,
                .exec_fd = -1,
                .root_ns_fd = cell->identity_root
                                  ? lease_root_ns(&((struct native *)server->state)->pool,
                                                  (int)cell->workspace->slot)
                                  : -1,
                .role = cell->role,
                .number = cell->id,
                .ptrace_denied = cell->ptrace_denied || server->machine.tier == TIER_B_MINUS,
                .uid = cell->uid,
                .gid = is_root ? cell->gid : CELL_INNER_UID,
                .limits = cell->limits,
            },
        .cgroups = &((struct native *)server->state)->cgroups,
        .channel = child->far_end,
        .init_pidfd = -1,
        .init_uid = is_root ? cell->init_uid : CELL_INNER_UID,
        .init_gid = is_root ? cell->init_uid : CELL_INNER_UID,
        .fds = input->fds,
        .fd_count = input->fd_count,
    };
    memcpy(join.namespace_fds, cell->namespace_fds, sizeof(join.namespace_fds));
    for (struct child *other = cell->children; other != NULL; other = other->next) {
        if (other->is_init)
            join.init_pidfd = other->pidfd;
    }
    child->step = STEP_REQUEST;
    int r = program_prepare(&join.program, &request->command, input->fds, input->blob);

    if (r == 0) {
        child->step = STEP_JOIN;
        bool entered;

        r = fork_into_leaf(server->state, cell->leaf, 0, &child->pidfd, &entered);
        if (r == 0) {
            join.leaf = entered ? -1 : cell->leaf;
            join_run(&join);
        }
    }
    free(join.program.pointers);
    if (r < 0)
        return r;
    child->pid = r;
    return 0;
}

static uint64_t inspect(struct server *server, const struct server_cell *cell)
{
    const struct native *native = server->state;
    char name[PROC_NAME_BYTES];
    struct stat status;

    sys_format(name, sizeof(name), "%d/mem", cell->init_pid);
    /* Of a process that can be traced, the files in /proc/PID are its own user's; else root's. */
    if (fstatat(native->proc_fd, name, &status, 0) < 0 || status.st_uid == cell->init_uid)
        return 0;
    return PROTECT_INIT_NOT_DUMPABLE;
}

static void drop(struct server *server, struct workspace *workspace)
{
    struct native *native = server->state;

    if (workspace->slot >= 0)
        lease_give(&native->pool, (int)workspace->slot);
    workspace->slot = -1;
}

/* What is in it, or over its layers, now that nothing writes there any more. */
static bool is_empty(const struct workspace *workspace)
{
    if (workspace == NULL)
        return false;
    int fd = workspace->layered ? workspace->upper_fd : workspace->mount_fd;

    return fd >= 0 && sys_dir_is_empty(fd);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Of the limit a part is for the cell's places: programs that take it for themselves are over
 * theirs. Then the limit is what is in use, until they are not.
 */
static void look_at_memory(const struct cgroups *cgroups, struct server_cell *cell)
{
    uint64_t own, shared, most = cell->limits.memory_bytes;

    if (!cgroup_look(cgroups, cell->leaf, &own, &shared))
        return;
    cell->usage.looks++;
    cell->usage.private_peak_bytes = larger(cell->usage.private_peak_bytes, own);
    cell->usage.shared_peak_bytes = larger(cell->usage.shared_peak_bytes, shared);
    bool press = most > 0 && own > most;

    if (press || cell->is_pressed)
        cgroup_press(cgroups, cell->leaf, press);
    cell->is_pressed = press;
}

static int look(struct server *server)
{
    struct native *native = server->state;
    uint64_t now = sys_now_ns();
    bool is_due = now >= native->look_ns;
    int wait = -1;

    for (struct server_cell *cell = server->cells; cell != NULL; cell = cell->next) {
        if (cell->leaf < 0)
            continue;
        if (is_due)
            look_at_memory(&native->cgroups, cell);
        wait = LOOK_MS;
    }
    if (is_due)
        native->look_ns = now + LOOK_MS * NS_IN_MS;
    else if (wait >= 0)
        wait = (int)((native->look_ns - now) / NS_IN_MS) + 1;
    return wait;
}

static void ended(struct server *server, struct server_cell *cell)
{
    struct native *native = server->state;
    struct cgroup_usage usage;

    cell->workspace_empty = is_empty(cell->workspace);
    if (cell->leaf < 0)
        return;
    look_at_memory(&native->cgroups, cell);
    if (cell->is_pressed)
        cgroup_press(&native->cgroups, cell->leaf, false);
    cgroup_measure(&native->cgroups, cell->leaf, &usage);
    cell->usage.has_memory = usage.has_memory;
    cell->usage.memory_peak_bytes = usage.memory_peak_bytes;
    cell->usage.oom_kills = usage.oom_kills;
    if (usage.has_cpu)
        cell->usage.cpu_us = usage.cpu_us;
    cgroup_give(&native->cgroups, cell->leaf);
    cell->leaf = -1;
}

static int limit(struct server *server, const int *fds, uint64_t *ret_limits)
{
    struct native *native = server->state;
    int r = cgroup_open(&native->cgroups, fds);

    if (r < 0)
        cgroup_close(&native->cgroups);
    *ret_limits = native->cgroups.kinds;
    return r;
}

const struct server_driver native_driver = {.start = start,
                                            .exec = exec,
                                            .inspect = inspect,
                                            .drop = drop,
                                            .ended = ended,
                                            .limit = limit,
                                            .look = look};
