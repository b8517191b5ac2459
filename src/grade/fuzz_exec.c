/* What a criterion's program prints, as its description and as its answer. */
#include "base/mem.h"
#include "grade/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(exec_description_done) struct exec_description is = {0};
    scoped(verdict_done) struct verdict verdict = {0};
    scoped(error_freep) struct error *description_error = NULL;
    scoped(error_freep) struct error *answer_error = NULL;
    scoped(mem_freep) char *text = mem_new(size + 1, 1);

    if (size > 0)
        memcpy(text, data, size);
    bool described = exec_description_parse(text, size, &is, &description_error) == 0;
    bool answered = exec_answer_parse(text, size, &verdict, &answer_error) == 0;

    ASSERT(described == (description_error == NULL));
    ASSERT(answered == (answer_error == NULL));
    ASSERT(!described || (is.params != NULL && is.programs.count <= EXEC_PROGRAMS_MAX));
    ASSERT(!answered || (verdict.score >= 0 && verdict.score <= 1 && !verdict.errored));
    ASSERT(!(described && answered));
    if (described)
        (void)!exec_params_check(&is, NULL, NULL); /* either will do */
    return 0;
}
