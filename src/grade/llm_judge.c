/*
 * llm_judge: a model's verdict by the author's rubric, of one or several votes.
 *
 * What no verdict comes of is an error of the criterion, never a 0. Refusals and answers that are
 * no verdict, twice in a row, can be the work of the material, so they count as caused by the agent
 * and are never repeated; all else is ours.
 */
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "grade/judge_internal.h"

#define ASK_ATTEMPT_STATUS_OK 200
#define STATUS_BAD_REQUEST 400
#define NS_PER_MS UINT64_C(1000000)
#define CACHE_MARKER "" /* in the key: the marker is no input */

void llm_judge_check(const struct criterion *criterion, const struct complaints *complaints)
{
    const json_t *files = json_get_array(criterion->params, "files"), *file;
    size_t i;

    json_array_foreach (files, i, file) {
        const char *path = json_string_value(file);
        scoped(mem_freep) char *place = str_format("/files/%zu", i);

        if (path == NULL || strlen(path) != json_string_length(file))
            complain(complaints, place, "expected the path of a file");
        else if (!is_private_path(path) && !path_is_inside(path))
            complain(complaints, place,
                     "'%s' leads out of the workspace: a judge reads files of the workspace, "
                     "$TASK_DIR/ and $REFERENCE_DIR/",
                     path);
    }
}

/* One judging criterion while it is evaluated. */
struct judging {
    const struct criterion *criterion;
    const struct grade_judges *judges;
    struct judge_route route;
    struct material material;
    json_t *judgement; /* what is kept of it */
    bool with_temperature;
    uint64_t deadline_ns;
};

static void judging_done(struct judging *judging)
{
    judge_route_done(&judging->route);
    material_done(&judging->material);
    json_decref(judging->judgement);
}

/* How a vote ended. */
enum vote_end { VOTE_HAD, VOTE_NONE, VOTE_NONE_BY_MATERIAL };

/* --- questions -------------------------------------------------------------------------------- */

static json_t *question_json(const struct judging *judging, const char *marker, char **ret_path)
{
    const json_t *params = judging->criterion->params;
    scoped(buf_done) struct buf told = {0};
    scoped(buf_done) struct buf user = {0};

    judge_prompt_system(&told, marker);
    material_render(&judging->material, json_get_text(params, "prompt"), marker, &user);
    const struct judge_question question = {
        .api = judging->route.api,
        .model = judging->route.model,
        .instructions = buf_text(&told),
        .user = buf_text(&user),
        .max_tokens = (uint64_t)json_get_int(params, "max_tokens", 1),
        .has_temperature = judging->with_temperature,
        .temperature = json_get_real(params, "temperature", 0),
    };

    if (ret_path != NULL)
        *ret_path = judge_question_path(&question);
    return judge_question_json(&question);
}

/* All that the judgement depends on, but for the marker and the moment. */
static char *key_of(const struct judging *judging)
{
    const json_t *params = judging->criterion->params;
    const char *votes = json_get_text(params, "votes");
    scoped(json_freep) json_t *inputs = json_object();
    scoped(buf_done) struct buf text = {0};
    char hex[SHA256_HEX_CHARS + 1];

    json_put_text(inputs, "schema", JUDGEMENT_SCHEMA);
    json_put_text(inputs, "prompt", JUDGE_PROMPT_VERSION);
    json_put_text(inputs, "base_url", judging->route.base_url);
    json_put_text(inputs, "api", judge_api_name(judging->route.api));
    json_put_text(inputs, "model", judging->route.model);
    json_put(inputs, "body", question_json(judging, CACHE_MARKER, NULL));
    json_put_int(inputs, "n", json_get_int(params, "n", 1));
    json_put_text(inputs, "votes", votes == NULL ? "mean" : votes);
    json_put_real(inputs, "pass_threshold", judging->criterion->pass_threshold);
    json_write_canonical(&text, inputs);
    const struct sha256 digest = sha256_of(buf_text(&text), text.size_bytes);

    sha256_format(&digest, hex);
    return str_dup(hex);
}

