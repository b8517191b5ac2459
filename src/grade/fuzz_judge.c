/* Any bytes as an answer of a judge: a checked verdict, or a problem in words, never both. */
#include <math.h>

#include "base/mem.h"
#include "grade/judge_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(judge_answer_done) struct judge_answer answer = {0};

    if (size == 0)
        return 0;
    const char *bytes = (const char *)data + 1;
    scoped(mem_freep) char *refusal = judge_refusal_text(bytes, size - 1);

    judge_answer_parse((enum judge_api)(data[0] % JUDGE_API_COUNT), bytes, size - 1, &answer);
    ASSERT(answer.is_verdict == (answer.problem == NULL));
    ASSERT(answer.is_verdict == (answer.rationale != NULL));
    ASSERT(!answer.is_verdict || (answer.score >= 0 && answer.score <= 1));
    ASSERT(strlen(refusal) <= JUDGE_PROBLEM_BYTES_MAX + 16);
    return 0;
}
