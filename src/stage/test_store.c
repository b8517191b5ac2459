#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/test_trees.h"
#include "stage/internal.h"

/* A store in a temporary folder, and sources beside it. */
struct place {
    int fd;
    char *root;
    struct store *store;
};

static char *path_of(int fd)
{
    scoped(mem_freep) char *link = str_format("/proc/self/fd/%d", fd);
    char path[4096];
    ssize_t length = readlink(link, path, sizeof(path) - 1);

    assert_true(length > 0);
    return str_ndup(path, (size_t)length);
}

static struct store *open_store(const char *root, const char *run)
{
    struct store *store;
    struct error *err = NULL;

    if (store_open(root, run, &store, &err) < 0)
        fail_msg("%s", error_message(err));
    return store;
}

static int set_up(void **state)
{
    struct place *place = mem_new(1, sizeof(*place));

    place->fd = temporary_folder();
    scoped(mem_freep) char *base = path_of(place->fd);

    place->root = path_join(base, "store");
    place->store = open_store(place->root, "run-1");
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    store_close(place->store);
    remove_temporary_folder(&place->fd);
    free(place->root);
    free(place);
    return 0;
}

static int open_source(const struct place *place, const char *name)
{
    int fd;

    assert_int_equal(fs_open_dir(place->fd, name, 0755, &fd, NULL), 0);
    return fd;
}

/*
 * Until a change would show in the times of files. Files may carry the precise time (multigrain
 * timestamps), and the coarse clock, which the store goes by, lags behind it by a tick or two.
 */
static void wait_for_a_tick(void)
{
    struct timespec written, coarse;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &written), 0);
    do
        assert_int_equal(clock_gettime(CLOCK_REALTIME_COARSE, &coarse), 0);
    while (coarse.tv_sec < written.tv_sec ||
           (coarse.tv_sec == written.tv_sec && coarse.tv_nsec <= written.tv_nsec));
}

static struct layer add(struct store *store, enum store_half half, int fd)
{
    struct store_source source = {.fd = fd, .label = "source", .mount_point = "."};
    struct layer layer;
    struct error *err = NULL;

    if (store_add(store, half, NULL, &source, &layer, &err) < 0)
        fail_msg("%s", error_message(err));
    return layer;
}

/* What is in the file of a layer; owned. */
static char *content_of(const struct layer *layer, const char *path)
{
    struct buf content = {0};

    assert_int_equal(fs_read_file(layer->tree_fd, path, 1000, &content, NULL), 0);
    return buf_take(&content);
}

static size_t entries_in(int dir_fd, const char *name)
{
    scoped(fd_closep) int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fdopendir(dup(fd));
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir); /* only read */
    return count - 2;
}

