#include "run/trial.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "run/integrity.h"
#include "run/limits.h"
#include "run/mocks.h"
#include "run/steps.h"
#include "run/trial_agent.h"
#include "task/task_private.h"
#include "task/task_public.h"

static const struct {
    enum cell_protection bit;
    const char *name;
} namespace_names[] = {
    {PROTECT_MOUNT_NS, "mount"}, {PROTECT_PID_NS, "pid"}, {PROTECT_NET_NS, "net"},
    {PROTECT_IPC_NS, "ipc"},     {PROTECT_UTS_NS, "uts"}, {PROTECT_CGROUP_NS, "cgroup"},
    {PROTECT_USER_NS, "user"},
};

static const char *agent_type_name(enum task_agent_type type)
{
    const struct agent_adapter *adapter = agent_adapter_of(type);

    if (adapter != NULL)
        return adapter->name;
    return type == AGENT_ORACLE ? "oracle" : "unset";
}

/* In place of what the record began with. */
static void set_json(json_t **place, json_t *value)
{
    json_decref(*place);
    *place = value;
}

static void begin_integrity(const struct trial_job *job, bool oracle, struct trial_record *record)
{
    bool tempdir = monitor_facts(job->monitor)->driver == CELL_TEMPDIR;

    if (monitor_facts(job->monitor)->tier == TIER_C && !oracle) {
        record->integrity = INTEGRITY_PARTIAL;
        str_list_add(&record->integrity_reasons,
                     "tier C: the agent saw names and sizes of what it could not read");
        return;
    }
    if (!tempdir && !oracle) {
        record->integrity = INTEGRITY_NOT_EVALUATED;
        return;
    }
    record->integrity = INTEGRITY_UNPROTECTED;
    if (tempdir)
        str_list_add(&record->integrity_reasons, "tempdir driver: the agent ran on the bare host");
    if (oracle)
        str_list_add(&record->integrity_reasons, "oracle: the reference solution was played");
}

static void begin_view(const struct trial_job *job, struct trial_record *record)
{
    if (job->view == NULL)
        return;

    const struct manifest *manifest = view_manifest(job->view);
    struct sha256 root = view_root(job->view);
    char text[SHA256_HEX_CHARS + 1];

    sha256_format(&root, text);
    record->view.root = str_format("sha256:%s", text);
    record->view.files = manifest->count;
    record->view.bytes = manifest->bytes;
    set_json(&record->view.layers, view_layers_json(job->view));
    set_json(&record->view.systems, view_systems_json(job->view));
    record->staging = str_dup(view_is_layered(job->view) ? "layered" : "copied");
}

void trial_record_begin(const struct trial_job *job, struct trial_record *record)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    const struct monitor_facts *facts = monitor_facts(job->monitor);

    task_split(job->task, &public_half, &private_half);
    record->run_id = str_dup(job->run_id);
    record->trial_id = str_dup(job->trial_id);
    record->task_id = str_dup(private_half->task_id);
    record->variant_id = str_dup(job->variant_id);
    record->replicate = job->replicate;
    record->started_unix_ms = clock_unix_ms();
    record->agent.type = str_dup(agent_type_name(public_half->agent.type));
    record->agent.model =
        public_half->agent.model != NULL ? str_dup(public_half->agent.model) : NULL;
    record->agent.exit_code = record->agent.signal = -1;
    record->events = str_dup(task_agent_is_cli(public_half->agent.type) ? "wire" : "self-reported");
    record->cell.driver = str_dup(facts->driver == CELL_TEMPDIR ? "tempdir" : "native");
    record->cell.tier = str_dup(cell_tier_name(facts->tier));
    record->cell.landlock_abi = facts->landlock_abi;
    record->cell.preflight = job->preflight != NULL ? str_dup(job->preflight) : NULL;
    set_json(&record->cell.limits, limits_json(facts, &public_half->limits));
    set_json(&record->lineage, task_lineage(job->task));
    record->timing_ms.stage = ns_to_ms(job->stage_ns);
    begin_integrity(job, public_half->agent.type == AGENT_ORACLE, record);
    begin_view(job, record);
    if (job->sight != NULL && job->sight->index != NULL) {
        set_json(&record->evidence, json_object());
        json_put(record->evidence, "given", leak_sight_to_json(job->sight));
    }
    if (job->bare_host != NULL)
        str_list_add(&record->integrity_reasons,
                     "--trust-host-steps: steps of the host ran on the bare host");
}

char *trial_input_dir(const struct trial_job *job)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;
    /* A tempdir's workspace has no fixed place; its commands start in it. */
    bool fixed = monitor_facts(job->monitor)->driver == CELL_NATIVE;

    task_split(job->task, &public_half, &private_half);
    for (size_t i = 0; i < public_half->source_count; i++) {
        const struct task_source *source = &public_half->sources[i];

        if (source->kind == SOURCE_INPUT_DIR) {
            scoped(mem_freep) char *path =
                path_join(fixed ? "/workspace" : ".", source->mount_point);

            return path_normal(path);
        }
    }
    return NULL;
}

void trial_record_fail(struct trial_record *record, const struct error *error)
{
    record->status = STATUS_ERROR;
    record->has_verdict = record->has_score = false;
    free(record->error);
    free(record->error_code);
    record->error = str_dup(error_message(error));
    record->error_code = str_dup(error_code_name(error_code_of(error)));
}

