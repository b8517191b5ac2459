/*
 * Fuzz target: the first line is a JSON Schema, the rest a JSON document.
 *
 * A schema is accepted xor complained about; a document is valid xor complained about; the same
 * twice.
 */
#include "base/mem.h"
#include "base/str.h"
#include "grade/jsonschema.h"
#include "grade/value.h"

#define INPUT_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The complaints, "" when there are none, "!" after a limit. */
static char *answer(const struct schema *schema, json_t *document)
{
    scoped(error_freep) struct error *err = NULL;
    struct buf complaints = {0};
    bool valid = false;
    int r = schema_validate(schema, document, &valid, &complaints, &err);

    ASSERT((r == 0) == (err == NULL));
    if (r < 0) {
        ASSERT(r == -ERROR_LIMIT);
        buf_done(&complaints);
        return str_dup("!");
    }
    ASSERT(valid == (complaints.size_bytes == 0));
    return buf_take(&complaints);
}

static void ask(json_t *text, json_t *document)
{
    scoped(schema_freep) struct schema *schema = NULL;
    scoped(error_freep) struct error *err = NULL;
    int r = schema_compile(text, &schema, &err);

    ASSERT((r == 0) == (schema != NULL));
    ASSERT((r == 0) == (err == NULL));
    if (r < 0) {
        ASSERT(r == -ERROR_TASK || r == -ERROR_LIMIT);
        return;
    }
    scoped(mem_freep) char *first = answer(schema, document);
    scoped(mem_freep) char *second = answer(schema, document);

    /* Patterns count the work of all searches, so the second time may be one too many. */
    ASSERT(str_equal(first, second) || second[0] == '!');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(mem_freep) char *input = str_ndup((const char *)data, size_min(size, INPUT_BYTES_MAX));
    scoped(json_freep) json_t *schema = NULL;
    scoped(json_freep) json_t *document = NULL;
    char *rest = strchr(input, '\n');

    if (rest != NULL)
        *rest++ = '\0';
    if (value_parse(input, strlen(input), &schema, NULL) < 0)
        return 0;
    if (rest == NULL || value_parse(rest, strlen(rest), &document, NULL) < 0)
        document = json_null();
    ask(schema, document);
    return 0;
}
