#pragma once
/*
 * stand: a stand-in for what an agent must not reach: it holds the secret in every way that a
 * process can (environment, memory, open files, sockets, shared memory, locks, notes) and says
 * where, a line "KIND VALUE" each, then ends with its standard input.
 *
 * One stands on the host, as the operator; one in another cell, as another trial; one beside the
 * graders. Part of closedbook-probe.
 */

#include "base/base.h"

enum stand_place {
    STAND_HOST,
    STAND_CELL,
    STAND_GRADE, /* a program of the graders in their own cell */
};

/* secret: the whole of it. Lines go to lines_fd. Returns when standard input ends. */
void stand(enum stand_place place, const char *secret, int lines_fd) nonnull(2);
