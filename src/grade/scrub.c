#include "grade/scrub.h"

#include "base/base.h"
#include "base/mem.h"
#include "base/str.h"

#define SLOTS_MIN ((size_t)1024)
#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* Hashes of runs, open addressing; 0 is free. */
struct set {
    uint64_t *slots;
    size_t slot_count, used; /* slot_count is a power of two, at most half of them used */
};

struct scrub {
    /* [n]: of n characters: whole short lines; the last: all runs of that length. */
    struct set runs[SCRUB_RUN_CHARS + 1];
    size_t key_bytes;
};

/* --- sets ------------------------------------------------------------------------------------- */

static size_t slot_of(const struct set *set, uint64_t hash)
{
    size_t at = (size_t)((hash * MULTIPLIER) >> 20) & (set->slot_count - 1);

    while (set->slots[at] != 0 && set->slots[at] != hash)
        at = (at + 1) & (set->slot_count - 1);
    return at;
}

static bool set_has(const struct set *set, uint64_t hash)
{
    return set->slot_count > 0 && set->slots[slot_of(set, hash)] != 0;
}

static void set_grow(struct set *set)
{
    struct set larger = {.slot_count = size_max(set->slot_count * 2, SLOTS_MIN)};

    larger.slots = mem_new(larger.slot_count, sizeof(*larger.slots));
    for (size_t i = 0; i < set->slot_count; i++) {
        if (set->slots[i] != 0)
            larger.slots[slot_of(&larger, set->slots[i])] = set->slots[i];
    }
    larger.used = set->used;
    free(set->slots);
    *set = larger;
}

static void set_add(struct set *set, uint64_t hash)
{
    if (set->used * 2 >= set->slot_count)
        set_grow(set);
    size_t at = slot_of(set, hash);

    set->used += set->slots[at] == 0;
    set->slots[at] = hash;
}

/* --- what counts of a text -------------------------------------------------------------------- */

struct plain {
    char *bytes;     /* lower case, without what spacing, quoting and escaping add */
    uint32_t *place; /* of each in the text */
    bool *ends;      /* whether a line ends after it */
    size_t size;
};

static void plain_done(struct plain *plain)
{
    free(plain->bytes);
    free(plain->place);
    free(plain->ends);
}

static bool is_skipped(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'`>|*\\", c) != NULL;
}

/* The n of a \n, and so on: what an escape adds. */
static bool is_escape(const char *bytes, size_t at)
{
    return at > 0 && bytes[at - 1] == '\\' && strchr("nrt", bytes[at]) != NULL && bytes[at] != '\0';
}

