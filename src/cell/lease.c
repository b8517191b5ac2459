#include "cell/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cell/sys.h"

#define LEASE_DIR "/run/closedbook"
#define NAME_BYTES 64
#define GROWTH 16

struct lease_slot {
    int fd; /* -1: not ours */
    bool is_taken;
    int user_ns_fd;      /* -1: none yet */
    int candidate_ns_fd; /* likewise; its map never changes */
    int root_ns_fd;      /* likewise */
    uid_t owner;
    gid_t group;
};

static int make_dir(const char *path, mode_t mode)
{
    struct stat status;

    if (mkdir(path, mode) < 0 && errno != EEXIST)
        return -errno;
    if (lstat(path, &status) < 0)
        return -errno;
    /* Another user's directory would let that user hold or hand out our ids. */
    if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) != 0)
        return -EPERM;
    return 0;
}

int lease_open(struct lease_pool *pool)
{
    int r = make_dir(LEASE_DIR, 0755);

    if (r == 0)
        r = make_dir(LEASE_DIR "/uids", 0700);
    if (r < 0)
        return r;
    int fd = open(LEASE_DIR "/uids", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    *pool = (struct lease_pool){.dir_fd = fd};
    return 0;
}

uid_t lease_uid(int slot, enum lease_id id)
{
    return LEASE_BASE_UID + (uid_t)slot * LEASE_IDS_PER_SLOT + id;
}

static bool is_idle(int slot)
{
    return sys_uid_is_idle(lease_uid(slot, LEASE_INIT)) &&
           sys_uid_is_idle(lease_uid(slot, LEASE_PROGRAM)) &&
           sys_uid_is_idle(lease_uid(slot, LEASE_CANDIDATE));
}

static void grow(struct lease_pool *pool)
{
    size_t count = pool->count + GROWTH;

    pool->slots = mem_resize(pool->slots, count, sizeof(pool->slots[0]));
    for (size_t i = pool->count; i < count; i++)
        pool->slots[i] = (struct lease_slot){
            .fd = -1, .user_ns_fd = -1, .candidate_ns_fd = -1, .root_ns_fd = -1};
    pool->count = count;
}

/* 0 when the slot is ours now. */
static int lock_slot(const struct lease_pool *pool, int slot)
{
    char name[NAME_BYTES];

    sys_format(name, sizeof(name), "%d", slot);
    int fd = openat(pool->dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int r = -errno;

        (void)close(fd); /* not ours */
        return r;
    }
    pool->slots[slot].fd = fd;
    return 0;
}

int lease_take(struct lease_pool *pool)
{
    for (int slot = 0; slot < (int)LEASE_SLOTS_MAX; slot++) {
        if ((size_t)slot >= pool->count)
            grow(pool);
        struct lease_slot *entry = &pool->slots[slot];

        if (entry->is_taken)
            continue;
        if (entry->fd < 0) {
            int r = lock_slot(pool, slot);

            if (r == -EWOULDBLOCK)
                continue;
            if (r < 0)
                return r;
        }
        if (!is_idle(slot))
            continue;
        entry->is_taken = true;
        return slot;
    }
    return -EAGAIN;
}

void lease_give(struct lease_pool *pool, int slot)
{
    ASSERT((size_t)slot < pool->count && pool->slots[slot].is_taken);
    pool->slots[slot].is_taken = false;
}

/* A child in a new user namespace; it waits to be killed. */
static pid_t fork_into_user_ns(int *ret_pidfd)
{
    pid_t pid = sys_fork(CLONE_NEWUSER, ret_pidfd);

    if (pid != 0)
        return pid;
    for (;;)
        (void)pause(); /* returns with a signal only, and the one to come ends us */
}

/* further: where ids 1 to LEASE_ROOT_IDS - 1 lie, 0: there are none. */
struct ids {
    uid_t to, owner;
    gid_t group;
    uid_t further;
};

static int write_map(pid_t pid, const char *name, uint32_t inside, const struct ids *ids)
{
    char path[NAME_BYTES], map[NAME_BYTES];

    sys_format(path, sizeof(path), "/proc/%d/%s", pid, name);
    if (ids->further != 0)
        sys_format(map, sizeof(map), "%u %u 1\n1 %u %u", inside, ids->to, ids->further,
                   LEASE_ROOT_IDS - 1);
    else
        sys_format(map, sizeof(map), "%u %u 1", inside, ids->to);
    return sys_write_file(AT_FDCWD, path, map);
}

static int make_user_ns(const struct ids *ids)
{
    char path[NAME_BYTES];
    int pidfd = -1, status;
    pid_t pid = fork_into_user_ns(&pidfd);

    if (pid < 0)
        return pid;
    int r = write_map(pid, "uid_map", ids->owner, ids);

    if (r == 0)
        r = write_map(pid, "gid_map", ids->group, ids);
    if (r == 0) {
        sys_format(path, sizeof(path), "/proc/%d/ns/user", pid);
        r = open(path, O_RDONLY | O_CLOEXEC);
        if (r < 0)
            r = -errno;
    }
    int killed = sys_pidfd_kill(pidfd, SIGKILL);

    if (killed == 0)
        killed = sys_reap(pidfd, &status);
    (void)close(pidfd); /* reaped */
    if (killed < 0 && r >= 0) {
        (void)close(r); /* a name only */
        return killed;
    }
    return r;
}

int lease_idmap(struct lease_pool *pool, int slot, uid_t owner, gid_t group)
{
    struct lease_slot *entry = &pool->slots[slot];

    if (entry->user_ns_fd >= 0 && entry->owner == owner && entry->group == group)
        return entry->user_ns_fd;
    const struct ids ids = {lease_uid(slot, LEASE_PROGRAM), owner, group, 0};
    int fd = make_user_ns(&ids);

    if (fd < 0)
        return fd;
    if (entry->user_ns_fd >= 0)
        (void)close(entry->user_ns_fd); /* a name only */
    entry->user_ns_fd = fd;
    entry->owner = owner;
    entry->group = group;
    return fd;
}

int lease_candidate_idmap(struct lease_pool *pool, int slot)
{
    struct lease_slot *entry = &pool->slots[slot];
    uid_t program = lease_uid(slot, LEASE_PROGRAM);
    const struct ids ids = {lease_uid(slot, LEASE_CANDIDATE), program, program, 0};

    if (entry->candidate_ns_fd < 0)
        entry->candidate_ns_fd = make_user_ns(&ids);
    return entry->candidate_ns_fd;
}

int lease_root_ns(struct lease_pool *pool, int slot)
{
    struct lease_slot *entry = &pool->slots[slot];
    const struct ids ids = {lease_uid(slot, LEASE_PROGRAM), 0, 0,
                            LEASE_ROOT_BASE_UID + (uid_t)slot * LEASE_ROOT_IDS + 1};

    if (slot >= LEASE_ROOT_SLOTS_MAX)
        return -EAGAIN;
    if (entry->root_ns_fd < 0)
        entry->root_ns_fd = sys_uid_is_idle(ids.further) ? make_user_ns(&ids) : -EBUSY;
    return entry->root_ns_fd;
}
