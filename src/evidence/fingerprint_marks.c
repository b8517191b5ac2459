#include "base/mem.h"
#include "evidence/fingerprint_internal.h"

#define BLOCK_BYTES ((size_t)32 << 10)

struct fingerprint_marks {
    const struct fingerprint_index *index;
    uint64_t *bits; /* one for each gram */
    /* Counted characters that wait: after each block the last ones of a gram are still there. */
    uint8_t letters[BLOCK_BYTES + FINGERPRINT_GRAM];
    size_t letter_count;
    uint16_t chosen[BLOCK_BYTES]; /* where grams begin that count */
};

static size_t word_count(const struct fingerprint_index *index)
{
    return index->gram_count / 64 + 1;
}

struct fingerprint_marks *fingerprint_marks_new(const struct fingerprint_index *index)
{
    struct fingerprint_marks *marks = mem_new(1, sizeof(*marks));

    ASSERT(index->table != NULL);
    marks->index = index;
    marks->bits = mem_new(word_count(index), sizeof(*marks->bits));
    return marks;
}

void fingerprint_marks_free(struct fingerprint_marks *marks)
{
    if (marks == NULL)
        return;
    free(marks->bits);
    free(marks);
}

void fingerprint_marks_freep(struct fingerprint_marks **marks)
{
    fingerprint_marks_free(*marks);
}

void fingerprint_marks_clear(struct fingerprint_marks *marks)
{
    memset(marks->bits, 0, word_count(marks->index) * sizeof(*marks->bits));
    marks->letter_count = 0;
}

static bool is_marked(const struct fingerprint_marks *marks, size_t gram)
{
    return (marks->bits[gram / 64] >> gram % 64 & 1) != 0;
}

static size_t mark(struct fingerprint_marks *marks, uint64_t hash,
                   const struct fingerprint_marks *except)
{
    const struct fingerprint_index *index = marks->index;
    size_t gram = fingerprint_lookup(index, hash), count = 0;

    for (; gram != NO_GRAM; gram = index->grams[gram].next) {
        if (is_marked(marks, gram) || (except != NULL && is_marked(except, gram)))
            continue;
        marks->bits[gram / 64] |= UINT64_C(1) << gram % 64;
        count++;
    }
    return count;
}

/* Looks at every gram that is whole, and keeps what may begin another. */
static size_t look(struct fingerprint_marks *marks, const struct fingerprint_marks *except)
{
    const struct fingerprint_index *index = marks->index;
    size_t whole =
        marks->letter_count < FINGERPRINT_GRAM ? 0 : marks->letter_count - FINGERPRINT_GRAM + 1;
    size_t count = 0, chosen = 0;

    /* In two steps, so that the processor need not guess which place is one. */
    for (size_t i = 0; i < whole; i++) {
        marks->chosen[chosen] = (uint16_t)i;
        chosen += fingerprint_is_chosen(fingerprint_head(marks->letters + i));
    }
    for (size_t i = 0; i < chosen; i++) {
        const uint8_t *at = marks->letters + marks->chosen[i];

        if (fingerprint_filter_has(index, fingerprint_head(at)))
            count += mark(marks, fingerprint_hash(at), except);
    }
    marks->letter_count -= whole;
    memmove(marks->letters, marks->letters + whole, marks->letter_count);
    return count;
}

size_t fingerprint_marks_feed(struct fingerprint_marks *marks, const char *piece, size_t size,
                              const struct fingerprint_marks *except)
{
    size_t count = 0;

    while (size > 0) {
        size_t part = size_min(size, BLOCK_BYTES);

        marks->letter_count += fingerprint_fold(piece, part, marks->letters + marks->letter_count);
        count += look(marks, except);
        piece += part;
        size -= part;
    }
    return count;
}

void fingerprint_marks_feed_end(struct fingerprint_marks *marks)
{
    marks->letter_count = 0;
}

size_t fingerprint_marks_add(struct fingerprint_marks *marks, const char *text, size_t size,
                             const struct fingerprint_marks *except)
{
    marks->letter_count = 0;
    size_t count = fingerprint_marks_feed(marks, text, size, except);

    marks->letter_count = 0;
    return count;
}

void fingerprint_marks_merge(struct fingerprint_marks *marks, const struct fingerprint_marks *other)
{
    ASSERT(marks->index == other->index);
    for (size_t i = 0; i < word_count(marks->index); i++)
        marks->bits[i] |= other->bits[i];
}

/* A run that begins with this gram: how many are in it. */
static size_t run_of(const struct fingerprint_marks *marks, size_t first, size_t end,
                     size_t *ret_chars)
{
    const struct gram *grams = marks->index->grams;
    size_t i = first;

    *ret_chars = FINGERPRINT_GRAM;
    for (i++; i < end && is_marked(marks, i); i++) {
        /* Between two texts of a file, or over what was subtracted, nothing is counted. */
        bool on = grams[i].at > grams[i - 1].at;

        *ret_chars += on ? size_min(grams[i].at - grams[i - 1].at, FINGERPRINT_GRAM) : 0;
    }
    return i - first;
}

void fingerprint_overlap_of(const struct fingerprint_marks *marks, size_t file,
                            struct fingerprint_overlap *ret)
{
    const struct fingerprinted *found = &marks->index->files[file];
    const struct gram *grams = marks->index->grams;
    size_t end = found->first + found->count;

    *ret = (struct fingerprint_overlap){.file = file, .all = found->count};
    for (size_t i = found->first; i < end;) {
        size_t chars = 0, count;

        if (!is_marked(marks, i)) {
            i++;
            continue;
        }
        count = run_of(marks, i, end, &chars);
        ret->found += count;
        if (chars > ret->run_chars) {
            bool one_text = grams[i + count - 1].end > grams[i].offset;

            ret->run_chars = chars;
            ret->run_offset = grams[i].offset;
            ret->run_bytes = (one_text ? grams[i + count - 1].end : grams[i].end) - ret->run_offset;
        }
        i += count;
    }
}
