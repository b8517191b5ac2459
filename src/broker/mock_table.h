#pragma once
/*
 * mock_table: what recorded programs answer, of one trial. It is never in a cell.
 *
 * Borrows the JSON it was made from: a list of {tool, exit_code, stdout, stderr, passthrough,
 * responses: [{when, exit_code, stdout, stderr, passthrough}]}, as task files have it. The first
 * response whose pattern fits counts, else what the tool says of itself. Depends on: base.
 */

#include "broker/call_pattern.h"

struct mock_table {
    const json_t *tools;
};

struct mock_reply {
    bool is_known; /* the table has the tool; without it nothing else counts */
    bool passes;   /* the real program answers */
    int exit_code; /* 0..255 */
    const char *out, *err;
    long rule; /* index of the response; -1: none fitted */
};

void mock_answer(const struct mock_table *table, const char *tool, const struct call_args *args,
                 struct mock_reply *ret) nonnull(1, 2, 3, 4);
