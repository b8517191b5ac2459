#pragma once
/*
 * suites_text: what a terminal shows of datasets: thresholds that were missed; verbose, all
 * figures.
 */

#include "record/run_dir.h"
#include "report/paint.h"

void suites_text(const struct painter *painter, const struct run_trials *trials, bool verbose)
    nonnull(1, 2);
