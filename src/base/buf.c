#include "base/buf.h"

#include "base/mem.h"

static size_t cap_of(const struct buf *buf)
{
    return buf->max_bytes == 0 ? BUF_BYTES_MAX : size_min(buf->max_bytes, BUF_BYTES_MAX);
}

/* Makes room for size more bytes and the NUL; the caller has checked the cap. */
static void reserve(struct buf *buf, size_t size)
{
    size_t needed = buf->size_bytes + size + 1;

    if (needed <= buf->capacity_bytes)
        return;
    size_t doubled = size_min(buf->capacity_bytes * 2, cap_of(buf) + 1);

    buf->capacity_bytes = size_max(size_max(needed, doubled), 64);
    buf->data = mem_resize(buf->data, buf->capacity_bytes, 1);
}

void buf_append(struct buf *buf, const void *bytes, size_t size)
{
    ASSERT(buf->size_bytes <= cap_of(buf));
    size_t room = cap_of(buf) - buf->size_bytes;

    if (size > room) {
        /* What fits is kept: a capped log ends where its cap is, and nothing comes after. */
        buf->overflowed = true;
        size = room;
    }
    reserve(buf, size);
    if (size > 0)
        memcpy(buf->data + buf->size_bytes, bytes, size);
    buf->size_bytes += size;
    buf->data[buf->size_bytes] = '\0';
}

void buf_text_append(struct buf *buf, const char *s)
{
    buf_append(buf, s, strlen(s));
}

void buf_char(struct buf *buf, char c)
{
    buf_append(buf, &c, 1);
}

void buf_vformat(struct buf *buf, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int length = vsnprintf(NULL, 0, fmt, args);

    ASSERT(length >= 0);
    scoped(mem_freep) char *text = mem_new((size_t)length + 1, 1);

    (void)vsnprintf(text, (size_t)length + 1, fmt, again); /* its length is known already */
    va_end(again);
    buf_append(buf, text, (size_t)length);
}

void buf_format(struct buf *buf, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    buf_vformat(buf, fmt, args);
    va_end(args);
}

void buf_base64(struct buf *buf, const void *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < size; i += 3) {
        size_t given = size_min(3, size - i);
        uint32_t bits = (uint32_t)from[i] << 16;

        bits |= given > 1 ? (uint32_t)from[i + 1] << 8 : 0;
        bits |= given > 2 ? (uint32_t)from[i + 2] : 0;
        for (size_t j = 0; j < 4; j++)
            buf_char(buf, j <= given ? digits[bits >> (18 - 6 * j) & 63] : '=');
    }
}

void buf_clear(struct buf *buf)
{
    buf->size_bytes = 0;
    buf->overflowed = false;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

const char *buf_text(const struct buf *buf)
{
    return buf->data == NULL ? "" : buf->data;
}

char *buf_take(struct buf *buf)
{
    if (buf->data == NULL)
        reserve(buf, 0);
    ASSERT(buf->data != NULL);
    buf->data[buf->size_bytes] = '\0';
    char *text = buf->data;

    *buf = (struct buf){.max_bytes = buf->max_bytes};
    return text;
}

void buf_done(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){.max_bytes = buf->max_bytes};
}
