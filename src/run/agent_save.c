#include "run/agent_save.h"

#include "agent/atif.h"
#include "base/fs.h"
#include "run/wire.h"
#include "task/task_public.h"

/* The same events in the form that other harnesses read. */
static int save_trajectory(const struct trial_job *job, const struct trial_record *record,
                           const struct event_log *events, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);

    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *json = atif_export(events, &(struct atif_about){
                                                              .agent = record->agent.type,
                                                              .model = record->agent.model,
                                                              .prompt = public_half->prompt,
                                                              .trial = job->trial_id,
                                                          });

    json_write_pretty(&text, json);
    return fs_write_atomic(job->dir_fd, "trajectory.json",
                           &(struct fs_content){buf_text(&text), text.size_bytes, 0600, FS_NO_SYNC},
                           err);
}

int agent_save(const struct trial_job *job, struct trial_record *record, struct agent_run *run,
               const struct agent_output *output, struct error **err)
{
    scoped(buf_done) struct buf lines = {0};
    int r = agent_output_save(job->dir_fd, output, record, err);

    if (r < 0)
        return r;
    if (!wire_is_on(job)) /* else the wire has said */
        record->agent.turns = event_log_turns(&run->events);
    record->agent.tool_calls = event_log_tool_calls(&run->events);
    event_log_write(&lines, &run->events);
    r = fs_write_atomic(job->dir_fd, "events.jsonl",
                        &(struct fs_content){buf_text(&lines), lines.size_bytes, 0600, FS_NO_SYNC},
                        err);
    return r < 0 ? r : save_trajectory(job, record, &run->events, err);
}
