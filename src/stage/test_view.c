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
#include "collect/test_trees.h"
#include "stage/stage.h"

struct place {
    int fd;
    char *base;
    struct store *store;
};

static int set_up(void **state)
{
    struct place *place = mem_new(1, sizeof(*place));
    char path[4096];

    place->fd = temporary_folder();
    scoped(mem_freep) char *link = str_format("/proc/self/fd/%d", place->fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);

    assert_true(length > 0);
    place->base = str_ndup(path, (size_t)length);
    scoped(mem_freep) char *root = path_join(place->base, "store");

    assert_int_equal(store_open(root, "run", &place->store, NULL), 0);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;

    store_close(place->store);
    remove_temporary_folder(&place->fd);
    free(place->base);
    free(place);
    return 0;
}

static int open_plainly(void *context, const char *path, int flags)
{
    int fd = open(path, flags);

    (void)context;
    return fd < 0 ? -errno : fd;
}

static const struct task_reader reader = {.open = open_plainly};

static struct view *build(struct place *place, const struct task_public *task)
{
    struct view *view;
    struct error *err = NULL;

    if (view_build(&(struct view_source){.store = place->store, .reader = &reader, .task = task},
                   &view, &err) < 0)
        fail_msg("%s", error_message(err));
    return view;
}

static void sources_apply_in_order_and_the_last_wins(void **state)
{
    struct place *place = *state;
    scoped(mem_freep) char *template = path_join(place->base, "template");
    scoped(mem_freep) char *input = path_join(place->base, "input");
    struct task_starter_file starter = {(char[]){"main.py"}, (char[]){"starter"}};
    struct task_source sources[] = {
        {.kind = SOURCE_TEMPLATE_DIR, .path = template, .mount_point = (char[]){"."}},
        {.kind = SOURCE_STARTER_FILES,
         .mount_point = (char[]){"."},
         .files = &starter,
         .file_count = 1},
        {.kind = SOURCE_INPUT_DIR, .path = input, .mount_point = (char[]){"data"}},
    };
    struct task_public task = {.sources = sources, .source_count = 3};

    put_file(place->fd, "template/main.py", "template");
    put_file(place->fd, "template/README", "readme");
    put_file(place->fd, "input/rows.csv", "1,2\n");
    scoped(view_freep) struct view *view = build(place, &task);
    const struct manifest *manifest = view_manifest(view);
    struct sha256 starter_digest = sha256_of("starter", 7);
    struct collect_source source = view_collect_source(view);

    assert_int_equal(manifest->count, 4);
    assert_true(sha256_equal(&manifest_find(manifest, "main.py")->digest, &starter_digest));
    assert_non_null(manifest_find(manifest, "data/rows.csv"));
    assert_false(view_is_layered(view));
    assert_int_equal(source.layer_count, 3);
    assert_ptr_equal(source.staged, manifest);
}

static void many_sources_become_few_layers(void **state)
{
    struct place *place = *state;
    struct task_source sources[12] = {0};
    struct task_starter_file files[12];
    struct task_public task = {.sources = sources, .source_count = 12};

    for (size_t i = 0; i < 12; i++) {
        files[i] = (struct task_starter_file){str_format("f%zu", i % 10), str_format("%zu", i)};
        sources[i] =
            (struct task_source){.kind = SOURCE_STARTER_FILES, .files = &files[i], .file_count = 1};
    }
    scoped(view_freep) struct view *view = build(place, &task);
    struct sha256 last = sha256_of("11", 2);

    assert_int_equal(view_collect_source(view).layer_count, STAGE_LAYERS_MAX);
    assert_int_equal(view_manifest(view)->count, 10);
    assert_true(sha256_equal(&manifest_find(view_manifest(view), "f1")->digest, &last));
    for (size_t i = 0; i < 12; i++) {
        free(files[i].path);
        free(files[i].content);
    }
}

static void large_inputs_are_layered_and_small_ones_copied(void **state)
{
    struct place *place = *state;
    scoped(mem_freep) char *template = path_join(place->base, "template");
    struct task_source source = {.kind = SOURCE_TEMPLATE_DIR, .path = template};
    struct task_public task = {.sources = &source, .source_count = 1};
    scoped(mem_freep) char *large = mem_new(STAGE_COPY_BYTES_MAX + 2, 1);
    struct cell_spec spec = {0};

    memset(large, 'x', STAGE_COPY_BYTES_MAX + 1);
    put_file(place->fd, "template/large", large);
    scoped(view_freep) struct view *view = build(place, &task);

    assert_true(view_is_layered(view));
    assert_int_equal(view_fill_cell(view, NULL, CELL_AGENT, &spec, NULL), 0);
    assert_int_equal(spec.workspace.kind, CELL_WORKSPACE_OVERLAY);
    assert_int_equal(spec.workspace.layer_count, 1);
}

