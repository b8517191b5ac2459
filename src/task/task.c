#include "task/internal.h"

struct task *task_new(void)
{
    struct task *task = mem_new(1, sizeof(*task));

    task->public_half = mem_new(1, sizeof(*task->public_half));
    task->private_half = mem_new(1, sizeof(*task->private_half));
    return task;
}

static void public_free(struct task_public *half)
{
    for (size_t i = 0; i < half->source_count; i++) {
        struct task_source *source = &half->sources[i];

        for (size_t j = 0; j < source->file_count; j++) {
            free(source->files[j].path);
            free(source->files[j].content);
        }
        free(source->files);
        free(source->path);
        free(source->mount_point);
        free(source->commit);
    }
    free(half->sources);
    for (size_t i = 0; i < half->service_count; i++) {
        free(half->services[i].run);
        free(half->services[i].ready);
    }
    free(half->services);
    free(half->prompt);
    free(half->agent.model);
    free(half->agent.script);
    free(half->agent.permission_mode);
    free(half->agent.system_prompt);
    free(half->agent.claude_settings);
    str_list_done(&half->agent.allowed_tools);
    str_list_done(&half->agent.disallowed_tools);
    str_list_done(&half->agent.setting_sources);
    str_list_done(&half->agent.extra_args);
    free(half->require_tier);
    str_list_done(&half->agent.command);
    str_list_done(&half->agent.env);
    str_list_done(&half->ignore_patterns);
    task_plugins_done(&half->agent);
    str_list_done(&half->mock_dirs);
    str_list_done(&half->mock_tools);
    task_root_done(&half->root);
    free(half);
}

static void free_steps(struct task_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(steps[i].command);
        free(steps[i].file);
    }
    free(steps);
}

static void private_free(struct task_private *half)
{
    for (size_t i = 0; i < half->criterion_count; i++) {
        struct criterion *criterion = &half->criteria[i];

        free(criterion->description);
        free(criterion->file);
        json_freep(&criterion->params);
        json_freep(&criterion->suite_thresholds);
    }
    free(half->criteria);
    free_steps(half->pre_run, half->pre_run_count);
    free_steps(half->post_run, half->post_run_count);
    for (size_t i = 0; i < half->leak_ok_count; i++) {
        free(half->leaks_ok[i].file);
        free(half->leaks_ok[i].reason);
    }
    free(half->leaks_ok);
    free(half->task_id);
    free(half->description);
    free(half->task_file);
    free(half->task_dir);
    free(half->suite_root);
    free(half->reference_dir);
    free(half->reference_file);
    free(half->skip_reason);
    free(half->judge_model);
    free(half->simulator_model);
    task_simulation_free(half->simulation);
    json_freep(&half->record_cli);
    str_list_done(&half->tags);
    str_list_done(&half->private_files);
    str_list_done(&half->private_digests);
    str_list_done(&half->suite_variables);
    task_root_done(&half->root);
    free(half);
}

void task_free(struct task *task)
{
    if (task == NULL)
        return;
    public_free(task->public_half);
    private_free(task->private_half);
    for (size_t i = 0; i < TASK_DIGEST_COUNT; i++)
        free(task->digests[i]);
    free(task->variant_id);
    free(task->key);
    json_freep(&task->lineage);
    json_freep(&task->resolved);
    free(task);
}

void task_freep(struct task **task)
{
    task_free(*task);
    *task = NULL;
}

const char *task_id(const struct task *task)
{
    return task->private_half->task_id;
}

const char *task_variant(const struct task *task)
{
    return task->variant_id;
}

const char *task_key(const struct task *task)
{
    return task->key;
}

uint64_t task_repeats(const struct task *task)
{
    return task->repeats;
}

const char *task_skip_reason(const struct task *task)
{
    return task->private_half->skip_reason;
}

const char *task_digest(const struct task *task, enum task_digest which)
{
    return task->digests[which] == NULL ? "" : task->digests[which];
}

json_t *task_lineage(const struct task *task)
{
    return task->lineage == NULL ? json_object() : json_incref(task->lineage);
}

json_t *task_resolved(const struct task *task)
{
    return task->resolved == NULL ? json_object() : json_incref(task->resolved);
}
