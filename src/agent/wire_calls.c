#include "agent/wire_calls.h"

#include "agent/wire_lines.h"
#include "base/mem.h"
#include "base/str.h"

#define MESSAGE_BYTES ((size_t)400)

struct wire_call *wire_calls_add(struct wire_calls *calls)
{
    if (calls->count == WIRE_CALLS_MAX)
        return NULL;
    if (calls->count == calls->capacity) {
        calls->capacity = calls->capacity == 0 ? 64 : calls->capacity * 2;
        calls->calls = mem_resize(calls->calls, calls->capacity, sizeof(*calls->calls));
    }
    struct wire_call *call = &calls->calls[calls->count++];

    *call = (struct wire_call){0};
    return call;
}

void wire_calls_done(struct wire_calls *calls)
{
    for (size_t i = 0; i < calls->count; i++) {
        free(calls->calls[i].id);
        free(calls->calls[i].name);
        json_decref(calls->calls[i].input);
    }
    free(calls->calls);
    free(calls->last_message);
    *calls = (struct wire_calls){0};
}

static void note_end(const json_t *line, struct wire_calls *calls)
{
    const char *body = json_get_text(line, "body");
    int status = (int)json_get_int(line, "status", 0);

    calls->exchanges++;
    calls->has_failed = status < 200 || status > 299 || !json_get_bool(line, "whole", false);
    calls->last_status = status;
    free(calls->last_message);
    calls->last_message = !calls->has_failed || body == NULL
                              ? NULL
                              : str_ndup(body, size_min(strlen(body), MESSAGE_BYTES));
}

static int take_response(const char *text, size_t size, struct wire_calls *calls,
                         struct error **err)
{
    scoped(json_freep) json_t *line = NULL;
    int r = json_parse("wire.jsonl", text, size, &line, err);

    if (r < 0)
        return error_wrap(err, r, "the broker's record");
    const json_t *body = json_object_get(line, "body");
    const struct wire_answer answer = {
        .api = json_get_text(line, "api"),
        .body = json_is_string(body) ? json_string_value(body) : "",
        .size = json_is_string(body) ? json_string_length(body) : 0,
        .t_ms = (uint64_t)json_get_int(line, "t_ms", 0),
        .is_main = json_get_bool(line, "main", false),
    };

    if (answer.api == NULL)
        return error_set(err, ERROR_SYSTEM, "wire.jsonl has an answer without its api");
    if (answer.is_main)
        note_end(line, calls);
    /* What an endpoint refused asks for nothing. */
    if (json_get_int(line, "status", 0) < 300 && !wire_answer_read(&answer, calls))
        calls->cut = true;
    return 0;
}

/* Requests hold the whole conversation each time, and nothing that we look for. */
static int take_line(void *context, const char *text, size_t size, struct error **err)
{
    return wire_line_is(text, size, "response") ? take_response(text, size, context, err) : 0;
}

int wire_calls_read(int fd, struct wire_calls *ret, struct error **err)
{
    return wire_lines_each(fd, take_line, ret, err);
}
