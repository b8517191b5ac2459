#pragma once
/*
 * glob: shell patterns over names and paths, matched without a file system.
 *
 * `*` any run of characters, `?` one character, `[abc]`, `[a-z]`, `[!...]` or `[^...]` one of a
 * set,
 * `**` as a whole component any number of components. No escapes: a character that means something
 * is written as a set. A '[' without its ']' stands for itself. Leading dots are not special. Used
 * by the worker (static) and by closedbook, so: base only.
 */

#include "base/base.h"

#define GLOB_PARTS_MAX 63 /* components of a pattern */

/* One name against one component. */
bool glob_name_match(const char *pattern, const char *name) nonnull(1, 2);
/* True when the text holds a character that makes it a pattern. */
bool glob_is_pattern(const char *text) nonnull(1);

/* A pattern of components. A `**` at the end means everything below. */
struct glob {
    char *text; /* owned; the parts point into it */
    const char *parts[GLOB_PARTS_MAX];
    size_t count;
};

/* False for an empty or absolute pattern, ".." and more components than GLOB_PARTS_MAX. */
must_check bool glob_parse(const char *pattern, struct glob *ret) nonnull(1, 2);
void glob_done(struct glob *glob) nonnull(1);

/*
 * Walking down a tree: a set of states per directory, bit i meaning that parts i and on are still
 * to be matched. The cost is linear in the parts, whatever the pattern.
 */
uint64_t glob_start(const struct glob *glob) nonnull(1);
/* literal_only: only parts that equal the name, letter by letter, let it pass. */
uint64_t glob_step(const struct glob *glob, uint64_t states, const char *name, bool literal_only)
    nonnull(1, 3);
bool glob_accepts(const struct glob *glob, uint64_t states) nonnull(1);

/* What a path is to a pattern. */
enum glob_relation {
    GLOB_APART,
    GLOB_ABOVE,  /* something below the path may match */
    GLOB_WITHIN, /* the path or one of its ancestors matches */
};
enum glob_relation glob_relate(const struct glob *glob, const char *path) nonnull(1, 2);
