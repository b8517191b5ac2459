#pragma once
/*
 * criterion_cases: the conformance cases of `closedbook criterion test`: what a workspace may hold
 * and what a request may say. Depends on: base, grade.
 */

#include "base/buf.h"
#include "base/json.h"

struct criterion_case {
    const char *name;
    const char *place;   /* shell that makes something at "$1", a path of the workspace; NULL */
    const char *message; /* the agent's last text; NULL: none */
    bool is_long;        /* the message is repeated to a megabyte */
    bool unknown_member, other_protocol;
    bool twice; /* the same again, which must give the same score */
};
extern const struct criterion_case criterion_cases[];
extern const size_t criterion_case_count;

/* The shell that lays place at each path that the parameters name; empty: nothing to do. */
void criterion_case_setup(const struct criterion_case *one, const json_t *params, struct buf *ret)
    nonnull(1, 3);