static void make_plain(const char *bytes, size_t size, struct plain *ret)
{
    ASSERT(size < UINT32_MAX);
    struct plain plain = {
        .bytes = mem_new(size + 1, 1),
        .place = mem_new(size + 1, sizeof(*plain.place)),
        .ends = mem_new(size + 1, sizeof(*plain.ends)),
    };

    for (size_t i = 0; i < size; i++) {
        char c = bytes[i];

        if ((c == '\n' || (is_escape(bytes, i) && c == 'n')) && plain.size > 0)
            plain.ends[plain.size - 1] = true;
        if (is_skipped(c) || is_escape(bytes, i))
            continue;
        plain.place[plain.size] = (uint32_t)i;
        plain.bytes[plain.size++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    *ret = plain;
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_next(uint64_t hash, char c)
{
    return (hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
}

static uint64_t hash_end(uint64_t hash)
{
    return hash == 0 ? 1 : hash;
}

static uint64_t hash_run(const char *bytes, size_t length)
{
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < length; i++)
        hash = hash_next(hash, bytes[i]);
    return hash_end(hash);
}

/* --- keys ------------------------------------------------------------------------------------- */

struct scrub *scrub_new(void)
{
    return mem_new(1, sizeof(struct scrub));
}

void scrub_free(struct scrub *scrub)
{
    if (scrub == NULL)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(scrub->runs); i++)
        free(scrub->runs[i].slots);
    free(scrub);
}

void scrub_freep(struct scrub **scrub)
{
    scrub_free(*scrub);
}

bool scrub_is_empty(const struct scrub *scrub)
{
    return scrub->key_bytes == 0;
}

bool scrub_add(struct scrub *scrub, const char *bytes, size_t size)
{
    scoped(plain_done) struct plain plain = {0};
    size_t line = 0;

    if (size > SCRUB_KEYS_BYTES_MAX - scrub->key_bytes)
        return false;
    scrub->key_bytes += size;
    make_plain(bytes, size, &plain);
    for (size_t i = 0; i + SCRUB_RUN_CHARS <= plain.size; i++)
        set_add(&scrub->runs[SCRUB_RUN_CHARS], hash_run(plain.bytes + i, SCRUB_RUN_CHARS));
    for (size_t i = 0; i < plain.size; i++) {
        size_t length = i + 1 - line;

        if (!plain.ends[i] && i + 1 < plain.size)
            continue;
        if (length >= SCRUB_LINE_CHARS && length < SCRUB_RUN_CHARS)
            set_add(&scrub->runs[length], hash_run(plain.bytes + line, length));
        line = i + 1;
    }
    return true;
}

/* --- texts ------------------------------------------------------------------------------------ */

/* How many characters from here on are of a key; 0: none. */
static size_t match_at(const struct scrub *scrub, const struct plain *plain, size_t at)
{
    uint64_t hash = HASH_START;
    size_t longest = 0;

    for (size_t n = 1; n <= SCRUB_RUN_CHARS && at + n <= plain->size; n++) {
        hash = hash_next(hash, plain->bytes[at + n - 1]);
        if (n >= SCRUB_LINE_CHARS && set_has(&scrub->runs[n], hash_end(hash)))
            longest = n;
    }
    return longest;
}

void scrub_text(const struct scrub *scrub, const char *bytes, size_t size, struct buf *ret)
{
    scoped(plain_done) struct plain plain = {0};
    size_t written = 0;

    if (scrub_is_empty(scrub)) {
        buf_append(ret, bytes, size);
        return;
    }
    make_plain(bytes, size, &plain);
    for (size_t i = 0; i < plain.size; i++) {
        size_t end = i + match_at(scrub, &plain, i);

        if (end == i)
            continue;
        /* Runs that overlap, or follow each other, are one. */
        for (size_t at = i + 1; at <= end && at < plain.size; at++)
            end = size_max(end, at + match_at(scrub, &plain, at));
        buf_append(ret, bytes + written, plain.place[i] - written);
        buf_text_append(ret, SCRUB_MARK);
        written = plain.place[end - 1] + 1;
        i = end - 1;
    }
    buf_append(ret, bytes + written, size - written);
}

void scrub_string(const struct scrub *scrub, char **text)
{
    scoped(buf_done) struct buf clean = {0};

    if (*text == NULL || scrub_is_empty(scrub))
        return;
    scrub_text(scrub, *text, strlen(*text), &clean);
    free(*text);
    *text = buf_take(&clean);
}

void scrub_buf(const struct scrub *scrub, struct buf *text)
{
    struct buf clean = {.max_bytes = text->max_bytes, .overflowed = text->overflowed};

    if (text->size_bytes == 0 || scrub_is_empty(scrub))
        return;
    scrub_text(scrub, text->data, text->size_bytes, &clean);
    buf_done(text);
    *text = clean;
}

static json_t *clean_json(const struct scrub *scrub, const json_t *value)
{
    scoped(buf_done) struct buf text = {0};
    json_t *copy, *item;
    const char *key;
    size_t i;

    if (json_is_object(value)) {
        copy = json_object();
        json_object_foreach ((json_t *)(uintptr_t)value, key, item)
            json_put(copy, key, clean_json(scrub, item));
        return copy;
    }
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach (value, i, item)
            json_push(copy, clean_json(scrub, item));
        return copy;
    }
    if (!json_is_string(value))
        return json_deep_copy(value);
    scrub_text(scrub, json_string_value(value), json_string_length(value), &text);
    return json_text(buf_text(&text), text.size_bytes);
}

void scrub_json(const struct scrub *scrub, json_t **value)
{
    if (*value == NULL || scrub_is_empty(scrub))
        return;
    json_t *clean = clean_json(scrub, *value);

    json_decref(*value);
    *value = clean;
}
