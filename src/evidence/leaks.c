#include "evidence/leaks.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

struct leak_search {
    const struct fingerprint_index *index;
    struct fingerprint_marks *marks;   /* of the place at hand */
    struct fingerprint_marks *written; /* what is left out; NULL: nothing */
    struct fingerprint_marks *seen;    /* of all places */
    struct readings readings;
    int (*unpack)(void *context, const char *bytes, size_t size, struct buf *ret,
                  struct error **err);
    void *unpack_context;
    struct fingerprint_marks *target; /* where readings go: one of the two */
    char *how;                        /* the reading with most that is new */
    size_t how_count, total;
};

static void leak_done(struct leak *leak)
{
    free(leak->id);
    free(leak->place);
    free(leak->how);
}

void leaks_done(struct leaks *leaks)
{
    for (size_t i = 0; i < leaks->count; i++)
        leak_done(&leaks->items[i]);
    free(leaks->items);
    *leaks = (struct leaks){0};
}

static void look_at_reading(void *context, const char *how, const char *text, size_t size)
{
    struct leak_search *search = context;
    size_t count = fingerprint_marks_add(search->target, text, size,
                                         search->target == search->marks ? search->written : NULL);

    search->total += count;
    if (count <= search->how_count)
        return;
    search->how_count = count;
    free(search->how);
    search->how = str_dup(how);
}

static int unpack(void *context, const char *bytes, size_t size, struct buf *ret,
                  struct error **err)
{
    struct leak_search *search = context;

    return search->unpack(search->unpack_context, bytes, size, ret, err);
}

struct leak_search *leak_search_new(const struct fingerprint_index *index,
                                    int (*opens)(void *context, const char *bytes, size_t size,
                                                 struct buf *ret, struct error **err),
                                    void *context)
{
    struct leak_search *search = mem_new(1, sizeof(*search));

    search->index = index;
    search->marks = fingerprint_marks_new(index);
    search->seen = fingerprint_marks_new(index);
    search->unpack = opens;
    search->unpack_context = context;
    search->readings = (struct readings){
        .visit = look_at_reading,
        .unpack = opens == NULL ? NULL : unpack,
        .context = search,
    };
    return search;
}

void leak_search_free(struct leak_search *search)
{
    if (search == NULL)
        return;
    fingerprint_marks_free(search->marks);
    fingerprint_marks_free(search->written);
    fingerprint_marks_free(search->seen);
    free(search->how);
    free(search);
}

void leak_search_freep(struct leak_search **search)
{
    leak_search_free(*search);
}

/* A text and its readings into one set of marks. */
static int look(struct leak_search *search, struct fingerprint_marks *target, const char *text,
                size_t size, struct error **err)
{
    search->target = target;
    search->how_count = 0;
    free(search->how);
    search->how = NULL;
    search->total =
        fingerprint_marks_add(target, text, size, target == search->marks ? search->written : NULL);
    search->how_count = search->total;
    return readings_each(&search->readings, text, size, err);
}

static bool is_worth_telling(const struct fingerprint_overlap *overlap)
{
    if (overlap->all < LEAK_SMALL)
        return overlap->found > 0;
    return overlap->run_chars >= LEAK_RUN_CHARS;
}

/* Of names, so that who allows one allows the same in the next run. */
static char *id_of(const char *file, const char *place)
{
    scoped(mem_freep) char *text = str_format("%s\n%s", file, place);
    struct sha256 digest = sha256_of(text, strlen(text));
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(&digest, hex);
    return str_ndup(hex, LEAK_ID_CHARS);
}

/* In a full list a severe one takes the place of one that is not: nobody hides it behind others. */
static struct leak *make_room(struct leaks *leaks, const struct leak *leak)
{
    leaks->dropped++;
    for (size_t i = leaks->count; leak->severe && i-- > 0;) {
        if (!leaks->items[i].severe)
            return &leaks->items[i];
    }
    leaks->severe_dropped += leak->severe;
    return NULL;
}

static void fill(struct leak *to, const struct leak *leak, const char *id_name)
{
    *to = *leak;
    to->id = id_of(id_name, leak->place);
    to->place = str_dup(leak->place);
    to->how = leak->how == NULL ? NULL : str_dup(leak->how);
}

