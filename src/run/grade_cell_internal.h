#pragma once
/*
 * grade_cell_internal: what the files of grade_cell share: grade_cell.c runs commands and reads
 * files in the cell, grade_cell_spec.c says what the cell is made of.
 */

#include "run/grade_cell.h"

struct grade_cell {
    struct grade_cell_options options;
    struct cell *cell; /* the live one; NULL: none yet, or it was left */
    struct cell *left; /* an ended one, whose workspace the next takes over; NULL: none */
    struct str_list env;
    char *suite_path, *reference_path, *trial_path; /* in the cell */
    char *reference_place;                          /* in the suite; NULL: none */
    char *events_path, *final_path, *dialog_path;
    bool applied; /* the workspace holds what the agent left */
    bool used;    /* a command ran in it: the next gets a fresh HOME, /tmp and no processes */
    bool changed; /* a command may have changed the workspace: it is not only what was left */
};

enum cell_role grade_cell_role(const struct grade_cell *cell) nonnull(1);
/* A tempdir has no cells, so none of a candidate's, nor has a harness cell. */
bool grade_cell_has_candidates(const struct grade_cell *cell) nonnull(1);
bool grade_cell_has_nothing_to_apply(const struct grade_cell *cell) nonnull(1);
/* Lays the file that was kept outside of the cells over whatever stands in its place. */
must_check int grade_cell_put_kept(struct grade_cell *cell, struct error **err) nonnull(1);
/* The same for what sealed programs wrote. */
must_check int grade_cell_put_sealed(struct grade_cell *cell, struct error **err) nonnull(1);
bool grade_cell_is_kept(const struct grade_cell *cell, const char *path) nonnull(1, 2);
/* Its bytes as they are outside. */
must_check int grade_cell_read_kept(const struct grade_cell *cell, bool content,
                                    struct grade_file *ret, struct error **err) nonnull(1, 3);
must_check int grade_cell_add_mount(struct cell_spec *spec, struct cell_mount mount,
                                    struct error **err) nonnull(1);
/* Everything but the workspace that is kept. */
must_check int grade_cell_fill(const struct grade_cell *cell, struct cell_spec *spec,
                               struct error **err) nonnull(1, 2);
