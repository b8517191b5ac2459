#include "base/mem.h"
#include "base/str.h"
#include "evidence/fingerprint_internal.h"

#define FILTER_BITS_EACH 32 /* of an entry */
#define FILTER_BITS_MIN ((size_t)1 << 12)

#define L(c) [c] = (c), [(c) - 'a' + 'A'] = (c)
#define H8(c)                                                                                      \
    [c] = (c), [(c) + 1] = (c) + 1, [(c) + 2] = (c) + 2, [(c) + 3] = (c) + 3, [(c) + 4] = (c) + 4, \
    [(c) + 5] = (c) + 5, [(c) + 6] = (c) + 6, [(c) + 7] = (c) + 7
const uint8_t fingerprint_letters[256] = {
    H8('0'),  ['8'] = '8', ['9'] = '9', L('a'),   L('b'),   L('c'),   L('d'),   L('e'),   L('f'),
    L('g'),   L('h'),      L('i'),      L('j'),   L('k'),   L('l'),   L('m'),   L('n'),   L('o'),
    L('p'),   L('q'),      L('r'),      L('s'),   L('t'),   L('u'),   L('v'),   L('w'),   L('x'),
    L('y'),   L('z'),      H8(0x80),    H8(0x88), H8(0x90), H8(0x98), H8(0xa0), H8(0xa8), H8(0xb0),
    H8(0xb8), H8(0xc0),    H8(0xc8),    H8(0xd0), H8(0xd8), H8(0xe0), H8(0xe8), H8(0xf0), H8(0xf8),
};
#undef L
#undef H8

struct fingerprint_index *fingerprint_index_new(void)
{
    return mem_new(1, sizeof(struct fingerprint_index));
}

void fingerprint_index_free(struct fingerprint_index *index)
{
    if (index == NULL)
        return;
    for (size_t i = 0; i < index->file_count; i++) {
        free(index->files[i].name);
        free(index->files[i].text);
    }
    free(index->files);
    free(index->grams);
    free(index->table);
    free(index->filter);
    free(index);
}

void fingerprint_index_freep(struct fingerprint_index **index)
{
    fingerprint_index_free(*index);
}

size_t fingerprint_file_begin(struct fingerprint_index *index, const char *name)
{
    ASSERT(index->table == NULL && index->file_count < FINGERPRINT_FILES_MAX);
    if ((index->file_count & (index->file_count - 1)) == 0)
        index->files =
            mem_resize(index->files, size_max(index->file_count * 2, 1), sizeof(*index->files));
    index->files[index->file_count] =
        (struct fingerprinted){.name = str_dup(name), .first = index->gram_count};
    return index->file_count++;
}

/* --- from a text to its grams ------------------------------------------------------------------
 */

/* The counted characters of a text, and where each stands in it. */
struct folded {
    uint8_t *letters;
    uint32_t *offsets;
    size_t count;
};

static void folded_done(struct folded *folded)
{
    free(folded->letters);
    free(folded->offsets);
}

static void fold(const char *text, size_t size, struct folded *ret)
{
    ret->letters = mem_new(size + 1, 1);
    ret->offsets = mem_new(size + 1, sizeof(*ret->offsets));
    for (size_t i = 0; i < size; i++) {
        uint8_t letter = fingerprint_letters[(uint8_t)text[i]];

        ret->letters[ret->count] = letter;
        ret->offsets[ret->count] = (uint32_t)i;
        ret->count += letter != 0;
    }
}

static bool says_something(const uint8_t *at)
{
    uint64_t seen[4] = {0};
    int count = 0, ordered = 0;

    for (size_t i = 0; i < FINGERPRINT_GRAM; i++) {
        seen[at[i] / 64] |= UINT64_C(1) << at[i] % 64;
        ordered += i > 0 && at[i] == at[i - 1] + 1;
    }
    for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
        count += __builtin_popcountll(seen[i]);
    return count >= FINGERPRINT_VARIETY && ordered < FINGERPRINT_ORDERED;
}

static void add_gram(struct fingerprint_index *index, const struct gram *gram)
{
    if (index->gram_count == index->gram_capacity) {
        index->gram_capacity = size_max(index->gram_capacity * 2, 256);
        index->grams = mem_resize(index->grams, index->gram_capacity, sizeof(*index->grams));
    }
    index->grams[index->gram_count++] = *gram;
}

void fingerprint_file_add(struct fingerprint_index *index, const char *text, size_t size)
{
    scoped(folded_done) struct folded folded = {0};

    ASSERT(index->file_count > 0 && index->table == NULL);
    struct fingerprinted *file = &index->files[index->file_count - 1];

    if (index->keeps_texts && file->text == NULL)
        file->text = str_ndup(text, size);
    fold(text, size_min(size, FINGERPRINT_FILE_BYTES_MAX), &folded);
    for (size_t i = 0; i + FINGERPRINT_GRAM <= folded.count; i++) {
        const uint8_t *at = folded.letters + i;

        if (!fingerprint_is_chosen(fingerprint_head(at)) || !says_something(at))
            continue;
        add_gram(index, &(struct gram){.hash = fingerprint_hash(at),
                                       .head = fingerprint_head(at),
                                       .file = (uint32_t)(index->file_count - 1),
                                       .at = (uint32_t)i,
                                       .offset = folded.offsets[i],
                                       .end = folded.offsets[i + FINGERPRINT_GRAM - 1] + 1});
    }
    file->count = index->gram_count - file->first;
}

