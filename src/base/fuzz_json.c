/* A text is accepted xor complained about, and what is accepted survives being written and read. */
#include "base/json.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(const json_t *value, void (*write)(struct buf *, const json_t *))
{
    scoped(buf_done) struct buf text = {0};
    scoped(buf_done) struct buf again = {0};
    scoped(json_freep) json_t *back = NULL;

    write(&text, value);
    ASSERT(json_parse("back", buf_text(&text), text.size_bytes, &back, NULL) == 0);
    ASSERT(json_equal(back, value));
    write(&again, back);
    ASSERT(strcmp(buf_text(&text), buf_text(&again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scoped(error_freep) struct error *err = NULL;
    scoped(json_freep) json_t *value = NULL;
    int r = json_parse("in", (const char *)data, size, &value, &err);

    ASSERT((r < 0) == (err != NULL) && (r < 0) == (value == NULL));
    if (r < 0) {
        ASSERT(error_code_of(err) == ERROR_TASK && str_starts(error_message(err), "in:"));
        return 0;
    }
    check_round_trip(value, json_write_canonical);
    check_round_trip(value, json_write_pretty);
    check_round_trip(value, json_write_line);
    return 0;
}
