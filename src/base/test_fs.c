/* Files: nothing outside a tree is reached, nothing half is left. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

/* A folder of its own for each test: *state is its descriptor. */
struct folder {
    char path[256];
    int fd;
};

static int set_up(void **state)
{
    struct folder *folder = mem_new(1, sizeof(*folder));

    const char *temporary = getenv("TMPDIR");

    (void)snprintf(folder->path, sizeof(folder->path), "%s/test-fs-XXXXXX",
                   temporary == NULL ? "/tmp" : temporary);
    if (mkdtemp(folder->path) == NULL)
        return -1;
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = folder;
    return folder->fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    scoped(mem_freep) struct folder *folder = *state;

    (void)close(folder->fd); /* was only read */
    return fs_remove_tree(AT_FDCWD, folder->path, NULL);
}

static int folder_fd(void **state)
{
    const struct folder *folder = *state;

    return folder->fd;
}

static void put(int dir_fd, const char *path, const char *text)
{
    assert_int_equal(fs_write_atomic(dir_fd, path,
                                     &(struct fs_content){text, strlen(text), 0644, FS_NO_SYNC},
                                     NULL),
                     0);
}

/* The content of a file; owned. */
static char *content(int dir_fd, const char *path)
{
    scoped(buf_done) struct buf text = {0};

    assert_int_equal(fs_read_file(dir_fd, path, 1 << 20, &text, NULL), 0);
    return buf_take(&text);
}

