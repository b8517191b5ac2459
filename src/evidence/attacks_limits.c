/*
 * Limits that a cgroup sets, and what an agent could do about them. What is limited is told; what
 * is not is posture. Sums over two processes decide: a limit for each of them would not do.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "evidence/attack.h"

#define MIB ((uint64_t)1 << 20)
#define MEMORY_TRIED_MAX                                                                           \
    (512 * MIB) /* larger limits are not tried: the machine is others' as well */
#define BEYOND (64 * MIB)
#define PLACES 4
#define PAGE_BYTES 4096
#define HOGS 2
#define LOOK_MS 20
#define HOLD_MS 300
#define STEP_MS 10
#define MAGIC_1 0x27e0eb
#define MAGIC_2 0x63677270

/* --- memory */

struct hog {
    uint64_t bytes;
    int flags;
    int ready_fd;
};

/* It is this one that the kernel shall end when memory runs out, not the battery. */
static void be_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4); /* else it is one of these by its size */
        (void)close(fd);
    }
}

/* Takes the memory, says so, and takes some pages more: a limit may be noticed at the next one. */
_Noreturn static void be_hog(const struct hog *hog)
{
    uint64_t more = (uint64_t)(HOLD_MS / STEP_MS) * PAGE_BYTES;

    be_first();
    char *bytes =
        mmap(NULL, hog->bytes + more, PROT_READ | PROT_WRITE, hog->flags | MAP_ANONYMOUS, -1, 0);

    if (bytes == MAP_FAILED)
        _exit(2);
    for (uint64_t i = 0; i < hog->bytes; i += PAGE_BYTES)
        bytes[i] = 1;
    for (uint64_t i = 0; i < more; i += PAGE_BYTES) {
        bytes[hog->bytes + i] = 1;
        (void)usleep(STEP_MS * 1000);
    }
    (void)!write(hog->ready_fd, "x", 1); /* its end says the same */
    (void)pause();
    _exit(0);
}

/* The kernel ended one of them. */
static bool has_ended(void)
{
    siginfo_t info = {0};

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

/* True when all have all of their memory at a time. */
static bool are_fed(const struct attack_context *context, int fd)
{
    size_t fed = 0;

    while (fed < HOGS && !attack_late(context) && !has_ended()) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        char byte;

        if (poll(&watched, 1, LOOK_MS) > 0 && read(fd, &byte, 1) == 1)
            fed++;
    }
    return fed == HOGS && !has_ended();
}

static void take_memory(struct attack_context *context, uint64_t bytes, int flags, const char *what)
{
    pid_t pids[HOGS];
    size_t started = 0;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    struct hog hog = {.bytes = bytes / HOGS, .flags = flags, .ready_fd = ends[1]};

    while (started < HOGS && (pids[started] = fork()) >= 0) {
        if (pids[started] == 0)
            be_hog(&hog);
        started++;
    }
    (void)close(ends[1]); /* theirs */
    attack_looked(context, started);
    bool worked = started == HOGS && are_fed(context, ends[0]);

    for (size_t i = 0; i < started; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    (void)close(ends[0]); /* read only */
    if (worked)
        attack_found(context, "%ju MiB of %s memory at a time", (uintmax_t)(bytes / MIB), what);
}

/* A limit of the task's that is small enough to be tried. */
static bool is_tried(struct attack_context *context, const char *kind, uint64_t most, uint64_t *ret)
{
    *ret = targets_number(context->targets, kind, 0);
    attack_looked(context, 1);
    if (*ret == 0)
        attack_posture(context, "no limit is set here");
    else if (*ret > most)
        attack_posture(context, "a limit of %ju MiB is not tried", (uintmax_t)(*ret / MIB));
    return *ret > 0 && *ret <= most;
}

static void take_private(struct attack_context *context)
{
    uint64_t limit;

    if (is_tried(context, "memory", MEMORY_TRIED_MAX, &limit))
        take_memory(context, limit + BEYOND, MAP_PRIVATE, "anonymous");
}

/* The places of a cell are memory, too, so that shared memory may be as much as they and the limit.
 */
static void take_shared(struct attack_context *context)
{
    uint64_t limit, disk = targets_number(context->targets, "disk", 0);

    if (!is_tried(context, "memory", MEMORY_TRIED_MAX, &limit))
        return;
    if (disk > MEMORY_TRIED_MAX / PLACES)
        attack_posture(context, "places of %ju MiB are not tried", (uintmax_t)(disk / MIB));
    else
        take_memory(context, limit + PLACES * disk + BEYOND, MAP_SHARED, "shared");
}

/* --- the cgroups themselves */

static bool is_group(const char *path)
{
    struct statfs status;

    return statfs(path, &status) == 0 && (status.f_type == MAGIC_1 || status.f_type == MAGIC_2);
}

static void mount_groups(struct attack_context *context)
{
    static const char *const types[] = {"cgroup2", "cgroup"};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        int fd = (int)syscall(SYS_fsopen, types[i], FSOPEN_CLOEXEC);

        attack_looked(context, 2);
        if (fd >= 0) {
            attack_found(context, "a file system of type %s can be opened", types[i]);
            (void)close(fd); /* nothing was made */
        }
        if (mount("none", ".", types[i], 0, NULL) == 0) {
            attack_found(context, "a file system of type %s can be mounted", types[i]);
            (void)umount2(".", MNT_DETACH);
        }
    }
}

static void reach_groups(struct attack_context *context)
{
    static const char *const places[] = {
        "/sys/fs/cgroup",      "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu",     "/cgroup",
        "/run/cgroup",
    };
    char line[TARGET_BYTES * 4];
    FILE *mounts = fopen("/proc/self/mountinfo", "re");

    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        attack_looked(context, 1);
        if (is_group(places[i]))
            attack_found(context, "cgroups are at %s", places[i]);
    }
    while (mounts != NULL && fgets(line, sizeof(line), mounts) != NULL) {
        attack_looked(context, 1);
        if (strstr(line, " - cgroup") != NULL)
            attack_found(context, "cgroups are mounted");
    }
    if (mounts != NULL)
        (void)fclose(mounts); /* read only */
    mount_groups(context);
}

static const struct attack attacks[] = {
    {"limits.memory", 'I', PHASE_AGENT, CONTROL_LEAKY, false,
     "take more anonymous memory than allowed, by two processes", take_private},
    {"limits.shared", 'I', PHASE_AGENT, CONTROL_LEAKY, false,
     "take more shared memory than allowed", take_shared},
    {"limits.groups", 'E', PHASE_AGENT, CONTROL_LEAKY, false,
     "see or mount the cgroups that set the limits", reach_groups},
};
const struct attack_table attacks_limits = {attacks, ARRAY_SIZE(attacks)};
