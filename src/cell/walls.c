#include "cell/walls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fs.h"

#define SCOPE_SIGNAL UINT64_C(2)
#define MEMLOCK_BYTES ((uint64_t)8 << 20)
#define WORDS_OF_CAPS 2

/* What programs cannot do without beside /usr, which a request mounts, and what may be done to it.
 */
static const struct {
    const char *path;
    uint64_t rights;
} host_rules[] = {
    {"/bin", RIGHTS_READ},
    {"/lib", RIGHTS_READ},
    {"/lib64", RIGHTS_READ},
    {"/etc/alternatives", RIGHTS_READ},
    {"/etc/ca-certificates", RIGHTS_READ},
    {"/etc/fonts", RIGHTS_READ},
    {"/etc/group", RIGHTS_READ},
    {"/etc/hosts", RIGHTS_READ},
    {"/etc/ld.so.cache", RIGHTS_READ},
    {"/etc/localtime", RIGHTS_READ},
    {"/etc/mime.types", RIGHTS_READ},
    {"/etc/nsswitch.conf", RIGHTS_READ},
    {"/etc/passwd", RIGHTS_READ},
    {"/etc/perl", RIGHTS_READ},
    {"/etc/ssl/certs", RIGHTS_READ},
    {"/etc/ssl/openssl.cnf", RIGHTS_READ},
    {"/proc/cpuinfo", RIGHTS_READ},
    {"/proc/meminfo", RIGHTS_READ},
    {"/dev/null", RIGHTS_USE},
    {"/dev/zero", RIGHTS_USE},
    {"/dev/full", RIGHTS_USE},
    {"/dev/random", RIGHTS_USE},
    {"/dev/urandom", RIGHTS_USE},
    {"/dev/tty", RIGHTS_USE},
};

/* What the cell may write to, below its directory. */
static const char *const own_places[] = {"workspace", "home", "root/tmp"};

int walls_find(struct machine *machine)
{
    machine->tier = TIER_C;
    machine->landlock_abi = sys_landlock_abi();
    return machine->landlock_abi < WALLS_LANDLOCK_MIN ? -ENOSYS : 0;
}

static int allow(int ruleset_fd, int abi, int fd, uint64_t rights)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if (S_ISLNK(status.st_mode))
        return 0; /* what it leads to has rules of its own, or none */
    if (!S_ISDIR(status.st_mode))
        rights &= LANDLOCK_RIGHTS_FILE;
    return sys_landlock_allow(ruleset_fd, abi, fd, rights);
}

static int allow_path(int ruleset_fd, int abi, const char *path, uint64_t rights)
{
    scoped(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    return allow(ruleset_fd, abi, fd, rights);
}

static bool is_masked(const struct wire_mount *mount, const char *name)
{
    for (size_t i = 0; i < CELL_MASKS_MAX; i++) {
        if (strcmp(mount->masks[i], name) == 0)
            return true;
    }
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int allow_unmasked(int ruleset_fd, int abi, const struct wire_mount *mount, DIR *dir)
{
    const struct dirent *entry;

    while ((entry = readdir(dir)) != NULL) {
        if (is_masked(mount, entry->d_name))
            continue;
        scoped(fd_closep) int fd =
            openat(dirfd(dir), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        int r = fd < 0 ? -errno : allow(ruleset_fd, abi, fd, RIGHTS_READ);

        if (r < 0)
            return r;
    }
    return 0;
}

/* Rules hold for all that lies below: where names are hidden, it is their neighbours that are
 * allowed. */
static int allow_mount(int ruleset_fd, int abi, const struct wire_mount *mount, int fd)
{
    if (mount->masks[0][0] == '\0')
        return allow(ruleset_fd, abi, fd, RIGHTS_READ);
    scoped(fd_closep) int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (list < 0)
        return -errno;
    DIR *dir = fdopendir(list);

    if (dir == NULL)
        return -errno;
    list = -1;
    int r = allow_unmasked(ruleset_fd, abi, mount, dir);

    (void)closedir(dir); /* read only */
    return r;
}

static int allow_own(int ruleset_fd, int abi, const char *directory)
{
    scoped(fd_closep) int dir_fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (dir_fd < 0)
        return -errno;
    int r = fs_mkdirs(dir_fd, "root", 0700, NULL) < 0 ? -EIO : 0;
    scoped(fd_closep) int root = r < 0 ? -1 : openat(dir_fd, "root", O_PATH | O_CLOEXEC);

    if (root < 0)
        return r < 0 ? r : -errno;
    r = allow(ruleset_fd, abi, root, RIGHTS_READ);
    for (size_t i = 0; i < ARRAY_SIZE(own_places) && r == 0; i++) {
        if (fs_mkdirs(dir_fd, own_places[i], 0700, NULL) < 0)
            return -EIO;
        scoped(fd_closep) int place =
            openat(dir_fd, own_places[i], O_PATH | O_NOFOLLOW | O_CLOEXEC);

        r = place < 0 ? -errno : allow(ruleset_fd, abi, place, RIGHTS_WRITE);
    }
    return r;
}

static int allow_all(int ruleset_fd, int abi, const struct request_start *request, const int *fds)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(host_rules) && r == 0; i++)
        r = allow_path(ruleset_fd, abi, host_rules[i].path, host_rules[i].rights);
    for (uint32_t i = 0; i < request->mount_count && r == 0; i++)
        r = allow_mount(ruleset_fd, abi, &request->mounts[i], fds[request->mounts[i].fd]);
    return r;
}

int walls_make(const struct machine *machine, const struct request_start *request, const int *fds,
               const char *directory)
{
    int abi = machine->landlock_abi;
    scoped(fd_closep) int ruleset_fd = sys_landlock_ruleset(abi);

    if (ruleset_fd < 0)
        return ruleset_fd;
    int r = allow_all(ruleset_fd, abi, request, fds);

    if (r == 0)
        r = allow_own(ruleset_fd, abi, directory);
    return r < 0 ? r : take_fd(&ruleset_fd);
}

int walls_enclose(const struct machine *machine)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    int ruleset_fd = sys_landlock_scope(machine->landlock_abi, SCOPE_SIGNAL);

    if (ruleset_fd < 0)
        return ruleset_fd;
    int r = sys_landlock_enforce(ruleset_fd);

    (void)close(ruleset_fd); /* the domain does not need it */
    return r;
}

