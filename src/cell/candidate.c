#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "cell/native.h"

#define STACK_BYTES 65536
#define QUEUE_LENGTH 128
#define SOCKET_IN_SCRATCH "candidates"
#define POINT_DIR "r/run/closedbook"
#define POINT "r" CELL_CANDIDATE_SOCKET

/* --- in the child that becomes a grading cell's init */

static int make_point(const struct setup *setup)
{
    int r = view_make_dirs(setup->scratch_fd, POINT_DIR, 0755, 0755);

    if (r < 0)
        return r;
    int fd = openat(setup->scratch_fd, POINT, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);

    if (fd < 0)
        return -errno;
    (void)close(fd); /* nothing was written */
    return 0;
}

int candidate_listen(struct setup *setup)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    setup->step = STEP_SOCKET;
    int r = make_point(setup);

    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    setup->listener_fd = fd; /* closed with all others when this child fails */
    sys_format(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" SOCKET_IN_SCRATCH,
               setup->scratch_fd);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        fchmodat(setup->scratch_fd, SOCKET_IN_SCRATCH, 0666, 0) < 0 || listen(fd, QUEUE_LENGTH) < 0)
        return -errno;
    return 0;
}

/* Mounted, as through an overlay the kernel would not find who listens. */
int candidate_attach(struct setup *setup)
{
    setup->step = STEP_SOCKET;
    int tree = sys_open_tree(setup->scratch_fd, SOCKET_IN_SCRATCH, OPEN_TREE_CLONE);

    if (tree < 0)
        return tree;
    int r = sys_set_mount(
        tree, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0,
        false);

    return r < 0 ? r : view_attach(setup, tree, CELL_CANDIDATE_SOCKET, false);
}

/* --- in the monitor */

/* Where the workspace is mounted, and the clone made there. */
struct visit {
    int init_pidfd;        /* tier A */
    const int *namespaces; /* tier B */
    int result;            /* a descriptor or -errno */
};

static int enter(const struct visit *visit)
{
    if (visit->init_pidfd >= 0)
        return setns(visit->init_pidfd, CLONE_NEWNS);
    /* The user namespace first: it is what gives the right to the other. */
    return setns(visit->namespaces[0], CLONE_NEWUSER) < 0 ||
                   setns(visit->namespaces[1], CLONE_NEWNS) < 0
               ? -1
               : 0;
}

/*
 * Before Linux 6.15 only a mount of one's own namespace can be cloned, so a child goes there. It
 * shares the monitor's memory and descriptors, executes nothing, and is in no namespace that the
 * cell's programs could see it from.
 */
static int visit_cell(void *argument)
{
    struct visit *visit = argument;

    visit->result = enter(visit) < 0 ? -errno
                                     : sys_open_tree(AT_FDCWD, CELL_WORKSPACE_PATH,
                                                     OPEN_TREE_CLONE | AT_SYMLINK_NOFOLLOW);
    /* A change of namespace may have made the memory, which is the monitor's, traceable. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        visit->result = visit->result < 0 ? visit->result : -EPERM;
    return 0;
}

static int clone_workspace(const struct server *server, const struct server_cell *grading)
{
    static char stack[STACK_BYTES] __attribute__((aligned(16)));
    struct visit visit = {.init_pidfd = -1, .namespaces = grading->namespace_fds, .result = -ESRCH};
    int status;

    for (const struct child *child = grading->children; child != NULL; child = child->next) {
        if (child->is_init && server->machine.tier == TIER_A)
            visit.init_pidfd = child->pidfd;
    }
    /* As vfork(): the monitor waits, for some 100 us. */
    pid_t pid = clone(visit_cell, stack + sizeof(stack),
                      CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &visit);

    if (pid < 0)
        return -errno;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return visit.result;
}

/* False where the file system, such as an overlay, has no mapped mounts. */
static bool map_workspace(struct native *native, int slot, int tree)
{
    int user_ns = lease_candidate_idmap(&native->pool, slot);

    return user_ns >= 0 && sys_idmap_mount(tree, user_ns) == 0;
}

int candidate_prepare(struct server *server, struct server_cell *cell, uint32_t looked_at_id,
                      int *ret_shared)
{
    const struct server_cell *grading =
        cell->grading != NULL ? cell->grading
                              : server_find_cell(server, cell->connection, looked_at_id);
    struct native *native = server->state;

    if (grading == NULL || grading->workspace == NULL || grading->state != SERVER_CELL_LIVE)
        return -ESRCH;
    int tree = clone_workspace(server, grading);

    if (tree < 0)
        return tree;
    *ret_shared = tree;
    if (cell->grading == NULL) {
        /* Its ids stay leased for as long as this cell is there. */
        cell->looked_at = grading->workspace;
        cell->looked_at->references++;
    }
    if (server->machine.tier != TIER_A) {
        cell->uid = cell->init_uid = getuid();
        cell->gid = getgid();
        return 0;
    }
    int slot = (int)grading->workspace->slot;

    cell->protections |= PROTECT_LEASED_UID;
    cell->init_uid = grading->init_uid;
    cell->uid = lease_uid(slot, LEASE_CANDIDATE);
    if (!map_workspace(native, slot, tree)) {
        /* Its processes count as the grader's, whose share they must not use up. */
        cell->uid = grading->uid;
    }
    cell->gid = cell->uid;
    return 0;
}
