#include "agent/lines.h"

#include "agent/events.h"
#include "base/term.h"

static bool hand_over(struct line_cutter *cutter, bool last,
                      bool (*on_line)(void *context, const struct line *line), void *context)
{
    const struct line line = {
        .text = buf_text(&cutter->line),
        .size = cutter->line.size_bytes,
        .bytes = cutter->line_bytes,
        .offset = cutter->offset,
        .last = last,
    };
    bool more = on_line(context, &line);

    cutter->offset += cutter->line_bytes + (last ? 0 : 1);
    buf_clear(&cutter->line);
    cutter->line_bytes = 0;
    return more;
}

static void append(struct line_cutter *cutter, const char *bytes, size_t size)
{
    size_t room = cutter->line.max_bytes - cutter->line.size_bytes;

    if (size_min(size, room) > 0)
        buf_append(&cutter->line, bytes, size_min(size, room));
    cutter->line_bytes += size;
}

void line_cutter_feed(struct line_cutter *cutter, const char *bytes, size_t size,
                      bool (*on_line)(void *context, const struct line *line), void *context)
{
    const char *end = bytes + size;

    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));

        append(cutter, bytes, (size_t)((newline == NULL ? end : newline) - bytes));
        if (newline == NULL || !hand_over(cutter, false, on_line, context))
            return;
        bytes = newline + 1;
    }
}

void line_cutter_end(struct line_cutter *cutter,
                     bool (*on_line)(void *context, const struct line *line), void *context)
{
    if (cutter->line_bytes > 0)
        (void)hand_over(cutter, true, on_line,
                        context); /* nothing follows that could be left out */
}

void line_cutter_done(struct line_cutter *cutter)
{
    buf_done(&cutter->line);
}

bool line_is_blank(const struct line *line)
{
    return strspn(line->text, " \t\r") == line->size;
}

/* An upper bound of the JSON values in text, without building any. */
static size_t count_nodes(const char *text, size_t size)
{
    size_t nodes = 1;
    bool in_string = false;

    for (size_t i = 0; i < size; i++) {
        char c = text[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == ',' || c == '{' || c == '['))
            nodes++;
    }
    return nodes;
}

/* The line with every invalid sequence replaced by U+FFFD. */
static void repair(const struct line *line, struct buf *ret)
{
    for (size_t i = 0; i < line->size;) {
        uint32_t rune = 0;
        size_t n = utf8_next(line->text + i, line->size - i, &rune);

        if (n == 0)
            buf_text_append(ret, "\xef\xbf\xbd");
        else
            buf_append(ret, line->text + i, n);
        i += size_max(n, 1);
    }
}

static json_t *parse(const struct line *line)
{
    scoped(error_freep) struct error *cause = NULL;
    scoped(buf_done) struct buf repaired = {0};
    json_t *object = NULL;
    bool whole = utf8_valid(line->text, line->size);

    if (!whole)
        repair(line, &repaired);

    const char *text = whole ? line->text : buf_text(&repaired);
    size_t size = whole ? line->size : repaired.size_bytes;

    return json_parse("line", text, size, &object, &cause) < 0 ? NULL : object;
}

json_t *line_parse(const struct line *line, size_t nodes_max, size_t *ret_nodes,
                   const char **ret_reason)
{
    if (line->bytes > line->size) {
        *ret_reason = "too long";
        return NULL;
    }
    *ret_nodes = count_nodes(line->text, line->size);
    if (*ret_nodes > nodes_max) {
        *ret_reason = "too many values";
        return NULL;
    }

    json_t *object = parse(line);

    if (object == NULL)
        *ret_reason = line->last ? "truncated" : "not JSON";
    return object;
}

json_t *line_invalid(const struct line *line, const char *reason)
{
    size_t kept = size_min(line->size, EVENT_INVALID_BYTES_MAX);
    json_t *input = json_object();

    json_put_text(input, "reason", reason);
    json_put(input, "text", json_text(line->text, kept));
    if (kept < line->bytes) {
        json_put_bool(input, "cut", true);
        json_put_int(input, "bytes", (int64_t)line->bytes);
    }
    return input;
}
