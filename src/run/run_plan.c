#include "run/run_plan.h"

#include <limits.h>

#include "base/fs.h"
#include "base/mem.h"

static const struct {
    enum task_digest which;
    const char *key, *meaning;
} digests[] = {
    {TASK_DIGEST_PUBLIC, "public", "what the agent gets"},
    {TASK_DIGEST_GRADERS, "graders", "the graders"},
    {TASK_DIGEST_CONFIG, "config", "the configuration"},
};

unsigned run_plan_repeats(const struct run_plan *plan, size_t task_index)
{
    uint64_t own = task_repeats(plan->tasks.tasks[task_index]);

    if (plan->repeats != 0)
        return plan->repeats;
    return own != 0 ? (unsigned)own : 1;
}

static void add_trial(struct run_plan *plan, size_t task_index, unsigned replicate)
{
    struct planned_trial *trial = &plan->trials[plan->trial_count++];
    const struct task *task = plan->tasks.tasks[task_index];

    trial->task_index = task_index;
    trial->replicate = replicate;
    trial->path = trial_path(task_variant(task), task_id(task), replicate);
    trial->id = str_dup(trial->path + strlen("trials/"));
}

void run_plan_make(struct task_set *tasks, unsigned repeats, struct run_plan *ret)
{
    struct run_plan plan = {.tasks = *tasks, .repeats = repeats};

    *tasks = (struct task_set){0};

    size_t count = 0;

    for (size_t i = 0; i < plan.tasks.count; i++)
        count += run_plan_repeats(&plan, i);
    plan.trials = mem_new(size_max(count, 1), sizeof(*plan.trials));
    for (size_t i = 0; i < plan.tasks.count; i++) {
        unsigned wanted =
            task_skip_reason(plan.tasks.tasks[i]) == NULL ? run_plan_repeats(&plan, i) : 0;

        for (unsigned n = 0; n < wanted; n++)
            add_trial(&plan, i, n);
    }
    *ret = plan;
}

void run_plan_done(struct run_plan *plan)
{
    for (size_t i = 0; i < plan->trial_count; i++) {
        free(plan->trials[i].path);
        free(plan->trials[i].id);
    }
    free(plan->trials);
    task_set_done(&plan->tasks);
    *plan = (struct run_plan){0};
}

static json_t *list_json(const struct str_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; list != NULL && i < list->count; i++)
        json_push(array, json_text(list->items[i], strlen(list->items[i])));
    return array;
}

static char *absolute(const char *path)
{
    char cwd[PATH_MAX];

    if (path[0] == '/' || getcwd(cwd, sizeof(cwd)) == NULL)
        return path_normal(path);

    scoped(mem_freep) char *joined = path_join(cwd, path);

    return path_normal(joined);
}

static json_t *paths_json(const struct str_list *paths)
{
    json_t *array = json_array();

    for (size_t i = 0; i < paths->count; i++) {
        scoped(mem_freep) char *path = absolute(paths->items[i]);

        json_push(array, json_text(path, strlen(path)));
    }
    return array;
}

/* "script:FILE" is relative to the working directory, which another command does not share. */
static json_t *agent_json(const char *agent)
{
    if (agent == NULL)
        return json_null();
    if (!str_starts(agent, "script:"))
        return json_text(agent, strlen(agent));

    scoped(mem_freep) char *path = absolute(agent + strlen("script:"));
    scoped(mem_freep) char *whole = str_format("script:%s", path);

    return json_text(whole, strlen(whole));
}

/* A name stays one; a path is relative to the working directory, as above. */
static json_t *experiment_json(const char *experiment)
{
    if (experiment == NULL)
        return json_null();
    if (strchr(experiment, '/') == NULL && !str_ends(experiment, ".yaml") &&
        !str_ends(experiment, ".yml"))
        return json_text(experiment, strlen(experiment));

    scoped(mem_freep) char *path = absolute(experiment);

    return json_text(path, strlen(path));
}

