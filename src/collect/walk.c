#include "collect/walk.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"

#define NAMES_BYTES 32768

/* What a directory's listing says of one of its names, which `names` of the level owns. */
struct listed {
    char *name;
    uint64_t inode;
    unsigned char type; /* DT_... */
};

/* One directory of the path that the walk is in. */
struct level {
    int fd;
    dev_t device;
    struct str_list names;
    struct listed *listed; /* of the same names, in the same order */
    size_t next;
    size_t path_length; /* of the directory's own path */
};

struct state {
    const struct walk *walk;
    struct level levels[WALK_DEPTH_MAX + 1];
    size_t count;
    size_t names_read;
    char path[WALK_PATH_BYTES_MAX + 1];
};

static void level_done(struct level *level)
{
    fd_closep(&level->fd);
    str_list_done(&level->names);
    free(level->listed);
    level->listed = NULL;
}

/* Hands the level over: what stays behind is empty. */
static struct level level_take(struct level *level)
{
    struct level taken = *level;

    *level = (struct level){.fd = -1};
    return taken;
}

static void state_done(struct state *state)
{
    while (state->count > 0)
        level_done(&state->levels[--state->count]);
}

/* Adds the names of one buffer of directory entries; false when the walk's cap cut them. */
static bool add_names(struct state *state, const char *bytes, ssize_t size, struct level *level)
{
    struct str_list *names = &level->names;

    for (ssize_t at = 0; at < size;) {
        const struct dirent64 *entry = (const void *)(bytes + at);

        at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (state->names_read == WALK_ENTRIES_MAX)
            return false;
        state->names_read++;
        str_list_add(names, entry->d_name);
        /* Room doubles at powers of two. */
        if ((names->count & (names->count - 1)) == 0)
            level->listed = mem_resize(level->listed, 2 * names->count, sizeof(*level->listed));
        level->listed[names->count - 1] = (struct listed){
            .name = names->items[names->count - 1],
            .inode = entry->d_ino,
            .type = entry->d_type,
        };
    }
    return true;
}

static int by_name(const void *a, const void *b)
{
    const struct listed *left = a, *right = b;

    return strcmp(left->name, right->name);
}

static void sort(struct level *level)
{
    if (level->names.count > 1)
        qsort(level->listed, level->names.count, sizeof(*level->listed), by_name);
    for (size_t i = 0; i < level->names.count; i++)
        level->names.items[i] = level->listed[i].name;
}

/*
 * Reads the names of a level's directory, sorted. *ret_more is set when the walk's cap cut them. By
 * the system call itself: a worker's cell allows fewer than readdir() uses.
 */