static void add(struct leaks *leaks, const struct leak *leak, const char *name)
{
    leaks->severe_count += leak->severe;
    if (leaks->count == LEAKS_MAX) {
        struct leak *room = make_room(leaks, leak);

        if (room != NULL) {
            leak_done(room);
            fill(room, leak, name);
        }
        return;
    }
    if ((leaks->count & (leaks->count - 1)) == 0)
        leaks->items =
            mem_resize(leaks->items, size_max(leaks->count * 2, 1), sizeof(*leaks->items));
    fill(&leaks->items[leaks->count++], leak, name);
}

static void tell(struct leak_search *search, const char *place, struct leaks *leaks)
{
    for (size_t i = 0; i < fingerprint_file_count(search->index); i++) {
        struct fingerprint_overlap overlap;

        fingerprint_overlap_of(search->marks, i, &overlap);
        if (!is_worth_telling(&overlap))
            continue;
        bool severe =
            overlap.all >= LEAK_SMALL && overlap.found * 100 >= overlap.all * LEAK_SEVERE_PERCENT;
        struct leak leak = {
            .place = (char *)(uintptr_t)place,
            .how = search->how,
            .file = i,
            .found = overlap.found,
            .all = overlap.all,
            .run_chars = overlap.run_chars,
            .run_offset = overlap.run_offset,
            .run_bytes = overlap.run_bytes,
            .severe = severe,
        };

        add(leaks, &leak, fingerprint_file_name(search->index, i));
    }
}

int leak_search_text(struct leak_search *search, const char *place, const char *text, size_t size,
                     struct leaks *leaks, struct error **err)
{
    int r = look(search, search->marks, text, size, err);

    leaks->places++;
    leaks->bytes += size;
    if (search->total > 0) {
        if (r == 0)
            tell(search, place, leaks);
        fingerprint_marks_merge(search->seen, search->marks);
        fingerprint_marks_clear(search->marks);
    }
    return r < 0 ? error_wrap(err, r, "'%s'", place) : 0;
}

int leak_search_except(struct leak_search *search, const char *text, size_t size,
                       struct error **err)
{
    if (search->written == NULL)
        search->written = fingerprint_marks_new(search->index);
    return look(search, search->written, text, size, err);
}

void leak_search_except_seen(struct leak_search *search, const struct fingerprint_marks *seen)
{
    if (search->written == NULL)
        search->written = fingerprint_marks_new(search->index);
    fingerprint_marks_merge(search->written, seen);
}

struct fingerprint_marks *leak_search_take_seen(struct leak_search *search)
{
    struct fingerprint_marks *seen = search->seen;

    search->seen = fingerprint_marks_new(search->index);
    return seen;
}

json_t *leaks_to_json(const struct leaks *leaks, const struct fingerprint_index *index)
{
    json_t *json = json_object(), *findings = json_array();
    size_t fingerprints = 0;

    for (size_t i = 0; i < fingerprint_file_count(index); i++)
        fingerprints += fingerprint_file_size(index, i);
    json_put_int(json, "places", (int64_t)leaks->places);
    json_put_int(json, "bytes", (int64_t)leaks->bytes);
    json_put_int(json, "private_files", (int64_t)fingerprint_file_count(index));
    json_put_int(json, "fingerprints", (int64_t)fingerprints);
    json_put_int(json, "severe", (int64_t)leaks->severe_count);
    json_put_int(json, "dropped", (int64_t)leaks->dropped);
    for (size_t i = 0; i < leaks->count; i++) {
        const struct leak *leak = &leaks->items[i];
        json_t *finding = json_object();

        json_put_text(finding, "id", leak->id);
        json_put_text(finding, "place", leak->place);
        json_put(finding, "reading", json_text_or_null(leak->how));
        json_put_text(finding, "private", fingerprint_file_name(index, leak->file));
        json_put_int(finding, "found", (int64_t)leak->found);
        json_put_int(finding, "of", (int64_t)leak->all);
        json_put_int(finding, "run_chars", (int64_t)leak->run_chars);
        json_put(finding, "severe", json_boolean(leak->severe));
        json_push(findings, finding);
    }
    json_put(json, "findings", findings);
    return json;
}

char *leak_describe(const struct leak *leak, const struct fingerprint_index *index)
{
    const char *name = fingerprint_file_name(index, leak->file);
    scoped(mem_freep) char *how =
        leak->how == NULL ? str_dup("") : str_format(", read as %s,", leak->how);

    return str_format("'%s'%s has %zu of %zu fingerprints of '%s' (the longest run: %zu "
                      "characters)",
                      leak->place, how, leak->found, leak->all, name, leak->run_chars);
}
