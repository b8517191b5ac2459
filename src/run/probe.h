#pragma once
/*
 * probe: the attack battery in a twin of the cell that a task's agent gets.
 *
 * The twin differs from the real one in one thing: its private half is a decoy (evidence/decoy.h).
 * The agent's attacks run in the twin while another cell and the host hold the secret; then the
 * twin ends, what it left is collected, and the graders' attacks run in a grading cell over it.
 * fast leaves out what is slow, and everything after the twin's end. Depends on: run/session,
 * run/grade_cell, evidence, stage, collect.
 */

#include "evidence/battery.h"
#include "run/session.h"
#include "stage/stage.h"
#include "task/task_public.h"

struct probe_options {
    struct session *session; /* with a store */
    struct monitor *control; /* of the driver */
    const struct view *view; /* what the agent gets */
    const char *task_id;     /* NULL: none */
    bool fast;
};

struct probe_result {
    struct battery battery;
    enum cell_driver driver;
    enum cell_tier tier;
    uint64_t ns; /* all of it */
};

/* ERROR_SYSTEM when the battery could not be run; that it found something is a success. */
must_check int probe_run(const struct probe_options *options, struct probe_result *ret,
                         struct error **err) nonnull(1, 2);
void probe_result_done(struct probe_result *result) nonnull(1);
/* {driver, tier, fast, ms, found, errors, posture, digest, attacks}; new reference. */
json_t *probe_json(const struct probe_result *result) nonnull(1);
