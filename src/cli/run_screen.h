#pragma once
/*
 * run_screen: progress of a run on standard error.
 */

#include "report/progress.h"
#include "run/pool.h"

struct run_screen; /* opaque */

struct run_screen_options {
    bool quiet, no_progress, colour, verbose;
    size_t trials;
};

struct run_screen *run_screen_new(const struct run_screen_options *options) nonnull(1);
struct pool_observer run_screen_observer(struct run_screen *screen) nonnull(1);
/* The live line is gone; what is printed next stands by itself. */
void run_screen_end(struct run_screen *screen) nonnull(1);
void run_screen_freep(struct run_screen **screen);
