#include "broker/call_frame.h"

#define EXIT_CODE_MAX 255

static bool has_as_many_as_it_says(const struct call_frame *frame, size_t size)
{
    size_t count = 0;

    if (size > 0 && frame->words[size - 1] != '\0')
        return false;
    for (size_t i = 0; i < size; i++)
        count += frame->words[i] == '\0';
    return count == frame->word_count;
}

static bool fits_its_kind(const struct call_frame *frame)
{
    switch (frame->kind) {
    case CALL_MADE:
        return frame->word_count >= 2 && frame->exit_code == 0;
    case CALL_TOO_LARGE:
        return frame->word_count == 1 && frame->exit_code == 0;
    case CALL_ENDED:
        return frame->word_count == 0;
    }
    return false;
}

bool call_frame_parse(const void *bytes, size_t size, struct call_frame *ret)
{
    struct call_header header;
    struct call_frame frame = {0};

    if (size < sizeof(header) || size > CALL_FRAME_BYTES_MAX)
        return false;
    memcpy(&header, bytes, sizeof(header));
    if (header.magic != CALL_MAGIC || header.kind < CALL_MADE || header.kind > CALL_ENDED ||
        header.word_count > CALL_WORDS_MAX || header.exit_code > EXIT_CODE_MAX)
        return false;
    frame.kind = (enum call_kind)header.kind;
    frame.exit_code = header.exit_code;
    frame.word_count = header.word_count;
    frame.words = (const char *)bytes + sizeof(header);
    if (!has_as_many_as_it_says(&frame, size - sizeof(header)) || !fits_its_kind(&frame))
        return false;
    *ret = frame;
    return true;
}

const char *call_frame_word(const struct call_frame *frame, size_t i)
{
    const char *word = frame->words;

    ASSERT(i < frame->word_count);
    while (i-- > 0)
        word += strlen(word) + 1;
    return word;
}
