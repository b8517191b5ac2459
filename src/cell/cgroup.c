#include "cell/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/mem.h"
#include "cell/sys.h"

#define MAGIC_1 0x27e0eb
#define MAGIC_2 0x63677270
#define PREFIX "closedbook-"
#define NUMBER_BYTES 32
#define FILE_BYTES 2048
#define GROWTH 16
#define MAKE_ATTEMPTS 8
#define CPU_PERIOD_US 100000

#define NONE UINT64_MAX

/* The files of one limit in both versions. */
static const struct {
    const char *plain, *unified, *controller;
} files[CELL_CGROUP_KINDS] = {
    [CELL_CGROUP_MEMORY] = {"memory.limit_in_bytes", "memory.max", "+memory"},
    [CELL_CGROUP_PIDS] = {"pids.max", "pids.max", "+pids"},
    [CELL_CGROUP_CPU] = {"cpu.cfs_quota_us", "cpu.max", "+cpu"},
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* directories */
    *fd = -1;
}

static size_t hierarchies(const struct cgroups *cgroups)
{
    return cgroups->is_unified ? 1 : CELL_CGROUP_KINDS;
}

static int open_dir(int at_fd, const char *name)
{
    int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static int new_name(char *ret, const char *prefix)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -EIO;
    sys_format(ret, CGROUP_NAME_BYTES, "%s%016llx", prefix, (unsigned long long)random);
    return 0;
}

/* --- numbers in the kernel's files: the first one, or the one after a key */

static bool number_at(const char *text, const char *key, uint64_t *ret)
{
    const char *at = key == NULL ? text : strstr(text, key);

    if (at == NULL)
        return false;
    at += key == NULL ? 0 : strlen(key);
    if (*at < '0' || *at > '9')
        return false;
    /* The kernel's own numbers fit. */
    for (*ret = 0; *at >= '0' && *at <= '9'; at++)
        *ret = *ret * 10 + (uint64_t)(*at - '0');
    return true;
}

static bool read_start(int dir_fd, const char *name, char text[static FILE_BYTES])
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, FILE_BYTES - 1);

    (void)close(fd); /* read only */
    text[n < 0 ? 0 : n] = '\0';
    return true;
}

static bool read_number(int dir_fd, const char *name, const char *key, uint64_t *ret)
{
    char text[FILE_BYTES];

    return read_start(dir_fd, name, text) && number_at(text, key, ret);
}

static int write_number(int dir_fd, const char *name, uint64_t value, const char *none)
{
    char text[NUMBER_BYTES];

    if (value == NONE)
        return sys_write_file(dir_fd, name, none);
    sys_format(text, sizeof(text), "%llu", (unsigned long long)value);
    return sys_write_file(dir_fd, name, text);
}

/* --- the monitor's own directories */

/* Removes a directory with the leaves in it. What still holds a process stays, for another time. */
static void remove_tree(int at_fd, const char *name)
{
    int fd = open_dir(at_fd, name);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    for (size_t i = 0; dir != NULL && i < CGROUP_SWEEP_MAX && (entry = readdir(dir)) != NULL; i++) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            (void)unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir != NULL)
        (void)closedir(dir); /* read only */
    else
        close_fd(&fd);
    (void)unlinkat(at_fd, name, AT_REMOVEDIR);
}

