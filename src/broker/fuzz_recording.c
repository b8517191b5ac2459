/* Recordings as anybody may have edited them: read whole, and then each answers its request; or
 * refused. */
#include "base/mem.h"
#include "broker/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(recording_freep) struct recording *recording = NULL;
    scoped(error_freep) struct error *problem = NULL;
    struct recorded_answer answer = {0};
    const struct recorded_request request = {.api = MODEL_ANTHROPIC,
                                             .method = "POST",
                                             .path = "/v1/messages",
                                             .body = data,
                                             .body_size = size};

    if (recording_parse((const char *)data, size, &recording, &problem) < 0) {
        ASSERT(recording == NULL && problem != NULL);
        return 0;
    }
    ASSERT(recording_answers(recording) && recording_problem(recording) == NULL);
    if (recording_find(recording, &request, &answer, NULL) == 0)
        ASSERT(answer.end != NULL && answer.body != NULL);
    else
        ASSERT(recording_problem(recording) != NULL);
    return 0;
}
