#pragma once
/*
 * leak_scan: the private half of a task, as fingerprints, against all that its agent is given.
 *
 * Private are: the task file, the files of experiment, dataset and criteria, the reference, and of
 * the task's folder what its graders and steps read (all of it when it is small, else what they
 * name), but for what a public field declares. What the staged file of the same path has is taken
 * out of a private file first; of others than the reference also what the prompt and the other
 * texts for the agent say. Looked at are: the staged workspace and plugins, file by file and by
 * their names, the prompt, the other texts, and the environment.
 * Depends on: run/session, stage, task, evidence.
 */

#include "evidence/leaks.h"
#include "run/session.h"
#include "stage/stage.h"
#include "task/task.h"

#define LEAK_FOLDER_FILES_MAX 64                    /* of a task's folder that is taken whole */
#define LEAK_FILE_BYTES_MAX ((size_t)64 << 20)      /* of one file that is looked at */
#define LEAK_PRIVATE_BYTES_MAX ((uint64_t)32 << 20) /* of all private texts of a task */
#define LEAK_SHARED_BYTES_MAX ((size_t)1 << 20)     /* of a file of experiment or dataset */
#define LEAK_PRIVATE_PREFIX "private: "             /* of what is left out of the index */
#define LEAK_UNPACK_TIMEOUT_MS ((uint64_t)120000)

/* Opens archives in a cell. */
struct leak_opener {
    struct monitor *monitor; /* a connection of its own; NULL: archives stay closed */
    int program_fd;          /* closedbook-unpack */
};
/* As struct readings wants it; context is a struct leak_opener. */
int leak_unpack(void *context, const char *bytes, size_t size, struct buf *ret, struct error **err);

/* A file's beginning: what is beyond max_bytes is left, and no error. */
must_check int leak_read(int fd, const char *name, size_t max_bytes, struct buf *ret,
                         struct error **err) nonnull(2, 4);

struct leak_scan {
    const struct session *session;
    const struct task *task;
    const struct view *view;
    const struct private_stage *private_stage; /* NULL: graders read nothing */
    struct monitor *control;                   /* of the driver that the task runs on */
    bool all_roots;   /* trees of the host without limits, and those of the agent's program */
    bool keeps_texts; /* of private files, to show what was found */
    struct leak_opener opener;
    struct str_list *left_out; /* what was too large, by leak_index_make() and leak_scan_view() */
};

/* The sealed index; the caller's. */
must_check int leak_index_make(struct leak_scan *scan, struct fingerprint_index **ret,
                               struct error **err) nonnull(1, 2);
/* What a search of all that the agent is given has shown. */
struct leak_view {
    struct leaks leaks;
    struct fingerprint_marks *seen; /* what of the private half stands in it, told or not; NULL */
};
void leak_view_done(struct leak_view *view) nonnull(1);
must_check int leak_scan_view(struct leak_scan *scan, const struct fingerprint_index *index,
                              struct leak_view *ret, struct error **err) nonnull(1, 2, 3);
