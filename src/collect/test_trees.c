#include "collect/test_trees.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/walk.h"

uint64_t random_below(struct random *random, uint64_t limit)
{
    /* xorshift64: good enough to choose what to do next. */
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state % limit;
}

/* The folder's name is kept behind its descriptor: /proc/self/fd leads back to it. */
int temporary_folder(void)
{
    const char *parent = getenv("TMPDIR");
    scoped(mem_freep) char *path =
        str_format("%s/closedbook-trees-XXXXXX", parent == NULL ? "/tmp" : parent);

    assert_non_null(mkdtemp(path));
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

void remove_temporary_folder(int *fd)
{
    scoped(mem_freep) char *link = str_format("/proc/self/fd/%d", *fd);
    char path[4096];
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    struct error *err = NULL;

    assert_true(length > 0);
    path[length] = '\0';
    fd_closep(fd);
    if (fs_remove_tree(AT_FDCWD, path, &err) < 0)
        fail_msg("%s", error_message(err));
}

void put_file(int dir_fd, const char *path, const char *content)
{
    scoped(mem_freep) char *folder = path_dir(path);
    struct error *err = NULL;

    assert_int_equal(fs_mkdirs(dir_fd, folder, 0755, &err), 0);
    assert_int_equal(
        fs_write_atomic(dir_fd, path,
                        &(struct fs_content){content, strlen(content), 0644, FS_NO_SYNC}, &err),
        0);
}

static const char *const names[] = {"a", "b", "b-c", "c.txt", "d e", "\xc3\xa9", "main.py", "z"};

/* A path of one to three names; owned. */
static char *random_path(struct random *random)
{
    uint64_t depth = 1 + random_below(random, 3);
    char *path = str_dup(names[random_below(random, ARRAY_SIZE(names))]);

    for (uint64_t i = 1; i < depth; i++) {
        scoped(mem_freep) char *parent = path;

        path = path_join(parent, names[random_below(random, ARRAY_SIZE(names))]);
    }
    return path;
}

/* Makes the folders of path unless something else stands in the way. */
static bool make_folders(int dir_fd, const char *path)
{
    scoped(mem_freep) char *folder = path_dir(path);

    for (char *slash = strchr(folder, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool failed = mkdirat(dir_fd, folder, 0755) < 0 && errno != EEXIST;

        *slash = '/';
        if (failed)
            return false;
    }
    return mkdirat(dir_fd, folder, 0755) == 0 || errno == EEXIST;
}

static void write_random(int dir_fd, const char *path, struct random *random, int flags)
{
    static const mode_t modes[] = {0644, 0600, 0755, 0444};
    scoped(fd_closep) int fd =
        openat(dir_fd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0644);
    char bytes[2000];
    size_t size = random_below(random, sizeof(bytes));

    if (fd < 0)
        return;
    /* Few different contents, so that some files are equal. */
    memset(bytes, (int)('a' + random_below(random, 3)), sizeof(bytes));
    if (random_below(random, 4) == 0)
        size = 10;
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(fchmod(fd, modes[random_below(random, ARRAY_SIZE(modes))]), 0);
}

static void make_something(int dir_fd, struct random *random)
{
    static const char *const targets[] = {"a", "/usr/bin/env", "b/c.txt", "/dev/null",
                                          "/workspace/a"};
    scoped(mem_freep) char *path = random_path(random);

    if (!make_folders(dir_fd, path))
        return;
    switch (random_below(random, 5)) {
    case 0:
        (void)mkdirat(dir_fd, path, random_below(random, 2) == 0 ? 0755 : 0700); /* may exist */
        break;
    case 1:
        if (symlinkat(targets[random_below(random, ARRAY_SIZE(targets))], dir_fd, path) < 0)
            assert_int_not_equal(errno, EFAULT); /* something is in the way */
        break;
    default:
        write_random(dir_fd, path, random, O_TRUNC);
    }
}

void random_tree(int dir_fd, struct random *random)
{
    for (uint64_t count = 5 + random_below(random, 25); count > 0; count--)
        make_something(dir_fd, random);
}

/* A path that exists, as often as not; owned. */
static int remember(void *context, const struct walk_entry *entry, struct error **err)
{
    (void)err;
    str_list_add(context, entry->path);
    return WALK_ENTER;
}

static int ignore(void *context, const char *path, int errno_value, const char *reason,
                  struct error **err)
{
    (void)context;
    (void)path;
    (void)errno_value;
    (void)reason;
    (void)err;
    return 0;
}

static char *existing_path(int dir_fd, struct random *random)
{
    scoped(str_list_done) struct str_list paths = {0};
    struct walk walk = {.context = &paths, .visit = remember, .refuse = ignore};

    assert_int_equal(walk_tree(dir_fd, &walk, NULL), 0);
    if (paths.count == 0)
        return random_path(random);
    return str_dup(paths.items[random_below(random, paths.count)]);
}

static void remove_path(int dir_fd, const char *path)
{
    int r = fs_remove_tree(dir_fd, path, NULL);

    /* A folder that its owner closed to himself keeps what is in it; root meets none. */
    assert_true(r == 0 || geteuid() != 0);
}

/* Never through a link: those of a random tree point at files of this machine. */
static void change_mode(int dir_fd, const char *path, mode_t mode)
{
    struct stat status;

    if (fstatat(dir_fd, path, &status, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(status.st_mode))
        return;
    if (fchmodat(dir_fd, path, mode, 0) < 0)
        assert_int_not_equal(errno, EFAULT); /* a closed folder */
}

static void change_something(int dir_fd, struct random *random)
{
    static const mode_t modes[] = {0755, 0700, 0750, 0555};
    scoped(mem_freep) char *path = existing_path(dir_fd, random);
    scoped(mem_freep) char *other = random_path(random);

    switch (random_below(random, 9)) {
    case 0:
    case 1:
        remove_path(dir_fd, path);
        break;
    case 2: /* a file becomes a directory, a directory a file */
        remove_path(dir_fd, path);
        if (random_below(random, 2) == 0)
            (void)mkdirat(dir_fd, path, 0755); /* the folder may be closed */
        else
            write_random(dir_fd, path, random, O_TRUNC);
        break;
    case 3:
    case 4:
        if (make_folders(dir_fd, other))
            (void)renameat(dir_fd, path, dir_fd, other); /* often impossible, that is fine */
        break;
    case 5:
        write_random(dir_fd, path, random, O_APPEND);
        break;
    case 6:
        change_mode(dir_fd, path, modes[random_below(random, ARRAY_SIZE(modes))]);
        break;
    default:
        make_something(dir_fd, random);
    }
}

void random_changes(int dir_fd, struct random *random, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        change_something(dir_fd, random);
}
