#pragma once
/*
 * check_scripts: programs that play an agent for `check`: the reference copied (whole, or with one
 * mutation), and forgers that try to pass without solving anything.
 *
 * Depends on: base, task.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"
#include "task/task.h"

#define CHECK_FILES_MAX 500
#define CHECK_BYTES_MAX ((size_t)8 << 20) /* of all files of a reference */

struct reference_file {
    char *path; /* below the reference's folder */
    struct buf bytes;
    bool is_executable;
};

struct reference {
    struct reference_file *files; /* sorted by path */
    size_t count;
    bool has_solve; /* solve.sh */
    bool is_prose;  /* text for people only: nothing that can be copied as a solution */
};

/* What stands below an absolute folder, or the one file. ERROR_LIMIT past a limit. */
must_check int reference_read(const struct task_reader *reader, const char *path, bool is_file,
                              struct reference *ret, struct error **err) nonnull(1, 2, 4);
void reference_done(struct reference *reference) nonnull(1);

/* One change of one file of a reference. */
struct mutation {
    size_t file;
    bool deletes;
    struct buf bytes; /* else its new content */
    char *what;       /* "delete a.py", "empty the function f in a.py", "change 3 in a.py" */
};
struct mutations {
    struct mutation *items;
    size_t count;
};
/* At most max, of different files and kinds as far as there are any. */
void mutations_make(const struct reference *reference, size_t max, struct mutations *ret)
    nonnull(1, 3);
void mutations_done(struct mutations *mutations) nonnull(1);

/* A shell program that does what the oracle does with these files; mutation NULL: unchanged. */
void script_of_reference(const struct reference *reference, const struct mutation *mutation,
                         struct buf *ret) nonnull(1, 3);

#define FORGERS 6
/* Name of forger number i. */
const char *forger_name(size_t i);
/* Its program; names: files that graders look at, as a forger could guess them. */
void script_of_forger(size_t i, const struct str_list *names, struct buf *ret) nonnull(2, 3);
