/* The strict reader of a recording: docs/formats/recording.md. */
#include "base/mem.h"
#include "base/str.h"
#include "broker/recording_internal.h"

static bool is_text(const json_t *line, const char *key)
{
    return json_is_string(json_object_get(line, key));
}

static const char *wrong_request(const json_t *request)
{
    static const char *const texts[] = {"api", "method", "path"};
    enum model_api api;

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        if (!is_text(request, texts[i]))
            return "request has no api, method or path";
    }
    if (!model_api_parse(json_get_text(request, "api"), &api))
        return "request.api is none that this version knows";
    if (json_object_get(request, "body") == NULL || json_object_size(request) != 4)
        return "request has not api, method, path and body alone";
    return NULL;
}

static bool is_end(const char *end)
{
    static const char *const ends[] = {"answered",  "no-answer", "deadline",
                                       "too-large", "refused",   "cancelled"};

    for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
        if (str_equal(end, ends[i]))
            return true;
    }
    return false;
}

/* What is wrong with an exchange; NULL: nothing. */
static const char *wrong(const json_t *line)
{
    static const char *const keys[] = {"seq",    "digest",       "request",  "end",
                                       "status", "content_type", "streamed", "body"};
    const json_t *type = json_object_get(line, "content_type");
    int64_t status = json_get_int(line, "status", -1);
    char digest[SHA256_HEX_CHARS + 1];

    if (!json_is_object(line) || json_object_size(line) != ARRAY_SIZE(keys))
        return "an exchange has seq, digest, request, end, status, content_type, streamed and body";
    if (json_get_int(line, "seq", 0) < 1)
        return "seq is no positive number";
    if (!json_is_object(json_object_get(line, "request")))
        return "request is no object";
    const char *problem = wrong_request(json_object_get(line, "request"));

    if (problem != NULL)
        return problem;
    if (!is_end(json_get_text(line, "end")))
        return "end is none that this version knows";
    if (status != 0 && (status < 200 || status > 599))
        return "status is neither 0 nor 200 to 599";
    if (status == 0 && str_equal(json_get_text(line, "end"), "answered"))
        return "an exchange that was answered has a status";
    if (!json_is_null(type) && !json_is_string(type))
        return "content_type is neither text nor null";
    if (json_is_string(type) && strpbrk(json_string_value(type), "\r\n") != NULL)
        return "content_type has a line break";
    if (!json_is_boolean(json_object_get(line, "streamed")) || !is_text(line, "body"))
        return "streamed is no boolean, or body no text";
    recording_digest(json_object_get(line, "request"), digest);
    return str_equal(json_get_text(line, "digest"), digest) ? NULL
                                                            : "digest is not that of its request";
}

static int take_head(const json_t *line, struct error **err)
{
    int64_t version = json_get_int(line, "closedbook_recording", 0);

    if (json_object_size(line) != 1 || version < 1)
        return error_set(err, ERROR_USER,
                         "recording, line 1: expected {\"closedbook_recording\": %d}",
                         RECORDING_VERSION);
    if (version != RECORDING_VERSION)
        return error_set(err, ERROR_USER,
                         "recording, line 1: version %lld found, %d expected: record again, or "
                         "replay with the closedbook that recorded it",
                         (long long)version, RECORDING_VERSION);
    return 0;
}

static bool has_seq(const struct recording *recording, int64_t seq)
{
    /* Ends come nearly in the order of beginnings: an equal one would be near. */
    for (size_t i = recording->count; i-- > 0;) {
        if (recording->items[i].seq == seq)
            return true;
    }
    return false;
}

static int take_line(struct recording *recording, size_t number, json_t *line, struct error **err)
{
    if (number == 1)
        return take_head(line, err);
    const char *problem = wrong(line);

    if (problem == NULL && recording->count >= RECORDING_EXCHANGES_MAX)
        problem = "there are more exchanges than there may be";
    if (problem == NULL && has_seq(recording, json_get_int(line, "seq", 0)))
        problem = "its seq was there before";
    if (problem != NULL)
        return error_set(err, ERROR_USER, "recording, line %zu: %s", number, problem);
    recording->items =
        mem_resize(recording->items, recording->count + 1, sizeof(*recording->items));
    recording->items[recording->count++] =
        (struct recorded){.line = json_incref(line), .seq = json_get_int(line, "seq", 0)};
    return 0;
}

int recording_parse(const char *text, size_t size, struct recording **ret, struct error **err)
{
    scoped(recording_freep) struct recording *recording = mem_new(1, sizeof(*recording));
    const char *at = text, *end = text + size;

    *recording = (struct recording){.fd = -1};
    for (size_t number = 1; at < end; number++) {
        scoped(json_freep) json_t *line = NULL;
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        if (stop == NULL)
            return error_set(err, ERROR_USER,
                             "recording, line %zu: it has no end; the recording was cut off",
                             number);
        int r = json_parse("recording", at, (size_t)(stop - at), &line, err);

        if (r == 0)
            r = take_line(recording, number, line, err);
        else
            r = error_wrap(err, r, "recording, line %zu", number);
        if (r < 0)
            return r;
        at = stop + 1;
    }
    *ret = take(recording);
    return 0;
}
