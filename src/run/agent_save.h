#pragma once
/*
 * agent_save: what an agent printed and did, as files of the trial's directory.
 */

#include "run/agent_output.h"
#include "run/trial_agent.h"

/* agent.stdout, agent.stderr, events.jsonl, trajectory.json; and the record's counts of them. */
must_check int agent_save(const struct trial_job *job, struct trial_record *record,
                          struct agent_run *run, const struct agent_output *output,
                          struct error **err) nonnull(1, 2, 3, 4);
