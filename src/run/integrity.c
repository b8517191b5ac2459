#include "run/integrity.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/wire_context.h"
#include "base/fs.h"
#include "base/mem.h"
#include "collect/collect.h"
#include "evidence/attempts.h"
#include "task/task_public.h"

#define OUTPUT_BYTES_MAX ((size_t)64 << 20)
#define REASONS_MAX 20
#define ARCHIVES_MAX 200 /* that are opened in a trial: each needs a cell */

/*
 * Opens what the agent left or was told, for as long as it can: whoever leaves an archive that
 * breaks its reader, or a thousand of them, must not gain a trial that was not counted.
 */
struct archives {
    struct leak_opener opener;
    size_t opened, closed; /* tried; not opened */
    char *why;             /* of the last that was not; NULL; owned */
};

static int open_archive(void *context, const char *bytes, size_t size, struct buf *ret,
                        struct error **err)
{
    struct archives *archives = context;
    scoped(error_freep) struct error *problem = NULL;
    int r = 0;

    if (archives->opened == ARCHIVES_MAX) {
        archives->closed++;
        free(archives->why);
        archives->why = str_format("there are more than %d", ARCHIVES_MAX);
        return 0;
    }
    archives->opened++;
    r = leak_unpack(&archives->opener, bytes, size, ret, &problem);
    if (r < 0 && error_errno_of(problem) == EPIPE)
        return error_errno(err, EPIPE, "an archive"); /* the monitor is gone */
    if (r < 0) {
        buf_clear(ret);
        archives->closed++;
        free(archives->why);
        archives->why = str_dup(error_message(problem));
    }
    return 0;
}

/* One look at a trial. */
struct sighting {
    const struct trial_job *job;
    struct leak_search *search;
    struct leaks prepared;      /* what steps of the author's left in the workspace before */
    struct leaks context, left; /* what came back to the agent; what it printed and left */
    struct attempts attempts;
    struct archives archives;
};

/* Where the files of an archive are looked for. */
struct tar_look {
    struct leak_search *search;
    struct leaks *leaks;
    const char *name; /* below the trial's directory */
};

static void sighting_done(struct sighting *sighting)
{
    leak_search_free(sighting->search);
    leaks_done(&sighting->prepared);
    leaks_done(&sighting->context);
    leaks_done(&sighting->left);
    attempts_done(&sighting->attempts);
    free(sighting->archives.why);
}

/* --- in the order in which it happened ---------------------------------------------------------
 */

/* All texts of a value, one a line: what is said in it, without the JSON around. */
static void texts_of(const json_t *value, struct buf *ret)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_string(value)) {
        buf_append(ret, json_string_value(value), json_string_length(value));
        buf_char(ret, '\n');
    }
    json_array_foreach (value, i, item)
        texts_of(item, ret);
    json_object_foreach ((json_t *)(uintptr_t)value, key, item)
        texts_of(item, ret);
}

static int written(struct sighting *sighting, const json_t *value, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    texts_of(value, &text);
    return text.size_bytes == 0
               ? 0
               : leak_search_except(sighting->search, text.data, text.size_bytes, err);
}

static int came_back(struct sighting *sighting, const struct event *event, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(mem_freep) char *place = str_format(
        "%s %llu of events.jsonl", event_kind_name(event->kind), (unsigned long long)event->seq);

    texts_of(event->output, &text);
    return text.size_bytes == 0 ? 0
                                : leak_search_text(sighting->search, place, text.data,
                                                   text.size_bytes, &sighting->context, err);
}

static int look_at_event(struct sighting *sighting, const struct event *event, struct error **err)
{
    switch (event->kind) {
    case EVENT_TEXT:
        return written(sighting, event->output, err);
    case EVENT_TOOL_CALL:
        return written(sighting, event->input, err);
    case EVENT_TOOL_RESULT:
    case EVENT_USER:
        return came_back(sighting, event, err);
    case EVENT_AGENT_START:
    case EVENT_AGENT_END:
    case EVENT_TURN_START:
    case EVENT_TURN_END:
    case EVENT_USAGE:
    case EVENT_RETRY:
    case EVENT_ERROR:
    case EVENT_INVALID:
    case EVENT_KIND_COUNT:
        break;
    }
    return 0;
}

