#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/apply.h"
#include "collect/collect.h"
#include "collect/gather.h"
#include "collect/test_trees.h"
#include "collect/tree.h"

/* A staged tree and a workspace that was made from it. */
struct place {
    int fd, workspace;
    struct manifest staged;
    struct gather_input input;
    struct gather_counts counts;
    json_t *changes;
};

static const char *const staged_files[] = {"keep", "edit", "gone", "dir/one", "dir/two", "turn/in"};

static void make_copy(const struct place *place, const char *name, struct manifest *ret)
{
    int from, to;
    struct tree_rules rules = {0};
    struct tree_copy copy = {.mount_point = "."};

    assert_int_equal(fs_open_dir(place->fd, "source", 0755, &from, NULL), 0);
    assert_int_equal(fs_open_dir(place->fd, name, 0755, &to, NULL), 0);
    assert_int_equal(tree_add(from, to, &rules, &copy, ret, NULL), 0);
    (void)close(from);
    (void)close(to);
}

static int set_up(void **state)
{
    struct place *place = mem_new(1, sizeof(*place));
    scoped(manifest_done) struct manifest same = {0};
    int source;

    place->fd = temporary_folder();
    assert_int_equal(fs_open_dir(place->fd, "source", 0755, &source, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(staged_files); i++)
        put_file(source, staged_files[i], staged_files[i]);
    (void)close(source);
    make_copy(place, "work", &place->staged);
    make_copy(place, "fresh", &same);
    assert_int_equal(fs_open_dir(place->fd, "work/tree", 0755, &place->workspace, NULL), 0);
    place->input = (struct gather_input){
        .kind = WORKSPACE_TREE, .staged = &place->staged, .root_path = "/workspace"};
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    json_freep(&place->changes);
    manifest_done(&place->staged);
    (void)close(place->workspace);
    remove_temporary_folder(&place->fd);
    free(place);
    return 0;
}

/* Collects into the folder's artifacts.tar and changes.json and reads the latter. */
static void collect(struct place *place)
{
    scoped(fd_closep) int archive = openat(place->fd, "artifacts.tar", O_RDWR | O_CREAT, 0600);
    scoped(fd_closep) int changes = openat(place->fd, "changes.json", O_RDWR | O_CREAT, 0600);
    scoped(gather_freep) struct gather *gather = NULL;
    struct error *err = NULL;

    place->input.workspace_fd = place->workspace;
    if (gather_find(&place->input, &gather, &err) < 0 ||
        gather_write(gather, archive, changes, &place->counts, &err) < 0)
        fail_msg("%s", error_message(err));
    if (json_load(place->fd, "changes.json", (size_t)64 << 20, &place->changes, &err) < 0)
        fail_msg("%s", error_message(err));
}

/* What a file of the folder holds. */
static void read_whole(const struct place *place, const char *name, struct buf *ret)
{
    assert_int_equal(fs_read_file(place->fd, name, (size_t)1 << 20, ret, NULL), 0);
}

/* The reason that the list gives for a path, NULL when it is not in it. */
static const char *reason_of(const struct place *place, const char *list, const char *path)
{
    const json_t *items = json_get_array(place->changes, list);

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);

        if (json_is_string(item) && strcmp(json_string_value(item), path) == 0)
            return path;
        if (str_equal(json_get_text(item, "path"), path)) {
            const char *reason = json_get_text(item, "reason");
            const char *note = json_get_text(item, "note");

            return reason != NULL ? reason : note != NULL ? note : path;
        }
    }
    return NULL;
}

static void an_untouched_workspace_has_no_changes(void **state)
{
    struct place *place = *state;

    collect(place);
    assert_int_equal(place->counts.added + place->counts.modified + place->counts.deleted +
                         place->counts.moved + place->counts.files,
                     0);
}