/* Monitors hold theirs for as long as they live. */
static void sweep(int base_fd)
{
    int fd = open_dir(base_fd, ".");
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    for (size_t i = 0; dir != NULL && i < CGROUP_SWEEP_MAX && (entry = readdir(dir)) != NULL; i++) {
        if (entry->d_type != DT_DIR || strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        int held = open_dir(base_fd, entry->d_name);

        if (held >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0)
            remove_tree(base_fd, entry->d_name);
        close_fd(&held);
    }
    if (dir != NULL)
        (void)closedir(dir); /* read only */
    else
        close_fd(&fd);
}

/* Another monitor's sweep may take a new directory for a leaving before it is held. */
static int make_held(int base_fd, char *name)
{
    for (int i = 0; i < MAKE_ATTEMPTS; i++) {
        struct stat status;
        int r = name[0] == '\0' ? new_name(name, PREFIX) : 0;

        if (r == 0 && mkdirat(base_fd, name, 0755) < 0)
            r = -errno;
        if (r < 0)
            return r;
        int fd = open_dir(base_fd, name);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
            fstatat(base_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            return fd;
        close_fd(&fd);
        name[0] = '\0';
    }
    return -EAGAIN;
}

static bool is_ours(int fd, bool *is_unified)
{
    struct statfs kind;
    struct stat status;

    if (fd < 0 || fstatfs(fd, &kind) < 0 || fstat(fd, &status) < 0 || status.st_uid != geteuid() ||
        (kind.f_type != MAGIC_1 && kind.f_type != MAGIC_2))
        return false;
    *is_unified = kind.f_type == MAGIC_2;
    return true;
}

/* Which limits a directory's children will have. */
static uint32_t find_kinds(const struct cgroups *cgroups, size_t hierarchy, int dir_fd)
{
    uint32_t kinds = 0;

    if (!cgroups->is_unified)
        return faccessat(dir_fd, files[hierarchy].plain, W_OK, AT_EACCESS) == 0 ? 1u << hierarchy
                                                                                : 0;
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        if (sys_write_file(dir_fd, "cgroup.subtree_control", files[i].controller) == 0)
            kinds |= 1u << i;
    }
    return kinds;
}

static int open_hierarchy(struct cgroups *cgroups, size_t i, int base)
{
    char name[CGROUP_NAME_BYTES] = "";
    int fd = fcntl(base, F_DUPFD_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    cgroups->bases[i] = fd;
    sweep(fd);
    cgroups->dirs[i] = make_held(fd, name);
    if (cgroups->dirs[i] < 0)
        return cgroups->dirs[i];
    memcpy(cgroups->names[i], name, sizeof(name));
    cgroups->kinds |= find_kinds(cgroups, i, cgroups->dirs[i]);
    return 0;
}

void cgroup_init(struct cgroups *cgroups)
{
    *cgroups = (struct cgroups){0};
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++)
        cgroups->bases[i] = cgroups->dirs[i] = -1;
}

int cgroup_open(struct cgroups *cgroups, const int bases[static CELL_CGROUP_KINDS])
{
    bool is_unified = false;

    if (cgroups->bases[0] >= 0 || cgroups->kinds != 0)
        return -EALREADY;
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        if (bases[i] < 0)
            continue;
        if (!is_ours(bases[i], &is_unified) || (is_unified && i > 0))
            return -EPERM;
        cgroups->is_unified = is_unified;
        int r = open_hierarchy(cgroups, i, bases[i]);

        if (r < 0)
            return r;
        if (is_unified)
            return 0;
    }
    return 0;
}

/* --- leaves */

static int make_dir(const struct cgroups *cgroups, struct cgroup_leaf *leaf, size_t hierarchy)
{
    if (leaf->dirs[hierarchy] >= 0)
        return 0;
    if (mkdirat(cgroups->dirs[hierarchy], leaf->name, 0755) < 0)
        return -errno;
    int fd = open_dir(cgroups->dirs[hierarchy], leaf->name);

    if (fd < 0) {
        (void)unlinkat(cgroups->dirs[hierarchy], leaf->name, AT_REMOVEDIR);
        return fd;
    }
    leaf->dirs[hierarchy] = fd;
    return 0;
}

static void reset(struct cgroup_leaf *leaf)
{
    *leaf = (struct cgroup_leaf){0};
    for (size_t i = 0; i < CELL_CGROUP_KINDS; i++) {
        leaf->dirs[i] = -1;
        leaf->limits[i] = NONE;
    }
}

static void remove_leaf(const struct cgroups *cgroups, struct cgroup_leaf *leaf)
{
    for (size_t i = 0; i < hierarchies(cgroups); i++) {
        if (leaf->dirs[i] < 0)
            continue;
        close_fd(&leaf->dirs[i]);
        (void)unlinkat(cgroups->dirs[i], leaf->name, AT_REMOVEDIR); /* busy: swept another time */
    }
    reset(leaf);
}

static int find_free(struct cgroups *cgroups)
{
    for (size_t i = 0; i < cgroups->count; i++) {
        if (!cgroups->leaves[i].is_taken)
            return (int)i;
    }
    size_t count = cgroups->count + GROWTH;

    cgroups->leaves = mem_resize(cgroups->leaves, count, sizeof(cgroups->leaves[0]));
    for (size_t i = cgroups->count; i < count; i++)
        reset(&cgroups->leaves[i]);
    cgroups->count = count;
    return (int)(count - GROWTH);
}