static void note_cell(const struct cell *cell, struct trial_record *record)
{
    uint64_t bits = cell_protections(cell);

    record->cell.uid = (int64_t)cell_uid(cell);
    record->cell.seccomp = (bits & PROTECT_SECCOMP) != 0;
    for (size_t i = 0; i < ARRAY_SIZE(namespace_names); i++)
        if ((bits & namespace_names[i].bit) != 0)
            str_list_add(&record->cell.namespaces, namespace_names[i].name);
    for (size_t i = 0; i < cell_protection_count; i++)
        if ((bits & cell_protection_rows[i].bit) != 0)
            str_list_add(&record->cell.protections, cell_protection_rows[i].name);
    free(record->staging);
    record->staging = str_dup(cell_workspace_layered(cell) ? "layered" : "copied");
}

static int collect(const struct trial_job *job, struct trial_record *record,
                   const struct cell *cell, struct error **err)
{
    scoped(collect_result_done) struct collect_result result = {0};
    struct collect_source source = view_collect_source(job->view);
    uint64_t start_ns = clock_ns();
    char digest[SHA256_HEX_CHARS + 1];
    int r = collect_run(job->monitor, cell, &source, job->dir_fd, &result, err);

    if (r < 0)
        return error_wrap(err, r, "cannot copy out what the agent left");
    sha256_format(&result.digest, digest);
    record->artifacts.files = result.files;
    record->artifacts.bytes = result.bytes;
    record->artifacts.digest = str_format("sha256:%s", digest);
    set_json(&record->artifacts.refused, take(result.refused_list));
    record->timing_ms.collect = ns_to_ms(clock_ns() - start_ns);
    return 0;
}

/* What happened to the agent outranks what grading says of it: its status, or STATUS_COUNT. */
static enum trial_status execution_fact(const struct trial_record *record)
{
    static const struct {
        const char *stopped_by;
        enum trial_status status;
    } facts[] = {
        {"turn_timeout", STATUS_TIMEOUT},
        {"task_timeout", STATUS_TIMEOUT},
        {"max_input_tokens", STATUS_TOKEN_BUDGET_EXCEEDED},
        {"max_output_tokens", STATUS_TOKEN_BUDGET_EXCEEDED},
        {"max_total_tokens", STATUS_TOKEN_BUDGET_EXCEEDED},
        {"max_usd", STATUS_COST_BUDGET_EXCEEDED},
    };

    for (size_t i = 0; i < ARRAY_SIZE(facts); i++)
        if (str_equal(record->agent.stopped_by, facts[i].stopped_by))
            return facts[i].status;
    return STATUS_COUNT;
}

static void not_graded(struct trial_record *record, const char *why)
{
    record->status = STATUS_NOT_GRADED;
    record->has_verdict = record->has_score = false;
    free(record->error);
    record->error = str_dup(why);
}

static int run_steps(const struct trial_job *job, struct trial_record *record,
                     enum trial_outcome *ret, struct error **err)
{
    scoped(agent_run_done) struct agent_run run = {0};
    int r = agent_run(job, record, &run, err);

    if (run.cell != NULL)
        note_cell(run.cell, record);
    if (r < 0)
        return r;
    if (run.interrupted) {
        *ret = TRIAL_INTERRUPTED;
        return 0;
    }
    r = collect(job, record, run.cell, err);
    if (r == 0)
        r = steps_attribute(job, record, err);
    if (r == 0)
        r = mocks_note_forged(job, record, err);
    if (r == 0)
        r = integrity_evaluate(job, record, &run.events, err);
    if (r < 0)
        return r;
    /* The agent's workspace is in artifacts.tar; nothing of its cell is needed any more. */
    cell_free(take(run.cell));
    if (execution_fact(record) != STATUS_COUNT)
        record->status = execution_fact(record);
    else if (!job->grading)
        not_graded(record, "grading is off: this was an execute run");
    return job->grading ? trial_grade(job, record, &run.events, err) : 0;
}

int trial_run(const struct trial_job *job, struct trial_record *record, enum trial_outcome *ret,
              struct error **err)
{
    scoped(error_freep) struct error *problem = NULL;
    uint64_t start_ns = clock_ns();
    int r = 0;

    *ret = TRIAL_RECORDED;
    trial_record_begin(job, record);
    if (job->setup_error != NULL) {
        trial_record_fail(record, job->setup_error);
    } else {
        r = run_steps(job, record, ret, &problem);
        if (r < 0)
            trial_record_fail(record, problem);
        if (r < 0 && error_errno_of(problem) == EPIPE)
            *ret = TRIAL_LOST;
    }
    if (*ret != TRIAL_LOST && job->grading)
        steps_after(job, record);
    /* When the parent was killed the monitor ends, too, and this trial never happened. */
    if (*ret == TRIAL_LOST)
        return 0;
    if (*ret == TRIAL_INTERRUPTED || (job->stop != NULL && *job->stop != 0)) {
        *ret = TRIAL_INTERRUPTED;
        return 0;
    }
    record->ended_unix_ms = clock_unix_ms();
    record->timing_ms.total = ns_to_ms(clock_ns() - start_ns + job->stage_ns);
    return trial_record_save(job->dir_fd, record, err);
}
