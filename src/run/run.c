#include "run/run.h"

#include <sys/utsname.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "run/regrade.h"

char *run_make_id(void)
{
    scoped(mem_freep) char *now = clock_format_utc(clock_unix_ms());
    scoped(mem_freep) char *random = random_hex(4);

    /* 2026-11-30T16:47:00.123Z becomes 20261130-164700. */
    return str_format("%.4s%.2s%.2s-%.2s%.2s%.2s-%s", now, now + 5, now + 8, now + 11, now + 14,
                      now + 17, random);
}

json_t *run_machine_json(const struct session *session)
{
    json_t *json = json_object();
    struct utsname name;

    if (uname(&name) == 0)
        json_put_text(json, "kernel", name.release);
    if (session->native == NULL) {
        json_put(json, "tier", json_null());
        return json;
    }

    const struct monitor_facts *facts = monitor_facts(session->native);
    json_t *protections = json_array();

    json_put_text(json, "tier", cell_tier_name(facts->tier));
    json_put_int(json, "landlock_abi", facts->landlock_abi);
    for (size_t i = 0; i < cell_protection_count; i++)
        if ((facts->protections & cell_protection_rows[i].bit) != 0)
            json_push(protections, json_text_or_null(cell_protection_rows[i].name));
    json_put(json, "protections", protections);
    return json;
}

static int run_pool(struct run *run, enum pool_work work, struct error **err)
{
    struct pool_options options = {
        .session = run->session,
        .plan = run->plan,
        .run = run->dir,
        .work = work,
        .parallel = run->parallel,
        .grading = run->grading,
        .gradings = run->gradings,
        .asks_anew = run->asks_anew,
        .preflight = run->preflight,
        .shows_events = run->shows_events,
        .trust_host_steps = run->trust_host_steps,
        .allowed_leaks = run->allowed_leaks,
        .fail_fast = run->fail_fast,
        .stop_after_errors = run->stop_after_errors,
        .stop = run->stop,
        .observer = run->observer,
    };

    return pool_run(&options, &run->interrupted, err);
}

int run_start(struct run *run, struct error **err)
{
    scoped(json_freep) json_t *plan = run_plan_json(run->plan, run->inputs);
    scoped(json_freep) json_t *machine = run_machine_json(run->session);
    struct run_facts facts = {
        .run_id = run->run_id,
        .version = run->version,
        .command_line = run->command_line,
        .machine = machine,
    };
    int r = run_dir_create_at(run->dir_fd, run->path, &facts, plan, &run->dir, err);

    if (r == 0)
        r = run_dir_promise(run->dir, err);
    return r < 0 ? r : run_pool(run, POOL_RUN, err);
}

static bool is_error(enum trial_status status)
{
    return status == STATUS_ERROR || status == STATUS_BUILD_FAILED;
}

/* An error that the agent's bytes caused would come again: only the machine's are worth a retry. */
static bool runs_again(const struct run *run, const struct trial_record *record)
{
    if (run->retry_errors && is_error(record->status))
        return !str_equal(record->error_code, error_code_name(ERROR_AGENT));
    return run->rerun_failed && record->status == STATUS_FAILURE;
}

static struct planned_trial *find_trial(struct run_plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->trial_count; i++)
        if (strcmp(plan->trials[i].path, path) == 0)
            return &plan->trials[i];
    return NULL;
}

static int mark_done(struct run *run, struct error **err)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    int r = run_dir_trials(run->dir, true, &trials, err);

    for (size_t i = 0; r == 0 && i < trials.count; i++) {
        struct planned_trial *trial = find_trial(run->plan, trials.paths[i]);

        if (trial == NULL || runs_again(run, &trials.records[i]))
            continue;
        trial->done = true;
        run->kept++;
    }
    return r;
}

int run_resume(struct run *run, struct error **err)
{
    int r = run_dir_open_at(run->dir_fd, run->path, true, &run->dir, err);

    if (r == 0 && !run->force)
        r = run_plan_compare(run->plan, run_dir_plan(run->dir), err);
    if (r == 0)
        r = mark_done(run, err);
    return r < 0 ? r : run_pool(run, POOL_RUN, err);
}

/* Only trials that left something can be graded. */
static int mark_ungradable(struct run *run, struct error **err)
{
    scoped(run_trials_done) struct run_trials trials = {0};
    scoped(regrade_references_done) struct regrade_references references = {.session =
                                                                                run->session};
    bool found = false;
    int r = run_dir_trials(run->dir, false, &trials, err);

    for (size_t i = 0; i < run->plan->trial_count; i++)
        run->plan->trials[i].done = true;
    for (size_t i = 0; r == 0 && i < trials.count; i++) {
        struct planned_trial *trial = find_trial(run->plan, trials.paths[i]);

        if (trial == NULL || trials.records[i].artifacts.digest == NULL)
            continue;
        if (run->only != NULL && strcmp(run->only, trial->path) != 0)
            continue;
        trial->done = false;
        found = true;
        if (!run->new_reference)
            r = regrade_references_add(&references, run->plan->tasks.tasks[trial->task_index],
                                       trial->path, &trials.records[i], err);
    }
    if (r == 0 && run->only != NULL && !found)
        return error_set(err, ERROR_USER, "'%s' of '%s' holds nothing that can be graded",
                         run->only, run->path);
    return r < 0 ? r : regrade_references_check(&references, err);
}

int run_grade(struct run *run, struct error **err)
{
    int r = run_dir_open_at(run->dir_fd, run->path, true, &run->dir, err);

    run->grading = true;
    if (r == 0)
        r = mark_ungradable(run, err);
    return r < 0 ? r : run_pool(run, POOL_GRADE, err);
}

void run_done(struct run *run)
{
    run_dir_close(run->dir);
    run->dir = NULL;
}
