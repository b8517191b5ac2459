/* What the wire shows and what the agent's program printed, as one. */
#include "agent/tools.h"
#include "agent/wire_calls.h"
#include "base/mem.h"
#include "base/str.h"

/* A call of the wire, found by its id; of one id the first that is left. */
struct entry {
    const char *id;
    size_t index;
};

struct merging {
    const struct wire_calls *calls;
    enum stream_kind kind;
    struct event_log *from, to;
    struct entry *by_id;
    size_t id_count;
    bool *is_met;                      /* of each call: the program printed it */
    size_t *met_by;                    /* of each event: index of the call, or SIZE_MAX */
    size_t next;                       /* calls before this one stand in the new log */
    struct str_list own_ids, wire_ids; /* ids that a CLI made up, and what they are on the wire */
};

static int compare(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int order = strcmp(left->id, right->id);

    return order != 0 ? order : left->index < right->index ? -1 : left->index > right->index;
}

static void sort_ids(struct merging *merging)
{
    const struct wire_calls *calls = merging->calls;

    merging->by_id = mem_new(calls->count + 1, sizeof(*merging->by_id));
    for (size_t i = 0; i < calls->count; i++) {
        if (calls->calls[i].id != NULL)
            merging->by_id[merging->id_count++] = (struct entry){calls->calls[i].id, i};
    }
    qsort(merging->by_id, merging->id_count, sizeof(*merging->by_id), compare);
}

static size_t find_id(const struct merging *merging, const char *id)
{
    size_t low = 0, high = merging->id_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(merging->by_id[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < merging->id_count && str_equal(merging->by_id[low].id, id); low++) {
        if (!merging->is_met[merging->by_id[low].index])
            return merging->by_id[low].index;
    }
    return SIZE_MAX;
}

/* Ids of its own making say nothing: the next call of that tool is the one. */
static size_t find_next(const struct merging *merging, const char *tool, size_t *from)
{
    const struct wire_calls *calls = merging->calls;

    for (size_t i = *from; i < calls->count; i++) {
        if (!merging->is_met[i] && calls->calls[i].is_main &&
            str_equal(tool_canonical(merging->kind, calls->calls[i].name), tool))
            return i;
    }
    return SIZE_MAX;
}

static void meet(struct merging *merging)
{
    bool has_own_ids = merging->kind == STREAM_CODEX || merging->kind == STREAM_GEMINI;
    size_t first = 0;

    for (size_t i = 0; i < merging->from->count; i++) {
        const struct event *event = &merging->from->events[i];
        size_t met = SIZE_MAX;

        if (event->kind == EVENT_TOOL_CALL && event->call_id != NULL)
            met = find_id(merging, event->call_id);
        if (event->kind == EVENT_TOOL_CALL && met == SIZE_MAX && has_own_ids && event->tool != NULL)
            met = find_next(merging, event->tool, &first);
        merging->met_by[i] = met;
        if (met != SIZE_MAX)
            merging->is_met[met] = true;
        while (first < merging->calls->count && merging->is_met[first])
            first++;
    }
}

static void fill(struct merging *merging, const struct wire_call *call, struct event *event)
{
    free(event->tool);
    event->tool = str_dup(tool_canonical(merging->kind, call->name));
    json_decref(event->input);
    event->input = json_incref(call->input);
    if (call->id != NULL) {
        if (event->call_id != NULL && !str_equal(event->call_id, call->id)) {
            str_list_add(&merging->own_ids, event->call_id);
            str_list_add(&merging->wire_ids, call->id);
        }
        free(event->call_id);
        event->call_id = str_dup(call->id);
    }
    /* A conversation beside the main thread is whoever's: it never counts. */
    event->source = call->is_main ? EVENT_WIRE : EVENT_STREAM;
}

/* Calls that the program did not print, up to the one at end. */
static void add_unprinted(struct merging *merging, size_t end, unsigned turn)
{
    for (; merging->next < end; merging->next++) {
        if (merging->is_met[merging->next])
            continue;
        const struct wire_call *call = &merging->calls->calls[merging->next];
        struct event *event = event_log_add(&merging->to, EVENT_TOOL_CALL, EVENT_WIRE);

        event->t_ms = call->t_ms;
        event->turn = turn;
        fill(merging, call, event);
    }
}

static void rename_result(const struct merging *merging, struct event *event)
{
    if (event->kind != EVENT_TOOL_RESULT || event->call_id == NULL)
        return;
    for (size_t i = merging->own_ids.count; i-- > 0;) {
        if (!str_equal(merging->own_ids.items[i], event->call_id))
            continue;
        free(event->call_id);
        event->call_id = str_dup(merging->wire_ids.items[i]);
        return;
    }
}

static void move_all(struct merging *merging)
{
    unsigned turn = 0;

    for (size_t i = 0; i < merging->from->count; i++) {
        struct event *old = &merging->from->events[i];
        size_t met = merging->met_by[i];

        if (met != SIZE_MAX)
            add_unprinted(merging, met, turn);
        struct event *event = event_log_add(&merging->to, old->kind, old->source);
        uint64_t seq = event->seq;

        *event = *old;
        *old = (struct event){0};
        event->seq = seq;
        turn = event->turn;
        if (met != SIZE_MAX)
            fill(merging, &merging->calls->calls[met], event);
        else
            rename_result(merging, event);
    }
    add_unprinted(merging, merging->calls->count, turn);
}

void wire_calls_merge(const struct wire_calls *calls, enum stream_kind kind, struct event_log *log)
{
    struct merging merging = {.calls = calls, .kind = kind, .from = log};

    sort_ids(&merging);
    merging.is_met = mem_new(calls->count + 1, sizeof(*merging.is_met));
    merging.met_by = mem_new(log->count + 1, sizeof(*merging.met_by));
    meet(&merging);
    move_all(&merging);
    merging.to.cut = log->cut || calls->cut;
    free(merging.by_id);
    free(merging.is_met);
    free(merging.met_by);
    str_list_done(&merging.own_ids);
    str_list_done(&merging.wire_ids);
    event_log_done(log);
    *log = merging.to;
}