/* --- one vote --------------------------------------------------------------------------------- */

static void put_usage(json_t *object, const struct judging *judging,
                      const struct judge_answer *answer)
{
    json_t *usage = json_object();
    uint64_t microusd = 0;

    if (!answer->has_usage) {
        json_decref(usage);
        return;
    }
    json_put_int(usage, "input_tokens", (int64_t)answer->usage.input);
    json_put_int(usage, "cache_read_tokens", (int64_t)answer->usage.cache_read);
    json_put_int(usage, "cache_write_tokens", (int64_t)answer->usage.cache_write);
    json_put_int(usage, "output_tokens", (int64_t)answer->usage.output);
    if (judge_cost(&judging->judges->prices, judging->route.model, &answer->usage, &microusd))
        json_put_int(usage, "cost_microusd", (int64_t)microusd);
    json_put(object, "usage", usage);
}

/* What is kept of an exchange: never its headers. */
static json_t *exchange_record(const json_t *exchange)
{
    json_t *record = json_object();
    json_t *attempts = json_get_array(exchange, "attempts");

    json_put_int(record, "status", json_get_int(exchange, "status", 0));
    json_put(record, "attempts", attempts == NULL ? json_array() : json_incref(attempts));
    return record;
}

static bool says_temperature(const json_t *exchange)
{
    const char *body = json_get_text(exchange, "body");

    return json_get_int(exchange, "status", 0) == STATUS_BAD_REQUEST && body != NULL &&
           strstr(body, "temperature") != NULL;
}

/* At least 1. */
static uint64_t left_ms(const struct judging *judging)
{
    uint64_t now_ns = clock_ns();

    if (now_ns + NS_PER_MS >= judging->deadline_ns)
        return 1;
    return (judging->deadline_ns - now_ns) / NS_PER_MS;
}

/* One request and its answer; a model that will have no temperature is asked again without. */
static int exchange_once(struct judging *judging, json_t **ret, struct error **err)
{
    for (;;) {
        scoped(mem_freep) char *marker = random_hex(JUDGE_MARKER_BYTES);
        scoped(mem_freep) char *path = NULL;
        scoped(json_freep) json_t *body = question_json(judging, marker, &path);
        scoped(json_freep) json_t *exchange = NULL;
        const struct judge_call call = {
            .route = &judging->route,
            .path = path,
            .body = body,
            .timeout_ms = left_ms(judging),
        };
        int r = judging->judges->ask(judging->judges->context, &call, &exchange, err);

        if (r < 0)
            return r;
        json_put(judging->judgement, "request", json_incref(body));
        if (!judging->with_temperature || !says_temperature(exchange)) {
            *ret = take(exchange);
            return 0;
        }
        judging->with_temperature = false;
    }
}

/* Why an exchange brought no answer of a judge; owned, NULL: it did. */
static char *failure_of(const struct judging *judging, const json_t *exchange)
{
    int64_t status = json_get_int(exchange, "status", 0);
    const char *end = json_get_text(exchange, "end"), *error = json_get_text(exchange, "error");
    const json_t *body = json_object_get(exchange, "body");

    if (status == ASK_ATTEMPT_STATUS_OK && str_equal(end, "answered"))
        return NULL;
    if (!str_equal(end, "answered"))
        return str_format("the judge '%s' did not answer (%s): %s", judging->route.model,
                          end == NULL ? "?" : end, error == NULL ? "" : error);
    scoped(mem_freep) char *text =
        json_is_string(body) ? judge_refusal_text(json_string_value(body), json_string_length(body))
                             : str_dup("");

    return str_format("the judge '%s' answered with status %jd: %s", judging->route.model,
                      (intmax_t)status, text);
}

