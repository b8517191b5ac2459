#pragma once
/*
 * pool_child: what happens in a trial's own process between fork and exit.
 */

#include "run/pool.h"
#include "run/staged.h"

struct pool_child {
    const struct pool_options *options;
    const struct staged *staged;
    const struct planned_trial *trial;
    struct monitor *monitor;   /* the trial's own connection */
    struct monitor *bare_host; /* another, see struct trial_job; NULL: none */
    int broker_fd;             /* -1: nothing is recorded */
    int judges_fd;             /* to the judges' broker; -1: nothing is judged */
    int dir_fd;
};

/* Confines itself, runs the trial, writes the note and exits. */
_Noreturn void pool_child_main(const struct pool_child *child, int note_fd) nonnull(1);
/* In the parent: writes the ERROR record of a trial whose process left none. */
must_check int pool_child_crashed(const struct pool_child *child, const struct error *why,
                                  struct trial_note *note, struct error **err) nonnull(1, 2, 3);
