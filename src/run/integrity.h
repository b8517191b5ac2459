#pragma once
/*
 * integrity: what of the private half came into a trial's sight, and the verdict on the trial.
 *
 * Looked at, in the order in which it happened: what came into the model's context as the broker
 * saw it, what came back to the agent by its events (tool results, what a simulated user said) and,
 * at the end, what it printed and left. What the agent was given, and what it wrote before (texts,
 * inputs of its calls, its own program), is left out: a solution of its own is no leak.
 *
 *   UNPROTECTED  the driver is none, or the oracle was played
 *   PARTIAL      tier C, a private file too large to be looked for, or an archive that could not be
 *                looked into
 *   COMPROMISED  a third of a private file came back to an agent whose traffic we saw, or stands in
 *                what such an agent left
 *   SUSPECT      less than that; or a third, but only the agent's own word says what it wrote
 *   CLEAN        none of it
 *
 * docs/evidence.md has the figures behind the limits. Depends on: run/leak_sight, agent/events.
 */

#include "agent/events.h"
#include "run/trial.h"

/* Sets the record's integrity, its reasons and evidence. Nothing when nobody looks. */
must_check int integrity_evaluate(const struct trial_job *job, struct trial_record *record,
                                  const struct event_log *events, struct error **err)
    nonnull(1, 2, 3);