/* With what swaps, too: a limit of memory alone would only move the cell to the disk. */
static int set_memory(const struct cgroups *cgroups, int dir_fd, uint64_t value)
{
    if (cgroups->is_unified) {
        int r = write_number(dir_fd, "memory.max", value, "max");

        return r == 0 && value != NONE ? write_number(dir_fd, "memory.swap.max", 0, "") : r;
    }
    /* The one may not be above the other, so that one of the first two fails when both rise. */
    int first = write_number(dir_fd, "memory.limit_in_bytes", value, "-1");
    int swap = write_number(dir_fd, "memory.memsw.limit_in_bytes", value, "-1");

    if (first < 0)
        first = write_number(dir_fd, "memory.limit_in_bytes", value, "-1");
    return first < 0 ? first : swap;
}

static int set_cpu(const struct cgroups *cgroups, int dir_fd, uint64_t millis)
{
    char text[NUMBER_BYTES];

    if (!cgroups->is_unified)
        return write_number(dir_fd, "cpu.cfs_quota_us",
                            millis == NONE ? NONE : millis * (CPU_PERIOD_US / 1000), "-1");
    if (millis == NONE)
        return sys_write_file(dir_fd, "cpu.max", "max");
    sys_format(text, sizeof(text), "%llu %d", (unsigned long long)millis * (CPU_PERIOD_US / 1000),
               CPU_PERIOD_US);
    return sys_write_file(dir_fd, "cpu.max", text);
}

static int set_limit(const struct cgroups *cgroups, struct cgroup_leaf *leaf, size_t kind,
                     uint64_t value)
{
    size_t hierarchy = cgroups->is_unified ? 0 : kind;
    int r = 0;

    if ((cgroups->kinds & 1u << kind) == 0)
        return value == NONE || kind == CELL_CGROUP_PIDS ? 0 : -EOPNOTSUPP;
    /* Of no use without a limit, and it costs the scheduler. */
    if (kind == CELL_CGROUP_CPU && value == NONE && leaf->dirs[hierarchy] < 0)
        return 0;
    r = make_dir(cgroups, leaf, hierarchy);
    if (r < 0 || leaf->limits[kind] == value)
        return r;
    switch ((enum cell_cgroup)kind) {
    case CELL_CGROUP_MEMORY:
        r = set_memory(cgroups, leaf->dirs[hierarchy], value);
        break;
    case CELL_CGROUP_PIDS:
        r = write_number(leaf->dirs[hierarchy], "pids.max", value, "max");
        break;
    case CELL_CGROUP_CPU:
        r = set_cpu(cgroups, leaf->dirs[hierarchy], value);
        break;
    case CELL_CGROUP_KINDS:
        break;
    }
    leaf->limits[kind] = r == 0 ? value : 0; /* 0: unknown, to be written again */
    return r;
}

/* True when a leaf's counters can begin anew: then it is as good as a new one. */
static bool is_reusable(const struct cgroups *cgroups, struct cgroup_leaf *leaf)
{
    uint64_t left = 0;
    int memory = leaf->dirs[CELL_CGROUP_MEMORY];

    if (leaf->name[0] == '\0' || cgroups->is_unified)
        return false;
    if (memory < 0)
        return true;
    if (!read_number(memory, "memory.usage_in_bytes", NULL, &left) ||
        left > CGROUP_LEFT_BYTES_MAX ||
        !read_number(memory, "memory.oom_control", "oom_kill ", &leaf->oom_kills))
        return false;
    return write_number(memory, "memory.max_usage_in_bytes", 0, "") == 0;
}

int cgroup_take(struct cgroups *cgroups, const struct cgroup_limits *limits)
{
    const uint64_t values[CELL_CGROUP_KINDS] = {limits->memory_bytes, limits->pids,
                                                limits->cpu_millis};
    int number = find_free(cgroups), r = 0;
    struct cgroup_leaf *leaf = &cgroups->leaves[number];

    if (!is_reusable(cgroups, leaf)) {
        remove_leaf(cgroups, leaf);
        r = new_name(leaf->name, "");
    }
    for (size_t i = 0; i < CELL_CGROUP_KINDS && r == 0; i++)
        r = set_limit(cgroups, leaf, i, values[i] == 0 ? NONE : values[i]);
    if (r < 0) {
        remove_leaf(cgroups, leaf);
        return r;
    }
    leaf->is_taken = true;
    return number;
}

