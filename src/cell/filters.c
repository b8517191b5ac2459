#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "cell/seccomp_programs.h"
#include "cell/setup.h"

int filter_load(enum filter filter)
{
    struct {
        unsigned short count;
        const struct sock_filter *first;
    } program = {seccomp_programs[filter].count, seccomp_programs[filter].first};

    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int allow_path(int ruleset_fd, int abi, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int r = sys_landlock_allow(ruleset_fd, abi, fd, rights);

    (void)close(fd); /* a path only */
    return r;
}

static int allow_cell(int ruleset_fd, int abi, bool is_root)
{
    const struct {
        const char *path;
        uint64_t rights;
    } rules[] = {
        {"/", is_root ? RIGHTS_WRITE : RIGHTS_READ},
        {CELL_WORKSPACE_PATH, RIGHTS_WRITE},
        {CELL_HOME_PATH, RIGHTS_WRITE},
        {"/tmp", RIGHTS_WRITE},
        {"/dev/shm", RIGHTS_WRITE},
        {"/dev", RIGHTS_USE},
        {"/proc", RIGHTS_USE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        int r = allow_path(ruleset_fd, abi, rules[i].path, rules[i].rights);

        if (r < 0)
            return r;
    }
    return 0;
}

/* A worker has its descriptors and nothing else; of these, mounts say which can be written. */
static int allow_worker(int ruleset_fd, int abi, const struct program *program)
{
    int r = 0;

    for (size_t i = 0; i < program->worker_fd_count && r >= 0; i++) {
        uint64_t rights = RIGHTS_WRITE & ~LANDLOCK_RIGHT_EXECUTE;
        struct stat status;

        if (fstat(program->worker_fds[i], &status) < 0)
            return -errno;
        if (!S_ISDIR(status.st_mode))
            rights &= LANDLOCK_RIGHTS_FILE;
        r = sys_landlock_allow(ruleset_fd, abi, program->worker_fds[i], rights);
    }
    if (r >= 0)
        r = sys_landlock_allow(ruleset_fd, abi, program->exec_fd,
                               LANDLOCK_RIGHT_READ_FILE | LANDLOCK_RIGHT_EXECUTE);
    /* The loader and libraries of a worker that is not static, as sanitizers make it. */
    if (r >= 0 && access("/usr", F_OK) == 0)
        r = allow_path(ruleset_fd, abi, "/usr", RIGHTS_READ);
    return r;
}

int landlock_confine(const struct program *program)
{
    int abi = program->machine->landlock_abi;
    int ruleset_fd = sys_landlock_ruleset(abi);

    if (ruleset_fd < 0)
        return ruleset_fd;
    int r = program->role == CELL_WORKER ? allow_worker(ruleset_fd, abi, program)
                                         : allow_cell(ruleset_fd, abi, program->root_ns_fd >= 0);

    if (r >= 0)
        r = sys_landlock_enforce(ruleset_fd);
    (void)close(ruleset_fd); /* the domain does not need it */
    return r;
}
