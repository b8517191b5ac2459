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
#include "base/spawn.h"
#include "base/str.h"
#include "collect/collect.h"
#include "collect/tar.h"
#include "collect/test_trees.h"

#define LONG_NAME                                                                                  \
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
    "aaaa"                                                                                         \
    "aaaaaa"

static const struct {
    struct tar_entry entry;
    const char *content;
} entries[] = {
    {{.path = ".git", .type = MANIFEST_DIR, .mode = 0755}, NULL},
    {{.path = ".git/config", .type = MANIFEST_FILE, .mode = 0644, .size_bytes = 6}, "[core]"},
    {{.path = LONG_NAME, .type = MANIFEST_FILE, .mode = 0600, .size_bytes = 0}, ""},
    {{.path = LONG_NAME "b", .type = MANIFEST_FILE, .mode = 0755, .size_bytes = 3}, "run"},
    {{.path = "d\xc3\xa9", .type = MANIFEST_DIR, .mode = 0700}, NULL},
    {{.path = "d\xc3\xa9/" LONG_NAME "/x", .type = MANIFEST_FILE, .mode = 0644, .size_bytes = 1},
     "x"},
    {{.path = "link", .type = MANIFEST_LINK, .mode = 0777, .target = "d\xc3\xa9/x"}, NULL},
    {{.path = "link2", .type = MANIFEST_LINK, .mode = 0777, .target = LONG_NAME "/long"}, NULL},
};

/* Writes the entries above to a new file of the folder. */
static int write_archive(int dir_fd, const char *name, struct sha256 *ret)
{
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    scoped(tar_writer_done) struct tar_writer writer;

    tar_writer_init(&writer, fd, name);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        assert_int_equal(tar_writer_add(&writer, &entries[i].entry, NULL), 0);
        if (entries[i].content == NULL)
            continue;
        size_t size = strlen(entries[i].content);

        assert_int_equal(tar_writer_bytes(&writer, entries[i].content, size, NULL), 0);
        assert_int_equal(tar_writer_pad(&writer, size, NULL), 0);
    }
    assert_int_equal(tar_writer_end(&writer, ret, NULL), 0);
    return fd;
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    int dir = temporary_folder();
    struct sha256 digest, again;
    scoped(fd_closep) int fd = write_archive(dir, "a.tar", &digest);
    scoped(fd_closep) unused_ok int other = write_archive(dir, "b.tar", &again);
    scoped(tar_reader_done) struct tar_reader reader;
    struct tar_entry entry;
    uint64_t offset;

    assert_true(sha256_equal(&digest, &again));
    assert_int_equal(tar_reader_init(&reader, fd, "a.tar", NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        const struct tar_entry *wanted = &entries[i].entry;
        char content[8] = "";

        assert_int_equal(tar_reader_next(&reader, &entry, &offset, NULL), 1);
        assert_string_equal(entry.path, wanted->path);
        assert_int_equal(entry.type, wanted->type);
        assert_int_equal(entry.mode, wanted->mode);
        assert_int_equal(entry.size_bytes, wanted->size_bytes);
        if (wanted->target != NULL)
            assert_string_equal(entry.target, wanted->target);
        if (entries[i].content != NULL) {
            assert_int_equal(pread(fd, content, entry.size_bytes, (off_t)offset),
                             (ssize_t)entry.size_bytes);
            assert_string_equal(content, entries[i].content);
        }
    }
    assert_int_equal(tar_reader_next(&reader, &entry, &offset, NULL), 0);
    remove_temporary_folder(&dir);
}

static void gnu_tar_extracts_it(void **state)
{
    (void)state;
    int dir = temporary_folder();
    struct sha256 digest;
    scoped(fd_closep) unused_ok int fd = write_archive(dir, "a.tar", &digest);
    const char *const argv[] = {"/usr/bin/tar", "-xf", "a.tar", NULL};
    struct spawn_options options = {.argv = argv, .cwd_fd = dir};
    int pidfd, status;
    pid_t pid;

    if (access(argv[0], X_OK) < 0) {
        print_message("SKIPPED: no tar here\n");
        skip();
    }
    assert_int_equal(spawn_start(&options, &pidfd, &pid, NULL), 0);
    assert_int_equal(spawn_wait(pidfd, &status, NULL), 0);
    (void)close(pidfd);
    assert_int_equal(status, 0);
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        struct stat found;
        scoped(buf_done) struct buf content = {0};
        char target[200] = "";

        assert_int_equal(fstatat(dir, entries[i].entry.path, &found, AT_SYMLINK_NOFOLLOW), 0);
        if (entries[i].entry.type == MANIFEST_LINK) {
            assert_true(readlinkat(dir, entries[i].entry.path, target, sizeof(target) - 1) > 0);
            assert_string_equal(target, entries[i].entry.target);
            continue;
        }
        assert_int_equal(found.st_mode & 0777, entries[i].entry.mode);
        if (entries[i].content == NULL)
            continue;
        assert_int_equal(fs_read_file(dir, entries[i].entry.path, 100, &content, NULL), 0);
        assert_string_equal(buf_text(&content), entries[i].content);
    }
    remove_temporary_folder(&dir);
}

