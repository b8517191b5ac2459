#include "broker/recording.h"

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/recording_internal.h"

/* --- life ------------------------------------------------------------------------------------- */

int recording_begin(int fd, struct recording **ret, struct error **err)
{
    scoped(recording_freep) struct recording *recording = mem_new(1, sizeof(*recording));
    scoped(mem_freep) char *head =
        str_format("{\"closedbook_recording\": %d}\n", RECORDING_VERSION);

    *recording = (struct recording){.fd = fd};
    int r = fs_write_all(fd, "the recording", head, strlen(head), err);

    if (r < 0)
        return r;
    *ret = take(recording);
    return 0;
}

void recording_free(struct recording *recording)
{
    if (recording == NULL)
        return;
    fd_closep(&recording->fd);
    for (size_t i = 0; i < recording->count; i++)
        json_decref(recording->items[i].line);
    free(recording->items);
    free(recording->problem);
    free(recording);
}

void recording_freep(struct recording **recording)
{
    recording_free(*recording);
}

bool recording_answers(const struct recording *recording)
{
    return recording != NULL && recording->fd < 0;
}

const char *recording_problem(const struct recording *recording)
{
    return recording == NULL ? NULL : recording->problem;
}

void recording_digest(const json_t *normal, char ret[static SHA256_HEX_CHARS + 1])
{
    scoped(buf_done) struct buf text = {0};

    json_write_canonical(&text, normal);
    struct sha256 digest = sha256_of(buf_text(&text), text.size_bytes);

    sha256_format(&digest, ret);
}

/* --- keeping ---------------------------------------------------------------------------------- */

json_t *recording_request(struct recording *recording, const struct recorded_request *request)
{
    json_t *line = json_object(), *normal = recording_normal(request);
    char digest[SHA256_HEX_CHARS + 1];

    recording_digest(normal, digest);
    json_put_int(line, "seq", ++recording->seq);
    json_put_text(line, "digest", digest);
    json_put(line, "request", normal);
    return line;
}

bool recording_end(struct recording *recording, json_t *line, const struct recorded_answer *answer)
{
    scoped(buf_done) struct buf text = {0};
    scoped(error_freep) struct error *problem = NULL;

    json_put_text(line, "end", answer->end);
    json_put_int(line, "status", answer->status);
    json_put(line, "content_type", json_text_or_null(answer->content_type));
    json_put_bool(line, "streamed", answer->streamed);
    json_put(line, "body", json_text(answer->body, answer->body_size));
    json_write_line(&text, line);
    json_decref(line);
    buf_char(&text, '\n');
    recording->bytes += text.size_bytes;
    if (recording->problem == NULL && (text.overflowed || recording->bytes > RECORDING_BYTES_MAX ||
                                       recording->seq > RECORDING_EXCHANGES_MAX))
        recording->problem = str_dup("the recording of this trial is larger than it may be");
    if (recording->problem == NULL && fs_write_all(recording->fd, "the recording", buf_text(&text),
                                                   text.size_bytes, &problem) < 0)
        recording->problem = str_dup(error_message(problem));
    return recording->problem == NULL;
}

/* --- answering -------------------------------------------------------------------------------- */

static struct recorded *first_of(struct recording *recording, const char *digest)
{
    struct recorded *found = NULL;

    for (size_t i = 0; i < recording->count; i++) {
        struct recorded *item = &recording->items[i];

        if (!item->used && str_equal(json_get_text(item->line, "digest"), digest) &&
            (found == NULL || item->seq < found->seq))
            found = item;
    }
    return found;
}

