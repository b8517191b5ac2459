#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "evidence/readings_internal.h"

/* Of one call of readings_each(). */
struct reader {
    const struct readings *readings;
    size_t left; /* bytes that may still be read */
};

/* One text of it. */
struct level {
    struct reader *reader;
    const char *how; /* NULL: the text itself */
    unsigned depth;
};

static int read_all(struct level *level, const char *text, size_t size, struct error **err);

/* A reading of the level's text: shown, then read itself. */
static int go_deeper(void *context, const char *kind, const char *text, size_t size,
                     struct error **err)
{
    struct level *level = context;
    struct reader *reader = level->reader;
    scoped(mem_freep) char *how =
        level->how == NULL ? str_dup(kind) : str_format("%s in %s", kind, level->how);
    struct level next = {.reader = reader, .how = how, .depth = level->depth + 1};

    if (size > reader->left)
        size = reader->left;
    reader->left -= size;
    if (size == 0)
        return 0;
    reader->readings->visit(reader->readings->context, how, text, size);
    return next.depth < READING_LEVELS_MAX ? read_all(&next, text, size, err) : 0;
}

/* --- archives ----------------------------------------------------------------------------------
 */

const char *reading_archive_kind(const char *bytes, size_t size)
{
    static const struct {
        const char *kind, *magic;
        size_t magic_size, offset;
    } kinds[] = {
        {"gzip", "\x1f\x8b\x08", 3, 0},
        {"bzip2", "BZh", 3, 0},
        {"xz",
         "\xfd"
         "7zXZ\0",
         6, 0},
        {"zstd", "\x28\xb5\x2f\xfd", 4, 0},
        {"lz4", "\x04\x22\x4d\x18", 4, 0},
        {"lzip", "LZIP", 4, 0},
        {"zip", "PK\x03\x04", 4, 0},
        {"7zip", "7z\xbc\xaf\x27\x1c", 6, 0},
        {"ar", "!<arch>\n", 8, 0},
        {"cpio", "07070", 5, 0},
        {"tar", "ustar", 5, 257},
    };

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        if (size >= kinds[i].offset + kinds[i].magic_size &&
            memcmp(bytes + kinds[i].offset, kinds[i].magic, kinds[i].magic_size) == 0)
            return kinds[i].kind;
    return NULL;
}

/* Digits of one number of a member's head; false when there are others. */
static bool parse_head(const char *text, size_t digits, size_t *ret)
{
    size_t value = 0;

    for (size_t i = 0; i < digits; i++) {
        char c = text[i];
        bool is_digit = c >= '0' && c <= '9';

        if (!is_digit && !(c >= 'a' && c <= 'f'))
            return false;
        value = value * 16 + (size_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *ret = value;
    return true;
}

/* The members that a cell answered with: its bytes are not trusted to be in order. */
static int read_members(struct level *level, const char *kind, const struct buf *members,
                        struct error **err)
{
    const char *at = buf_text(members);
    size_t left = members->size_bytes;

    while (left > 0) {
        size_t name_size = 0, size = 0;

        if (left < READING_MEMBER_HEAD || !parse_head(at, 8, &name_size) ||
            !parse_head(at + 8, 16, &size) || name_size > left - READING_MEMBER_HEAD ||
            size > left - READING_MEMBER_HEAD - name_size)
            return error_set(err, ERROR_BUG, "what unpacked an archive answered out of order");
        const char *name = at + READING_MEMBER_HEAD, *content = name + name_size;
        scoped(mem_freep) char *member =
            name_size == 0 ? str_dup(kind)
                           : str_format("'%.*s' of %s", (int)size_min(name_size, 255), name, kind);
        int r = go_deeper(level, member, content, size, err);

        if (r < 0)
            return r;
        left -= READING_MEMBER_HEAD + name_size + size;
        at = content + size;
    }
    return 0;
}

static int read_archive(struct level *level, const char *text, size_t size, struct error **err)
{
    const struct readings *readings = level->reader->readings;
    const char *kind = reading_archive_kind(text, size);
    scoped(buf_done) struct buf members = {0};

    if (kind == NULL || readings->unpack == NULL)
        return 0;
    int r = readings->unpack(readings->context, text, size, &members, err);

    return r < 0 ? error_wrap(err, r, "%s", kind) : read_members(level, kind, &members, err);
}

/* --- all of them -------------------------------------------------------------------------------
 */

static int read_plain(struct level *level, const char *kind,
                      bool (*make)(const char *text, size_t size, struct buf *ret),
                      const char *text, size_t size, struct error **err)
{
    scoped(buf_done) struct buf reading = {0};

    if (!make(text, size, &reading))
        return 0;
    return go_deeper(level, kind, buf_text(&reading), reading.size_bytes, err);
}

static int read_all(struct level *level, const char *text, size_t size, struct error **err)
{
    int r = read_archive(level, text, size, err);

    if (r == 0)
        r = reading_digits(text, size, go_deeper, level, err);
    if (r == 0)
        r = reading_spaced_hex(text, size, go_deeper, level, err);
    if (r == 0)
        r = read_plain(level, "escapes", reading_unescape, text, size, err);
    if (r == 0)
        r = read_plain(level, "numbered lines", reading_without_numbers, text, size, err);
    return r;
}

int readings_each(const struct readings *readings, const char *text, size_t size,
                  struct error **err)
{
    struct reader reader = {.readings = readings, .left = READING_BYTES_MAX};
    struct level level = {.reader = &reader};

    return read_all(&level, text, size, err);
}
