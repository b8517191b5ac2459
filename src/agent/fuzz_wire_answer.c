/* Answers of models: the first byte chooses the wire format, the rest is the answer. */
#include <stdint.h>

#include "agent/wire_calls.h"
#include "base/mem.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const apis[] = {"anthropic", "openai-responses", "openai-chat", "gemini"};

    if (size == 0)
        return 0;
    scoped(mem_freep) char *body = str_ndup((const char *)data + 1, size - 1);
    scoped(wire_calls_done) struct wire_calls calls = {0};
    const struct wire_answer answer = {
        .api = apis[data[0] % ARRAY_SIZE(apis)],
        .body = body,
        .size = strlen(body),
        .is_main = true,
    };

    if (!wire_answer_read(&answer, &calls))
        calls.cut = true;
    for (size_t i = 0; i < calls.count; i++)
        ASSERT(calls.calls[i].name != NULL);
    return 0;
}