int cgroup_clone_fd(const struct cgroups *cgroups, int leaf)
{
    return leaf >= 0 && cgroups->is_unified ? cgroups->leaves[leaf].dirs[0] : -1;
}

int cgroup_enter(const struct cgroups *cgroups, int leaf)
{
    int r = 0;

    for (size_t i = 0; leaf >= 0 && i < hierarchies(cgroups) && r == 0; i++) {
        int dir = cgroups->leaves[leaf].dirs[i];

        if (dir >= 0)
            r = sys_write_file(dir, cgroups->is_unified ? "cgroup.procs" : "tasks", "0");
    }
    return r;
}

bool cgroup_look(const struct cgroups *cgroups, int leaf, uint64_t *ret_private,
                 uint64_t *ret_shared)
{
    char text[FILE_BYTES];
    int memory = leaf < 0 ? -1 : cgroups->leaves[leaf].dirs[CELL_CGROUP_MEMORY];

    return memory >= 0 && read_start(memory, "memory.stat", text) &&
           number_at(text, cgroups->is_unified ? "anon " : "\nrss ", ret_private) &&
           number_at(text, "\nshmem ", ret_shared);
}

void cgroup_press(const struct cgroups *cgroups, int leaf, bool press)
{
    const struct cgroup_leaf *pressed = &cgroups->leaves[leaf];
    int memory = pressed->dirs[CELL_CGROUP_MEMORY];
    uint64_t value = pressed->limits[CELL_CGROUP_MEMORY];

    if (press &&
        !read_number(memory, cgroups->is_unified ? "memory.current" : "memory.usage_in_bytes", NULL,
                     &value))
        return;
    /* When more is in use meanwhile, it is refused, and tried again at the next look. */
    (void)!write_number(memory,
                        cgroups->is_unified ? files[CELL_CGROUP_MEMORY].unified
                                            : files[CELL_CGROUP_MEMORY].plain,
                        value, "");
}

void cgroup_measure(const struct cgroups *cgroups, int leaf, struct cgroup_usage *ret)
{
    *ret = (struct cgroup_usage){0};
    if (leaf < 0)
        return;
    const struct cgroup_leaf *measured = &cgroups->leaves[leaf];
    int memory = measured->dirs[CELL_CGROUP_MEMORY];

    if (memory < 0)
        return;
    if (cgroups->is_unified) {
        ret->has_memory = read_number(memory, "memory.peak", NULL, &ret->memory_peak_bytes) &&
                          read_number(memory, "memory.events", "oom_kill ", &ret->oom_kills);
        ret->has_cpu = read_number(memory, "cpu.stat", "usage_usec ", &ret->cpu_us);
        return;
    }
    ret->has_memory =
        read_number(memory, "memory.max_usage_in_bytes", NULL, &ret->memory_peak_bytes) &&
        read_number(memory, "memory.oom_control", "oom_kill ", &ret->oom_kills);
    ret->oom_kills -= ret->has_memory ? measured->oom_kills : 0;
}

void cgroup_give(struct cgroups *cgroups, int leaf)
{
    if (leaf < 0)
        return;
    ASSERT((size_t)leaf < cgroups->count && cgroups->leaves[leaf].is_taken);
    cgroups->leaves[leaf].is_taken = false;
    if (cgroups->is_unified)
        remove_leaf(cgroups, &cgroups->leaves[leaf]);
}

void cgroup_close(struct cgroups *cgroups)
{
    for (size_t i = 0; i < cgroups->count; i++)
        remove_leaf(cgroups, &cgroups->leaves[i]);
    for (size_t i = 0; i < hierarchies(cgroups); i++) {
        if (cgroups->dirs[i] >= 0)
            remove_tree(cgroups->bases[i], cgroups->names[i]);
        close_fd(&cgroups->dirs[i]);
        close_fd(&cgroups->bases[i]);
    }
    free(cgroups->leaves);
    cgroup_init(cgroups);
}
