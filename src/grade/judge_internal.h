#pragma once
/*
 * What the judging criteria share: the material that a judge is given.
 */

#include "grade/internal.h"
#include "grade/judge.h"
#include "grade/judge_prompt.h"

/* Of all blocks together; what does not fit is left out, and that is said. */
#define MATERIAL_BYTES_MAX ((size_t)4 << 20)

struct material_block {
    char *kind, *name, *absent; /* owned; the last two NULL when there is none */
    struct buf content;         /* counts when absent is NULL */
    size_t max_chars;
};
struct material {
    struct material_block *blocks;
    size_t count, bytes;
};
void material_done(struct material *material) nonnull(1);
/*
 * Collects what the criterion asks for, in a fixed order: files, reference, last message, tool
 * calls, dialog. Private bytes go to the scrub, too. *problem (owned) is set when the author's own
 * material is not to be had.
 */
must_check int material_gather(const struct criterion *criterion, const struct grade_input *input,
                               struct material *ret, char **problem, struct error **err)
    nonnull(1, 2, 3, 4);
/* The question with that marker. */
void material_render(const struct material *material, const char *rubric, const char *marker,
                     struct buf *ret) nonnull(1, 2, 3, 4);
/* "$TASK_DIR/x", "${REFERENCE_DIR}/x", or one of them alone. */
bool is_private_path(const char *path) nonnull(1);
