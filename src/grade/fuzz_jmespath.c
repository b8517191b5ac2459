/*
 * Fuzz target: the first line is an expression, the rest a JSON document.
 *
 * An expression is accepted xor complained about, with a place inside it; the same question twice
 * has the same answer; the document stays what it was; the answer is JSON.
 */
#include "base/mem.h"
#include "base/str.h"
#include "grade/jmespath.h"
#include "grade/value.h"

#define INPUT_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const json_t *value)
{
    struct budget budget = {.left = 100000};
    struct buf text = {.max_bytes = 100000};

    value_write(&text, value, VALUE_COMPACT, &budget);
    return buf_take(&text);
}

/* The answer as text, or the error. */
static char *answer(const struct jmespath *expression, json_t *document)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *result = NULL;
    int r = jmespath_evaluate(expression, document, &result, &err);

    ASSERT((r == 0) == (err == NULL));
    ASSERT((r == 0) == (result != NULL));
    if (r < 0) {
        ASSERT(r == -ERROR_AGENT || r == -ERROR_LIMIT);
        return str_format("!%s", error_message(err));
    }
    return text_of(result);
}

static void ask(const char *text, json_t *document)
{
    scoped(jmespath_freep) struct jmespath *expression = NULL;
    scoped(error_freep) struct error *err = NULL;
    int r = jmespath_compile(text, &expression, &err);

    ASSERT((r == 0) == (expression != NULL));
    ASSERT((r == 0) == (err == NULL));
    if (r < 0) {
        ASSERT(r == -ERROR_TASK || r == -ERROR_LIMIT);
        if (str_starts(error_message(err), "offset "))
            ASSERT(strtoul(error_message(err) + strlen("offset "), NULL, 10) <= strlen(text));
        return;
    }
    scoped(mem_freep) char *before = text_of(document);
    scoped(mem_freep) char *first = answer(expression, document);
    scoped(mem_freep) char *second = answer(expression, document);
    scoped(mem_freep) char *after = text_of(document);

    ASSERT(str_equal(first, second));
    ASSERT(str_equal(before, after));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(mem_freep) char *input = str_ndup((const char *)data, size_min(size, INPUT_BYTES_MAX));
    scoped(json_freep) json_t *document = NULL;
    char *rest = strchr(input, '\n');

    if (rest != NULL)
        *rest++ = '\0';
    if (rest == NULL || value_parse(rest, strlen(rest), &document, NULL) < 0)
        document = json_null();
    ask(input, document);
    return 0;
}
