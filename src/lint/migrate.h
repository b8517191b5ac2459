#pragma once
/*
 * migrate: legacy fields of a task file rewritten where they stand; comments, layout, line ends and
 * a byte order mark stay.
 *
 * The text is edited by the places that the YAML reader saw, never written anew, and read again:
 * what does not read as the same task without the legacy fields is refused. Idempotent. Depends on:
 * base, task (yaml).
 */

#include "lint/edit.h"
#include "task/task.h"

#define MIGRATE_FILES_MAX 20000 /* looked at for mentions of a file that is to move */

struct migration {
    struct buf text; /* the whole new text */
    struct str_list
        changes; /* "7: reference.file becomes reference.directory"; none: nothing to do */
    struct str_list refused; /* what could not be done; then text is of no use */
    /* The reference's file, relative to the task's folder, and the folder that it goes into. NULL:
     * it stays. */
    char *reference_file, *reference_folder;
};

/*
 * Rewrites a text. folder: what the reference's new folder is called. ERROR_TASK when it cannot be
 * read as YAML; *ret is written on success only.
 */
must_check int migrate_text(const struct task_text *text, const char *folder, struct migration *ret,
                            struct error **err) nonnull(1, 2, 3);
/* The same for a file, whose reference's folder gets a name that is free; refused, too, when
 * another file below the task's folder mentions the reference's file. Changes nothing. */
must_check int migrate_plan(const char *path, const struct buf *text, struct migration *ret,
                            struct error **err) nonnull(1, 2, 3);
/*
 * Makes it so. The reference's file gets its second name first, then the task file is replaced,
 * then the first name goes: whenever it is interrupted, the task is whole. ERROR_USER.
 */
must_check int migrate_apply(const char *path, const struct migration *migration,
                             struct error **err) nonnull(1, 2);
void migration_done(struct migration *migration) nonnull(1);
