#pragma once
/*
 * atif: the events of a trial as one trajectory, in the Agent Trajectory Interchange Format 1.7
 * (schema/trajectory.schema.json).
 *
 * A step is the prompt, or one answer of the model with the calls in it and what came of them. What
 * the format has no place for stands in "extra". Figures are as good as the events: "extra" says
 * where they come from. Depends on: base, events.
 */

#include "agent/events.h"

#define ATIF_SCHEMA "ATIF-v1.7"
#define ATIF_SUB_AGENTS_MAX 64 /* trajectories of sub-agents; what further ones did is left out */

struct atif_about {
    const char *agent;   /* its type, "claude-code" */
    const char *version; /* of its program; NULL: unknown */
    const char *model;   /* NULL: unknown */
    const char *prompt;  /* "" when there was none */
    const char *trial;   /* its id */
};

/* A new reference. */
json_t *atif_export(const struct event_log *log, const struct atif_about *about) nonnull(1, 2);
