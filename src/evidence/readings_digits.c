/* Readings of digits: base64 and hexadecimal. */
#include <string.h>

#include "base/mem.h"
#include "evidence/readings_internal.h"

#define CORE_DIGITS 32     /* in a row: without these there is no run */
#define JOINT_BYTES_MAX 12 /* between two pieces of a run: end of line, quotes, indentation */
#define SAMPLE_BYTES 64
#define SAMPLE_GROUPS 6

#define NONE 64 /* no digit of base64 */

static uint8_t digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint8_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint8_t)(c - 'a' + 26);
    if (c >= '0' && c <= '9')
        return (uint8_t)(c - '0' + 52);
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : NONE;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static uint8_t hex_of(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

/* --- runs --------------------------------------------------------------------------------------
 */

/* Where so many digits in a row begin, at or after `from`; size: nowhere. */
static size_t find_core(const char *text, size_t size, size_t from)
{
    while (from + CORE_DIGITS <= size) {
        size_t at = from + CORE_DIGITS;

        /* From behind: the last that is no digit is what the next try begins after. */
        while (at > from && digit_of(text[at - 1]) != NONE)
            at--;
        if (at == from)
            return from;
        from = at;
    }
    return size;
}

/* The bytes between a piece and the next: they hold a newline and nothing but layout. */
static size_t joint_size(const char *text, size_t size, size_t at)
{
    bool has_newline = false;
    size_t i = at;

    for (; i < size && i - at < JOINT_BYTES_MAX && strchr(" \t\r\n\"',\\+>#*", text[i]) != NULL;
         i++)
        has_newline = has_newline || text[i] == '\n';
    return has_newline && i < size && digit_of(text[i]) != NONE ? i - at : 0;
}

/* The digits of the run that begins here; *ret_end: where it ended. */
static void gather(const char *text, size_t size, size_t begin, struct buf *ret, size_t *ret_end)
{
    size_t at = begin;

    for (;;) {
        size_t piece = at;

        while (at < size && digit_of(text[at]) != NONE)
            at++;
        buf_append(ret, text + piece, at - piece);
        size_t joint = joint_size(text, size, at);

        if (joint == 0)
            break;
        at += joint;
    }
    *ret_end = at;
}

static int decode_base64(const struct buf *digits, size_t skip, reading_found *found, void *context,
                         struct error **err)
{
    const char *from = buf_text(digits) + skip;
    size_t groups = (digits->size_bytes - skip) / 4;
    scoped(mem_freep) char *bytes = mem_new(groups * 3 + 1, 1);

    for (size_t i = 0; i < groups; i++, from += 4) {
        uint32_t bits = (uint32_t)digit_of(from[0]) << 18 | (uint32_t)digit_of(from[1]) << 12 |
                        (uint32_t)digit_of(from[2]) << 6 | digit_of(from[3]);

        bytes[i * 3] = (char)(bits >> 16);
        bytes[i * 3 + 1] = (char)(bits >> 8);
        bytes[i * 3 + 2] = (char)bits;
    }
    return found(context, "base64", bytes, groups * 3, err);
}

static int decode_hex(const char *digits, size_t size, reading_found *found, void *context,
                      struct error **err)
{
    scoped(mem_freep) char *bytes = mem_new(size / 2 + 1, 1);

    for (size_t i = 0; i < size / 2; i++)
        bytes[i] = (char)(hex_of(digits[2 * i]) << 4 | hex_of(digits[2 * i + 1]));
    return found(context, "hexadecimal", bytes, size / 2, err);
}

static size_t hex_length(const struct buf *digits)
{
    size_t length = 0;

    while (length < digits->size_bytes && is_hex(digits->data[length]))
        length++;
    return length;
}

/*
 * Words before it may have been taken for digits of it: each way to group them is one reading.
 * Words after it, too: hexadecimal digits end where another letter comes.
 */
static int decode(const struct buf *digits, reading_found *found, void *context, struct error **err)
{
    size_t length = hex_length(digits);
    int r = 0;

    for (size_t skip = 0; r == 0 && skip < 2 && length >= READING_DIGITS_MIN; skip++)
        r = decode_hex(digits->data + skip, length - skip, found, context, err);
    if (length == digits->size_bytes)
        return r;
    for (size_t skip = 0; r == 0 && skip < 4; skip++)
        r = decode_base64(digits, skip, found, context, err);
    return r;
}

int reading_digits(const char *text, size_t size, reading_found *found, void *context,
                   struct error **err)
{
    scoped(buf_done) struct buf digits = {0};

    for (size_t at = find_core(text, size, 0); at < size; at = find_core(text, size, at)) {
        int r = 0;

        buf_clear(&digits);
        gather(text, size, at, &digits, &at);
        if (digits.size_bytes >= READING_DIGITS_MIN)
            r = decode(&digits, found, context, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- bytes one by one --------------------------------------------------------------------------
 */

/* A byte and what stands after it, "41 " or "0x41, "; 0: there is none. */
static size_t group_size(const char *text, size_t size, size_t at, char *ret)
{
    size_t i = at;

    if (i + 2 < size && text[i] == '0' && (text[i + 1] == 'x' || text[i + 1] == 'X'))
        i += 2;
    if (i + 2 > size || !is_hex(text[i]) || !is_hex(text[i + 1]))
        return 0;
    if (i + 2 < size && digit_of(text[i + 2]) != NONE)
        return 0;
    *ret = (char)(hex_of(text[i]) << 4 | hex_of(text[i + 1]));
    i += 2;
    for (size_t limit = i + JOINT_BYTES_MAX;
         i < size && i < limit && strchr(" \t\r\n,:;", text[i]) != NULL; i++)
        continue;
    return i - at;
}

/* Whether such groups begin within the first bytes after `from`; where, or size. */
static size_t find_groups(const char *text, size_t size, size_t from)
{
    for (size_t begin = from; begin < from + SAMPLE_GROUPS && begin < size; begin++) {
        size_t at = begin;
        char byte;

        for (unsigned i = 0; i < SAMPLE_GROUPS && at < size; i++) {
            size_t taken = group_size(text, size, at, &byte);

            if (taken < 3)
                break;
            at += taken;
            if (i + 1 == SAMPLE_GROUPS)
                return begin;
        }
    }
    return size;
}

int reading_spaced_hex(const char *text, size_t size, reading_found *found, void *context,
                       struct error **err)
{
    scoped(buf_done) struct buf bytes = {0};

    for (size_t sample = 0; sample < size;) {
        size_t at = find_groups(text, size, sample), taken;
        char byte = 0;

        if (at == size) {
            sample += SAMPLE_BYTES;
            continue;
        }
        buf_clear(&bytes);
        while (at < size && (taken = group_size(text, size, at, &byte)) > 0) {
            buf_char(&bytes, byte);
            at += taken;
        }
        if (bytes.size_bytes >= READING_DIGITS_MIN / 2) {
            int r = found(context, "hexadecimal", bytes.data, bytes.size_bytes, err);

            if (r < 0)
                return r;
        }
        sample = size_max(at, sample + 1);
    }
    return 0;
}
