#pragma once
/*
 * test_support: a folder made for one test, a reader over open(2) that can be told to fail, and the
 * complaints about a text as one text. For the tests of task/ only.
 */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "task/task.h"

/* Opens with the caller's own rights; what ends in deny, if set, gives errno_value. */
struct test_reader {
    const char *deny;
    int errno_value;
};

static inline int test_open(void *context, const char *path, int flags)
{
    const struct test_reader *reader = context;

    if (reader->deny != NULL && str_ends(path, reader->deny))
        return -reader->errno_value;
    int fd = open(path, flags | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* An empty folder; its path is owned. */
static inline char *test_folder(void)
{
    char *path = str_dup("/tmp/closedbook-test-XXXXXX");

    assert_non_null(mkdtemp(path));
    return path;
}

static inline void test_folder_remove(char *path)
{
    assert_int_equal(fs_remove_tree(AT_FDCWD, path, NULL), 0);
    free(path);
}

/* Writes folder/name, its folders included. */
static inline void test_write(const char *folder, const char *name, const char *text)
{
    scoped(mem_freep) char *path = path_join(folder, name);
    scoped(mem_freep) char *dir = path_dir(path);

    assert_int_equal(fs_mkdirs(AT_FDCWD, dir, 0755, NULL), 0);
    assert_int_equal(fs_write_atomic(AT_FDCWD, path,
                                     &(struct fs_content){text, strlen(text), 0644, FS_NO_SYNC},
                                     NULL),
                     0);
}

/* "level line:column path: message\n" for each; owned. Errors have no level before them. */
static inline char *test_complaints(const struct problems *problems)
{
    scoped(buf_done) struct buf buf = {0};

    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];

        if (problem->level == PROBLEM_WARNING)
            buf_text_append(&buf, "warning ");
        if (problem->level == PROBLEM_NOTE)
            buf_text_append(&buf, "note ");
        buf_format(&buf, "%u:%u %s%s%s\n", problem->line, problem->column, problem->path,
                   problem->path[0] == '\0' ? "" : ": ", problem->message);
    }
    return buf_take(&buf);
}
