#include "collect/tar.h"

#include "base/fs.h"
#include "base/term.h"

#define PENDING_BYTES ((size_t)256 << 10)
#define SIZE_OCTAL_MAX ((uint64_t)0xffffffff) /* well below the 8 GiB that eleven digits hold */

/* The header block, as POSIX lays it out. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155];
    char rest[12];
};
_Static_assert(sizeof(struct header) == TAR_BLOCK_BYTES, "a header is one block");

bool tar_text_is_clean(const char *text)
{
    size_t size = strlen(text);

    if (size == 0 || !utf8_valid(text, size))
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];

        /* C1 controls are 0xc2 0x80 to 0xc2 0x9f. */
        if (byte < 0x20 || byte == 0x7f || (byte == 0xc2 && (unsigned char)text[i + 1] < 0xa0))
            return false;
    }
    return true;
}

static bool fits(const char *text)
{
    size_t size = strlen(text);

    if (size > sizeof(((struct header *)NULL)->name))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

static void put_octal(char *field, size_t size, uint64_t value)
{
    field[size - 1] = '\0';
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
}

/* A field of text: what fits, bytes that are not ASCII as '_'. */
static void put_text(char *field, size_t size, const char *text)
{
    for (size_t i = 0; i < size && text[i] != '\0'; i++) {
        field[i] = '_';
        if ((unsigned char)text[i] < 0x80)
            field[i] = text[i];
    }
}

static void put_block(struct buf *buf, const struct header *filled)
{
    struct header header = *filled;
    const unsigned char *bytes = (const unsigned char *)&header;
    unsigned sum = 0;

    memset(header.checksum, ' ', sizeof(header.checksum));
    for (size_t i = 0; i < sizeof(header); i++)
        sum += bytes[i];
    put_octal(header.checksum, 7, sum);
    buf_append(buf, &header, sizeof(header));
}

static struct header common_header(char type, mode_t mode, uint64_t size)
{
    struct header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};

    put_octal(header.mode, sizeof(header.mode), mode);
    put_octal(header.uid, sizeof(header.uid), 0);
    put_octal(header.gid, sizeof(header.gid), 0);
    put_octal(header.size, sizeof(header.size), size);
    put_octal(header.mtime, sizeof(header.mtime), 0);
    put_octal(header.major, sizeof(header.major), 0);
    put_octal(header.minor, sizeof(header.minor), 0);
    return header;
}

static size_t decimal_chars(size_t value)
{
    size_t count = 1;

    for (; value >= 10; value /= 10)
        count++;
    return count;
}

/* "LENGTH key=value\n", where LENGTH counts itself. */
static void put_record(struct buf *records, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3;
    size_t length = rest + decimal_chars(rest);

    length = rest + decimal_chars(length);
    buf_format(records, "%zu %s=%s\n", length, key, value);
}

static void put_zeros(struct buf *buf, size_t count)
{
    static const char zeros[TAR_BLOCK_BYTES];

    buf_append(buf, zeros, count);
}

static char type_flag(enum manifest_type type)
{
    switch (type) {
    case MANIFEST_FILE:
        return '0';
    case MANIFEST_DIR:
        return '5';
    case MANIFEST_LINK:
        return '2';
    }
    return '0';
}

void tar_write_header(struct buf *buf, const struct tar_entry *entry)
{
    scoped(buf_done) struct buf records = {0};
    uint64_t size = entry->type == MANIFEST_FILE ? entry->size_bytes : 0;
    bool large = size > SIZE_OCTAL_MAX;
    char number[24];

    if (entry->type == MANIFEST_LINK && !fits(entry->target))
        put_record(&records, "linkpath", entry->target);
    if (!fits(entry->path))
        put_record(&records, "path", entry->path);
    (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)size); /* always fits */
    if (large)
        put_record(&records, "size", number);
    if (records.size_bytes > 0) {
        struct header pax = common_header('x', 0644, records.size_bytes);

        put_text(pax.name, sizeof(pax.name), "PaxHeader");
        put_block(buf, &pax);
        buf_append(buf, records.data, records.size_bytes);
        put_zeros(buf, tar_padding(records.size_bytes));
    }
    struct header header = common_header(type_flag(entry->type), entry->mode, large ? 0 : size);

    put_text(header.name, sizeof(header.name), entry->path);
    if (entry->type == MANIFEST_LINK)
        put_text(header.link, sizeof(header.link), entry->target);
    put_block(buf, &header);
}

void tar_writer_init(struct tar_writer *writer, int fd, const char *name)
{
    *writer = (struct tar_writer){.fd = fd, .name = name, .stream = sha256_stream_new()};
}

static int flush(struct tar_writer *writer, struct error **err)
{
    struct buf *pending = &writer->pending;

    if (pending->size_bytes == 0)
        return 0;
    sha256_stream_add(writer->stream, pending->data, pending->size_bytes);
    int r = fs_write_all(writer->fd, writer->name, pending->data, pending->size_bytes, err);

    buf_clear(pending);
    return r;
}

int tar_writer_bytes(struct tar_writer *writer, const void *bytes, size_t size, struct error **err)
{
    buf_append(&writer->pending, bytes, size);
    return writer->pending.size_bytes >= PENDING_BYTES ? flush(writer, err) : 0;
}

int tar_writer_add(struct tar_writer *writer, const struct tar_entry *entry, struct error **err)
{
    tar_write_header(&writer->pending, entry);
    return writer->pending.size_bytes >= PENDING_BYTES ? flush(writer, err) : 0;
}

int tar_writer_pad(struct tar_writer *writer, uint64_t size, struct error **err)
{
    put_zeros(&writer->pending, tar_padding(size));
    return writer->pending.size_bytes >= PENDING_BYTES ? flush(writer, err) : 0;
}

int tar_writer_end(struct tar_writer *writer, struct sha256 *ret, struct error **err)
{
    put_zeros(&writer->pending, TAR_BLOCK_BYTES);
    put_zeros(&writer->pending, TAR_BLOCK_BYTES);
    int r = flush(writer, err);

    if (r < 0)
        return r;
    *ret = sha256_stream_end(writer->stream);
    return 0;
}

void tar_writer_done(struct tar_writer *writer)
{
    sha256_stream_freep(&writer->stream);
    buf_done(&writer->pending);
}
