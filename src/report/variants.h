#pragma once
/*
 * variants: how the variants of a run did beside each other, for the terminal.
 *
 * A pass rate is of the trials that have a verdict; a score is the mean over those that have one.
 */

#include "report/paint.h"
#include "report/report.h"

/* A head and a line for each variant, in the order of the trials (sorted by variant); nothing for a
 * run with fewer than two. */
void variants_table(const struct painter *painter, const struct run_trials *trials) nonnull(1, 2);