/* *ret_end: whether there was a verdict; record gets what is kept, problem why there was none. */
static int ask_once(struct judging *judging, json_t *vote, struct judge_answer *answer,
                    char **problem, struct error **err)
{
    scoped(json_freep) json_t *exchange = NULL;
    int r = exchange_once(judging, &exchange, err);

    if (r < 0)
        return r;
    json_t *record = exchange_record(exchange);
    const json_t *body = json_object_get(exchange, "body");

    json_push(json_get_array(vote, "asks"), record);
    *problem = failure_of(judging, exchange);
    if (*problem != NULL)
        return 0;
    judge_answer_parse(judging->route.api, json_string_value(body), json_string_length(body),
                       answer);
    put_usage(record, judging, answer);
    json_put(record, "model", json_text_or_null(answer->model));
    if (!answer->is_verdict) {
        json_put_text(record, "problem", answer->problem);
        json_put(record, "answer", json_incref((json_t *)(uintptr_t)body));
    }
    return 0;
}

static int vote_once(struct judging *judging, json_t *vote, enum vote_end *ret, char **problem,
                     struct error **err)
{
    for (unsigned i = 0; i < JUDGE_ASKS_MAX; i++) {
        scoped(judge_answer_done) struct judge_answer answer = {0};

        free(*problem);
        *problem = NULL;
        int r = ask_once(judging, vote, &answer, problem, err);

        if (r < 0)
            return r;
        *ret = VOTE_NONE;
        if (*problem != NULL)
            return 0;
        if (answer.is_verdict) {
            *ret = VOTE_HAD;
            json_put_real(vote, "score", answer.score);
            json_put_text(vote, "rationale", answer.rationale);
            return 0;
        }
        *problem =
            str_format("no verdict of the judge '%s': %s", judging->route.model, answer.problem);
        *ret = answer.is_models_doing ? VOTE_NONE_BY_MATERIAL : VOTE_NONE;
    }
    return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static double score_of(const struct judging *judging, const json_t *votes)
{
    const json_t *params = judging->criterion->params, *vote;
    size_t i, passing = 0, count = json_array_size(votes);
    double sum = 0;

    json_array_foreach (votes, i, vote) {
        double score = json_get_real(vote, "score", 0);

        sum += score;
        passing += score >= judging->criterion->pass_threshold;
    }
    if (str_equal(json_get_text(params, "votes"), "majority"))
        return passing * 2 > count ? 1 : 0;
    return sum / (double)count;
}

static int vote_all(struct judging *judging, enum vote_end *ret, char **problem, struct error **err)
{
    json_t *votes = json_get_array(judging->judgement, "votes");
    int64_t count = json_get_int(judging->criterion->params, "n", 1);

    *ret = VOTE_HAD;
    for (int64_t i = 0; i < count && *ret == VOTE_HAD; i++) {
        json_t *vote = json_object();

        json_put(vote, "asks", json_array());
        json_push(votes, vote);
        int r = vote_once(judging, vote, ret, problem, err);

        if (r < 0)
            return r;
    }
    if (*ret == VOTE_HAD)
        json_put_real(judging->judgement, "score", score_of(judging, votes));
    else
        json_put_text(judging->judgement, "problem", *problem);
    return 0;
}

static void begin_judgement(struct judging *judging, const char *key)
{
    json_t *judgement = json_object();

    json_put_text(judgement, "schema", JUDGEMENT_SCHEMA);
    json_put_text(judgement, "key", key);
    json_put_text(judgement, "prompt_version", JUDGE_PROMPT_VERSION);
    json_put_text(judgement, "route", judging->route.name);
    json_put_text(judgement, "api", judge_api_name(judging->route.api));
    json_put_text(judgement, "model", judging->route.model);
    json_put(judgement, "votes", json_array());
    judging->judgement = judgement;
}

/* The score and what the judge said, for people. */
static void conclude(const struct judging *judging, bool recalled, struct verdict *ret)
{
    scoped(buf_done) struct buf details = DETAILS_INIT;
    const json_t *votes = json_get_array(judging->judgement, "votes"), *vote;
    size_t i;

    buf_format(&details, "judge %s%s\n", judging->route.model,
               recalled ? " (judged before, not asked again)" : "");
    json_array_foreach (votes, i, vote)
        buf_format(&details, "%.3g: %s\n", json_get_real(vote, "score", 0),
                   json_get_text(vote, "rationale"));
    verdict_score(ret, json_get_real(judging->judgement, "score", 0), &details);
}

/* A judgement that was made before and holds a score for each vote. */
static bool is_whole(const json_t *judgement, const char *key, int64_t count)
{
    const json_t *votes = json_get_array(judgement, "votes"), *vote;
    double score = json_get_real(judgement, "score", -1);
    size_t i;

    if (!str_equal(json_get_text(judgement, "schema"), JUDGEMENT_SCHEMA) ||
        !str_equal(json_get_text(judgement, "key"), key) || !(score >= 0 && score <= 1) ||
        json_array_size(votes) != (size_t)count)
        return false;
    json_array_foreach (votes, i, vote) {
        if (json_get_text(vote, "rationale") == NULL)
            return false;
    }
    return true;
}

static int judge_anew(struct judging *judging, const char *key, struct verdict *ret,
                      struct error **err)
{
    scoped(mem_freep) char *problem = NULL;
    enum vote_end end = VOTE_NONE;

