#include "agent/wire_context.h"

#include "agent/wire_lines.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

struct reading {
    wire_text_visit *visit;
    void *context;
    json_t *seen; /* digests of items that were told */
};

/* Members that are no text of anybody's: ids, kinds, signatures, pictures. */
static bool is_bare(const char *key)
{
    static const char *const bare[] = {"type", "role",      "id",   "call_id", "tool_use_id",
                                       "name", "signature", "data", "status",  "encrypted_content"};

    for (size_t i = 0; i < ARRAY_SIZE(bare); i++)
        if (str_equal(key, bare[i]))
            return true;
    return false;
}

static void add_texts(const json_t *value, struct buf *ret)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_string(value)) {
        buf_append(ret, json_string_value(value), json_string_length(value));
        buf_char(ret, '\n');
    }
    json_array_foreach (value, i, item)
        add_texts(item, ret);
    json_object_foreach ((json_t *)(uintptr_t)value, key, item) {
        if (!is_bare(key))
            add_texts(item, ret);
    }
}

/* By its role, or, where there is none, by its kind: "function_call", not "function_call_output".
 */
static bool is_by_model(const json_t *item)
{
    const char *role = json_get_text(item, "role"), *type = json_get_text(item, "type");

    if (role != NULL)
        return str_equal(role, "assistant") || str_equal(role, "model");
    return type != NULL && (str_ends(type, "_call") || str_equal(type, "reasoning"));
}

static int tell(struct reading *reading, const json_t *item, uint64_t seq, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    bool by_model = is_by_model(item);
    char hex[SHA256_HEX_CHARS + 1];

    add_texts(item, &text);
    if (text.size_bytes == 0)
        return 0;
    buf_char(&text, by_model ? 'm' : 'o'); /* who said it counts for what was told */
    struct sha256 digest = sha256_of(text.data, text.size_bytes);

    text.data[--text.size_bytes] = '\0';
    sha256_format(&digest, hex);
    if (json_object_get(reading->seen, hex) != NULL)
        return 0;
    json_put_bool(reading->seen, hex, true);
    return reading->visit(reading->context,
                          &(struct wire_text){seq, by_model, text.data, text.size_bytes}, err);
}

static int take_line(void *context, const char *text, size_t size, struct error **err)
{
    static const char *const lists[] = {"messages", "input", "contents"};
    struct reading *reading = context;
    scoped(json_freep) json_t *line = NULL;
    int r = 0;

    if (!wire_line_is(text, size, "request"))
        return 0;
    r = json_parse("wire.jsonl", text, size, &line, err);
    if (r < 0)
        return error_wrap(err, r, "the broker's record");
    const json_t *body = json_object_get(line, "body");
    uint64_t seq = (uint64_t)json_get_int(line, "seq", 0);

    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++) {
        const json_t *items = json_object_get(body, lists[i]);
        json_t *item;
        size_t k;

        if (json_is_string(items))
            r = tell(reading, items, seq, err);
        json_array_foreach (items, k, item) {
            r = r < 0 ? r : tell(reading, item, seq, err);
        }
    }
    return r;
}

int wire_context_each(int fd, wire_text_visit *visit, void *context, struct error **err)
{
    scoped(json_freep) json_t *seen = json_object();
    struct reading reading = {visit, context, seen};

    return wire_lines_each(fd, take_line, &reading, err);
}
