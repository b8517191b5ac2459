#pragma once
/*
 * output: what commands print, and files that the command line asked for.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "record/run_dir.h"

/* Pretty, on standard output. */
must_check int output_json(const json_t *json, struct error **err) nonnull(1);

/* Figures of datasets into run.json of a locked run. */
must_check int output_save_suites(struct run_dir *run, const struct run_trials *trials,
                                  struct error **err) nonnull(1, 2);

/* "auto", "always", "never" for --color; auto: a terminal, and no NO_COLOR. */
extern const char *const output_colour_choices[];
bool output_colour(const char *choice, int fd);
/* Columns of the terminal on fd, 0 when it is none. */
unsigned output_columns(int fd);
