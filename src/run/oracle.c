#include "run/oracle.h"

#include <errno.h>
#include <fcntl.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "task/task_private.h"
#include "task/task_public.h"

#define ORACLE_OUTPUT_BYTES_MAX ((size_t)1 << 20)

static const char oracle_command[] =
    "if [ -f \"$REFERENCE_DIR/solve.sh\" ]; then exec sh \"$REFERENCE_DIR/solve.sh\"; fi; "
    "exec cp -R \"$REFERENCE_DIR/.\" .";

static int save_log(const struct trial_job *job, const struct grade_command_result *result,
                    struct error **err)
{
    int r = fs_write_atomic(
        job->dir_fd, "agent.stdout",
        &(struct fs_content){buf_text(&result->out), result->out.size_bytes, 0600, FS_NO_SYNC},
        err);

    return r < 0 ? r
                 : fs_write_atomic(job->dir_fd, "agent.stderr",
                                   &(struct fs_content){buf_text(&result->err),
                                                        result->err.size_bytes, 0600, FS_NO_SYNC},
                                   err);
}

static int run_step(const struct trial_job *job, struct trial_record *record,
                    struct grade_cell *cell, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);

    uint64_t timeout_ms = public_half->limits.task_timeout_ms;
    struct grade_command command = {
        .command = oracle_command,
        .timeout_ms = timeout_ms != 0 ? timeout_ms : public_half->limits.command_timeout_ms,
        .output_max_bytes = ORACLE_OUTPUT_BYTES_MAX,
    };
    struct grade_command_result result = {0};
    struct grade_workspace workspace = grade_cell_workspace(cell);
    uint64_t start_ns = clock_ns();
    int r = workspace.run(workspace.context, &command, &result, err);

    record->agent.duration_ms = (clock_ns() - start_ns) / 1000000u;
    record->timing_ms.agent = ns_to_ms(clock_ns() - start_ns);
    record->agent.exit_code = result.exit_code;
    record->agent.stopped_by = str_dup(result.timed_out ? "task_timeout" : "exit");
    if (r == 0)
        r = save_log(job, &result, err);
    if (r == 0 && (result.timed_out || result.exit_code != 0))
        r = error_set(err, ERROR_TASK,
                      "%s: the oracle %s (exit code %d); its output is in agent.stderr",
                      private_half->task_file, result.timed_out ? "ran out of time" : "failed",
                      result.exit_code);
    grade_command_result_done(&result);
    return r;
}

int oracle_run(const struct trial_job *job, struct trial_record *record, const struct cell *before,
               struct cell **ret_cell, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    if (job->private_stage == NULL || !job->private_stage->has_reference)
        return error_set(err, ERROR_TASK, "%s: the oracle needs a reference, and the task has none",
                         private_half->task_file);

    struct grade_cell_options options = {
        .monitor = job->monitor,
        .view = job->view,
        .private_stage = job->private_stage,
        .suite_variables = &private_half->suite_variables,
        .suite_root = private_half->suite_root,
        .limits = &public_half->limits,
        .tar_fd = -1,
        .changes_fd = -1,
        .events_fd = -1,
        .services = public_half->services,
        .service_count = public_half->service_count,
        .keep = before,
        .is_harness = true,
    };
    scoped(grade_cell_freep) struct grade_cell *cell = grade_cell_new(&options);
    struct cell *live = NULL;
    struct cell_receipt receipt = {0};
    int r = grade_cell_live(cell, &live, err);

    if (r == 0)
        r = run_step(job, record, cell, err);
    if (r == 0)
        r = cell_end(live, &receipt, err);
    if (r < 0)
        return error_wrap(err, r, "oracle");
    record->cell.kill_processes = receipt.processes;
    record->cell.kill_ms = record->timing_ms.kill = ns_to_ms(receipt.kill_ns);
    *ret_cell = grade_cell_take(cell);
    return 0;
}