static void every_kind_of_change_is_listed(void **state)
{
    struct place *place = *state;
    int work = place->workspace;

    put_file(work, "edit", "tide"); /* the same size */
    assert_int_equal(unlinkat(work, "gone", 0), 0);
    assert_int_equal(fs_remove_tree(work, "turn", NULL), 0);
    put_file(work, "turn", "a file now");
    assert_int_equal(renameat(work, "dir", work, "moved"), 0);
    put_file(work, "new/deep/file", "");
    assert_int_equal(fchmodat(work, "keep", 0755, 0), 0);
    collect(place);
    assert_int_equal(place->counts.modified, 3);
    assert_non_null(reason_of(place, "modified", "edit"));
    assert_non_null(reason_of(place, "modified", "keep"));
    assert_non_null(reason_of(place, "modified", "turn"));
    assert_int_equal(place->counts.deleted, 5);
    assert_non_null(reason_of(place, "deleted", "gone"));
    assert_non_null(reason_of(place, "deleted", "turn/in"));
    assert_non_null(reason_of(place, "deleted", "dir"));
    assert_int_equal(place->counts.added, 6);
    assert_non_null(reason_of(place, "added", "new/deep/file"));
    assert_int_equal(place->counts.moved, 2);
    const json_t *move = json_array_get(json_get_array(place->changes, "moved"), 0);

    assert_true(str_equal(json_get_text(move, "from"), "dir/one") ||
                str_equal(json_get_text(move, "from"), "dir/two"));
}

static void what_must_not_come_out_is_refused_with_its_reason(void **state)
{
    struct place *place = *state;
    int work = place->workspace;
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static const struct {
        const char *path, *reason;
    } refused[] = {
        {"fifo", "a FIFO"},
        {"sock", "a socket"},
        {"keep", "a FIFO"}, /* in the place of a staged file: that is gone as well */
        {"out", "a link that leads out of the workspace"},
        {"dir/up", "a link that leads out of the workspace"},
        {"root", "a link that leads out of the workspace"},
        {"usr", "a link that leads out of the workspace"},
        {"bad%0Aname", "a name with control characters or invalid UTF-8"},
        {"bad%FF", "a name with control characters or invalid UTF-8"},
        {"bad%C2%9Bdir", "a name with control characters or invalid UTF-8"},
        {"text", "a link text with control characters or invalid UTF-8"},
    };

    assert_int_equal(mkfifoat(work, "fifo", 0644), 0);
    assert_int_equal(unlinkat(work, "keep", 0), 0);
    assert_int_equal(mkfifoat(work, "keep", 0644), 0);
    assert_int_equal(symlinkat("/etc/passwd", work, "out"), 0);
    assert_int_equal(symlinkat("../../etc", work, "dir/up"), 0);
    assert_int_equal(symlinkat("/", work, "root"), 0);
    assert_int_equal(symlinkat("/usrlocal", work, "usr"), 0);
    assert_int_equal(symlinkat("a\nb", work, "text"), 0);
    put_file(work, "bad\nname", "");
    put_file(work, "bad\xff", "");
    put_file(work,
             "bad\xc2\x9b"
             "dir/inside",
             "");
    assert_int_equal(symlinkat("/usr/bin/env", work, "fine1"), 0);
    assert_int_equal(symlinkat("/dev/null", work, "fine2"), 0);
    assert_int_equal(symlinkat("../edit", work, "dir/fine3"), 0);
    assert_int_equal(symlinkat("/workspace/edit", work, "fine4"), 0);
    assert_int_equal(fchdir(work), 0);
    memcpy(address.sun_path, "sock", 5);
    assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(sock);
    assert_int_equal(chdir("/"), 0);
    collect(place);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        const char *reason = reason_of(place, "refused", refused[i].path);

        if (!str_equal(reason, refused[i].reason))
            fail_msg("%s: %s", refused[i].path, reason == NULL ? "not refused" : reason);
    }
    assert_int_equal(json_get_int(place->changes, "refused_total", 0), ARRAY_SIZE(refused));
    assert_int_equal(place->counts.added, 4);
    assert_non_null(reason_of(place, "deleted", "keep"));
}