/* What the agent brought with it: the operator chose it. */
static int look_at_program(struct sighting *sighting, struct error **err)
{
    struct stat status;

    if (sighting->job->script_fd < 0)
        return 0;
    if (fstat(sighting->job->script_fd, &status) < 0)
        return error_errno(err, errno, "cannot look at the agent's script");
    size_t size = size_min((size_t)status.st_size, OUTPUT_BYTES_MAX);

    if (size == 0)
        return 0;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, sighting->job->script_fd, 0);

    if (bytes == MAP_FAILED)
        return error_errno(err, errno, "cannot read the agent's script");
    int r = leak_search_except(sighting->search, bytes, size, err);

    (void)munmap(bytes, size); /* cannot fail for what was mapped */
    return r;
}

/* --- what it left ------------------------------------------------------------------------------
 */

static int look_at_output(struct sighting *sighting, const char *name, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(fd_closep) int fd = openat(sighting->job->dir_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "cannot open '%s'", name);
    /* An agent that prints more must not make of it an error of ours. */
    int r = leak_read(fd, name, OUTPUT_BYTES_MAX, &text, err);

    return r < 0 ? r
                 : leak_search_text(sighting->search, name, buf_text(&text), text.size_bytes,
                                    &sighting->left, err);
}

static int look_at_member(void *context, int tar_fd, const struct artifact *artifact,
                          struct error **err)
{
    const struct tar_look *look = context;
    scoped(mem_freep) char *place = str_format("%s: %s", look->name, artifact->path);
    size_t size = size_min(artifact->size_bytes, LEAK_FILE_BYTES_MAX);
    scoped(mem_freep) char *bytes = NULL;
    ssize_t n;

    if (artifact->type != MANIFEST_FILE || size == 0)
        return 0;
    bytes = mem_new(size, 1);
    n = pread(tar_fd, bytes, size, (off_t)artifact->offset);
    if (n < 0)
        return error_errno(err, errno, "cannot read '%s'", look->name);
    return leak_search_text(look->search, place, bytes, (size_t)n, look->leaks, err);
}

static int look_at_tar(const struct sighting *sighting, struct tar_look *look, struct error **err)
{
    scoped(fd_closep) int fd = openat(sighting->job->dir_fd, look->name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "cannot open '%s'", look->name);
    return artifacts_each(fd, look->name, look_at_member, look, err);
}

/* What steps before the agent left in its workspace was given to it by the author, knowingly. */
static int look_at_steps(struct sighting *sighting, struct error **err)
{
    struct tar_look look = {sighting->search, &sighting->prepared, "pre_run/artifacts.tar"};
    int r = look_at_tar(sighting, &look, err);

    if (r < 0)
        return r;
    scoped(fingerprint_marks_freep) struct fingerprint_marks *seen =
        leak_search_take_seen(sighting->search);

    leak_search_except_seen(sighting->search, seen);
    return 0;
}

/* An item of a conversation with the model, as the broker saw it. */
static int look_at_wire(void *context, const struct wire_text *text, struct error **err)
{
    struct sighting *sighting = context;
    scoped(mem_freep) char *place = NULL;

    if (text->by_model)
        return leak_search_except(sighting->search, text->text, text->size, err);
    place = str_format("request %llu of wire.jsonl", (unsigned long long)text->seq);
    return leak_search_text(sighting->search, place, text->text, text->size, &sighting->context,
                            err);
}

static int look_at_context(struct sighting *sighting, struct error **err)
{
    scoped(fd_closep) int fd = openat(sighting->job->dir_fd, "wire.jsonl", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "cannot open wire.jsonl");
    return wire_context_each(fd, look_at_wire, sighting, err);
}

static int look(struct sighting *sighting, const struct event_log *events, struct error **err)
{
    struct tar_look left = {sighting->search, &sighting->left, "artifacts.tar"};
    int r = look_at_steps(sighting, err);

    if (r == 0)
        r = look_at_program(sighting, err);
    if (r == 0)
        r = look_at_context(sighting, err);
    for (size_t i = 0; r == 0 && i < events->count; i++)
        r = look_at_event(sighting, &events->events[i], err);
    if (r == 0)
        r = look_at_output(sighting, "agent.stdout", err);
    if (r == 0)
        r = look_at_output(sighting, "agent.stderr", err);
    return r < 0 ? r : look_at_tar(sighting, &left, err);
}

