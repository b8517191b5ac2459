#pragma once
/*
 * trial_agent: the agent's part of a trial: its cell, its output, its events, its end.
 */

#include "agent/stream.h"
#include "agent/wire_calls.h"
#include "run/trial.h"

struct agent_run {
    char *placeholder;     /* the key of its broker; NULL: it has none */
    struct cell *cell;     /* ended, workspace kept; the caller frees it */
    uint32_t process;      /* the agent's program in it; 0: its first */
    struct cell *mocks;    /* of sealed programs; NULL: none */
    struct cell *before;   /* the ended cell of pre_run, whose workspace the agent's took over */
    struct live *live;     /* armed criteria; NULL: none */
    bool enough;           /* they have decided, and the agent is ended */
    struct dialog *dialog; /* with a simulated user; NULL: the agent is asked once */
    uint64_t start_ns;     /* clock_ns() when its first program had started */
    uint64_t paused_ns;    /* for which it waited for its user since then */
    struct event_log events;
    struct stream *stream;   /* of what an agent program prints; NULL: it is none */
    struct wire_calls calls; /* of an agent program: what its model asked for */
    bool interrupted;
};

/*
 * Runs the agent (or the oracle) to its end and fills agent, cell, timing and staging of the
 * record; writes agent.stdout, agent.stderr and events.jsonl into the trial's directory. An agent
 * that cannot be started is ERROR_AGENT.
 */
must_check int agent_run(const struct trial_job *job, struct trial_record *record,
                         struct agent_run *ret, struct error **err) nonnull(1, 2, 3);
void agent_run_done(struct agent_run *run) nonnull(1);
