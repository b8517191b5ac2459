#pragma once
/* How a text becomes fingerprints: shared by those who index and those who look. */

#include <string.h>

#include "base/base.h"
#include "evidence/fingerprint.h"

/* What a byte counts as; 0: it does not count. */
extern const uint8_t fingerprint_letters[256];

/* Writes the counted characters of a text to `to`, which has room for `size` of them; their count.
 */
static inline size_t fingerprint_fold(const char *text, size_t size, uint8_t *to)
{
    const uint8_t *from = (const uint8_t *)text;
    size_t count = 0, i = 0;

    /* Four at a time: where the next goes is known sooner. */
    for (; i + 4 <= size; i += 4) {
        uint8_t a = fingerprint_letters[from[i]], b = fingerprint_letters[from[i + 1]];
        uint8_t c = fingerprint_letters[from[i + 2]], d = fingerprint_letters[from[i + 3]];
        size_t second = count + (a != 0), third = second + (b != 0), fourth = third + (c != 0);

        to[count] = a;
        to[second] = b;
        to[third] = c;
        to[fourth] = d;
        count = fourth + (d != 0);
    }
    for (; i < size; i++) {
        uint8_t letter = fingerprint_letters[from[i]];

        to[count] = letter;
        count += letter != 0;
    }
    return count;
}

static inline uint64_t fingerprint_word(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* Of the first eight characters of a gram: what chooses it, and a first question to an index. */
static inline uint64_t fingerprint_head(const uint8_t *at)
{
    return fingerprint_word(at) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline bool fingerprint_is_chosen(uint64_t head)
{
    return head < UINT64_MAX / FINGERPRINT_SPACING + 1;
}

static inline uint64_t fingerprint_mix(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Of FINGERPRINT_GRAM characters: they are five words. */
static inline uint64_t fingerprint_hash(const uint8_t *at)
{
    _Static_assert(FINGERPRINT_GRAM == 5 * sizeof(uint64_t), "five words are read");
    uint64_t head = fingerprint_mix(fingerprint_word(at) ^ UINT64_C(0xa0761d6478bd642f),
                                    fingerprint_word(at + 8) ^ UINT64_C(0xe7037ed1a0b428db));
    uint64_t body = fingerprint_mix(fingerprint_word(at + 16) ^ UINT64_C(0x8ebc6af09c88c6e3),
                                    fingerprint_word(at + 24) ^ UINT64_C(0x589965cc75374cc3));

    return fingerprint_mix(head ^ body ^ UINT64_C(0x1d8e4e27c47d124f),
                           fingerprint_word(at + 32) ^ UINT64_C(0xeb44accab455d165));
}

/* --- the index ---------------------------------------------------------------------------------
 */

#define NO_GRAM UINT32_MAX

struct gram {
    uint64_t hash, head;
    uint32_t file;
    uint32_t at;          /* how many characters of its text count before it */
    uint32_t offset, end; /* in bytes of its text */
    uint32_t next;        /* another one of the same hash, of another file; NO_GRAM */
};

struct fingerprinted {
    char *name;
    char *text;          /* kept to be shown; NULL: it is not */
    size_t first, count; /* its grams, in the order of its text */
};

struct fingerprint_index {
    struct fingerprinted *files;
    size_t file_count;
    struct gram *grams;
    size_t gram_count, gram_capacity;
    uint32_t *table; /* by hash, open addressing; NULL: not sealed */
    size_t table_mask;
    uint64_t *filter; /* one bit for each value of some of a head's bits */
    size_t filter_mask;
    bool keeps_texts;
};

static inline void fingerprint_filter_set(struct fingerprint_index *index, uint64_t head)
{
    size_t bit = head >> 24 & index->filter_mask;

    index->filter[bit / 64] |= UINT64_C(1) << bit % 64;
}

static inline bool fingerprint_filter_has(const struct fingerprint_index *index, uint64_t head)
{
    size_t bit = head >> 24 & index->filter_mask;

    return (index->filter[bit / 64] >> bit % 64 & 1) != 0;
}

/* The last entered gram of a hash, or NO_GRAM. */
static inline uint32_t fingerprint_lookup(const struct fingerprint_index *index, uint64_t hash)
{
    size_t slot = hash & index->table_mask;

    while (index->table[slot] != NO_GRAM && index->grams[index->table[slot]].hash != hash)
        slot = (slot + 1) & index->table_mask;
    return index->table[slot];
}
