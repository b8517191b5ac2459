/*
 * Property: what collect takes from a workspace, applied to a fresh copy of what was staged, gives
 * the workspace again, byte for byte; for a copied tree, and as root for a real overlay's upper
 * layer.
 */

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/apply.h"
#include "collect/gather.h"
#include "collect/test_trees.h"
#include "collect/tree.h"
#include "collect/walk.h"

#define SEEDS 60
#define OPERATIONS 40

/* Where one round happens: folders below a temporary one. */
struct round {
    int base_fd;
    struct manifest staged;
};

static int open_folder(int base_fd, const char *name)
{
    int fd;
    struct error *err = NULL;

    assert_int_equal(fs_open_dir(base_fd, name, 0755, &fd, &err), 0);
    return fd;
}

/* Copies a folder into store/tree and says what is in it. */
static void seal(int base_fd, const char *from, const char *to, struct manifest *ret)
{
    scoped(fd_closep) int source = open_folder(base_fd, from);
    scoped(fd_closep) int destination = open_folder(base_fd, to);
    struct tree_rules rules = {.keep_links = true};
    struct tree_copy copy = {.mount_point = "."};
    struct error *err = NULL;

    if (tree_add(source, destination, &rules, &copy, ret, &err) < 0)
        fail_msg("%s", error_message(err));
}

static void check_round(struct round *round, enum workspace_kind kind, const char *workspace,
                        const char *wanted)
{
    scoped(fd_closep) int workspace_fd = open_folder(round->base_fd, workspace);
    scoped(fd_closep) int layer_fd = open_folder(round->base_fd, "lower/tree");
    scoped(fd_closep) int fresh_fd = open_folder(round->base_fd, "fresh/tree");
    scoped(fd_closep) int archive = openat(round->base_fd, "artifacts.tar", O_RDWR | O_CREAT, 0600);
    scoped(fd_closep) int changes = openat(round->base_fd, "changes.json", O_RDWR | O_CREAT, 0600);
    scoped(gather_freep) struct gather *gather = NULL;
    scoped(manifest_done) struct manifest left = {0}, applied = {0};
    scoped(buf_done) struct buf left_text = {0}, applied_text = {0};
    struct gather_input input = {
        .kind = kind,
        .workspace_fd = workspace_fd,
        .staged = &round->staged,
        .layer_fds = {layer_fd},
        .layer_count = 1,
        .root_path = "/workspace",
    };
    struct gather_counts counts;
    struct error *err = NULL;

    if (gather_find(&input, &gather, &err) < 0 ||
        gather_write(gather, archive, changes, &counts, &err) < 0)
        fail_msg("%s", error_message(err));
    assert_int_equal(gather_refused(gather)->total, 0);
    assert_int_equal(lseek(changes, 0, SEEK_SET), 0);
    if (apply_changes(fresh_fd, archive, changes, &err) < 0)
        fail_msg("%s", error_message(err));
    seal(round->base_fd, wanted, "left", &left);
    seal(round->base_fd, "fresh/tree", "applied", &applied);
    manifest_write(&left_text, &left);
    manifest_write(&applied_text, &applied);
    assert_string_equal(buf_text(&applied_text), buf_text(&left_text));
}

static void start_round(struct round *round, struct random *random)
{
    scoped(manifest_done) struct manifest again = {0};

    *round = (struct round){.base_fd = temporary_folder()};
    scoped(fd_closep) int source = open_folder(round->base_fd, "source");

    random_tree(source, random);
    seal(round->base_fd, "source", "lower", &round->staged);
    seal(round->base_fd, "source", "fresh", &again);
}

static void end_round(struct round *round)
{
    manifest_done(&round->staged);
    remove_temporary_folder(&round->base_fd);
}

static void a_copied_workspace_comes_back_as_it_was_left(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random random = {seed};
        scoped(manifest_done) struct manifest ignored = {0};
        struct round round;

        start_round(&round, &random);
        seal(round.base_fd, "source", "work", &ignored);
        {
            scoped(fd_closep) int workspace = open_folder(round.base_fd, "work/tree");

            random_changes(workspace, &random, OPERATIONS);
        }
        check_round(&round, WORKSPACE_TREE, "work/tree", "work/tree");
        end_round(&round);
    }
}

/* In a mount namespace of its own: an overlay of lower/tree, changed by us. 0: it went well. */
static int overlay_rounds(bool user_marks)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct random random = {seed};
        struct round round;

        start_round(&round, &random);
        assert_int_equal(fchdir(round.base_fd), 0);
        assert_int_equal(mkdir("memory", 0755), 0);
        assert_int_equal(mount("tmpfs", "memory", "tmpfs", 0, NULL), 0);
        assert_int_equal(mkdir("memory/upper", 0755), 0);
        assert_int_equal(mkdir("memory/work", 0755), 0);
        assert_int_equal(mkdir("merged", 0755), 0);
        const char *options =
            user_marks ? "lowerdir=lower/tree,upperdir=memory/upper,workdir=memory/work,userxattr"
                       : "lowerdir=lower/tree,upperdir=memory/upper,workdir=memory/work,"
                         "redirect_dir=on,metacopy=off,index=off";

        assert_int_equal(mount("overlay", "merged", "overlay", 0, options), 0);
        {
            scoped(fd_closep) int workspace = open_folder(round.base_fd, "merged");

            random_changes(workspace, &random, OPERATIONS);
        }
        check_round(&round, user_marks ? WORKSPACE_UPPER_USER : WORKSPACE_UPPER_TRUSTED,
                    "memory/upper", "merged");
        assert_int_equal(umount2("merged", MNT_DETACH), 0);
        assert_int_equal(umount2("memory", MNT_DETACH), 0);
        assert_int_equal(chdir("/"), 0);
        end_round(&round);
    }
    return 0;
}

static void run_overlays(bool user_marks)
{
    if (geteuid() != 0) {
        print_message("SKIPPED: a real overlay needs root\n");
        skip();
    }
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
            _exit(77);
        _exit(overlay_rounds(user_marks));
    }
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("SKIPPED: no mount namespace here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void an_overlay_workspace_comes_back_as_it_was_left(void **state)
{
    (void)state;
    run_overlays(false);
}

static void an_overlay_with_user_marks_comes_back_as_it_was_left(void **state)
{
    (void)state;
    run_overlays(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copied_workspace_comes_back_as_it_was_left),
        cmocka_unit_test(an_overlay_workspace_comes_back_as_it_was_left),
        cmocka_unit_test(an_overlay_with_user_marks_comes_back_as_it_was_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
