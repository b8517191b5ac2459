#pragma once
/*
 * problems: where a mistake is, and the list of them. Used inside task/ only; the list itself and
 * how it is shown are in task.h.
 */

#include <stdarg.h>

#include "task/task.h"

/* One source of values: a file, the command line, the built-in defaults. Outlives its marks. */
struct origin {
    const char *source; /* "task", "closedbook.yaml", "config.yaml", "-D", "default" ... */
    const char *file;   /* what complaints call it; NULL: nothing to name */
    const char *path;   /* of a file: absolute; NULL: no file */
    const char *dir;    /* absolute; relative paths in it start here */
    const char *text;   /* NULL: no source lines */
    size_t length;
};

struct mark {
    const struct origin *origin;
    unsigned line, column; /* from 1; 0: the whole file */
};

/* Where in a tree: "a.b[3].c", kept as a chain on the stack and written only for a complaint. */
struct path {
    const struct path *up;
    const char *name; /* NULL: an index */
    size_t index;
};

/* Adds a problem; past TASK_PROBLEMS_MAX only counts it. path may be NULL. */
void problems_say(struct problems *problems, enum problem_level level, struct mark mark,
                  const struct path *path, const char *message) nonnull(1, 5);
void problems_error(struct problems *problems, struct mark mark, const struct path *path,
                    const char *fmt, ...) printf_like(4, 5) nonnull(1, 4);
/* An error that only says what this version does not have yet. */
void problems_later(struct problems *problems, struct mark mark, const struct path *path,
                    const char *fmt, ...) printf_like(4, 5) nonnull(1, 4);
void problems_warning(struct problems *problems, struct mark mark, const struct path *path,
                      const char *fmt, ...) printf_like(4, 5) nonnull(1, 4);
void problems_note(struct problems *problems, struct mark mark, const struct path *path,
                   const char *fmt, ...) printf_like(4, 5) nonnull(1, 4);
/* Sorts the items from index first on by line and column, in a stable way. */
void problems_sort(struct problems *problems, size_t first) nonnull(1);
/* Of sorted problems, what was said of several variants of a task is said once. */
void problems_unique(struct problems *problems) nonnull(1);
/* Moves all of from to the end of to; from is empty afterwards. */
void problems_move(struct problems *to, struct problems *from) nonnull(1, 2);
/* "a.b[3]" as an owned text. */
char *path_format(const struct path *path) malloc_like;
