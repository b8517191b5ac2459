#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "cell/setup.h"

#define MEMLOCK_BYTES ((uint64_t)8 << 20)
#define CAP_BIT(cap) (UINT64_C(1) << (cap))
/* What engines give the root of a container, but for raw sockets, device nodes and chroot(). */
#define ROOT_CAPS                                                                                  \
    (CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_DAC_OVERRIDE) | CAP_BIT(CAP_FOWNER) | CAP_BIT(CAP_FSETID) |  \
     CAP_BIT(CAP_KILL) | CAP_BIT(CAP_SETGID) | CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETPCAP) |        \
     CAP_BIT(CAP_SETFCAP) | CAP_BIT(CAP_NET_BIND_SERVICE) | CAP_BIT(CAP_AUDIT_WRITE))

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

/*
 * As many processors as the limit, rounded up: what runtimes size their pools by. Cells start at
 * different ones. The limit itself is the cgroup's; this one can be undone from inside.
 */
static int set_processors(const struct program *program)
{
    size_t wanted = (size_t)((program->limits.cpu_millis + 999) / 1000), index = 0;
    cpu_set_t allowed, chosen;

    if (wanted == 0 || sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return 0; /* no limit, or more processors than such a set can name */
    size_t count = (size_t)CPU_COUNT(&allowed);
    size_t first = program->number * wanted % count;

    if (wanted >= count)
        return 0;
    CPU_ZERO(&chosen);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &allowed))
            continue;
        if ((index + count - first) % count < wanted)
            CPU_SET(i, &chosen);
        index++;
    }
    return sched_setaffinity(0, sizeof(chosen), &chosen) < 0 ? -errno : 0;
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
    if (r == 0)
        r = set_processors(program);
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
    if (program->root_ns_fd >= 0) {
        identity = (struct identity){.keep_caps = ROOT_CAPS, .is_root = true};
        program->protections |= PROTECT_USER_NS;
    }
    int r = identity_take(&identity);

    if (r < 0)
        return r;
    if (identity.keep_caps == 0)
        program->protections |= PROTECT_NO_CAPS;
    /* After the last change of identity, which clears it. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -errno : 0;
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
    if (r < 0)
        return r;
    program->protections |= PROTECT_SECCOMP;
    if (filter == FILTER_CELL_NO_PTRACE)
        program->protections |= PROTECT_NO_PTRACE;
    return 0;
}

int confined_child(void *argument)
{
    struct program *program = argument;

    (void)umask(022);
    if (setsid() < 0)
        return program_fail(program, STEP_TTY, -errno);
    /* With all capabilities there and none here, before the descriptors that lead there close. */
    if (program->root_ns_fd >= 0 && setns(program->root_ns_fd, CLONE_NEWUSER) < 0)
        return program_fail(program, STEP_USER_NAMESPACE, -errno);
    int r = program_set_fds(program);

    if (r < 0)
        return program_fail(program, STEP_DESCRIPTORS, r);
    if (program->command->controlling_tty != 0 && ioctl(0, TIOCSCTTY, 0) < 0)
        return program_fail(program, STEP_TTY, -errno);
    r = set_limits(program);
    if (r < 0)
        return program_fail(program, STEP_LIMITS, r);
    r = set_identity(program);
    if (r < 0)
        return program_fail(program, STEP_IDENTITY, r);
    if (chdir(working_directory(program)) < 0)
        return program_fail(program, STEP_CWD, -errno);
    r = confine(program);
    if (r < 0)
        return program_fail(program, program->step, r);
    program->step = STEP_NONE; /* stays so if the program runs */
    return program_fail(program, STEP_EXEC, program_execute(program));
}
