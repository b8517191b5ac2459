#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/claim.h"
#include "run/identity.h"
#include "run/opener.h"

/* Root's own folder with a secret, and a place that only root may write to. */
struct place {
    char *root, *secret, *fifo;
};

static int set_up(void **state)
{
    struct place *place = mem_new(1, sizeof(*place));
    char name[] = "/tmp/test_identity.XXXXXX";

    place->root = str_dup(mkdtemp(name));
    place->secret = path_join(place->root, "secret");
    place->fifo = path_join(place->root, "fifo");
    assert_int_equal(fs_write_atomic(AT_FDCWD, place->secret,
                                     &(struct fs_content){"s", 1, 0600, FS_NO_SYNC}, NULL),
                     0);
    assert_int_equal(mkfifo(place->fifo, 0600), 0);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    assert_int_equal(fs_remove_tree(AT_FDCWD, place->root, NULL), 0);
    free(place->root);
    free(place->secret);
    free(place->fifo);
    free(place);
    return 0;
}

/* Runs in a child, so that the test keeps its own identity. Exit status: which step failed, 0 none.
 */
static int in_child(int (*steps)(const struct place *place), const struct place *place)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(steps(place));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int drop(void)
{
    return identity_become(IDENTITY_FIXED_ID, IDENTITY_FIXED_ID, 0, NULL);
}

static int drop_steps(const struct place *place)
{
    if (open(place->secret, O_RDONLY | O_CLOEXEC) < 0)
        return 1; /* the control: root can */
    if (drop() != 0)
        return 2;
    if (geteuid() != IDENTITY_FIXED_ID || getegid() != IDENTITY_FIXED_ID || getgroups(0, NULL) != 0)
        return 3;
    if (open(place->secret, O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
        return 4;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0)
        return 5;
    if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0 || setuid(0) == 0)
        return 6;
    return 0;
}

static void gives_root_up_for_good(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(drop_steps, *state), 0);
}

static int opener_steps(const struct place *place)
{
    struct opener *opener = NULL;

    if (opener_start(IDENTITY_FIXED_ID, IDENTITY_FIXED_ID, &opener, NULL) != 0)
        return 1;
    if (drop() != 0)
        return 2;

    int fd = opener_open(opener, place->secret, 0);
    char byte = 0;

    if (fd < 0 || read(fd, &byte, 1) != 1 || byte != 's')
        return 3;
    if (write(fd, "x", 1) >= 0 || errno != EBADF)
        return 4;
    if (opener_open(opener, place->fifo, 0) != -EINVAL)
        return 5;
    if (opener_open(opener, "/nowhere/at/all", 0) != -ENOENT)
        return 6;
    if (opener_open(opener, place->secret, O_DIRECTORY) != -ENOTDIR)
        return 7;
    opener_free(opener);
    return 0;
}

static void an_opener_reads_what_its_client_may_not(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(opener_steps, *state), 0);
}

static void a_plain_opener_opens_with_the_callers_rights(void **state)
{
    const struct place *place = *state;
    struct opener *opener = opener_plain();
    int fd = opener_open(opener, place->secret, 0);

    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(opener_open(opener, place->fifo, 0), -EINVAL);
    opener_free(opener);
}

static int claim_steps(const struct place *place)
{
    const struct identity identity = {
        .root = true, .uid = IDENTITY_FIXED_ID, .gid = IDENTITY_FIXED_ID};
    char *folder = path_join(place->root, "runs/one");
    char *file = path_join(place->root, "junit.xml");
    const struct claim_place places[] = {{CLAIM_DIR, folder}, {CLAIM_FILE, file}};
    struct claim *claim = NULL;
    struct stat st;
    int fd = -1;

    if (claim_start(&identity, places, 2, &claim, NULL) != 0)
        return 1;
    if (drop() != 0)
        return 2;
    if (access(folder, F_OK) == 0)
        return 3; /* nothing exists before it is asked for */
    if (claim_make(claim, 0, &fd, NULL) != 0 || fstat(fd, &st) != 0)
        return 4;
    if (st.st_uid != IDENTITY_FIXED_ID || (st.st_mode & 07777) != 0700)
        return 5;
    if (mkdirat(fd, "trials", 0700) != 0)
        return 6;
    if (claim_make(claim, 1, &fd, NULL) != 0 || write(fd, "x", 1) != 1)
        return 7;
    claim_free(claim);
    return 0;
}

static void a_claim_makes_places_after_the_drop(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(claim_steps, *state), 0);
}

static int device_steps(const struct place *place)
{
    const struct identity identity = {
        .root = true, .uid = IDENTITY_FIXED_ID, .gid = IDENTITY_FIXED_ID};
    char *device = path_join(place->root, "null");
    const struct claim_place places[] = {{CLAIM_FILE, device}};
    struct claim *claim = NULL;
    struct stat st;
    int fd = -1;

    if (mknod(device, S_IFCHR | 0666, makedev(1, 3)) != 0)
        return 1;
    if (claim_start(&identity, places, 1, &claim, NULL) != 0 || drop() != 0)
        return 2;
    if (claim_make(claim, 0, &fd, NULL) != 0 || fstat(fd, &st) != 0)
        return 3;
    claim_free(claim);
    return st.st_uid == 0 && st.st_gid == 0 ? 0 : 4;
}

static void a_claim_gives_no_device_away(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_int_equal(in_child(device_steps, *state), 0);
}

static void a_claim_says_which_place_it_cannot_make(void **state)
{
    const struct identity identity = {.uid = geteuid(), .gid = getegid()};
    const struct claim_place place = {CLAIM_FILE, "/dev/null/x"};
    scoped(claim_freep) struct claim *claim = NULL;
    scoped(error_freep) struct error *err = NULL;
    int fd = -1;

    (void)state;
    assert_int_equal(claim_start(&identity, &place, 1, &claim, NULL), 0);
    assert_int_equal(claim_make(claim, 0, &fd, &err), -ERROR_SYSTEM);
    assert_string_equal(error_message(err), "cannot make '/dev/null/x': Not a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(gives_root_up_for_good, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_opener_reads_what_its_client_may_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_plain_opener_opens_with_the_callers_rights, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_claim_makes_places_after_the_drop, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_claim_gives_no_device_away, set_up, tear_down),
        cmocka_unit_test(a_claim_says_which_place_it_cannot_make),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