/* --- what it tried -----------------------------------------------------------------------------
 */

/* The result of a call went wrong, or there is none. */
static bool was_denied(const struct event_log *events, size_t call)
{
    const char *id = events->events[call].call_id;

    for (size_t i = call + 1; i < events->count; i++) {
        const struct event *event = &events->events[i];

        if (event->kind == EVENT_TOOL_RESULT && str_equal(event->call_id, id))
            return event->is_error || (event->has_exit_code && event->exit_code != 0);
    }
    return true;
}

static void list_commands(struct sighting *sighting, const struct event_log *events)
{
    for (size_t i = 0; i < events->count; i++) {
        const struct event *event = &events->events[i];
        const char *command = json_get_text(event->input, "command");
        enum attempt_class kind = event->kind == EVENT_TOOL_CALL && command != NULL
                                      ? attempt_of_command(command)
                                      : ATTEMPT_COUNT;
        scoped(mem_freep) char *place =
            str_format("events.jsonl: %llu", (unsigned long long)event->seq);

        if (kind != ATTEMPT_COUNT)
            attempts_add(
                &sighting->attempts,
                &(struct attempt){kind, place, (char *)(uintptr_t)command, was_denied(events, i)});
    }
}

static void list_refused(struct sighting *sighting, const struct trial_record *record)
{
    int64_t refused = json_get_int(record->usage, "refused", 0);
    scoped(mem_freep) char *requests = str_format("%lld requests", (long long)refused);
    const json_t *item;
    size_t i;

    if (refused > 0)
        attempts_add(&sighting->attempts,
                     &(struct attempt){ATTEMPT_BROKER, (char[]){"wire.jsonl"}, requests, true});
    json_array_foreach (record->artifacts.refused, i, item) {
        const char *path = json_get_text(item, "path");

        attempts_add(&sighting->attempts,
                     &(struct attempt){ATTEMPT_LEFT, (char[]){"changes.json"},
                                       (char *)(uintptr_t)(path == NULL ? "" : path), true});
    }
    json_array_foreach (json_get_array(record->mocks, "forged"), i, item) {
        const char *path = json_string_value(item);

        attempts_add(&sighting->attempts,
                     &(struct attempt){ATTEMPT_MOCKS, (char[]){"mocks"},
                                       (char *)(uintptr_t)(path == NULL ? "" : path), true});
    }
}

/* --- the verdict -------------------------------------------------------------------------------
 */

/* Of one kind of places: the worst that its leaks say of a trial. */
static enum trial_integrity judge(const struct sighting *sighting, const struct leaks *leaks,
                                  bool knows_what_it_wrote, struct trial_record *record)
{
    const struct leak_sight *sight = sighting->job->sight;
    enum trial_integrity worst = INTEGRITY_CLEAN;

    for (size_t i = 0; i < leaks->count; i++) {
        const struct leak *leak = &leaks->items[i];
        scoped(mem_freep) char *what = leak_describe(leak, sight->index);

        if (leak_sight_allows(sight, leak) != NULL)
            continue;
        if (record->integrity_reasons.count < REASONS_MAX)
            str_list_add_take(&record->integrity_reasons, str_format("leak: %s", what));
        if (leak->severe && knows_what_it_wrote)
            worst = INTEGRITY_COMPROMISED;
        else if (worst == INTEGRITY_CLEAN)
            worst = INTEGRITY_SUSPECT;
    }
    if (leaks->severe_dropped > 0 && knows_what_it_wrote)
        worst = INTEGRITY_COMPROMISED;
    return worst;
}

static void note_allowed(const struct leak_sight *sight, struct trial_record *record)
{
    for (size_t i = 0; i < sight->given.leaks.count; i++)
        if (sight->allowed.items[i][0] != '\0')
            str_list_add_take(
                &record->integrity_reasons,
                str_format("allowed leak %s ('%s' in '%s'): %s", sight->given.leaks.items[i].id,
                           fingerprint_file_name(sight->index, sight->given.leaks.items[i].file),
                           sight->given.leaks.items[i].place, sight->allowed.items[i]));
}

