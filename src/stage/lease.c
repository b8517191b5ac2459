#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "stage/internal.h"

#define LOCK_SUFFIX ".lock"
#define SWEEP_TRIES_MAX 5
#define SWEEP_PAUSE_NS 5000000
#define LOCK_TRIES_MAX 100 /* each fails only when somebody removed the file in that instant */

/* The lock file of a name, locked and still there. -EWOULDBLOCK: somebody holds it. */
static int lock_name(int parent_fd, const char *name, int flags, int *ret)
{
    scoped(mem_freep) char *lock_name = str_format("%s" LOCK_SUFFIX, name);

    for (int i = 0; i < LOCK_TRIES_MAX; i++) {
        scoped(fd_closep) int fd =
            openat(parent_fd, lock_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
        struct stat status;

        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &status) < 0)
            return -errno;
        if (status.st_nlink > 0) {
            *ret = take_fd(&fd);
            return 0;
        }
    }
    return -EAGAIN;
}

/*
 * The same for a name of ours. A sweeper may hold the lock for the moment between our making it and
 * taking it: whoever really uses the name holds it longer.
 */
static int lock_own_name(int parent_fd, const char *name, int *ret)
{
    const struct timespec pause = {.tv_nsec = SWEEP_PAUSE_NS};
    int r = -EWOULDBLOCK;

    for (int i = 0; i < SWEEP_TRIES_MAX && r == -EWOULDBLOCK; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL); /* cut short is fine */
        r = lock_name(parent_fd, name, O_CREAT, ret);
    }
    return r;
}

static int remove_held(int parent_fd, const char *name, struct error **err)
{
    scoped(mem_freep) char *lock_name = str_format("%s" LOCK_SUFFIX, name);
    int r = fs_remove_tree(parent_fd, name, err);

    if (r < 0)
        return r;
    if (unlinkat(parent_fd, lock_name, 0) < 0 && errno != ENOENT)
        return error_errno(err, errno, "cannot remove '%s' in the store", lock_name);
    return 0;
}

int lease_take(int parent_fd, const char *name, struct lease *ret, struct error **err)
{
    scoped(fd_closep) int lock_fd = -1;
    int r = lock_own_name(parent_fd, name, &lock_fd);

    if (r == -EWOULDBLOCK)
        return error_set(err, ERROR_USER, "'%s' is in use by another process", name);
    if (r < 0)
        return error_errno(err, -r, "cannot lock '%s' in the store", name);
    r = fs_remove_tree(parent_fd, name, err);
    if (r < 0)
        return r;
    if (mkdirat(parent_fd, name, 0700) < 0)
        return error_errno(err, errno, "cannot make '%s' in the store", name);
    *ret =
        (struct lease){.parent_fd = parent_fd, .lock_fd = take_fd(&lock_fd), .name = str_dup(name)};
    return 0;
}

void lease_forget(struct lease *lease)
{
    fd_closep(&lease->lock_fd);
    free(lease->name);
    *lease = LEASE_NONE;
}

int lease_drop(struct lease *lease, struct error **err)
{
    scoped(fd_closep) int lock_fd = -1;

    if (lease->name == NULL)
        return 0;
    /* Ours goes first: whether anybody else still has it shows by trying again. */
    fd_closep(&lease->lock_fd);
    int r = lock_name(lease->parent_fd, lease->name, 0, &lock_fd);

    if (r == 0)
        r = remove_held(lease->parent_fd, lease->name, err);
    else if (r == -EWOULDBLOCK || r == -ENOENT)
        r = 0;
    else
        r = error_errno(err, -r, "cannot lock '%s' in the store", lease->name);
    lease_forget(lease);
    return r;
}

static int sweep_name(void *context, int dir_fd, const char *name, struct error **err)
{
    size_t *removed = context;
    scoped(fd_closep) int lock_fd = -1;
    size_t length = strlen(name);
    bool is_lock = str_ends(name, LOCK_SUFFIX);
    scoped(mem_freep) char *bare = str_ndup(name, is_lock ? length - strlen(LOCK_SUFFIX) : length);
    int r = lock_name(dir_fd, bare, 0, &lock_fd);

    /* A holder makes the lock first and removes it last: without one nobody can want the name. */
    if (r == -ENOENT && is_lock)
        return 0;
    if (r == -EWOULDBLOCK || (r < 0 && r != -ENOENT))
        return 0;
    r = remove_held(dir_fd, bare, err);
    if (r == 0)
        ++*removed;
    return r;
}

int lease_sweep(int parent_fd, size_t *ret_removed, struct error **err)
{
    size_t removed = 0;
    int r = fs_each(parent_fd, sweep_name, &removed, err);

    if (r == 0)
        *ret_removed = removed;
    return r;
}
