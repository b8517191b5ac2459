#pragma once
/*
 * agent_program: what a trial does for an agent that is a program of the host: its output is read
 * as events, the calls are the wire's, and an endpoint that failed is no verdict on the agent.
 *
 * Depends on: agent, run/wire.
 */

#include "run/trial_agent.h"

/* The reader of its output into log; NULL: the task's agent is no such program. */
struct stream *agent_program_stream(const struct trial_job *job, struct event_log *log)
    nonnull(1, 2);
/* When the broker has closed its record: the events become what the wire shows. */
must_check int agent_program_end(const struct trial_job *job, struct agent_run *run,
                                 struct trial_record *record, struct error **err) nonnull(1, 2, 3);
/*
 * ERROR_SYSTEM when it ended because its model could not be asked, whatever exit status it gave.
 */
must_check int agent_program_check(const struct agent_run *run, const struct trial_record *record,
                                   struct error **err) nonnull(1, 2);
