#pragma once
/*
 * private_files: the staged private half as a trial's own process sees it: read by descriptor, and
 * held against what was staged.
 *
 * A seal is what the copies look like right after staging (paths, sizes, times, inodes). Before and
 * after grading the seal must still hold, and the bytes of the reference and of the task's folder
 * must be those of the manifest (the first PRIVATE_CHECK_BYTES_MAX of each); at the end of a run
 * all bytes must. A mismatch is ERROR_SYSTEM, "ReferenceTampered: ...".
 * Depends on: stage, collect, grade (struct grade_file).
 */

#include "grade/grade.h"
#include "stage/stage.h"

#define PRIVATE_CHECK_BYTES_MAX ((uint64_t)8 << 20)

/* The directories that a confined process must be let into; returns how many, two at most. */
size_t private_files_trees(const struct private_stage *stage, int fds[static 2]) nonnull(1, 2);

/*
 * A regular file, by its path there; links are followed inside of the tree. From the task's folder
 * all of the suite is reached, and the task's own reference where it lies in it.
 */
must_check int private_files_read(const struct private_stage *stage, enum grade_private place,
                                  const char *path, struct grade_file *ret, struct error **err)
    nonnull(1, 3, 4);

struct private_seal {
    struct sha256 suite, reference;
};
must_check int private_seal_make(const struct private_stage *stage, struct private_seal *ret,
                                 struct error **err) nonnull(1, 2);
must_check int private_seal_check(const struct private_stage *stage,
                                  const struct private_seal *seal, struct error **err)
    nonnull(1, 2);
/* All bytes of one tree. name is for the message: "the reference". */
must_check int private_layer_check(const struct layer *layer, const char *name, struct error **err)
    nonnull(1, 2);
/* {reference, suite}: their digests, or null; new reference. */
json_t *private_files_json(const struct private_stage *stage);
