#pragma once
/*
 * attack_run: runs attacks one after the other, each in a child of its own with a time limit, and
 * writes a line about each:
 *
 *   ID TAB CLASS TAB VERDICT TAB EXAMINED TAB MILLISECONDS TAB DETAIL
 *
 * An attack that plants something in the agent's phase has a second row of the same id in the
 * graders': what that says is the verdict. DETAIL has neither control characters nor tabs. A child
 * that dies, stays silent or looked at nothing is an ERROR.
 */

#include "evidence/attack.h"

struct attack_run {
    const struct targets *targets;
    enum attack_phase phase;
    bool fast;
    int lifelines[LIFELINES];
    int lines_fd;
};

/* Returns how many attacks were run. */
size_t attack_run_all(const struct attack_run *run) nonnull(1);
/* ID TAB CLASS TAB CONTROL TAB PHASE TAB FAST TAB TITLE, a line each. */
void attack_list(int lines_fd);
