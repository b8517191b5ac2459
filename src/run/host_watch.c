#include "run/host_watch.h"

#include "base/fs.h"
#include "base/mem.h"
#include "record/host_record.h"
#include "task/task_private.h"
#include "task/task_public.h"

struct host_watch {
    struct str_list trees, parents, except;
    struct host_scope scope;
    struct host_snapshot *before;
};

void host_watch_free(struct host_watch *watch)
{
    if (watch == NULL)
        return;
    str_list_done(&watch->trees);
    str_list_done(&watch->parents);
    str_list_done(&watch->except);
    host_snapshot_free(watch->before);
    free(watch);
}

void host_watch_freep(struct host_watch **watch)
{
    host_watch_free(*watch);
    *watch = NULL;
}

static void add_once(struct str_list *list, const char *path)
{
    if (path == NULL)
        return;
    scoped(mem_freep) char *normal = path_normal(path);

    if (!str_list_has(list, normal))
        str_list_add(list, normal);
}

static void add_task(struct host_watch *watch, const struct task *task)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(task, &public_half, &private_half);
    add_once(&watch->trees, private_half->suite_root);
    add_once(&watch->trees, private_half->reference_dir);
    add_once(&watch->trees, private_half->reference_file);
    add_once(&watch->trees, public_half->agent.script);
    for (size_t i = 0; i < public_half->source_count; i++)
        add_once(&watch->trees, public_half->sources[i].path);
}

/* The folders above the run's, the nearest first. */
static void add_parents(struct host_watch *watch, const char *run_path)
{
    scoped(mem_freep) char *path = path_normal(run_path);

    while (strcmp(path, "/") != 0) {
        char *up = path_dir(path);

        free(path);
        path = up;
        str_list_add(&watch->parents, path);
    }
}

int host_watch_start(const struct session *session, const struct run_plan *plan,
                     const char *run_path, bool all_contents, struct host_watch **ret,
                     struct error **err)
{
    scoped(host_watch_freep) struct host_watch *watch = mem_new(1, sizeof(*watch));

    for (size_t i = 0; i < plan->tasks.count; i++)
        if (task_skip_reason(plan->tasks.tasks[i]) == NULL)
            add_task(watch, plan->tasks.tasks[i]);
    add_parents(watch, run_path);
    add_once(&watch->except, run_path);
    add_once(&watch->except, session->store_root);
    watch->scope = (struct host_scope){
        .trees = &watch->trees,
        .parents = &watch->parents,
        .except = &watch->except,
        .reader = &session->reader,
        .all_contents = all_contents,
    };
    int r = host_snapshot_take(&watch->scope, NULL, &watch->before, err);

    if (r < 0)
        return error_wrap(err, r, "--verify-host, before the run");
    *ret = take(watch);
    return 0;
}

int host_watch_end(const struct host_watch *watch, int run_fd, struct error **err)
{
    scoped(host_snapshot_freep) struct host_snapshot *after = NULL;
    scoped(host_differences_done) struct host_differences differences = {0};
    scoped(host_record_done) struct host_record record = {0};
    int r = host_record_read(run_fd, &record, err);

    if (r == 0)
        r = host_snapshot_take(&watch->scope, watch->before, &after, err);
    if (r < 0)
        return error_wrap(err, r, "--verify-host, after the run");
    host_snapshot_compare(watch->before, after, &differences);
    record.evaluated = true;
    record.paths = host_snapshot_count(watch->before);
    record.count += differences.count;
    for (size_t i = 0; i < differences.lines.count; i++)
        str_list_add(&record.changes, differences.lines.items[i]);
    return host_record_write(run_fd, &record, err);
}