static void an_entry_holds_what_the_source_held(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");

    put_file(source, "a/b.txt", "hello");
    put_file(source, "run.sh", "#!/bin/sh\n");
    assert_int_equal(fchmodat(source, "run.sh", 04755, 0), 0);
    assert_int_equal(symlinkat("a/b.txt", source, "link"), 0);
    scoped(layer_done) struct layer layer = add(place->store, STORE_PUBLIC, source);
    scoped(mem_freep) char *content = content_of(&layer, "a/b.txt");
    struct stat status;

    assert_string_equal(content, "hello");
    assert_int_equal(layer.files, 4);
    assert_int_equal(layer.bytes, 15);
    assert_int_equal(fstatat(layer.tree_fd, "run.sh", &status, 0), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(status.st_uid, geteuid());
    assert_string_equal(manifest_find(&layer.manifest, "link")->target, "a/b.txt");
    assert_int_equal(entries_in(place->store->root_fd, "tmp"), 0);
}

static void an_unchanged_source_is_found_without_a_copy(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");

    put_file(source, "a", "1");
    wait_for_a_tick();
    scoped(layer_done) struct layer first = add(place->store, STORE_PUBLIC, source);
    scoped(layer_done) struct layer again = add(place->store, STORE_PUBLIC, source);

    assert_int_equal(store_copies(place->store), 1);
    assert_true(sha256_equal(&first.root, &again.root));
    /* Another process, another run. */
    scoped(store_closep) struct store *other = open_store(place->root, NULL);
    scoped(layer_done) struct layer found = add(other, STORE_PUBLIC, source);

    assert_int_equal(store_copies(other), 0);
    assert_true(sha256_equal(&first.root, &found.root));
}

static void a_changed_source_is_copied_anew_by_the_next_run(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");

    put_file(source, "a", "1");
    wait_for_a_tick();
    scoped(layer_done) struct layer first = add(place->store, STORE_PUBLIC, source);
    scoped(fd_closep) int file = openat(source, "a", O_WRONLY | O_CLOEXEC);

    /* The same size and inode: only the times tell. */
    assert_int_equal(pwrite(file, "2", 1, 0), 1);
    scoped(layer_done) struct layer same_run = add(place->store, STORE_PUBLIC, source);
    scoped(store_closep) struct store *other = open_store(place->root, NULL);
    scoped(layer_done) struct layer changed = add(other, STORE_PUBLIC, source);
    scoped(mem_freep) char *content = content_of(&changed, "a");

    assert_true(sha256_equal(&first.root, &same_run.root)); /* a run sees one state */
    assert_int_equal(store_copies(other), 1);
    assert_string_equal(content, "2");
}

static void a_link_that_took_anothers_place_is_a_change(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");

    put_file(source, "links/a", "1");
    assert_int_equal(symlinkat("a", source, "links/to"), 0);
    wait_for_a_tick();
    scoped(layer_done) struct layer first = add(place->store, STORE_PUBLIC, source);

    /* Links are not looked at one by one: their directory tells. */
    assert_int_equal(symlinkat("b", source, "links/new"), 0);
    assert_int_equal(renameat(source, "links/new", source, "links/to"), 0);
    scoped(store_closep) struct store *other = open_store(place->root, NULL);
    scoped(layer_done) struct layer changed = add(other, STORE_PUBLIC, source);

    assert_int_equal(store_copies(other), 1);
    assert_string_equal(manifest_find(&changed.manifest, "links/to")->target, "b");
    assert_false(sha256_equal(&first.root, &changed.root));
}

static void a_tree_alone_is_found_without_its_manifest(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");
    struct store_source alone = {
        .fd = source, .label = "source", .mount_point = ".", .tree_only = true};

    put_file(source, "a", "1");
    wait_for_a_tick();
    scoped(layer_done) struct layer first = add(place->store, STORE_PUBLIC, source);
    scoped(store_closep) struct store *other = open_store(place->root, NULL);
    scoped(layer_done) struct layer found = {.tree_fd = -1};

    assert_int_equal(store_add(other, STORE_PUBLIC, NULL, &alone, &found, NULL), 0);
    scoped(mem_freep) char *content = content_of(&found, "a");

    assert_int_equal(store_copies(other), 0);
    assert_true(sha256_equal(&first.root, &found.root));
    assert_int_equal(found.manifest.count, 0);
    assert_string_equal(content, "1");
}

static void a_source_changed_in_this_very_tick_gets_no_key(void **state)
{
    struct place *place = *state;

    /* Unless the clock ticks right between the change and the look, which is rare. */
    for (int i = 0; i < 50; i++) {
        scoped(mem_freep) char *name = str_format("source-%d", i);
        scoped(fd_closep) int source = open_source(place, name);
        size_t keys = entries_in(place->store->root_fd, "keys");

        put_file(source, "a", name);
        scoped(layer_done) unused_ok struct layer layer = add(place->store, STORE_PUBLIC, source);

        if (entries_in(place->store->root_fd, "keys") == keys)
            return;
    }
    fail_msg("every fresh source got a key");
}

static void what_cannot_be_staged_is_named(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int fifo = open_source(place, "fifo");
    scoped(fd_closep) int links = open_source(place, "links");
    struct store_source sources[] = {
        {.fd = fifo, .label = "template", .mount_point = "."},
        {.fd = links, .label = "template", .mount_point = "."},
        {.fd = links, .label = "template", .mount_point = "../up"},
        {.fd = links, .label = "template", .mount_point = ".", .max_entries = 1},
    };
    static const char *const complaints[] = {
        "cannot stage 'template': 'pipe' cannot be staged: a FIFO",
        "cannot stage 'template': 2 links lead out of it: 'away' -> '/etc/passwd', 'up' -> '../x'",
        "cannot stage 'template': the mount point '../up' leads out of the workspace",
        "cannot stage 'template': more than 1 entries",
    };

    assert_int_equal(mkfifoat(fifo, "pipe", 0644), 0);
    put_file(links, "file", "");
    assert_int_equal(symlinkat("/etc/passwd", links, "away"), 0);
    assert_int_equal(symlinkat("../x", links, "up"), 0);
    assert_int_equal(symlinkat("file", links, "fine"), 0);
    assert_int_equal(symlinkat("nowhere", links, "dangling"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        scoped(error_freep) struct error *err = NULL;
        struct layer layer;

        assert_true(store_add(place->store, STORE_PUBLIC, NULL, &sources[i], &layer, &err) < 0);
        assert_string_equal(error_message(err), complaints[i]);
    }
    assert_int_equal(entries_in(place->store->root_fd, "tmp"), 0);
    assert_int_equal(entries_in(place->store->root_fd, "public"), 0);
}

static void ignored_left_out_and_hollow_paths_stay_behind(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");
    char *ignore_items[] = {(char[]){"*.pyc"}, (char[]){"build/"}, (char[]){"docs/*.md"},
                            (char[]){"!keep.pyc"}, NULL};
    char *out_items[] = {(char[]){"secret"}, NULL};
    char *hollow_items[] = {(char[]){"ref"}, (char[]){"answer.txt"}, NULL};
    struct str_list ignore = {ignore_items, 4}, out = {out_items, 1}, hollow = {hollow_items, 2};
    struct store_source stored = {.fd = source,
                                  .label = "s",
                                  .mount_point = "in/put",
                                  .ignore = &ignore,
                                  .leave_out = &out,
                                  .hollow = &hollow,
                                  .skip_runs = true};
    static const char *const files[] = {
        "a.pyc", "keep.pyc",   "x/b.pyc", "build/o",      "docs/a.md", "docs/b.c",   "secret/s",
        "ref/r", "answer.txt", "x/build", "run/run.json", "run/t",     "x/docs/c.md"};
    static const char *const wanted[] = {"in",
                                         "in/put",
                                         "in/put/answer.txt",
                                         "in/put/docs",
                                         "in/put/docs/b.c",
                                         "in/put/keep.pyc",
                                         "in/put/ref",
                                         "in/put/x",
                                         "in/put/x/build",
                                         "in/put/x/docs",
                                         "in/put/x/docs/c.md"};
    struct layer layer;

    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put_file(source, files[i], "content");
    assert_int_equal(store_add(place->store, STORE_PUBLIC, NULL, &stored, &layer, NULL), 0);
    assert_int_equal(layer.manifest.count, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        assert_string_equal(layer.manifest.entries[i].path, wanted[i]);
    assert_int_equal(manifest_find(&layer.manifest, "in/put/answer.txt")->size_bytes, 0);
    layer_done(&layer);
}

static void texts_become_files(void **state)
{
    struct place *place = *state;
    static const struct store_file items[] = {
        {.path = "main.py", .content = "old"},
        {.path = "lib/x.py", .content = "x"},
        {.path = "main.py", .content = "print(1)"},
    };
    static const struct store_file bad[] = {{.path = "a", .content = "1"},
                                            {.path = "a/b", .content = "2"}};
    struct store_files files = {.items = items, .count = 3, .mount_point = "app"};
    struct store_files conflict = {.items = bad, .count = 2, .mount_point = "."};
    struct layer layer;
    scoped(error_freep) struct error *err = NULL;

    for (int i = 0; i < 2; i++) { /* the second time it is there */
        assert_int_equal(store_add_files(place->store, STORE_PUBLIC, &files, &layer, NULL), 0);
        scoped(mem_freep) char *content = content_of(&layer, "app/main.py");

        assert_string_equal(content, "print(1)");
        assert_int_equal(layer.files, 4);
        layer_done(&layer);
    }
    assert_int_equal(store_copies(place->store), 1);
    assert_int_equal(store_add_files(place->store, STORE_PUBLIC, &conflict, &layer, &err),
                     -ERROR_TASK);
    assert_string_equal(error_message(err), "'a' is both a file and a folder");
}

static void merged_layers_show_what_an_overlay_would(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int one = open_source(place, "one");
    scoped(fd_closep) int two = open_source(place, "two");

    put_file(one, "a/x", "1x");
    put_file(one, "a/y", "1y");
    put_file(one, "b/z", "1z");
    put_file(two, "a/x", "2x");
    put_file(two, "b", "a file now");
    struct layer layers[] = {add(place->store, STORE_PUBLIC, one),
                             add(place->store, STORE_PUBLIC, two)};
    struct layer merged;

    assert_int_equal(store_merge(place->store, STORE_PUBLIC, layers, 2, &merged, NULL), 0);
    scoped(mem_freep) char *x = content_of(&merged, "a/x");
    scoped(mem_freep) char *y = content_of(&merged, "a/y");
    scoped(mem_freep) char *b = content_of(&merged, "b");

    assert_string_equal(x, "2x");
    assert_string_equal(y, "1y");
    assert_string_equal(b, "a file now");
    assert_int_equal(merged.files, 4);
    layer_done(&merged);
    layer_done(&layers[0]);
    layer_done(&layers[1]);
}

static void the_private_part_goes_with_its_run(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");
    struct stat status;

    put_file(source, "answer", "42");
    scoped(layer_done) unused_ok struct layer layer = add(place->store, STORE_PRIVATE, source);

    assert_int_equal(fstatat(place->store->root_fd, "private", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(fstatat(place->store->root_fd, "private/run-1", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(entries_in(place->store->root_fd, "public"), 0);
    assert_int_equal(entries_in(place->store->root_fd, "keys"), 0);
    scoped(fd_closep) int root = dup(place->store->root_fd);

    store_close(place->store);
    assert_int_equal(entries_in(root, "private"), 0);
    place->store = open_store(place->root, "run-1");
}

static void a_run_in_use_is_not_taken_and_not_swept(void **state)
{
    struct place *place = *state;
    scoped(error_freep) struct error *err = NULL;
    struct store *second;

    assert_int_equal(store_open(place->root, "run-1", &second, &err), -ERROR_USER);
    assert_string_equal(error_message(err),
                        "cannot open the store: 'run-1' is in use by another process");
    scoped(store_closep) struct store *other = open_store(place->root, "run-2");

    assert_int_equal(entries_in(other->root_fd, "private"), 4); /* two runs, two locks */
}

/* A process that stages something private, then dies without a word. */
static void crash_with_private_files(const struct place *place, const char *run)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct store *store;
        struct draft draft;
        int source = open_source(place, "source");
        struct store_source stored = {.fd = source, .label = "s", .mount_point = "."};
        struct layer layer;

        if (store_open(place->root, run, &store, NULL) < 0 ||
            store_add(store, STORE_PRIVATE, NULL, &stored, &layer, NULL) < 0 ||
            draft_start(store, STORE_PUBLIC, &draft, NULL) < 0)
            _exit(1);
        _exit(0);
    }
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void what_a_crash_left_is_removed_by_the_next_command(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");

    put_file(source, "answer", "42");
    crash_with_private_files(place, "run-9");
    assert_int_equal(entries_in(place->store->root_fd, "private"), 4);
    assert_int_equal(entries_in(place->store->root_fd, "tmp"), 2);
    scoped(store_closep) struct store *other = open_store(place->root, NULL);

    assert_int_equal(entries_in(other->root_fd, "private"), 2);
    assert_int_equal(entries_in(other->root_fd, "tmp"), 0);
}

static void a_forked_child_keeps_the_private_part(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");
    int ready[2], done[2];

    put_file(source, "answer", "42");
    scoped(layer_done) unused_ok struct layer layer = add(place->store, STORE_PRIVATE, source);

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(done, O_CLOEXEC), 0);
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;

        (void)close(done[1]); /* else the end of the pipe never comes */
        ssize_t n = read(done[0], &byte, 1);

        store_close(place->store); /* only a user of it: nothing may vanish */
        _exit(n == 0 ? 0 : 1);
    }
    scoped(fd_closep) int root = dup(place->store->root_fd);

    store_close(place->store);
    assert_int_equal(entries_in(root, "private"), 2);
    int status;

    (void)close(done[1]); /* lets the child go on */
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)close(done[0]);
    (void)close(ready[0]);
    (void)close(ready[1]);
    place->store = open_store(place->root, "run-2");
    assert_int_equal(entries_in(root, "private"), 2); /* run-1 is swept, run-2 is ours */
}

static void a_damaged_entry_is_not_used(void **state)
{
    struct place *place = *state;
    scoped(fd_closep) int source = open_source(place, "source");
    scoped(error_freep) struct error *err = NULL;
    char hex[SHA256_HEX_CHARS + 1];

    put_file(source, "a", "1");
    scoped(layer_done) struct layer layer = add(place->store, STORE_PUBLIC, source);

    sha256_format(&layer.root, hex);
    scoped(mem_freep) char *path = str_format("public/%s/manifest.jsonl", hex);

    put_file(place->store->root_fd, path, "{\"path\":\"b\",\"type\":\"dir\",\"mode\":\"0755\"}\n");
    struct layer again;

    assert_int_equal(store_get(place->store, STORE_PUBLIC, &layer.root, &again, &err),
                     -ERROR_SYSTEM);
    assert_non_null(strstr(error_message(err), "its manifest is damaged"));
}

int main(void)
{
#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        with_store(an_entry_holds_what_the_source_held),
        with_store(an_unchanged_source_is_found_without_a_copy),
        with_store(a_link_that_took_anothers_place_is_a_change),
        with_store(a_tree_alone_is_found_without_its_manifest),
        with_store(a_changed_source_is_copied_anew_by_the_next_run),
        with_store(a_source_changed_in_this_very_tick_gets_no_key),
        with_store(what_cannot_be_staged_is_named),
        with_store(ignored_left_out_and_hollow_paths_stay_behind),
        with_store(texts_become_files),
        with_store(merged_layers_show_what_an_overlay_would),
        with_store(the_private_part_goes_with_its_run),
        with_store(a_run_in_use_is_not_taken_and_not_swept),
        with_store(what_a_crash_left_is_removed_by_the_next_command),
        with_store(a_forked_child_keeps_the_private_part),
        with_store(a_damaged_entry_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
