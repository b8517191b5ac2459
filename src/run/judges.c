#include "run/judges.h"

#include "base/mem.h"
#include "broker/broker.h"
#include "collect/manifest.h"
#include "run/judges_internal.h"
#include "run/prices_text.h"
#include "task/task_public.h"

#define JUDGE_ATTEMPTS_MAX 5

bool judges_are_needed(const struct task_private *task)
{
    for (size_t i = 0; i < task->criterion_count; i++) {
        if (task->criteria[i].kind == CRITERION_LLM_JUDGE)
            return true;
    }
    return false;
}

/* As the criterion finds it. */
static const char *model_of(const struct task_private *task, const struct criterion *criterion)
{
    const char *own = json_get_text(criterion->params, "model");

    return task->judge_forced || own == NULL ? task->judge_model : own;
}

int judges_check(const struct task_private *task, const json_t *facts, struct error **err)
{
    for (size_t i = 0; i < task->criterion_count; i++) {
        const struct criterion *criterion = &task->criteria[i];
        scoped(judge_route_done) struct judge_route route = {0};

        if (criterion->kind != CRITERION_LLM_JUDGE)
            continue;
        int r = judge_route_pick(facts, model_of(task, criterion), &route, err);

        if (r < 0)
            return error_wrap(err, r, "task '%s', criterion '%s'", task->task_id,
                              criterion->description);
    }
    return 0;
}

struct judges {
    const struct trial_job *job;
    json_t *prices; /* owned */
    struct scrub *scrub;
    struct grade_judges callbacks;
};

/* --- endpoints -------------------------------------------------------------------------------- */

int judges_route(const struct trial_job *job, const char *model, struct judge_route *ret,
                 struct error **err)
{
    scoped(json_freep) json_t *facts = NULL;

    if (job->judges_fd < 0)
        return error_set(err, ERROR_BUG, "no broker for judges was started");
    int r = broker_facts(job->judges_fd, &facts, err);

    return r < 0 ? r : judge_route_pick(facts, model, ret, err);
}

int judges_ask(const struct trial_job *job, const struct judge_call *call, json_t **ret,
               struct error **err)
{
    scoped(str_list_done) struct str_list headers = {0};
    const struct broker_question question = {
        .route = call->route->name,
        .path = call->path,
        .headers = &headers,
        .body = call->body,
        .timeout_ms = call->timeout_ms,
        .answer_max_bytes = JUDGE_ANSWER_BYTES_MAX,
        .attempts_max = JUDGE_ATTEMPTS_MAX,
    };

    str_list_add(&headers, "Content-Type: application/json");
    if (call->route->api == JUDGE_ANTHROPIC)
        str_list_add(&headers, "anthropic-version: 2023-06-01");
    int r = broker_ask(job->judges_fd, &question, ret, err);

    if (r == 0) /* of what was asked and cannot be kept, no verdict is made */
        r = broker_recording_check(job->judges_fd, err);
    return r;
}

int judges_prices(json_t **ret, struct error **err)
{
    return json_parse("prices.json", prices_text, strlen(prices_text), ret, err);
}

static int find_route(void *context, const char *model, struct judge_route *ret, struct error **err)
{
    const struct judges *judges = context;

    return judges_route(judges->job, model, ret, err);
}

static int ask(void *context, const struct judge_call *call, json_t **ret, struct error **err)
{
    const struct judges *judges = context;

    return judges_ask(judges->job, call, ret, err);
}

/* --- the reference ---------------------------------------------------------------------------- */

static int list_reference(void *context, struct str_list *ret, size_t *ret_left, struct error **err)
{
    const struct judges *judges = context;
    const struct private_stage *stage = judges->job->private_stage;

    (void)err;
    *ret_left = 0;
    if (stage == NULL || !stage->has_reference)
        return 0;
    const struct manifest *manifest = &stage->reference.manifest;

    for (size_t i = 0; i < manifest->count; i++) {
        if (manifest->entries[i].type != MANIFEST_FILE)
            continue;
        if (ret->count < JUDGE_REFERENCE_FILES_MAX)
            str_list_add(ret, manifest->entries[i].path);
        else
            (*ret_left)++;
    }
    return 0;
}

/* --- judgements made before ------------------------------------------------------------------- */

static int recall(void *context, const char *key, json_t **ret, struct error **err)
{
    const struct judges *judges = context;
    scoped(mem_freep) char *name = judgement_path(key);
    scoped(error_freep) struct error *unread = NULL;

    (void)err;
    *ret = NULL;
    if (judges->job->asks_anew)
        return 0;
    /* What cannot be read is judged anew. */
    (void)!json_load(judges->job->dir_fd, name, JUDGEMENT_BYTES_MAX, ret, &unread);
    return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

int judges_open(const struct trial_job *job, struct judges **ret, struct error **err)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    *ret = NULL;
    if (!judges_are_needed(private_half))
        return 0;
    scoped(judges_freep) struct judges *judges = mem_new(1, sizeof(*judges));

    judges->job = job;
    judges->scrub = scrub_new();
    int r = judges_prices(&judges->prices, err);

    if (r < 0)
        return r;
    judges->callbacks = (struct grade_judges){
        .context = judges,
        .model = private_half->judge_forced ? NULL : private_half->judge_model,
        .forced = private_half->judge_forced ? private_half->judge_model : NULL,
        .task_prompt = public_half->prompt,
        .prices = {judges->prices},
        .scrub = judges->scrub,
        .route = find_route,
        .reference = list_reference,
        .ask = ask,
        .recall = recall,
    };
    *ret = take(judges);
    return 0;
}

void judges_free(struct judges *judges)
{
    if (judges == NULL)
        return;
    json_decref(judges->prices);
    scrub_free(judges->scrub);
    free(judges);
}

void judges_freep(struct judges **judges)
{
    judges_free(*judges);
}

const struct grade_judges *judges_of(const struct judges *judges)
{
    return judges == NULL ? NULL : &judges->callbacks;
}
