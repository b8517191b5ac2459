#include "run/agent_program.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "task/task_public.h"

static const struct agent_adapter *adapter_of(const struct trial_job *job)
{
    const struct task_public *half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &half, &private_half);
    const struct agent_adapter *adapter = agent_adapter_of(half->agent.type);

    return adapter != NULL && adapter->program != NULL ? adapter : NULL;
}

struct stream *agent_program_stream(const struct trial_job *job, struct event_log *log)
{
    const struct agent_adapter *adapter = adapter_of(job);

    return adapter == NULL ? NULL
                           : stream_new(adapter->program->stream, adapter->name, log, clock_ns());
}

int agent_program_end(const struct trial_job *job, struct agent_run *run,
                      struct trial_record *record, struct error **err)
{
    const struct agent_adapter *adapter = adapter_of(job);
    scoped(fd_closep) int fd = openat(job->dir_fd, "wire.jsonl", O_RDONLY | O_CLOEXEC);

    stream_end(run->stream);
    if (adapter == NULL)
        return error_set(err, ERROR_BUG, "events of a program that is none");
    if (fd < 0)
        return error_errno(err, errno, "cannot open wire.jsonl");
    int r = wire_calls_read(fd, &run->calls, err);

    if (r < 0)
        return r;
    wire_calls_merge(&run->calls, adapter->program->stream, &run->events);
    if (run->calls.cut)
        str_list_add(&record->integrity_reasons,
                     "calls: an answer of the model could not be read whole (wire.jsonl), so that "
                     "nothing is concluded from the absence of a call");
    return 0;
}

int agent_program_check(const struct agent_run *run, const struct trial_record *record,
                        struct error **err)
{
    const struct stream_outcome *outcome = stream_outcome(run->stream);
    const struct wire_calls *calls = &run->calls;
    bool claims_failure = outcome->is_error || !outcome->has_end || record->agent.exit_code != 0;
    const char *said = outcome->message == NULL ? "nothing" : outcome->message;

    /* Time, a budget or a signal ended it: that is known, and is something else. */
    if (!str_equal(record->agent.stopped_by, "exit"))
        return 0;
    if (calls->has_failed)
        return error_set(err, ERROR_SYSTEM,
                         "the model's endpoint failed for good (status %d: %.200s), so the agent "
                         "could not go on (exit status %d); wire.jsonl has all that was asked",
                         calls->last_status, calls->last_message == NULL ? "" : calls->last_message,
                         record->agent.exit_code);
    if (calls->exchanges == 0 && claims_failure)
        return error_set(err, ERROR_SYSTEM,
                         "the agent ended without an answer of its model (exit status %d, it says: "
                         "%.200s); see agent.stderr and wire.jsonl",
                         record->agent.exit_code, said);
    return 0;
}
