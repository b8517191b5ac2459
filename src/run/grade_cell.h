#pragma once
/*
 * grade_cell: the live grading cell of one trial, as the workspace that criteria act on.
 *
 * Started on first use: staged layers, then what the agent left, then the private half at random
 * paths that only graders get. A command that overruns its time ends the cell; the next criterion
 * gets a new one over the same workspace. Depends on: base, cell, stage, collect, grade.
 */

#include "collect/collect.h"
#include "grade/grade.h"
#include "stage/stage.h"
#include "task/task_public.h"

/* Up to here events travel as a text; larger ones as the file itself. */
#define GRADE_CELL_EVENTS_BYTES_MAX ((size_t)2 << 20)

struct grade_cell_options {
    struct monitor *monitor;
    const struct view *view;
    const struct private_stage *private_stage; /* NULL: neither suite nor reference */
    const struct str_list *suite_variables;    /* names that get the mounted suite root as value */
    const char *suite_root; /* their host value's prefix, replaced by the mount */
    const char *input_dir;  /* $INPUT_DIR in the cell; NULL: none */
    int tar_fd, changes_fd; /* what the agent left; -1: nothing */
    bool reads_files;       /* criteria will look at files, for which the worker must be there */
    bool stopped_early;     /* by armed criteria */
    int events_fd; /* events.jsonl, mounted instead of events when that is large; -1: none */
    const char *events, *final_text, *dialog; /* texts under $CLOSEDBOOK_TRIAL */
    const struct task_limits *limits;         /* for the environment; NULL: none */
    const struct cell_mount
        *program; /* a further program in the cell and its candidates'; NULL: none */
    const struct task_service *services; /* that run beside its commands */
    size_t service_count;
    const volatile int *stop; /* non-zero: commands end at once; NULL: never */
    /* What was kept outside of the cells and belongs into this one's workspace. */
    const int *sealed_fd; /* an archive of what sealed programs wrote; NULL: nothing */
    const struct str_list *sealed_dirs; /* their folders; counts with sealed_fd */
    const char *kept_path;              /* relative; NULL: nothing */
    int kept_fd;                        /* a regular file; counts with kept_path */
    bool operator_env;       /* the environment is this program's own, with what cells add */
    const struct cell *keep; /* an ended cell whose workspace it takes over; NULL: none */
    /* A harness cell: steps and the oracle act as the agent would, who may take over what they
     * leave. */
    bool is_harness;
};

struct grade_cell; /* opaque */

/* Borrows everything of options until grade_cell_free(). Starts nothing yet. */
struct grade_cell *grade_cell_new(const struct grade_cell_options *options) nonnull(1);
void grade_cell_free(struct grade_cell *cell);
void grade_cell_freep(struct grade_cell **cell);

/* The callbacks for grade_run(). */
struct grade_workspace grade_cell_workspace(struct grade_cell *cell) nonnull(1);

/* The live cell (started if it is not), for `closedbook cell --grader` and the oracle. */
must_check int grade_cell_live(struct grade_cell *cell, struct cell **ret, struct error **err)
    nonnull(1, 2);
/* Hands the cell over; the grade_cell can only be freed afterwards. */
struct cell *grade_cell_take(struct grade_cell *cell) nonnull(1);
/* The environment that its commands get, "NAME=value". */
const struct str_list *grade_cell_env(const struct grade_cell *cell) nonnull(1);
/* "/bin/bash" when cells of that role have it, else "/bin/sh". ERROR_TASK when they have neither.
 */
must_check int grade_cell_shell(const struct view *view, enum cell_role role, const char **ret,
                                struct error **err) nonnull(1, 3);
/* Where the reference stands in the cell; NULL: nowhere. */
const char *grade_cell_reference(const struct grade_cell *cell) nonnull(1);
