#pragma once
/*
 * policy: what an agent may ask of a model endpoint: method, path, model, and what the body holds.
 *
 * A table of data (share/models/policy.json), recorded by its hash. What is not named is refused:
 * sources by URL, remote tool servers, containers, what an endpoint stores, its own web search.
 * Depends on: base, route.
 */

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "broker/route.h"

enum policy_answer {
    POLICY_FORWARD,
    POLICY_HELLO,   /* a client that looks whether somebody is there: answered by ourselves */
    POLICY_UPGRADE, /* a WebSocket: 426, and it comes back without */
    POLICY_REFUSE,
};
struct policy_path {
    enum policy_answer answer;
    enum model_api api;
    bool counts_tokens; /* asks for a count only: no turn, nothing to pay */
    bool streams;       /* by its path alone */
    char model[128];    /* of the path; "" when it stands in the body */
};
/* path: without query. */
void policy_path(const char *method, const char *path, struct policy_path *ret) nonnull(1, 2, 3);

/* Whether the body is one that may be sent on. ERROR_AGENT says what is not allowed. */
must_check int policy_check(const json_t *policy, enum model_api api, const json_t *body,
                            struct error **err);
