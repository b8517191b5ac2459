#pragma once
/*
 * recording: the exchanges with model endpoints of one trial, being kept or answered from.
 *
 * The form is docs/formats/recording.md. A request is known by the digest of its normalised form:
 * what differs between two runs of the same thing (ids, times, random digits, order of keys) is
 * left out of it, see recording_normal(). No key is ever in a recording: neither headers of a
 * request nor the key's value in an answer are kept. Not thread-safe. Depends on: base, route.
 * Limits: below.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "broker/route.h"

#define RECORDING_VERSION 1
#define RECORDING_BYTES_MAX ((size_t)512 << 20) /* of a trial's file */
#define RECORDING_EXCHANGES_MAX 10000

/* What came back. */
struct recorded_answer {
    const char *end;          /* as upstream_end_name(), or "cancelled": nobody waited for it */
    int status;               /* 0: none */
    const char *content_type; /* NULL: none */
    const char *body;
    size_t body_size;
    bool streamed; /* passed on as it came */
};
/* What is asked; borrowed. */
struct recorded_request {
    enum model_api api;
    const char *method, *path;
    const void *body;
    size_t body_size;
};

struct recording;

/* Keeps what is added; the descriptor, for appending, is taken over, also on failure. */
must_check int recording_begin(int fd, struct recording **ret, struct error **err) nonnull(2);
/* Answers from a text; size 0: it holds nothing. ERROR_USER with line and what is wrong. */
must_check int recording_parse(const char *text, size_t size, struct recording **ret,
                               struct error **err) nonnull(1, 3);
void recording_free(struct recording *recording); /* NULL is fine */
void recording_freep(struct recording **recording) nonnull(1);
bool recording_answers(const struct recording *recording); /* NULL: false */

/* --- keeping ---------------------------------------------------------------------------------- */

/* A request goes out: the line that recording_end() completes; the caller's. */
json_t *recording_request(struct recording *recording, const struct recorded_request *request)
    nonnull(1, 2);
/* Takes the line. False: it could not be written, now or before. */
bool recording_end(struct recording *recording, json_t *line, const struct recorded_answer *answer)
    nonnull(1, 2, 3);

/* --- answering -------------------------------------------------------------------------------- */

/*
 * The next answer to this request, in the order in which equal ones were asked; it lives as long as
 * the recording. ERROR_SYSTEM: there is none, and which part differs from the request that comes
 * nearest; never what stands there, which may be private.
 */
must_check int recording_find(struct recording *recording, const struct recorded_request *request,
                              struct recorded_answer *ret, struct error **err) nonnull(1, 2, 3);
/* What the first request without an answer was told, or why nothing is kept any more; NULL. */
const char *recording_problem(const struct recording *recording); /* NULL: NULL */

/* recording_normal.c: {api, method, path, body}; new reference. */
json_t *recording_normal(const struct recorded_request *request) nonnull(1);
