#pragma once
/*
 * Where a judgement lies in its trial's directory; and how the judges' broker is asked.
 */

#include "grade/judge.h"
#include "run/trial.h"

/* "grade/judge-<16 digits>.json" of its key; owned. */
char *judgement_path(const char *key) malloc_like nonnull(1);

/* As judge_route_pick(), by what the job's broker for judges says. */
must_check int judges_route(const struct trial_job *job, const char *model, struct judge_route *ret,
                            struct error **err) nonnull(1, 3);
/* One request through it; *ret as struct grade_judges says of ask. */
must_check int judges_ask(const struct trial_job *job, const struct judge_call *call, json_t **ret,
                          struct error **err) nonnull(1, 2, 3);
/* The data file of prices; new reference. */
must_check int judges_prices(json_t **ret, struct error **err) nonnull(1);