static void set_id_bits_and_hard_links_are_noted(void **state)
{
    struct place *place = *state;
    int work = place->workspace;

    put_file(work, "tool", "#!/bin/sh\n");
    assert_int_equal(fchmodat(work, "tool", 06755, 0), 0);
    put_file(work, "twin-a", "same");
    assert_int_equal(linkat(work, "twin-a", work, "twin-b", 0), 0);
    collect(place);
    assert_string_equal(reason_of(place, "notes", "tool"), "its set-id bits were dropped");
    assert_string_equal(reason_of(place, "notes", "twin-a"), "a hard link, kept as a copy");
    assert_int_equal(place->counts.added, 3);
    assert_int_equal(place->counts.bytes, 10 + 4 + 4);
    const json_t *tool = json_array_get(json_get_array(place->changes, "added"), 0);

    assert_string_equal(json_get_text(tool, "mode"), "0755");
}

static void holes_count_against_the_budget_of_bytes(void **state)
{
    struct place *place = *state;
    int work = place->workspace;

    put_file(work, "a-small", "1");
    put_file(work, "bomb", "");
    put_file(work, "c-small", "2");
    int fd = openat(work, "bomb", O_WRONLY | O_CLOEXEC);

    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
    (void)close(fd);
    collect(place);
    assert_string_equal(reason_of(place, "refused", "bomb"), "too many bytes");
    assert_int_equal(place->counts.bytes, 2);
    assert_int_equal(place->counts.files, 2);
}

static void too_many_entries_are_cut_off_and_counted(void **state)
{
    struct place *place = *state;

    for (int i = 0; i < 1500; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "f%04d", i); /* fits */
        int fd = openat(place->workspace, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        (void)close(fd);
    }
    place->input.max_entries = 100;
    collect(place);
    assert_int_equal(place->counts.files, 100);
    assert_int_equal(json_get_int(place->changes, "refused_total", 0), 1400);
    assert_int_equal(json_array_size(json_get_array(place->changes, "refused")), 1000);
}

static void what_is_too_deep_is_refused(void **state)
{
    struct place *place = *state;
    int fd = dup(place->workspace);

    for (int i = 0; i < 80; i++) {
        assert_int_equal(mkdirat(fd, "d", 0755), 0);
        int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)close(fd);
        fd = next;
    }
    (void)close(fd);
    collect(place);
    assert_int_equal(place->counts.added, 64);
    assert_int_equal(json_get_int(place->changes, "refused_total", 0), 1);
    assert_string_equal(
        json_get_text(json_array_get(json_get_array(place->changes, "refused"), 0), "reason"),
        "too deep");
}

static void the_archive_is_the_same_every_time(void **state)
{
    struct place *place = *state;
    struct sha256 digests[2];

    for (int i = 0; i < 2; i++) {
        put_file(place->workspace, "x", "1");
        put_file(place->workspace, "new/y", "2");
        json_freep(&place->changes);
        collect(place);
        digests[i] = place->counts.archive;
        assert_int_equal(fs_remove_tree(place->workspace, "new", NULL), 0);
    }
    assert_true(sha256_equal(&digests[0], &digests[1]));
}

static int apply(const struct place *place, struct error **err)
{
    scoped(fd_closep) int fresh = -1;
    scoped(fd_closep) int archive = openat(place->fd, "artifacts.tar", O_RDONLY | O_CLOEXEC);
    scoped(fd_closep) int changes = openat(place->fd, "changes.json", O_RDONLY | O_CLOEXEC);

    assert_int_equal(fs_open_dir(place->fd, "fresh/tree", 0755, &fresh, NULL), 0);
    return apply_changes(fresh, archive, changes, err);
}