static int set_limit(__rlimit_resource_t resource, uint64_t value)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) < 0)
        return -errno;
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
    if (r < 0 || is_worker)
        return r;
    /* No file system of its own has a size: one file cannot be larger, at least. */
    r = set_limit(RLIMIT_FSIZE, limits->file_bytes > 0 ? limits->file_bytes : limits->disk_bytes);
    if (r == 0)
        r = set_limit(RLIMIT_NPROC, limits->pids);
    if (r == 0)
        program->protections |= PROTECT_NPROC;
    return r;
}

/* An ordinary user has none, and with "no new privileges" gets none. */
static int look_for_caps(struct program *program)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[WORDS_OF_CAPS] = {0};

    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
        syscall(SYS_capset, &header, data) < 0 || syscall(SYS_capget, &header, data) < 0)
        return -errno;
    for (size_t i = 0; i < WORDS_OF_CAPS; i++) {
        if ((data[i].permitted | data[i].effective | data[i].inheritable) != 0)
            return -EPERM;
    }
    program->protections |= PROTECT_NO_CAPS;
    return 0;
}

int walls_enter(struct program *program)
{
    if (geteuid() == 0)
        return -EPERM;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return -errno;
    program->protections |= PROTECT_NO_NEW_PRIVS;
    if (program->role == CELL_WORKER)
        return 0; /* its rules are made of the descriptors that it ends up with */
    int r = sys_landlock_enforce(program->ruleset_fd);

    if (r == 0)
        program->protections |= PROTECT_LANDLOCK | PROTECT_SCOPED;
    return r;
}

int walls_confine(struct program *program)
{
    bool is_worker = program->role == CELL_WORKER;

    program->step = STEP_LIMITS;
    int r = set_limits(program);

    if (r < 0)
        return r;
    program->step = STEP_IDENTITY;
    r = look_for_caps(program);
    if (r < 0)
        return r;
    program->step = STEP_LANDLOCK;
    if (is_worker) {
        r = landlock_confine(program);
        if (r < 0)
            return r;
        program->protections |= PROTECT_LANDLOCK | PROTECT_SCOPED;
    }
    program->step = STEP_SECCOMP;
    r = filter_load(is_worker             ? FILTER_WORKER
                    : program->sets_modes ? FILTER_WALLED_MODES
                                          : FILTER_WALLED);
    if (r < 0)
        return r;
    program->protections |= PROTECT_SECCOMP;
    if (!is_worker)
        program->protections |= PROTECT_NO_PTRACE | PROTECT_NO_SOCKETS;
    return 0;
}
