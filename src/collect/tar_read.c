#include "collect/tar.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define PAX_BYTES_MAX ((size_t)3 * (MANIFEST_PATH_BYTES_MAX + 64))

/* Where the fields that the reader wants stand in a header block. */
enum { AT_NAME = 0, AT_MODE = 100, AT_SIZE = 124, AT_TYPE = 156, AT_LINK = 157, NAME_BYTES = 100 };

static int not_ours(const struct tar_reader *reader, const char *why, struct error **err)
{
    return error_set(err, ERROR_SYSTEM, "%s: not an archive of ours: %s near byte %llu",
                     reader->name, why, (unsigned long long)reader->next);
}

int tar_reader_init(struct tar_reader *reader, int fd, const char *name, struct error **err)
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return error_errno(err, errno, "cannot look at '%s'", name);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_SYSTEM, "'%s' is not a regular file", name);
    *reader = (struct tar_reader){.fd = fd, .name = name, .size_bytes = (uint64_t)status.st_size};
    return 0;
}

void tar_reader_done(struct tar_reader *reader)
{
    buf_done(&reader->path);
    buf_done(&reader->target);
    buf_done(&reader->last_path);
    buf_done(&reader->header);
}

/* Appends size bytes at the reader's position to its header buffer and moves on. */
static int take_bytes(struct tar_reader *reader, size_t size, struct error **err)
{
    if (size > reader->size_bytes - reader->next)
        return not_ours(reader, "cut off", err);
    scoped(mem_freep) char *bytes = mem_new(size_max(size, 1), 1);
    size_t have = 0;

    while (have < size) {
        ssize_t n = pread(reader->fd, bytes + have, size - have, (off_t)(reader->next + have));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s'", reader->name);
        if (n == 0)
            return not_ours(reader, "cut off", err);
        have += (size_t)n;
    }
    buf_append(&reader->header, bytes, size);
    reader->next += size;
    return 0;
}

static bool octal(const char *field, size_t digits, uint64_t *ret)
{
    uint64_t value = 0;

    for (size_t i = 0; i < digits; i++) {
        if (field[i] < '0' || field[i] > '7')
            return false;
        value = value * 8 + (uint64_t)(field[i] - '0');
    }
    *ret = value;
    return true;
}

static bool starts_with_key(const char *text, const char *end, const char *key)
{
    size_t length = strlen(key);

    return (size_t)(end - text) > length && memcmp(text, key, length) == 0 && text[length] == '=';
}

/* One pax record at *next; false when it is none that we write. Sizes are checked by re-encoding.
 */
static bool parse_record(struct tar_reader *reader, const char **next, const char *end,
                         uint64_t *ret_size)
{
    size_t length = 0, digits = 0;
    const char *s = *next;

    for (; s < end && *s >= '0' && *s <= '9' && digits < 5; s++, digits++)
        length = length * 10 + (size_t)(*s - '0');
    if (s == end || *s != ' ' || length > (size_t)(end - *next) || length < digits + 3)
        return false;
    const char *record_end = *next + length - 1;

    s++;
    *next += length;
    if (*record_end != '\n')
        return false;
    if (starts_with_key(s, record_end, "path"))
        buf_append(&reader->path, s + 5, (size_t)(record_end - s - 5));
    else if (starts_with_key(s, record_end, "linkpath"))
        buf_append(&reader->target, s + 9, (size_t)(record_end - s - 9));
    else if (starts_with_key(s, record_end, "size")) {
        scoped(mem_freep) char *number = str_ndup(s + 5, (size_t)(record_end - s - 5));

        return str_to_u64(number, ret_size);
    } else
        return false;
    return true;
}

static int take_pax(struct tar_reader *reader, const char *block, uint64_t *ret_size,
                    struct error **err)
{
    uint64_t size;

    if (!octal(block + AT_SIZE, 11, &size) || size == 0 || size > PAX_BYTES_MAX)
        return not_ours(reader, "a bad pax header", err);
    size_t start = reader->header.size_bytes;
    int r = take_bytes(reader, (size_t)size + tar_padding(size), err);

    if (r < 0)
        return r;
    const char *next = reader->header.data + start, *end = next + size;

    while (next < end)
        if (!parse_record(reader, &next, end, ret_size))
            return not_ours(reader, "an unknown pax record", err);
    return 0;
}

static bool type_of(char flag, enum manifest_type *ret)
{
    if (flag != '0' && flag != '5' && flag != '2')
        return false;
    *ret = flag == '0' ? MANIFEST_FILE : flag == '5' ? MANIFEST_DIR : MANIFEST_LINK;
    return true;
}

