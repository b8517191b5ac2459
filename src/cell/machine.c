#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "cell/native.h"

/* What a child in namespaces of its own found out; shared with its parent. */
struct finding {
    int error;
    enum cell_step step;
    bool overlay, tmpfs_xattr;
};

/* Links of a merged /usr, as the host has them. */
static void read_links(struct machine *machine)
{
    for (size_t i = 0; i < ROOT_LINKS; i++) {
        char path[ROOT_LINK_BYTES];

        sys_format(path, sizeof(path), "/%s", root_link_names[i]);
        ssize_t n = readlink(path, machine->links[i], ROOT_LINK_BYTES - 1);
        bool is_ours = n > 0 && n < ROOT_LINK_BYTES - 1 &&
                       strncmp(machine->links[i], "usr/", strlen("usr/")) == 0;

        machine->links[i][is_ours ? n : 0] = '\0';
    }
}

static bool has_overlay(void)
{
    int fd = fsopen("overlay", FSOPEN_CLOEXEC);

    if (fd < 0)
        return false;
    (void)close(fd); /* nothing was made */
    return true;
}

static bool has_tmpfs_xattr(void)
{
    int fd = sys_new_mount("tmpfs", NULL, 0, MOUNT_ATTR_NODEV);

    if (fd < 0)
        return false;
    int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* fd is a path only */
    bool has = dir >= 0 && fsetxattr(dir, "user.closedbook", "y", 1, 0) == 0;

    if (dir >= 0)
        (void)close(dir); /* goes away with it */
    (void)close(fd);      /* likewise */
    return has;
}

_Noreturn static void look_from_inside(struct finding *finding)
{
    finding->step = STEP_PROC;
    int proc = sys_new_mount("proc", NULL, 0, MOUNT_ATTR_NOSUID);

    finding->error = proc < 0 ? -proc : 0;
    finding->overlay = has_overlay();
    finding->tmpfs_xattr = has_tmpfs_xattr();
    _exit(0);
}

/* A cell's namespaces, tried for real: distributions and containers forbid them in many ways. */
static int try_namespaces(struct machine *machine, uint64_t further)
{
    int pidfd = -1, status;
    struct finding *finding =
        mmap(NULL, sizeof(*finding), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    machine->lacking = STEP_NAMESPACES;
    if (finding == MAP_FAILED)
        return -errno;
    *finding = (struct finding){.error = ECHILD, .step = STEP_NAMESPACES};
    pid_t pid = sys_fork(CELL_NAMESPACES | further, &pidfd);

    if (pid < 0)
        return pid;
    if (pid == 0)
        look_from_inside(finding);
    int r = sys_reap(pidfd, &status);

    (void)close(pidfd); /* reaped */
    machine->overlay = finding->overlay;
    machine->tmpfs_xattr = finding->tmpfs_xattr;
    machine->lacking = finding->step;
    if (r == 0)
        r = -finding->error;
    (void)munmap(finding, sizeof(*finding)); /* cannot fail for what was mapped */
    return r;
}

/* A root without the power to mount would become user 0 of a namespace, which is the host's. */
static int find_root_tier(struct machine *machine)
{
    machine->tier = TIER_A;
    machine->idmap = true; /* a layer whose file system refuses it is copied */
    return try_namespaces(machine, 0);
}

static int find_user_tier(struct machine *machine)
{
    int r = try_namespaces(machine, CLONE_NEWUSER);

    machine->tier = TIER_B;
    if (r == 0) {
        machine->lacking = STEP_NONE;
        return 0;
    }
    if (machine->lacking != STEP_PROC)
        return r;
    machine->tier = TIER_B_MINUS;
    machine->lacking_error = -r;
    return 0;
}

int machine_find(struct machine *machine, enum cell_step *step)
{
    *step = STEP_DEV;
    machine->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (machine->null_fd < 0)
        return -errno;
    machine->landlock_abi = sys_landlock_abi();
    read_links(machine);
    machine->subuid = false; /* one id is enough for now */
    *step = STEP_LANDLOCK;
    if (machine->landlock_abi < 1)
        return -ENOSYS;
    int r = geteuid() == 0 ? find_root_tier(machine) : find_user_tier(machine);

    *step = machine->lacking;
    return r;
}