static bool exists(int dir_fd, const char *path)
{
    struct stat status;

    return fstatat(dir_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int count_name(void *context, int dir_fd, const char *name, struct error **err)
{
    struct str_list *names = context;

    (void)dir_fd;
    str_list_add(names, name);
    return strcmp(name, "stop") == 0 ? error_set(err, ERROR_USER, "stopped") : 0;
}

static void nothing_leads_out_of_a_tree(void **state)
{
    int dir = folder_fd(state);
    static const char *const outside[] = {"..",  "../x", "/etc/passwd", "d/../../x",
                                          "abs", "up/x", "up",          "d/back/../../etc"};

    assert_int_equal(fs_mkdirs(dir, "d", 0755, NULL), 0);
    put(dir, "d/f", "inside");
    assert_int_equal(symlinkat("/etc/passwd", dir, "abs"), 0);
    assert_int_equal(symlinkat("..", dir, "up"), 0);
    assert_int_equal(symlinkat("d/f", dir, "link"), 0);
    assert_int_equal(symlinkat("..", dir, "d/back"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
        assert_true(fs_open_beneath(dir, outside[i], O_RDONLY, 0, FS_LINKS_BENEATH) < 0);
        assert_true(fs_open_beneath(dir, outside[i], O_RDONLY, 0, FS_NO_LINKS) < 0);
    }
    assert_int_equal(fs_open_beneath(dir, "link", O_RDONLY, 0, FS_NO_LINKS), -ELOOP);
    scoped(fd_closep) int fd = fs_open_beneath(dir, "link", O_RDONLY, 0, FS_LINKS_BENEATH);

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    scoped(fd_closep) int made =
        fs_open_beneath(dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0600, FS_NO_LINKS);

    assert_true(made >= 0);
    assert_int_equal(fs_open_beneath(dir, "none", O_RDONLY, 0, FS_NO_LINKS), -ENOENT);
}

static void magic_links_are_not_followed(void **state)
{
    (void)state;
    scoped(fd_closep) int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(proc >= 0);
    assert_true(fs_open_beneath(proc, "exe", O_RDONLY, 0, FS_LINKS_BENEATH) < 0);
    assert_true(fs_open_beneath(proc, "cwd/.", O_RDONLY, 0, FS_LINKS_BENEATH) < 0);
}

static void a_file_is_read_whole_or_not(void **state)
{
    int dir = folder_fd(state);
    scoped(buf_done) struct buf text = {0};
    scoped(error_freep) struct error *err = NULL;

    put(dir, "f", "12345");
    assert_int_equal(fs_read_file(dir, "f", 5, &text, NULL), 0);
    assert_string_equal(buf_text(&text), "12345");
    assert_int_equal(fs_read_file(dir, "f", 4, &text, &err), -ERROR_LIMIT);
    assert_string_equal(error_message(err), "'f' is larger than 4 bytes");
    error_freep(&err);
    assert_int_equal(fs_read_file(dir, "none", 4, &text, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "cannot open 'none': No such file or directory");
    assert_int_equal(error_errno_of(err), ENOENT);
}

static void what_is_no_regular_file_is_not_read(void **state)
{
    int dir = folder_fd(state);
    scoped(buf_done) struct buf text = {0};

    assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
    /* Would wait for a writer for ever. */
    assert_int_equal(fs_read_file(dir, "fifo", 9, &text, NULL), -ERROR_SYSTEM);
    assert_int_equal(fs_read_file(dir, ".", 9, &text, NULL), -ERROR_SYSTEM);
    assert_int_equal(fs_read_file(AT_FDCWD, "/dev/zero", 9, &text, NULL), -ERROR_SYSTEM);
}

static void an_atomic_write_replaces_the_file_and_leaves_no_other(void **state)
{
    int dir = folder_fd(state);
    scoped(str_list_done) struct str_list names = {0};

    put(dir, "f", "old");
    assert_int_equal(fs_write_atomic(dir, "f", &(struct fs_content){"new", 3, 0640, FS_SYNC}, NULL),
                     0);
    scoped(mem_freep) char *text = content(dir, "f");

    assert_string_equal(text, "new");
    assert_int_equal(fs_each(dir, count_name, &names, NULL), 0);
    assert_int_equal(names.count, 1);
}

static void a_failed_atomic_write_leaves_nothing(void **state)
{
    int dir = folder_fd(state);
    scoped(str_list_done) struct str_list names = {0};
    scoped(error_freep) struct error *err = NULL;

    /* A folder is in the way of the rename. */
    assert_int_equal(fs_mkdirs(dir, "f/g", 0755, NULL), 0);
    assert_int_equal(fs_write_atomic(dir, "f", &(struct fs_content){"x", 1, 0644, FS_SYNC}, &err),
                     -ERROR_SYSTEM);
    assert_int_equal(fs_each(dir, count_name, &names, NULL), 0);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "f");
    assert_int_equal(
        fs_write_atomic(dir, "none/f", &(struct fs_content){"x", 1, 0644, FS_SYNC}, NULL),
        -ERROR_SYSTEM);
}

static void folders_are_made_at_every_level(void **state)
{
    int dir = folder_fd(state);
    scoped(error_freep) struct error *err = NULL;
    scoped(fd_closep) int fd = -1;

    assert_int_equal(fs_mkdirs(dir, "a/b//c/", 0700, NULL), 0);
    assert_int_equal(fs_mkdirs(dir, "a/b/c", 0700, NULL), 0);
    assert_true(exists(dir, "a/b/c"));
    assert_int_equal(fs_open_dir(dir, "a/x/y", 0700, &fd, NULL), 0);
    assert_true(fd >= 0);
    put(dir, "a/file", "");
    assert_int_equal(fs_mkdirs(dir, "a/file/b", 0700, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "cannot make the folder 'a/file': Not a directory");
}

static void names_come_in_the_order_of_their_bytes(void **state)
{
    int dir = folder_fd(state);
    scoped(str_list_done) struct str_list names = {0};
    static const char *const files[] = {"b", "a", "\xff", "B", ".hidden", "a b\n"};
    static const char *const sorted[] = {".hidden", "B", "a", "a b\n", "b", "\xff"};

    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put(dir, files[i], "");
    assert_int_equal(fs_each(dir, count_name, &names, NULL), 0);
    assert_int_equal(names.count, ARRAY_SIZE(sorted));
    for (size_t i = 0; i < ARRAY_SIZE(sorted); i++)
        assert_string_equal(names.items[i], sorted[i]);
}

static void a_visit_that_fails_is_the_last(void **state)
{
    int dir = folder_fd(state);
    scoped(str_list_done) struct str_list names = {0};
    scoped(error_freep) struct error *err = NULL;

    put(dir, "stop", "");
    put(dir, "zz", "");
    assert_int_equal(fs_each(dir, count_name, &names, &err), -ERROR_USER);
    assert_int_equal(names.count, 1);
}

static void a_tree_goes_with_all_that_is_in_it(void **state)
{
    int dir = folder_fd(state);

    assert_int_equal(fs_mkdirs(dir, "keep", 0755, NULL), 0);
    put(dir, "keep/f", "x");
    assert_int_equal(fs_mkdirs(dir, "t/a/b", 0755, NULL), 0);
    for (int i = 0; i < 300; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "t/a/%d", i);
        put(dir, name, "");
    }
    assert_int_equal(symlinkat("../../keep", dir, "t/a/link"), 0);
    assert_int_equal(mkfifoat(dir, "t/a/fifo", 0600), 0);
    assert_int_equal(fchmodat(dir, "t/a/b", 0, 0), 0);
    assert_int_equal(fchmodat(dir, "t/a", 0500, 0), 0);
    assert_int_equal(fs_remove_tree(dir, "t", NULL), 0);
    assert_false(exists(dir, "t"));
    assert_true(exists(dir, "keep/f"));
    assert_int_equal(fs_remove_tree(dir, "t", NULL), 0);
    assert_int_equal(symlinkat("keep", dir, "link"), 0);
    assert_int_equal(fs_remove_tree(dir, "link", NULL), 0);
    assert_false(exists(dir, "link"));
    assert_int_equal(fs_remove_tree(dir, "keep/f", NULL), 0);
    assert_true(exists(dir, "keep"));
    assert_int_equal(fs_remove_tree(dir, "keep//", NULL), 0);
    assert_false(exists(dir, "keep"));
    assert_int_equal(fs_remove_tree(dir, "none/none", NULL), 0);
}

static void a_tree_may_be_deeper_than_descriptors_and_paths(void **state)
{
    int dir = folder_fd(state);
    scoped(fd_closep) int fd = dup(dir);

    for (int i = 0; i < 3000; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(next >= 0);
        (void)close(fd);
        fd = next;
    }
    put(fd, "bottom", "");
    struct rlimit before, few = {.rlim_cur = 128};

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int r = fs_remove_tree(dir, "d", NULL);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, 0);
    assert_false(exists(dir, "d"));
}

/* In a child with a mount namespace of its own: 0 when the mount stayed, 77 when not allowed. */
static int remove_around_a_mount(const char *path)
{
    scoped(mem_freep) char *target = path_join(path, "t/mount");

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return 77;
    if (mount("none", target, "tmpfs", 0, NULL) < 0)
        return 77;
    scoped(mem_freep) char *file = path_join(target, "precious");
    /* Opened only now: an older descriptor would not show the mount. */
    scoped(fd_closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fs_write_atomic(AT_FDCWD, file, &(struct fs_content){"x", 1, 0644, FS_NO_SYNC}, NULL) < 0)
        return 1;
    if (fs_open_beneath(dir, "t/mount/precious", O_RDONLY, 0, FS_LINKS_BENEATH) != -EXDEV)
        return 4;
    if (fs_remove_tree(dir, "t", NULL) >= 0)
        return 2;
    return exists(AT_FDCWD, file) ? 0 : 3;
}

static void a_mount_is_not_crossed(void **state)
{
    const struct folder *folder = *state;
    int status = 0;

    assert_int_equal(fs_mkdirs(folder->fd, "t/mount", 0755, NULL), 0);
    pid_t pid = fork();

    if (pid == 0)
        _exit(remove_around_a_mount(folder->path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

static void a_memory_file_cannot_change(void **state)
{
    (void)state;
    scoped(fd_closep) int fd = -1;
    scoped(buf_done) struct buf text = {0};

    assert_int_equal(fs_memfd("x", "abc", 3, &fd, NULL), 0);
    assert_int_equal(fs_read_fd(fd, "x", 10, &text, NULL), 0);
    assert_string_equal(buf_text(&text), "abc");
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 10), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_ptr_equal(mmap(NULL, 3, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    scoped(fd_closep) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    scoped(error_freep) struct error *err = NULL;

    if (fd < 0)
        skip();
    assert_int_equal(fs_write_all(fd, "full", "x", 1, &err), -ERROR_SYSTEM);
    assert_int_equal(error_errno_of(err), ENOSPC);
}

static void paths_are_joined_and_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *base, *path, *joined;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/x", "/y", "/y"},
                 {"", "b", "b"},    {"a", "", "a"},     {"/", "b", "/b"}};
    static const struct {
        const char *path, *dir, *base;
    } parts[] = {{"a/b", "a", "b"},
                 {"b", ".", "b"},
                 {"/b", "/", "b"},
                 {"/a/b/c", "/a/b", "c"},
                 {"a//b", "a", "b"}};

    for (size_t i = 0; i < ARRAY_SIZE(joins); i++) {
        scoped(mem_freep) char *joined = path_join(joins[i].base, joins[i].path);

        assert_string_equal(joined, joins[i].joined);
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        scoped(mem_freep) char *dir = path_dir(parts[i].path);

        assert_string_equal(dir, parts[i].dir);
        assert_string_equal(path_base(parts[i].path), parts[i].base);
    }
}

static void an_inside_path_cannot_escape(void **state)
{
    (void)state;
    static const char *const inside[] = {"a", "a/b", ".", "a/.b", "...", "a/..b"};
    static const char *const outside[] = {"",     "/",    "/a", "..",    "a/..",
                                          "../a", "a//b", "a/", "a/../b"};

    for (size_t i = 0; i < ARRAY_SIZE(inside); i++)
        assert_true(path_is_inside(inside[i]));
    for (size_t i = 0; i < ARRAY_SIZE(outside); i++)
        assert_false(path_is_inside(outside[i]));
}

static void paths_have_a_normal_form(void **state)
{
    (void)state;
    static const struct {
        const char *path, *normal;
    } cases[] = {
        {"a/./b/../c", "a/c"},
        {"", "."},
        {".", "."},
        {"a/..", "."},
        {"../a", "../a"},
        {"a/../../b", "../b"},
        {"/..", "/"},
        {"/../a//b/", "/a/b"},
        {"//", "/"},
        {"/a/..", "/"},
        {"../..", "../.."},
        {"./a/", "a"},
        {"...", "..."},
        {"a/.../b", "a/.../b"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(mem_freep) char *normal = path_normal(cases[i].path);

        assert_string_equal(normal, cases[i].normal);
    }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(nothing_leads_out_of_a_tree),
        cmocka_unit_test(magic_links_are_not_followed),
        WITH_FOLDER(a_file_is_read_whole_or_not),
        WITH_FOLDER(what_is_no_regular_file_is_not_read),
        WITH_FOLDER(an_atomic_write_replaces_the_file_and_leaves_no_other),
        WITH_FOLDER(a_failed_atomic_write_leaves_nothing),
        WITH_FOLDER(folders_are_made_at_every_level),
        WITH_FOLDER(names_come_in_the_order_of_their_bytes),
        WITH_FOLDER(a_visit_that_fails_is_the_last),
        WITH_FOLDER(a_tree_goes_with_all_that_is_in_it),
        WITH_FOLDER(a_tree_may_be_deeper_than_descriptors_and_paths),
        WITH_FOLDER(a_mount_is_not_crossed),
        cmocka_unit_test(a_memory_file_cannot_change),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(paths_are_joined_and_taken_apart),
        cmocka_unit_test(an_inside_path_cannot_escape),
        cmocka_unit_test(paths_have_a_normal_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