static void note_prepared(const struct sighting *sighting, struct trial_record *record)
{
    for (size_t i = 0; i < sighting->prepared.count; i++) {
        scoped(mem_freep) char *what =
            leak_describe(&sighting->prepared.items[i], sighting->job->sight->index);

        if (sighting->prepared.items[i].severe)
            str_list_add_take(&record->integrity_reasons, str_format("given by pre_run: %s", what));
    }
}

static void conclude(const struct sighting *sighting, struct trial_record *record)
{
    const struct leak_sight *sight = sighting->job->sight;
    /* Of others we have only their own word for what they wrote. */
    bool knows = str_equal(record->events, "wire");
    enum trial_integrity context = judge(sighting, &sighting->context, knows, record);
    enum trial_integrity left = judge(sighting, &sighting->left, knows, record);
    enum trial_integrity worst =
        context == INTEGRITY_COMPROMISED || left == INTEGRITY_COMPROMISED ? INTEGRITY_COMPROMISED
        : context == INTEGRITY_SUSPECT || left == INTEGRITY_SUSPECT       ? INTEGRITY_SUSPECT
                                                                          : INTEGRITY_CLEAN;

    if (attempts_denied_classes(&sighting->attempts) >= ATTEMPTS_SUSPECT) {
        str_list_add_take(&record->integrity_reasons,
                          str_format("attempts of %zu kinds were denied (evidence.attempts)",
                                     attempts_denied_classes(&sighting->attempts)));
        worst = worst == INTEGRITY_CLEAN ? INTEGRITY_SUSPECT : worst;
    }
    if (sighting->archives.closed > 0) {
        str_list_add_take(&record->integrity_reasons,
                          str_format("%zu archives were not looked into: %s",
                                     sighting->archives.closed, sighting->archives.why));
        worst = worst == INTEGRITY_CLEAN ? INTEGRITY_PARTIAL : worst;
    }
    for (size_t i = 0; i < sight->left_out.count; i++) {
        if (!str_starts(sight->left_out.items[i], LEAK_PRIVATE_PREFIX))
            continue;
        str_list_add_take(&record->integrity_reasons,
                          str_format("too large to be looked for: %s", sight->left_out.items[i]));
        worst = worst == INTEGRITY_CLEAN ? INTEGRITY_PARTIAL : worst;
    }
    note_allowed(sight, record);
    note_prepared(sighting, record);
    json_decref(record->evidence);
    record->evidence = json_object();
    json_put(record->evidence, "given", leak_sight_to_json(sight));
    json_put(record->evidence, "prepared", leaks_to_json(&sighting->prepared, sight->index));
    json_put(record->evidence, "context", leaks_to_json(&sighting->context, sight->index));
    json_put(record->evidence, "left", leaks_to_json(&sighting->left, sight->index));
    json_put(record->evidence, "attempts", attempts_to_json(&sighting->attempts));
    /* A cell that protects less than promised says more than what was not found. */
    if (record->integrity == INTEGRITY_NOT_EVALUATED || worst == INTEGRITY_COMPROMISED ||
        (record->integrity == INTEGRITY_PARTIAL && worst == INTEGRITY_SUSPECT))
        record->integrity = worst;
}

int integrity_evaluate(const struct trial_job *job, struct trial_record *record,
                       const struct event_log *events, struct error **err)
{
    /* The oracle plays the reference: that it is there says nothing. */
    if (job->sight == NULL || job->sight->index == NULL || str_equal(record->agent.type, "oracle"))
        return 0;
    /* Not on the bare host: who left them is not trusted. */
    bool opens_archives =
        job->sight->has_unpack && monitor_facts(job->monitor)->driver != CELL_TEMPDIR;
    scoped(sighting_done) struct sighting sighting = {
        .job = job,
        .archives = {.opener = {job->monitor, job->sight->unpack_fd}},
    };

    sighting.search = leak_search_new(job->sight->index, opens_archives ? open_archive : NULL,
                                      &sighting.archives);

    if (job->sight->given.seen != NULL)
        leak_search_except_seen(sighting.search, job->sight->given.seen);
    int r = look(&sighting, events, err);

    if (r < 0)
        return error_wrap(err, r, "cannot look for what the agent saw");
    list_commands(&sighting, events);
    list_refused(&sighting, record);
    conclude(&sighting, record);
    return 0;
}
