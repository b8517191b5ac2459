#pragma once
/*
 * figures_text: figures and comparisons for a terminal. Every name of a task or variant is quoted.
 */

#include "report/comparison.h"
#include "report/figures.h"
#include "report/paint.h"

/* With whole, every task's line; else those that pass sometimes. */
void figures_text(const struct painter *painter, const struct run_figures *figures, bool whole)
    nonnull(1, 2);
/* The tables of figures_plan(), one a variant. */
void figures_plan_text(const struct painter *painter, const struct run_figures *figures)
    nonnull(1, 2);
void comparison_text(const struct painter *painter, const struct comparison *comparison, bool whole)
    nonnull(1, 2);

/* One fact: its name in a column of its own, then text of ours. */
void figures_label(const struct painter *painter, const char *name) nonnull(1, 2);
void figures_line(const struct painter *painter, const char *name, const char *text)
    nonnull(1, 2, 3);
