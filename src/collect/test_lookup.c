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
#include "collect/collect.h"
#include "collect/lookup.h"
#include "collect/test_trees.h"

static int make_workspace(int base_fd)
{
    int fd;

    put_file(base_fd, "secret", "the answer");
    assert_int_equal(fs_open_dir(base_fd, "work", 0755, &fd, NULL), 0);
    put_file(fd, "report.md", "report");
    put_file(fd, "src/a.py", "a");
    put_file(fd, "src/b.py", "b");
    put_file(fd, "src/deep/only.txt", "only");
    put_file(fd, "node_modules/m.py", "m");
    put_file(fd, "dist/bundle.js", "js");
    put_file(fd, "odd[1].txt", "odd");
    put_file(fd, "empty", "");
    assert_int_equal(symlinkat("../secret", fd, "out"), 0);
    assert_int_equal(symlinkat("/etc/passwd", fd, "absolute"), 0);
    assert_int_equal(symlinkat("src/a.py", fd, "inside"), 0);
    assert_int_equal(symlinkat("loop", fd, "loop"), 0);
    assert_int_equal(symlinkat("nothing", fd, "dangling"), 0);
    assert_int_equal(mkfifoat(fd, "fifo", 0644), 0);
    return fd;
}

static void paths_mean_files(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum lookup_state state;
        const char *resolved, *content;
        uint64_t matches;
    } cases[] = {
        {"report.md", LOOKUP_OK, NULL, "report", 0},
        {"./src/../report.md", LOOKUP_OK, NULL, "report", 0},
        {"empty", LOOKUP_OK, NULL, "", 0},
        {"nothing", LOOKUP_ABSENT, NULL, NULL, 0},
        {"report.md/x", LOOKUP_ABSENT, NULL, NULL, 0},
        {"src", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {".", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {"out", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {"absolute", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {"loop", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {"dangling", LOOKUP_ABSENT, NULL, NULL, 0},
        {"fifo", LOOKUP_NOT_REGULAR, NULL, NULL, 0},
        {"inside", LOOKUP_OK, NULL, "a", 0},
        {"odd[1].txt", LOOKUP_OK, NULL, "odd", 0}, /* a literal wins */
        {"*.md", LOOKUP_OK, "report.md", "report", 1},
        {"**/only.*", LOOKUP_OK, "src/deep/only.txt", "only", 1},
        {"**/*.py", LOOKUP_AMBIGUOUS, "src/a.py", NULL, 2}, /* not in node_modules */
        {"node_modules/*.py", LOOKUP_OK, "node_modules/m.py", "m", 1},
        {"dist/*", LOOKUP_OK, "dist/bundle.js", "js", 1},
        {"*/bundle.js", LOOKUP_ABSENT, NULL, NULL, 0},
        {"*.nothing", LOOKUP_ABSENT, NULL, NULL, 0},
        {"o?t", LOOKUP_ABSENT, NULL, NULL, 0}, /* a link out is no match */
        {"s*", LOOKUP_ABSENT, NULL, NULL, 0},  /* a directory has no content */
    };
    int base = temporary_folder();
    scoped(fd_closep) int work = make_workspace(base);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(lookup_done) struct lookup found = {.fd = -1};
        char content[32] = "";

        assert_int_equal(lookup_path(work, cases[i].path, true, 1000, &found, NULL), 0);
        if (found.state != cases[i].state || !str_equal(found.resolved, cases[i].resolved))
            fail_msg("'%s': %s, '%s'", cases[i].path, lookup_state_name(found.state),
                     found.resolved == NULL ? "" : found.resolved);
        assert_int_equal(found.match_count, cases[i].matches);
        assert_int_equal(found.fd >= 0, cases[i].content != NULL);
        if (found.fd >= 0) {
            assert_int_equal(read(found.fd, content, sizeof(content) - 1),
                             (ssize_t)strlen(cases[i].content));
            assert_string_equal(content, cases[i].content);
        }
    }
    remove_temporary_folder(&base);
}

static void existence_takes_anything_that_matches(void **state)
{
    (void)state;
    int base = temporary_folder();
    scoped(fd_closep) int work = make_workspace(base);
    scoped(lookup_done) struct lookup several = {.fd = -1}, folder = {.fd = -1};

    assert_int_equal(lookup_path(work, "src/*.py", false, 0, &several, NULL), 0);
    assert_int_equal(several.state, LOOKUP_OK);
    assert_int_equal(several.match_count, 2);
    assert_int_equal(several.fd, -1);
    assert_int_equal(lookup_path(work, "s*", false, 0, &folder, NULL), 0);
    assert_int_equal(folder.state, LOOKUP_NOT_REGULAR);
    assert_string_equal(folder.what, "a directory");
    remove_temporary_folder(&base);
}

static void paths_that_lead_out_are_an_error_of_the_task(void **state)
{
    (void)state;
    static const char *const bad[] = {"/etc/passwd", "../secret", "src/../../secret", ""};
    int base = temporary_folder();
    scoped(fd_closep) int work = make_workspace(base);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct lookup found;
        int r = lookup_path(work, bad[i], true, 1000, &found, NULL);

        if (r == 0 && found.state != LOOKUP_NOT_REGULAR)
            fail_msg("'%s'", bad[i]);
        if (r == 0)
            lookup_done(&found);
    }
    remove_temporary_folder(&base);
}

static void a_large_file_is_not_read(void **state)
{
    (void)state;
    int base = temporary_folder();
    scoped(fd_closep) int work = make_workspace(base);
    scoped(lookup_done) struct lookup found = {.fd = -1};

    assert_int_equal(lookup_path(work, "report.md", true, 5, &found, NULL), 0);
    assert_int_equal(found.state, LOOKUP_TOO_LARGE);
    assert_int_equal(found.size_bytes, 6);
    assert_int_equal(found.fd, -1);
    remove_temporary_folder(&base);
}

/* lookup_print() to a file, then what closedbook makes of it. */
static void the_answer_is_understood_on_the_other_side(void **state)
{
    (void)state;
    int base = temporary_folder();
    scoped(fd_closep) int work = make_workspace(base);
    static const char *const paths[] = {"src/*.py", "report.md", "out", "**/only.txt"};
    static const enum collect_file_state states[] = {COLLECT_FILE_AMBIGUOUS, COLLECT_FILE_OK,
                                                     COLLECT_FILE_NOT_REGULAR, COLLECT_FILE_OK};

    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        scoped(fd_closep) int out = openat(base, "answer", O_RDWR | O_CREAT | O_TRUNC, 0600);
        scoped(buf_done) struct buf answer = {0};
        scoped(collect_file_done) struct collect_file file = {0};

        assert_int_equal(lookup_print(work, paths[i], true, 1000, out, NULL), 0);
        assert_int_equal(fs_read_file(base, "answer", 10000, &answer, NULL), 0);
        assert_int_equal(collect_file_parse(buf_text(&answer), answer.size_bytes, &file, NULL), 0);
        assert_int_equal(file.state, states[i]);
        if (i == 0)
            assert_string_equal(file.matches.items[1], "src/b.py");
        if (i == 1)
            assert_string_equal(buf_text(&file.content), "report");
        if (i == 2)
            assert_string_equal(file.what, "a link that leads out of the workspace");
        if (i == 3)
            assert_string_equal(file.resolved, "src/deep/only.txt");
    }
    remove_temporary_folder(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_mean_files),
        cmocka_unit_test(existence_takes_anything_that_matches),
        cmocka_unit_test(paths_that_lead_out_are_an_error_of_the_task),
        cmocka_unit_test(a_large_file_is_not_read),
        cmocka_unit_test(the_answer_is_understood_on_the_other_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