static void closed_folders_are_applied_into_and_closed_again(void **state)
{
    struct place *place = *state;
    int work = place->workspace;
    struct stat status;

    put_file(work, "dir/three", "3");
    put_file(work, "new/file", "4");
    assert_int_equal(unlinkat(work, "dir/one", 0), 0);
    assert_int_equal(fchmodat(work, "dir", 0555, 0), 0);
    assert_int_equal(fchmodat(work, "new", 0500, 0), 0);
    collect(place);
    assert_int_equal(apply(place, NULL), 0);
    assert_int_equal(fstatat(place->fd, "fresh/tree/dir/three", &status, 0), 0);
    assert_int_equal(fstatat(place->fd, "fresh/tree/dir/one", &status, 0), -1);
    assert_int_equal(fstatat(place->fd, "fresh/tree/dir", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0555);
    assert_int_equal(fstatat(place->fd, "fresh/tree/new", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0500);
    assert_int_equal(fchmodat(work, "dir", 0755, 0), 0);
    assert_int_equal(fchmodat(work, "new", 0755, 0), 0);
}

static void a_list_of_deletions_cannot_lead_out(void **state)
{
    struct place *place = *state;
    static const char *const bad[] = {
        "{\"schema\":\"closedbook/changes/1\",\"deleted\":[\"../outside\"]}",
        "{\"schema\":\"closedbook/changes/1\",\"deleted\":[\"/etc\"]}",
        "{\"schema\":\"closedbook/changes/1\",\"deleted\":[1]}",
        "{\"schema\":\"closedbook/changes/1\",\"deleted\":[\"a%zz\"]}",
        "{}",
        "{\"schema\":\"closedbook/changes/1\"}",
        "[",
    };

    put_file(place->fd, "fresh/outside", "here");
    collect(place);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        put_file(place->fd, "changes.json", bad[i]);
        assert_true(apply(place, NULL) < 0);
    }
    assert_int_equal(faccessat(place->fd, "fresh/outside", F_OK, 0), 0);
}

static void links_in_the_way_are_not_followed(void **state)
{
    struct place *place = *state;

    /* A fresh tree that is not what was staged: a folder of it is a link out. */
    put_file(place->workspace, "dir/one", "changed");
    collect(place);
    assert_int_equal(fs_remove_tree(place->fd, "fresh/tree/dir", NULL), 0);
    assert_int_equal(fs_mkdirs(place->fd, "elsewhere", 0755, NULL), 0);
    assert_int_equal(symlinkat("../../elsewhere", place->fd, "fresh/tree/dir"), 0);
    assert_true(apply(place, NULL) < 0);
    assert_int_equal(faccessat(place->fd, "elsewhere/one", F_OK, 0), -1);
}

static void writes_of_an_untouched_workspace_what_a_look_at_it_finds(void **state)
{
    struct place *place = *state;
    scoped(gather_freep) struct gather *gather = NULL;
    struct buf found[2] = {0}, written[2] = {0};
    struct gather_counts counts;

    collect(place);
    read_whole(place, "artifacts.tar", &found[0]);
    read_whole(place, "changes.json", &found[1]);
    scoped(fd_closep) int archive = openat(place->fd, "a", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    scoped(fd_closep) int changes = openat(place->fd, "c", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    place->input.workspace_fd = -1;
    gather_nothing(&place->input, &gather);
    assert_int_equal(gather_write(gather, archive, changes, &counts, NULL), 0);
    read_whole(place, "a", &written[0]);
    read_whole(place, "c", &written[1]);
    assert_true(sha256_equal(&counts.archive, &place->counts.archive));
    assert_true(sha256_equal(&counts.changes, &place->counts.changes));
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(buf_text(&found[i]), buf_text(&written[i]));
    assert_int_equal(found[0].size_bytes, written[0].size_bytes);
    assert_int_equal(counts.files + counts.added + counts.deleted, 0);
    for (size_t i = 0; i < 2; i++) {
        buf_done(&found[i]);
        buf_done(&written[i]);
    }
}

int main(void)
{
#define in_place(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        in_place(writes_of_an_untouched_workspace_what_a_look_at_it_finds),
        in_place(an_untouched_workspace_has_no_changes),
        in_place(every_kind_of_change_is_listed),
        in_place(what_must_not_come_out_is_refused_with_its_reason),
        in_place(set_id_bits_and_hard_links_are_noted),
        in_place(holes_count_against_the_budget_of_bytes),
        in_place(too_many_entries_are_cut_off_and_counted),
        in_place(what_is_too_deep_is_refused),
        in_place(the_archive_is_the_same_every_time),
        in_place(closed_folders_are_applied_into_and_closed_again),
        in_place(a_list_of_deletions_cannot_lead_out),
        in_place(links_in_the_way_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
