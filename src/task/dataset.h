#pragma once
/*
 * dataset: one task for each row of data. Used inside task/ only.
 *
 * Rows stand in the task file or in JSON Lines files. ${row.x} is filled in in initial_prompt and
 * in the texts of success_criteria, nowhere else, before experiments lay anything over the task.
 * What rows hold is private: only what a prompt itself names reaches an agent. Depends on: base,
 * node, schema.
 */

#include "task/internal.h"

#define DATASET_FILE_BYTES_MAX ((size_t)256 << 20)
#define DATASET_LINE_BYTES_MAX ((size_t)1 << 20)

struct dataset_row {
    const char *id;
    const struct node *fields; /* a map of the build's arena */
};

struct dataset {
    struct dataset_row *rows; /* in the order of the files, those sampled */
    size_t count;
    struct str_list files, digests; /* absolute; SHA-256 in hex */
};
void dataset_done(struct dataset *dataset) nonnull(1);

/*
 * Reads the rows of the task's dataset and takes the sample that the task and the selection ask
 * for. Mistakes become problems; false when there was any.
 */
must_check bool dataset_read(const struct build *build, struct dataset *ret) nonnull(1, 2);
/* The task as read, with a row filled in; in the build's arena. NULL: complained. */
const struct node *dataset_fill(const struct build *build, const struct dataset_row *row)
    nonnull(1, 2);
