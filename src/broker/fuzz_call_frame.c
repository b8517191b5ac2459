/* Frames as a hostile cell sends them: accepted whole, with words that are all there, or refused.
 */
#include "base/mem.h"
#include "broker/call_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct call_frame frame = {0};
    size_t total = sizeof(struct call_header);

    if (!call_frame_parse(data, size, &frame)) {
        ASSERT(frame.words == NULL); /* nothing was written */
        return 0;
    }
    for (size_t i = 0; i < frame.word_count; i++)
        total += strlen(call_frame_word(&frame, i)) + 1;
    ASSERT(total == size && size <= CALL_FRAME_BYTES_MAX && frame.exit_code <= 255);
    ASSERT((frame.kind == CALL_MADE) == (frame.word_count >= 2));
    return 0;
}