static int count_entries(void *context, int tar_fd, const struct artifact *artifact,
                         struct error **err)
{
    (void)tar_fd;
    (void)artifact;
    (void)err;
    ++*(size_t *)context;
    return 0;
}

static void any_flipped_bit_of_a_header_is_seen(void **state)
{
    (void)state;
    int dir = temporary_folder();
    struct sha256 digest;
    scoped(fd_closep) int fd = write_archive(dir, "a.tar", &digest);
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    /* Every byte of the first two headers, and of the end. */
    for (off_t at = 0; at < status.st_size; at += at == 1023 ? status.st_size - 2047 : 1) {
        char before, after;
        size_t count = 0;

        assert_int_equal(pread(fd, &before, 1, at), 1);
        after = (char)(before ^ 1);
        assert_int_equal(pwrite(fd, &after, 1, at), 1);
        scoped(error_freep) struct error *err = NULL;

        if (artifacts_each(fd, "a.tar", count_entries, &count, &err) == 0)
            fail_msg("byte %lld", (long long)at);
        assert_int_equal(error_code_of(err), ERROR_SYSTEM);
        assert_int_equal(pwrite(fd, &before, 1, at), 1);
    }
    for (off_t size = 0; size < status.st_size; size += 256) {
        size_t count = 0;

        assert_int_equal(ftruncate(fd, status.st_size - size - 1), 0);
        assert_true(artifacts_each(fd, "a.tar", count_entries, &count, NULL) < 0);
    }
    remove_temporary_folder(&dir);
}

static void one_artifact_is_read(void **state)
{
    (void)state;
    int dir = temporary_folder();
    struct sha256 digest;
    scoped(fd_closep) int fd = write_archive(dir, "a.tar", &digest);
    static const struct {
        const char *path;
        size_t max_bytes;
        int result;
        const char *text;
    } cases[] = {
        {".git/config", 6, 0, "[core]"},
        {".git/config", 5, -ERROR_LIMIT, "'.git/config' is larger than 5 bytes"},
        {".git", 10, -ERROR_USER, "'.git' is a directory"},
        {"link", 10, -ERROR_USER, "'link' is a link"},
        {"nothing", 10, -ERROR_USER, "a.tar: no 'nothing' in it"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        scoped(buf_done) struct buf content = {0};
        scoped(error_freep) struct error *err = NULL;
        int r = artifacts_read(fd, "a.tar", cases[i].path, cases[i].max_bytes, &content, &err);

        assert_int_equal(r, cases[i].result);
        assert_string_equal(r == 0 ? buf_text(&content) : error_message(err), cases[i].text);
    }
    remove_temporary_folder(&dir);
}

static void extraction_makes_no_links_and_renames_git(void **state)
{
    (void)state;
    int dir = temporary_folder();
    struct sha256 digest;
    scoped(fd_closep) int fd = write_archive(dir, "a.tar", &digest);
    struct stat status;
    uint64_t files;
    int to, kept;

    assert_int_equal(fs_open_dir(dir, "out", 0755, &to, NULL), 0);
    assert_int_equal(fs_open_dir(dir, "kept", 0755, &kept, NULL), 0);
    assert_int_equal(artifacts_extract(fd, "a.tar", to, false, &files, NULL), 0);
    assert_int_equal(files, 4);
    assert_int_equal(fstatat(to, "dot-git/config", &status, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(fstatat(to, ".git", &status, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(fstatat(to, "link", &status, AT_SYMLINK_NOFOLLOW), -1);
    assert_int_equal(fstatat(to, LONG_NAME "b", &status, 0), 0);
    assert_int_equal(status.st_mode & 0777, 0755);
    assert_int_equal(artifacts_extract(fd, "a.tar", kept, true, &files, NULL), 0);
    assert_int_equal(fstatat(kept, ".git/config", &status, 0), 0);
    (void)close(to);
    (void)close(kept);
    remove_temporary_folder(&dir);
}

static void extraction_goes_through_no_link_that_is_there(void **state)
{
    (void)state;
    static const char *const targets[] = {"../elsewhere", "inside"};
    int dir = temporary_folder();
    struct sha256 digest;
    scoped(fd_closep) int fd = write_archive(dir, "a.tar", &digest);
    struct stat status;
    uint64_t files;

    assert_int_equal(fs_mkdirs(dir, "elsewhere", 0755, NULL), 0);
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        scoped(mem_freep) char *name = str_format("out-%zu", i);
        scoped(fd_closep) int to = -1;

        assert_int_equal(fs_open_dir(dir, name, 0755, &to, NULL), 0);
        assert_int_equal(fs_mkdirs(to, "inside", 0755, NULL), 0);
        assert_int_equal(symlinkat(targets[i], to, "dot-git"), 0);
        assert_true(artifacts_extract(fd, "a.tar", to, false, &files, NULL) < 0);
        assert_int_equal(fstatat(to, "dot-git/config", &status, 0), -1);
    }
    remove_temporary_folder(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(gnu_tar_extracts_it),
        cmocka_unit_test(any_flipped_bit_of_a_header_is_seen),
        cmocka_unit_test(one_artifact_is_read),
        cmocka_unit_test(extraction_makes_no_links_and_renames_git),
        cmocka_unit_test(extraction_goes_through_no_link_that_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
