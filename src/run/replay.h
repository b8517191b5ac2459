#pragma once
/*
 * replay: the recording of a run's exchanges with models, `--record DIR` and `--replay DIR`: a file
 * that names it and its routes, and below it a folder for each trial.
 *
 * The form is docs/formats/recording.md; what is in a trial's files is the broker's
 * (broker/recording.h). Depends on: base, broker, run/session.
 */

#include "base/error.h"
#include "base/json.h"

#define REPLAY_AGENT "agent"   /* what the agent asked; the wire's broker */
#define REPLAY_JUDGES "judges" /* what judges and users of a model asked; theirs */

struct session;
struct replay;

/* To record: nothing is made yet. */
struct replay *replay_new(const char *path) nonnull(1);
/*
 * The session's: for the folder that is to be recorded in, or for that which answers; NULL: not
 * asked for. Of the latter reads what it says of itself: ERROR_USER when it is no recording, of
 * another version, or when both are given.
 */
must_check int replay_open(struct session *session, const char *record, const char *answer,
                           struct error **err) nonnull(1);
void replay_free(struct replay *replay); /* NULL is fine */

bool replay_answers(const struct replay *replay); /* NULL: false */
/*
 * The routes that the broker of this half had when it was recorded, without their keys, so that
 * none is needed. ERROR_USER: the recording holds nothing of that half.
 */
must_check int replay_routes(const struct replay *replay, const char *half, json_t **ret,
                             struct error **err) nonnull(1, 2, 3);
/* To record: what a broker says of its routes, of which those with a key count. NULL: nothing. */
void replay_note(struct replay *replay, const char *half, const json_t *facts) nonnull(2, 3);
/*
 * To record: the directory is there, and becomes a recording; borrowed. ERROR_USER when it is one,
 * unless a run goes on.
 */
must_check int replay_make(struct replay *replay, int dir_fd, bool goes_on, struct error **err)
    nonnull(1);
/* The connection of a trial to the broker of this half is kept, or answered. NULL: neither. */
must_check int replay_connect(const struct replay *replay, const char *trial, const char *half,
                              int connection, struct error **err) nonnull(2, 3);
