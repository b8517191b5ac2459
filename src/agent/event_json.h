#pragma once
/*
 * event_json: between struct event and its JSON object, for the reader of lines and the file.
 */

#include "agent/events.h"

/*
 * Fills kind, session, tool, call_id, input, output, exit_code, is_error and usage of *ret from one
 * object. Returns NULL, or what is wrong with it: then *ret must still be given to event_done().
 */
const char *event_fill(const json_t *object, struct event *ret) must_check nonnull(2);
json_t *event_json(const struct event *event) nonnull(1);
void event_done(struct event *event) nonnull(1);