/* Where two values part, "" when they do not; owned. As deep as json_parse() lets them be. */
static char *difference(const json_t *was, const json_t *is, const char *at)
{
    const char *key;
    json_t *item;
    size_t i = 0;

    if (json_equal(was, is) != 0)
        return str_dup("");
    if (json_is_object(was) && json_is_object(is)) {
        json_object_foreach ((json_t *)(uintptr_t)was, key, item) {
            scoped(mem_freep) char *below = str_format("%s.%s", at, key);
            const json_t *other = json_object_get(is, key);

            if (other == NULL)
                return str_format("%s is missing", below);
            if (json_equal(item, other) == 0)
                return difference(item, other, below);
        }
        json_object_foreach ((json_t *)(uintptr_t)is, key, item) {
            if (json_object_get(was, key) == NULL)
                return str_format("%s.%s is new", at, key);
        }
    }
    if (json_is_array(was) && json_is_array(is)) {
        for (; i < json_array_size(was) && i < json_array_size(is); i++) {
            scoped(mem_freep) char *below = str_format("%s[%zu]", at, i);

            if (json_equal(json_array_get(was, i), json_array_get(is, i)) == 0)
                return difference(json_array_get(was, i), json_array_get(is, i), below);
        }
        return str_format("%s has %zu items instead of %zu", at, json_array_size(is),
                          json_array_size(was));
    }
    if (!json_is_string(was) || !json_is_string(is))
        return str_format("%s", at);
    const char *a = json_string_value(was), *b = json_string_value(is);

    while (a[i] != '\0' && a[i] == b[i])
        i++;
    return str_format("%s from byte %zu on", at, i);
}

/* The more of their beginnings and ends two texts share, the nearer they are. */
static size_t nearness(const struct buf *a, const struct buf *b)
{
    size_t shorter = size_min(a->size_bytes, b->size_bytes), begin = 0, end = 0;

    while (begin < shorter && a->data[begin] == b->data[begin])
        begin++;
    while (end < shorter - begin &&
           a->data[a->size_bytes - 1 - end] == b->data[b->size_bytes - 1 - end])
        end++;
    return begin + end;
}

static char *describe_miss(const struct recording *recording, const json_t *normal)
{
    scoped(buf_done) struct buf asked = {0};
    const struct recorded *nearest = NULL;
    size_t best = 0, unused = 0;

    if (recording->count == 0)
        return str_dup("it holds no exchange of this trial");
    json_write_canonical(&asked, normal);
    for (size_t i = 0; i < recording->count; i++) {
        scoped(buf_done) struct buf text = {0};

        unused += recording->items[i].used ? 0 : 1;
        json_write_canonical(&text, json_object_get(recording->items[i].line, "request"));
        size_t near = nearness(&asked, &text) + 1;

        if (!recording->items[i].used && near > best) {
            best = near;
            nearest = &recording->items[i];
        }
    }
    if (nearest == NULL)
        return str_format("all of its %zu answers were given", recording->count);
    scoped(mem_freep) char *where =
        difference(json_object_get(nearest->line, "request"), normal, "request");

    return str_format("of the nearest of %zu that are left (seq %lld) differs: %s", unused,
                      (long long)nearest->seq, where);
}

int recording_find(struct recording *recording, const struct recorded_request *request,
                   struct recorded_answer *ret, struct error **err)
{
    scoped(json_freep) json_t *normal = recording_normal(request);
    char digest[SHA256_HEX_CHARS + 1];

    recording_digest(normal, digest);
    struct recorded *item = first_of(recording, digest);

    if (item == NULL) {
        scoped(mem_freep) char *why = describe_miss(recording, normal);

        if (recording->problem == NULL)
            recording->problem = str_dup(why);
        return error_set(err, ERROR_SYSTEM, "the recording has no answer to a request: %s", why);
    }
    item->used = true;
    *ret = (struct recorded_answer){
        .end = json_get_text(item->line, "end"),
        .status = (int)json_get_int(item->line, "status", 0),
        .content_type = json_get_text(item->line, "content_type"),
        .body = json_get_text(item->line, "body"),
        .body_size = json_string_length(json_object_get(item->line, "body")),
        .streamed = json_get_bool(item->line, "streamed", false),
    };
    return 0;
}
