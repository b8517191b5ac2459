#pragma once
/*
 * probe_internal: what the files of probe share: probe.c prepares, attacks as the agent and looks
 * at what was left, probe_grade.c attacks beside the graders and as a candidate of theirs.
 */

#include "evidence/decoy.h"
#include "run/grade_cell.h"
#include "run/probe.h"

#define PROBE_PATH "/run/probe/probe" /* the attack program in a cell */

struct probe {
    const struct probe_options *options;
    struct battery *battery;
    struct decoy decoy;
    struct private_stage private_stage;
    bool has_private;
    int program_fd;
    struct monitor *other_monitor, *monitor;
    struct cell *other, *twin;
    int other_input; /* the other cell's stand-in ends when it is closed */
    int lifelines[LIFELINES];
    struct grade_cell *grade_cell;
    int tar_fd, changes_fd;
    int peer_input;
};

/* Descriptors of the battery in a cell: lines, targets, and in the twin the lifelines. */
struct probe_channel {
    int lines_read, lines, targets;
    int held[LIFELINES];
};

void probe_channel_done(struct probe_channel *channel) nonnull(1);
must_check int probe_channel_open(struct probe *probe, struct probe_channel *ret,
                                  struct error **err) nonnull(1, 2);
must_check int probe_pipe(int *ret_read, int *ret_write, struct error **err) nonnull(1, 2);
/* What the attack program says until it ends, which it must do by itself. */
must_check int probe_hear(struct probe *probe, struct cell *cell, uint32_t process, int *lines_read,
                          enum attack_phase phase, struct error **err) nonnull(1, 2, 4);
/* The attacks of the graders' phase, and those of a candidate's. */
must_check int probe_grade(struct probe *probe, struct error **err) nonnull(1);