static json_t *inputs_json(const struct run_plan *plan, const struct plan_inputs *inputs)
{
    const struct task_overrides *overrides = inputs->overrides;
    const struct task_selection *selection = inputs->selection;
    json_t *json = json_object();

    json_put(json, "paths", paths_json(inputs->paths));
    json_put(json, "agent", agent_json(overrides->agent));
    json_put(json, "model", json_text_or_null(overrides->model));
    if (overrides->judge_model != NULL)
        json_put_text(json, "judge_model", overrides->judge_model);
    if (overrides->simulator_model != NULL)
        json_put_text(json, "simulator_model", overrides->simulator_model);
    json_put(json, "driver", json_text_or_null(overrides->driver));
    json_put(json, "experiment", experiment_json(overrides->experiment));
    json_put(json, "suite_root", json_text_or_null(overrides->suite_root));
    json_put(json, "set", list_json(overrides->sets));
    json_put_bool(json, "strict", overrides->strict);
    json_put(json, "only", list_json(selection->only));
    json_put(json, "tags", list_json(selection->tags));
    json_put(json, "exclude_tags", list_json(selection->exclude_tags));
    json_put(json, "variants", list_json(selection->variants));
    json_put_bool(json, "include_skipped", selection->include_skipped);
    json_put_bool(json, "skip_later", selection->skip_later);
    json_put_int(json, "sample", (int64_t)selection->sample);
    json_put_int(json, "sample_per_stratum", (int64_t)selection->sample_per_stratum);
    json_put_int(json, "seed", (int64_t)selection->seed);
    json_put_bool(json, "seed_given", selection->seed_given);
    json_put_int(json, "repeats", plan->repeats);
    json_put_bool(json, "grading", inputs->grading);
    return json;
}

static json_t *tasks_json(const struct run_plan *plan)
{
    json_t *tasks = json_object();

    for (size_t i = 0; i < plan->tasks.count; i++) {
        const struct task *task = plan->tasks.tasks[i];
        json_t *json = json_object();

        for (size_t n = 0; n < ARRAY_SIZE(digests); n++)
            json_put_text(json, digests[n].key, task_digest(task, digests[n].which));
        json_put(json, "skip", json_text_or_null(task_skip_reason(task)));
        json_put_int(json, "repeats", run_plan_repeats(plan, i));
        json_put(tasks, task_key(task), json);
    }
    return tasks;
}

json_t *run_plan_json(const struct run_plan *plan, const struct plan_inputs *inputs)
{
    json_t *json = json_object();
    json_t *trials = json_array();

    json_put_text(json, "schema", "closedbook/plan/1");
    json_put(json, "inputs", inputs_json(plan, inputs));
    json_put(json, "tasks", tasks_json(plan));
    for (size_t i = 0; i < plan->trial_count; i++) {
        const struct planned_trial *trial = &plan->trials[i];
        json_t *item = json_object();

        json_put_int(item, "index", (int64_t)i);
        json_put_text(item, "trial", trial->id);
        json_put_text(item, "task_id", task_id(plan->tasks.tasks[trial->task_index]));
        json_put_text(item, "variant_id", task_variant(plan->tasks.tasks[trial->task_index]));
        json_put_int(item, "replicate", trial->replicate);
        json_push(trials, item);
    }
    json_put(json, "trials", trials);
    return json;
}

static int compare_task(const struct task *task, const json_t *recorded, struct error **err)
{
    for (size_t i = 0; i < ARRAY_SIZE(digests); i++) {
        const char *was = json_get_text(recorded, digests[i].key);
        const char *is = task_digest(task, digests[i].which);

        if (!str_equal(was, is))
            return error_set(err, ERROR_USER,
                             "task '%s': %s changed since the run began (%s: %.19s then, %.19s "
                             "now); start a new run, or use --resume=force",
                             task_key(task), digests[i].meaning, digests[i].key,
                             was != NULL ? was : "nothing", is);
    }
    return 0;
}

int run_plan_compare(const struct run_plan *plan, const json_t *recorded, struct error **err)
{
    json_t *tasks = json_get_object(recorded, "tasks");
    const char *key;
    json_t *item;

    for (size_t i = 0; i < plan->tasks.count; i++) {
        const struct task *task = plan->tasks.tasks[i];
        const json_t *was = json_get_object(tasks, task_key(task));

        if (was == NULL)
            return error_set(err, ERROR_USER,
                             "task '%s' was not part of the run; start a new run, or use "
                             "--resume=force",
                             task_key(task));

        unsigned repeats = run_plan_repeats(plan, i);
        int64_t planned = json_get_int(was, "repeats", repeats);

        if (planned != repeats)
            return error_set(err, ERROR_USER,
                             "task '%s': %jd trial%s of it planned, %u now; start a new run, "
                             "or use --resume=force",
                             task_key(task), (intmax_t)planned, planned == 1 ? "" : "s", repeats);

        int r = compare_task(task, was, err);

        if (r < 0)
            return r;
    }
    if (json_object_size(tasks) == plan->tasks.count)
        return 0;
    json_object_foreach (tasks, key, item) {
        bool found = false;

        for (size_t i = 0; i < plan->tasks.count; i++)
            found = found || str_equal(task_key(plan->tasks.tasks[i]), key);
        if (!found)
            return error_set(err, ERROR_USER,
                             "task '%s' of the run is gone or no longer selected; start a new run, "
                             "or use --resume=force",
                             key);
    }
    return 0;
}
