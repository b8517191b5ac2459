#pragma once
/*
 * judge: how the judging criteria reach a model, the reference's files and what was judged before.
 *
 * run/ implements struct grade_judges over the judges' broker; tests do by tables. A judge is given
 * text and gives a verdict: it has no tool but that, and no way to anything else.
 * Depends on: base, agent/events.
 */

#include "grade/grade.h"
#include "grade/judge_wire.h"
#include "grade/scrub.h"

#define JUDGEMENT_SCHEMA "closedbook/judgement/1"
#define JUDGEMENT_BYTES_MAX ((size_t)32 << 20)
#define JUDGE_ASKS_MAX 2 /* for one vote: an answer that is no verdict is asked for once more */
#define JUDGE_VOTES_MAX 15
#define JUDGE_REFERENCE_FILES_MAX 200
#define JUDGE_REFERENCE_CHARS_MAX ((size_t)200000)

/* Where a model is asked, and what it is called there. */
struct judge_route {
    char *name, *model; /* owned */
    char *base_url;     /* owned */
    enum judge_api api;
};
void judge_route_done(struct judge_route *route) nonnull(1);
/*
 * Picks the route for a model from what the broker says of its routes ({routes: [{name, api,
 * base_url, has_key}]}). model is "MODEL", whose family says whose it is, or "ROUTE/MODEL"; NULL:
 * the default of the first vendor for whom there is a key. ERROR_USER says what is missing.
 */
must_check int judge_route_pick(const json_t *facts, const char *model, struct judge_route *ret,
                                struct error **err) nonnull(1, 3);

/* What a million tokens cost, from the data file of prices. */
struct judge_prices {
    const json_t *json; /* {date, models: {NAME: {input, cache_read, cache_write, output}}}; NULL */
};
/* In millionths of a dollar; false when the model's price is not known. */
must_check bool judge_cost(const struct judge_prices *prices, const char *model,
                           const struct judge_usage *usage, uint64_t *ret_microusd)
    nonnull(1, 2, 3, 4);

/* One request to an endpoint. Borrowed. */
struct judge_call {
    const struct judge_route *route;
    const char *path;
    const json_t *body;
    uint64_t timeout_ms; /* of all attempts */
};

struct grade_judges {
    void *context;
    const char *model;       /* of those that name none; NULL: the default of a key */
    const char *forced;      /* of all, whatever they name; NULL */
    const char *task_prompt; /* what the agent was asked; NULL */
    struct judge_prices prices;
    struct scrub *scrub; /* gets every private byte that reaches a judge */
    int (*route)(void *context, const char *model, struct judge_route *ret, struct error **err);
    /* The files of the reference below it, sorted, JUDGE_REFERENCE_FILES_MAX at most; *ret_left:
     * how many more there are. */
    int (*reference)(void *context, struct str_list *ret, size_t *ret_left, struct error **err);
    /* *ret: {end, status, error, body, attempts}, whatever the endpoint did. */
    int (*ask)(void *context, const struct judge_call *call, json_t **ret, struct error **err);
    /* The judgement of that key that was made before; NULL: none. */
    int (*recall)(void *context, const char *key, json_t **ret, struct error **err);
};