static int read_names(struct state *state, struct level *level, bool *ret_more)
{
    scoped(fd_closep) int fd =
        openat(level->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    _Alignas(struct dirent64) char bytes[NAMES_BYTES];
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    level->device = status.st_dev;
    while (!*ret_more) {
        ssize_t size = getdents64(fd, bytes, sizeof(bytes));

        if (size < 0)
            return -errno;
        if (size == 0)
            break;
        *ret_more = !add_names(state, bytes, size, level);
    }
    sort(level);
    return 0;
}

/* Makes fd (taken) the walk's innermost directory. */
static int push(struct state *state, int fd_taken, size_t path_length, struct error **err)
{
    scoped(level_done) struct level level = {.fd = fd_taken, .path_length = path_length};
    const struct walk *walk = state->walk;
    bool more = false;
    int r = read_names(state, &level, &more);

    if (r < 0 && state->count == 0)
        return error_errno(err, -r, "cannot read the tree's root");
    if (r < 0) {
        r = walk->refuse(walk->context, state->path, -r, strerror(-r), err);
        return r < 0 ? r : WALK_SKIP;
    }
    if (more)
        r = walk->refuse(walk->context, state->path, 0, "too many names", err);
    if (r == 0 && walk->enter != NULL)
        r = walk->enter(walk->context, state->path, &level.names, err);
    if (r < 0)
        return r;
    state->levels[state->count++] = level_take(&level);
    return WALK_ENTER;
}

static int enter(struct state *state, const struct walk_entry *entry, struct error **err)
{
    const struct walk *walk = state->walk;

    if (state->count > WALK_DEPTH_MAX - 1)
        return walk->refuse(walk->context, entry->path, 0, "too deep", err);
    int fd = fs_open_beneath(entry->parent_fd, entry->name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0,
                             FS_NO_LINKS);

    if (fd < 0)
        return walk->refuse(walk->context, entry->path, -fd,
                            fd == -EXDEV ? "another file system is mounted there" : strerror(-fd),
                            err);
    int r = push(state, fd, strlen(entry->path), err);

    return r < 0 ? r : 0;
}

/* A link's status as far as its directory's listing tells it; false when it must be looked at. */
static bool status_by_name(const struct state *state, const struct level *level,
                           const struct listed *listed, struct stat *ret)
{
    if (!state->walk->links_by_name || state->count == 1 || listed->type != DT_LNK)
        return false;
    *ret = (struct stat){.st_mode = S_IFLNK, .st_ino = listed->inode, .st_dev = level->device};
    return true;
}

static int visit(struct state *state, struct level *level, const struct listed *listed,
                 struct error **err)
{
    const char *name = listed->name;
    const struct walk *walk = state->walk;
    struct walk_entry entry = {.path = state->path,
                               .name = state->path + level->path_length +
                                       (level->path_length > 0 ? 1 : 0),
                               .parent_fd = level->fd,
                               .depth = (unsigned)state->count};

    if (level->path_length + 1 + strlen(name) > WALK_PATH_BYTES_MAX) {
        state->path[level->path_length] = '\0';
        return walk->refuse(walk->context, state->path, 0, "a path below it is too long", err);
    }
    (void)snprintf(state->path + level->path_length, sizeof(state->path) - level->path_length,
                   level->path_length > 0 ? "/%s" : "%s", name); /* the length was checked */
    if (!status_by_name(state, level, listed, &entry.status) &&
        fstatat(level->fd, name, &entry.status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return walk->refuse(walk->context, entry.path, errno, strerror(errno), err);
    int r = walk->visit(walk->context, &entry, err);

    if (r < 0 || r == WALK_SKIP || !S_ISDIR(entry.status.st_mode))
        return r < 0 ? r : 0;
    return enter(state, &entry, err);
}

static int leave(struct state *state, struct error **err)
{
    struct level *level = &state->levels[state->count - 1];
    const struct walk *walk = state->walk;
    int r = 0;

    state->path[level->path_length] = '\0';
    if (walk->leave != NULL && state->count > 1)
        r = walk->leave(walk->context, state->path, err);
    level_done(level);
    state->count--;
    return r;
}

int walk_tree(int root_fd, const struct walk *walk, struct error **err)
{
    scoped(state_done) struct state state = {.walk = walk};
    int fd = openat(root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open the tree's root");
    int r = push(&state, fd, 0, err);

    while (r >= 0 && state.count > 0) {
        struct level *level = &state.levels[state.count - 1];

        r = level->next < level->names.count
                ? visit(&state, level, &level->listed[level->next++], err)
                : leave(&state, err);
    }
    return r < 0 ? r : 0;
}

bool walk_is_system_error(int errno_value)
{
    switch (errno_value) {
    case 0:
    case EACCES:
    case EPERM:
    case ENOENT: /* it vanished */
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EXDEV: /* a mount, a link */
    case ENXIO: /* a device without one */
    case ESTALE:
    case EINVAL:
        return false;
    default:
        return true;
    }
}

int walk_open_file(int dir_fd, const char *path, const struct stat *status)
{
    scoped(fd_closep) int fd = fs_open_beneath(
        dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, FS_NO_LINKS);
    struct stat now;

    if (fd < 0)
        return fd;
    if (fstat(fd, &now) < 0)
        return -errno;
    if (!S_ISREG(now.st_mode) || now.st_ino != status->st_ino || now.st_dev != status->st_dev ||
        now.st_size != status->st_size)
        return -ESTALE;
    return take_fd(&fd);
}