/* --- what is taken out again -------------------------------------------------------------------
 */

static int compare_hashes(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

static void hashes_of(const char *text, size_t size, uint64_t **ret, size_t *ret_count)
{
    scoped(folded_done) struct folded folded = {0};
    size_t count = 0;

    fold(text, size_min(size, FINGERPRINT_FILE_BYTES_MAX), &folded);
    *ret = mem_new(folded.count + 1, sizeof(**ret));
    for (size_t i = 0; i + FINGERPRINT_GRAM <= folded.count; i++)
        if (fingerprint_is_chosen(fingerprint_head(folded.letters + i)))
            (*ret)[count++] = fingerprint_hash(folded.letters + i);
    qsort(*ret, count, sizeof(**ret), compare_hashes);
    *ret_count = count;
}

/* Of files from `first` on. */
static void subtract(struct fingerprint_index *index, size_t first, const char *text, size_t size)
{
    scoped(mem_freep) uint64_t *hashes = NULL;
    size_t count = 0, kept = 0;

    ASSERT(index->table == NULL);
    if (first >= index->file_count)
        return;
    hashes_of(text, size, &hashes, &count);
    kept = index->files[first].first;
    for (size_t i = first; i < index->file_count; i++) {
        struct fingerprinted *file = &index->files[i];
        size_t begin = file->first, end = begin + file->count;

        file->first = kept;
        for (size_t k = begin; k < end; k++)
            if (bsearch(&index->grams[k].hash, hashes, count, sizeof(*hashes), compare_hashes) ==
                NULL)
                index->grams[kept++] = index->grams[k];
        file->count = kept - file->first;
    }
    index->gram_count = kept;
}

void fingerprint_file_subtract(struct fingerprint_index *index, const char *text, size_t size)
{
    ASSERT(index->file_count > 0);
    subtract(index, index->file_count - 1, text, size);
}

void fingerprint_index_subtract(struct fingerprint_index *index, const char *text, size_t size)
{
    subtract(index, 0, text, size);
}

/* --- the table ---------------------------------------------------------------------------------
 */

/* Whether a file has it already among its grams that are in the table. */
static bool is_repeated(const struct fingerprint_index *index, size_t gram)
{
    size_t other = fingerprint_lookup(index, index->grams[gram].hash);

    for (; other != NO_GRAM; other = index->grams[other].next)
        if (index->grams[other].file == index->grams[gram].file)
            return true;
    return false;
}

static void enter(struct fingerprint_index *index, size_t gram)
{
    uint64_t hash = index->grams[gram].hash;
    size_t slot = hash & index->table_mask;

    while (index->table[slot] != NO_GRAM && index->grams[index->table[slot]].hash != hash)
        slot = (slot + 1) & index->table_mask;
    index->grams[gram].next = index->table[slot];
    index->table[slot] = (uint32_t)gram;
    fingerprint_filter_set(index, index->grams[gram].head);
}

static size_t power_of_two(size_t least)
{
    size_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

void fingerprint_index_seal(struct fingerprint_index *index)
{
    size_t slots = power_of_two(index->gram_count * 2 + 2);
    size_t bits = power_of_two(size_max(index->gram_count * FILTER_BITS_EACH, FILTER_BITS_MIN));
    size_t kept = 0;

    ASSERT(index->table == NULL && index->gram_count < NO_GRAM);
    index->table = mem_new(slots, sizeof(*index->table));
    for (size_t i = 0; i < slots; i++)
        index->table[i] = NO_GRAM;
    index->table_mask = slots - 1;
    index->filter = mem_new(bits / 64, sizeof(*index->filter));
    index->filter_mask = bits - 1;
    for (size_t i = 0; i < index->file_count; i++) {
        struct fingerprinted *file = &index->files[i];
        size_t begin = file->first, end = begin + file->count;

        file->first = kept;
        for (size_t k = begin; k < end; k++) {
            index->grams[kept] = index->grams[k];
            if (is_repeated(index, kept))
                continue;
            enter(index, kept);
            kept++;
        }
        file->count = kept - file->first;
    }
    index->gram_count = kept;
}

size_t fingerprint_file_count(const struct fingerprint_index *index)
{
    return index->file_count;
}

void fingerprint_index_keep_texts(struct fingerprint_index *index)
{
    index->keeps_texts = true;
}

const char *fingerprint_file_text(const struct fingerprint_index *index, size_t file)
{
    return index->files[file].text;
}

const char *fingerprint_file_name(const struct fingerprint_index *index, size_t file)
{
    return index->files[file].name;
}

size_t fingerprint_file_size(const struct fingerprint_index *index, size_t file)
{
    return index->files[file].count;
}
