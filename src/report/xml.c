#include "report/xml.h"

#include "base/term.h"

/* U+FFFE and U+FFFF, the only characters that term_quote() passes and XML does not know. */
static bool is_no_character(const char *at)
{
    return memcmp(at, "\xef\xbf\xbe", 3) == 0 || memcmp(at, "\xef\xbf\xbf", 3) == 0;
}

static void escape(struct buf *buf, const struct buf *quoted)
{
    for (size_t i = 0; i < quoted->size_bytes; i++) {
        char c = quoted->data[i];

        if (c == '&')
            buf_text_append(buf, "&amp;");
        else if (c == '<')
            buf_text_append(buf, "&lt;");
        else if (c == '>')
            buf_text_append(buf, "&gt;");
        else if (c == '"')
            buf_text_append(buf, "&quot;");
        else if (quoted->size_bytes - i >= 3 && is_no_character(quoted->data + i)) {
            buf_text_append(buf, "\xef\xbf\xbd");
            i += 2;
        } else
            buf_char(buf, c);
    }
}

static void quote_and_escape(struct buf *buf, const char *raw, size_t size, enum term_flags flags)
{
    scoped(buf_done) struct buf quoted = {0};

    term_quote(&quoted, raw, size, flags);
    escape(buf, &quoted);
}

void xml_attribute(struct buf *buf, const char *raw)
{
    quote_and_escape(buf, raw, strlen(raw), TERM_ONE_LINE);
}

void xml_content(struct buf *buf, const char *raw, size_t size)
{
    quote_and_escape(buf, raw, size, TERM_LINES);
}