    begin_judgement(judging, key);
    int r = vote_all(judging, &end, &problem, err);

    if (r < 0)
        return r;
    if (end == VOTE_HAD) {
        conclude(judging, false, ret);
        return 0;
    }
    scoped(buf_done) struct buf details = DETAILS_INIT;

    buf_text_append(&details, problem);
    if (end == VOTE_NONE_BY_MATERIAL)
        verdict_agent_error(ret, &details);
    else
        verdict_error(ret, &details);
    return 0;
}

static int judge_once(struct judging *judging, struct verdict *ret, struct error **err)
{
    const struct grade_judges *judges = judging->judges;
    scoped(mem_freep) char *key = key_of(judging);
    scoped(json_freep) json_t *before = NULL;
    int r = judges->recall(judges->context, key, &before, err);

    if (r < 0)
        return r;
    if (before != NULL && is_whole(before, key, json_get_int(judging->criterion->params, "n", 1))) {
        judging->judgement = take(before);
        conclude(judging, true, ret);
        ret->judgement_is_recalled = true;
        return 0;
    }
    return judge_anew(judging, key, ret, err);
}

/* What the author or the operator left out is an error of the criterion. */
static int say_error(struct verdict *ret, const char *why)
{
    scoped(buf_done) struct buf details = DETAILS_INIT;

    buf_text_append(&details, why);
    verdict_error(ret, &details);
    return 0;
}

int llm_judge_evaluate(const struct criterion *criterion, const struct grade_input *input,
                       struct verdict *ret, struct error **err)
{
    const struct grade_judges *judges = input->judges;
    const char *model = json_get_text(criterion->params, "model");
    scoped(judging_done) struct judging judging = {.criterion = criterion, .judges = judges};
    scoped(mem_freep) char *problem = NULL;
    scoped(error_freep) struct error *no_route = NULL;

    if (judges == NULL)
        return say_error(ret, "there is no judge here");
    if (judges->forced != NULL)
        model = judges->forced;
    int r = judges->route(judges->context, model == NULL ? judges->model : model, &judging.route,
                          &no_route);

    if (r < 0)
        return say_error(ret, error_message(no_route));
    r = material_gather(criterion, input, &judging.material, &problem, err);
    if (r < 0)
        return r;
    if (problem != NULL)
        return say_error(ret, problem);
    judging.with_temperature = judge_takes_temperature(judging.route.api, judging.route.model);
    judging.deadline_ns =
        clock_ns() + (uint64_t)(json_get_real(criterion->params, "timeout", 1) * 1e9);
    r = judge_once(&judging, ret, err);
    ret->judgement = take(judging.judgement);
    return r;
}