static void a_recorded_view_is_restored_by_its_digests(void **state)
{
    struct place *place = *state;
    struct task_starter_file file = {(char[]){"a"}, (char[]){"1"}};
    struct task_source source = {.kind = SOURCE_STARTER_FILES, .files = &file, .file_count = 1};
    struct task_public task = {.sources = &source, .source_count = 1};
    scoped(view_freep) struct view *view = build(place, &task);
    scoped(json_freep) json_t *layers = view_layers_json(view);
    scoped(view_freep) struct view *again = NULL;
    struct sha256 first = view_root(view);

    assert_int_equal(view_restore(place->store, layers, &task.limits, &again, NULL), 0);
    struct sha256 second = view_root(again);

    assert_true(sha256_equal(&first, &second));
    json_object_set_new(json_array_get(layers, 0), "root", json_string("sha256:00"));
    assert_true(view_restore(place->store, layers, &task.limits, &again, NULL) < 0);
}

static void a_cell_gets_the_system_and_no_secret_of_it(void **state)
{
    struct place *place = *state;
    scoped(view_freep) struct view *view = NULL;
    struct cell_spec spec = {.etc_fd = -1};
    static const char *const absent[] = {"shadow", "passwd",      "ssl/private", "hostname",
                                         "ssh",    "resolv.conf", "machine-id"};
    struct stat status;

    assert_int_equal(view_build_empty(place->store, &view, NULL), 0);
    assert_int_equal(view_fill_cell(view, NULL, CELL_GRADER, &spec, NULL), 0);
    assert_string_equal(spec.mounts[0].target, "/usr");
    assert_string_equal(spec.mounts[0].masks[0], "local");
    assert_string_equal(spec.mounts[0].masks[1], "src");
    assert_int_equal(spec.text_count, 8);
    assert_int_equal(spec.workspace.kind, CELL_WORKSPACE_COPY);
    assert_int_equal(spec.workspace.layer_count, 0);
    assert_int_equal(fstatat(spec.etc_fd, "ld.so.cache", &status, 0), 0);
    for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
        assert_int_equal(fstatat(spec.etc_fd, absent[i], &status, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(view_fill_cell(view, NULL, CELL_WORKER, &spec, NULL), -ERROR_BUG);
}

static void the_etc_of_cells_is_made_once(void **state)
{
    struct place *place = *state;
    struct layer layer;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(etc_tree(place->store, &layer, NULL), 0);
        layer_done(&layer);
    }
    assert_int_equal(store_copies(place->store), 1);
}

static void a_missing_source_is_the_authors_mistake(void **state)
{
    struct place *place = *state;
    struct task_source source = {.kind = SOURCE_TEMPLATE_DIR, .path = (char[]){"/nowhere/at/all"}};
    struct task_public task = {.sources = &source, .source_count = 1};
    struct view *view;
    scoped(error_freep) struct error *err = NULL;

    assert_int_equal(
        view_build(&(struct view_source){.store = place->store, .reader = &reader, .task = &task},
                   &view, &err),
        -ERROR_TASK);
    assert_string_equal(error_message(err),
                        "cannot stage '/nowhere/at/all': No such file or directory");
}

/* A suite of two tasks, each with a reference. */
struct suite {
    char *root, *task_dir, *reference, *other;
    struct str_list references;
};

static void make_suite(const struct place *place, struct suite *suite)
{
    put_file(place->fd, "suite/.git/config", "[core]");
    put_file(place->fd, "suite/_shared/check.py", "import sys");
    put_file(place->fd, "suite/one/task.yaml", "task_id: one");
    put_file(place->fd, "suite/one/ref/answer", "42");
    put_file(place->fd, "suite/one/answer.txt", "43");
    put_file(place->fd, "suite/two/ref/answer", "44");
    put_file(place->fd, "suite/runs/r1/run.json", "{}");
    assert_int_equal(symlinkat("/usr/bin/python3", place->fd, "suite/python"), 0);
    *suite = (struct suite){
        .root = path_join(place->base, "suite"),
        .task_dir = path_join(place->base, "suite/one"),
        .reference = path_join(place->base, "suite/one/ref"),
        .other = path_join(place->base, "suite/two/ref"),
    };
    str_list_add(&suite->references, suite->reference);
    str_list_add(&suite->references, suite->other);
}

static void suite_done(struct suite *suite)
{
    free(suite->root);
    free(suite->task_dir);
    free(suite->reference);
    free(suite->other);
    str_list_done(&suite->references);
}

static void the_suite_is_staged_once_and_without_answers(void **state)
{
    struct place *place = *state;
    scoped(suite_done) struct suite suite;

    make_suite(place, &suite);
    struct private_source source = {.suite_root = suite.root,
                                    .task_dir = suite.task_dir,
                                    .reference_dir = suite.reference,
                                    .references = &suite.references};
    static const char *const wanted[] = {"_shared", "_shared/check.py", "one",    "one/answer.txt",
                                         "one/ref", "one/task.yaml",    "python", "runs",
                                         "two",     "two/ref"};
    scoped(private_stage_done) struct private_stage stage = {0}, again = {0};

    assert_int_equal(private_stage_make(place->store, NULL, &reader, &source, &stage, NULL), 0);
    assert_int_equal(stage.suite.manifest.count, ARRAY_SIZE(wanted));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        assert_string_equal(stage.suite.manifest.entries[i].path, wanted[i]);
    assert_string_equal(stage.task_dir_in_suite, "one");
    assert_string_equal(stage.reference_in_suite, "one/ref");
    assert_int_equal(faccessat(stage.reference_mount_fd, "answer", R_OK, 0), 0);
    assert_non_null(manifest_find(&stage.reference.manifest, "answer"));
    /* The other task of the suite: one copy of the suite, one more reference. */
    source.reference_dir = suite.other;
    assert_int_equal(private_stage_make(place->store, NULL, &reader, &source, &again, NULL), 0);
    assert_int_equal(store_copies(place->store), 3);
}

static void a_file_can_be_the_reference(void **state)
{
    struct place *place = *state;
    scoped(suite_done) struct suite suite;

    make_suite(place, &suite);
    scoped(mem_freep) char *file = path_join(suite.task_dir, "answer.txt");
    struct private_source source = {
        .suite_root = suite.root, .task_dir = suite.task_dir, .reference_file = file};
    scoped(private_stage_done) struct private_stage stage = {0};

    assert_int_equal(private_stage_make(place->store, NULL, &reader, &source, &stage, NULL), 0);
    assert_int_equal(stage.reference.manifest.count, 1);
    assert_string_equal(stage.reference.manifest.entries[0].path, "answer.txt");
    assert_null(stage.reference_in_suite);
}

static void an_absent_or_empty_reference_is_an_error(void **state)
{
    struct place *place = *state;
    scoped(suite_done) struct suite suite;

    make_suite(place, &suite);
    put_file(place->fd, "suite/empty/nothing", "");
    static const char *const names[] = {"suite/absent", "suite/empty", "suite/one/answer.txt"};
    static const char *const complaints[] = {"No such file", "is empty", "Not a directory"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        scoped(mem_freep) char *path = path_join(place->base, names[i]);
        scoped(error_freep) struct error *err = NULL;
        struct private_source source = {
            .suite_root = suite.root, .task_dir = suite.task_dir, .reference_dir = path};
        struct private_stage stage;

        assert_int_equal(private_stage_make(place->store, NULL, &reader, &source, &stage, &err),
                         -ERROR_TASK);
        assert_non_null(strstr(error_message(err), complaints[i]));
    }
}

int main(void)
{
#define with_store(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        with_store(sources_apply_in_order_and_the_last_wins),
        with_store(many_sources_become_few_layers),
        with_store(large_inputs_are_layered_and_small_ones_copied),
        with_store(a_recorded_view_is_restored_by_its_digests),
        with_store(a_cell_gets_the_system_and_no_secret_of_it),
        with_store(the_etc_of_cells_is_made_once),
        with_store(a_missing_source_is_the_authors_mistake),
        with_store(the_suite_is_staged_once_and_without_answers),
        with_store(a_file_can_be_the_reference),
        with_store(an_absent_or_empty_reference_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