static void take_text(struct buf *buf, const char *field)
{
    if (buf->size_bytes == 0)
        buf_append(buf, field, strnlen(field, NAME_BYTES));
}

/* The entry that block describes, as far as it can be told; what is odd shows in re-encoding. */
static bool parse_block(struct tar_reader *reader, const char *block, uint64_t pax_size,
                        struct tar_entry *entry)
{
    uint64_t mode, size;

    if (!type_of(block[AT_TYPE], &entry->type) || !octal(block + AT_MODE, 7, &mode) ||
        !octal(block + AT_SIZE, 11, &size) || (mode & ~(uint64_t)MANIFEST_MODE_BITS) != 0)
        return false;
    take_text(&reader->path, block + AT_NAME);
    if (entry->type == MANIFEST_LINK)
        take_text(&reader->target, block + AT_LINK);
    entry->mode = (mode_t)mode;
    entry->size_bytes = pax_size > 0 ? pax_size : size;
    entry->path = buf_text(&reader->path);
    entry->target = entry->type == MANIFEST_LINK ? buf_text(&reader->target) : NULL;
    return true;
}

static int check_entry(struct tar_reader *reader, const struct tar_entry *entry, struct error **err)
{
    scoped(buf_done) struct buf again = {0};

    if (strlen(entry->path) != reader->path.size_bytes || !path_is_inside(entry->path) ||
        !tar_text_is_clean(entry->path) || strlen(entry->path) > MANIFEST_PATH_BYTES_MAX)
        return not_ours(reader, "a bad path", err);
    if (entry->target != NULL &&
        (strlen(entry->target) != reader->target.size_bytes || !tar_text_is_clean(entry->target)))
        return not_ours(reader, "a bad link", err);
    tar_write_header(&again, entry);
    if (again.size_bytes != reader->header.size_bytes ||
        memcmp(again.data, reader->header.data, again.size_bytes) != 0)
        return not_ours(reader, "an unusual header", err);
    if (reader->last_path.size_bytes > 0 &&
        manifest_path_compare(buf_text(&reader->last_path), entry->path) >= 0)
        return not_ours(reader, "entries out of order", err);
    return 0;
}

static bool is_zero(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

/* Skips the content and checks that zeros fill its last block. */
static int skip_content(struct tar_reader *reader, const struct tar_entry *entry,
                        uint64_t *ret_offset, struct error **err)
{
    uint64_t size = entry->type == MANIFEST_FILE ? entry->size_bytes : 0;

    *ret_offset = reader->next;
    if (size > reader->size_bytes - reader->next)
        return not_ours(reader, "cut off", err);
    reader->next += size;
    buf_clear(&reader->header);
    int r = take_bytes(reader, tar_padding(size), err);

    if (r == 0 && !is_zero(buf_text(&reader->header), reader->header.size_bytes))
        return not_ours(reader, "padding that is not zero", err);
    return r;
}

static int take_end(struct tar_reader *reader, struct error **err)
{
    int r = take_bytes(reader, TAR_BLOCK_BYTES, err);

    if (r < 0)
        return r;
    if (!is_zero(reader->header.data, (size_t)2 * TAR_BLOCK_BYTES) ||
        reader->next != reader->size_bytes)
        return not_ours(reader, "something after the end", err);
    return 0;
}

int tar_reader_next(struct tar_reader *reader, struct tar_entry *ret, uint64_t *ret_offset,
                    struct error **err)
{
    struct tar_entry entry = {0};
    uint64_t pax_size = 0, offset = 0;

    buf_clear(&reader->header);
    buf_clear(&reader->path);
    buf_clear(&reader->target);
    int r = take_bytes(reader, TAR_BLOCK_BYTES, err);

    if (r < 0)
        return r;
    if (is_zero(reader->header.data, TAR_BLOCK_BYTES))
        return take_end(reader, err);
    if (reader->header.data[AT_TYPE] == 'x') {
        char pax[TAR_BLOCK_BYTES];

        memcpy(pax, reader->header.data, sizeof(pax));
        r = take_pax(reader, pax, &pax_size, err);
        if (r == 0)
            r = take_bytes(reader, TAR_BLOCK_BYTES, err);
        if (r < 0)
            return r;
    }
    const char *block = reader->header.data + reader->header.size_bytes - TAR_BLOCK_BYTES;

    if (!parse_block(reader, block, pax_size, &entry))
        return not_ours(reader, "a bad header", err);
    r = check_entry(reader, &entry, err);
    if (r == 0)
        r = skip_content(reader, &entry, &offset, err);
    if (r < 0)
        return r;
    buf_clear(&reader->last_path);
    buf_text_append(&reader->last_path, entry.path);
    *ret = entry;
    *ret_offset = offset;
    return 1;
}
