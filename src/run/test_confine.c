#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/confine.h"

/* Bits that a child reports: what it could do. */
enum ability {
    CAN_EXECUTE = 1 << 0,
    CAN_SOCKET = 1 << 1,
    CAN_READ_OUTSIDE = 1 << 2,
    CAN_WRITE_OUTSIDE = 1 << 3,
    CAN_WRITE_INSIDE = 1 << 4,
    CAN_READ_GIVEN = 1 << 5,
    CAN_WRITE_GIVEN = 1 << 6,
    WAS_CONFINED = 1 << 7,
    CAN_CHANGE_MODES = 1 << 8,
    CAN_SIGNAL = 1 << 9,
};

struct place {
    char *root;
    int inside_fd, given_fd;
};

static bool can_execute(void)
{
    char *argv[] = {str_dup("/bin/true"), NULL};
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        execv(argv[0], argv);
        _exit(errno == EPERM ? 7 : 8);
    }
    free(argv[0]);
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool can_open(int dir_fd, const char *path, int flags)
{
    int fd = openat(dir_fd, path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static unsigned abilities(const struct place *place)
{
    scoped(mem_freep) char *outside = path_join(place->root, "outside.new");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned found = 0;

    found |= can_execute() ? CAN_EXECUTE : 0;
    found |= fd >= 0 ? CAN_SOCKET : 0;
    found |= can_open(AT_FDCWD, "/etc/passwd", O_RDONLY) ? CAN_READ_OUTSIDE : 0;
    found |= can_open(AT_FDCWD, outside, O_WRONLY | O_CREAT) ? CAN_WRITE_OUTSIDE : 0;
    found |= can_open(place->inside_fd, "new", O_WRONLY | O_CREAT) ? CAN_WRITE_INSIDE : 0;
    found |= can_open(place->given_fd, "text", O_RDONLY) ? CAN_READ_GIVEN : 0;
    found |= can_open(place->given_fd, "text", O_WRONLY) ? CAN_WRITE_GIVEN : 0;
    found |= chmod(place->root, 0700) == 0 ? CAN_CHANGE_MODES : 0;
    found |= kill(getppid(), 0) == 0 ? CAN_SIGNAL : 0;
    return found;
}

/* What a child process can do, confined or not. */
static unsigned try_child(const struct place *place, bool confined)
{
    int ends[2];
    int status = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);

    pid_t pid = fork();

    if (pid == 0) {
        struct confine_options options = {
            .write_fds = {place->inside_fd},
            .write_count = 1,
            .read_fds = {place->given_fd},
            .read_count = 1,
        };
        unsigned found = 0;

        if (confined)
            found |= confine_self(&options, NULL) == 0 ? WAS_CONFINED : 0;
        found |= abilities(place);
        _exit(write(ends[1], &found, sizeof(found)) == (ssize_t)sizeof(found) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    unsigned found = 0;

    assert_int_equal(read(ends[0], &found, sizeof(found)), (ssize_t)sizeof(found));
    (void)close(ends[0]);
    (void)close(ends[1]);
    return found;
}

static int set_up(void **state)
{
    struct place *place = mem_new(1, sizeof(*place));
    char name[] = "/tmp/test_confine.XXXXXX";

    place->root = str_dup(mkdtemp(name));

    int root = open(place->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(fs_open_dir(root, "inside", 0700, &place->inside_fd, NULL), 0);
    assert_int_equal(fs_open_dir(root, "given", 0700, &place->given_fd, NULL), 0);
    assert_int_equal(fs_write_atomic(place->given_fd, "text",
                                     &(struct fs_content){"x", 1, 0600, FS_NO_SYNC}, NULL),
                     0);
    (void)close(root);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    (void)close(place->inside_fd);
    (void)close(place->given_fd);
    assert_int_equal(fs_remove_tree(AT_FDCWD, place->root, NULL), 0);
    free(place->root);
    free(place);
    return 0;
}

static void a_confined_process_has_only_its_directory(void **state)
{
    assert_int_equal(try_child(*state, true), WAS_CONFINED | CAN_WRITE_INSIDE | CAN_READ_GIVEN);
}

/* The positive control: the same probe sees all of it when nothing confines. */
static void the_probe_sees_what_an_open_process_can_do(void **state)
{
    assert_int_equal(try_child(*state, false), CAN_EXECUTE | CAN_SOCKET | CAN_READ_OUTSIDE |
                                                   CAN_WRITE_OUTSIDE | CAN_WRITE_INSIDE |
                                                   CAN_READ_GIVEN | CAN_WRITE_GIVEN |
                                                   CAN_CHANGE_MODES | CAN_SIGNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_confined_process_has_only_its_directory, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_probe_sees_what_an_open_process_can_do, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
