#include "image/layer.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/term.h"

/* Beside what its files hold, a stream has headers and padding; more is a bomb. */
#define STREAM_SLACK_BYTES ((uint64_t)64 << 20)

int layer_archive_error(struct archive *archive, const char *name, struct error **err)
{
    const char *why = archive_error_string(archive);
    scoped(mem_freep) char *quoted = term_quoted(why != NULL ? why : "no reason given");

    return error_set(err, ERROR_TASK, "%s: %.300s", name, quoted);
}

static void archive_donep(struct archive **archive)
{
    if (*archive != NULL)
        (void)archive_read_free(*archive); /* only read from */
}

/*
 * Two readers: plain gives the uncompressed bytes of the source, entries are read from those. Each
 * asks for its bytes by a callback; an error in there is kept until libarchive is back.
 */
struct stream {
    const char *name;
    const struct layer_source *source;
    struct archive *plain;
    struct sha256_stream *hash;
    uint64_t bytes, bytes_max;
    bool at_end;
    struct error *problem;
    int problem_code;
};

static void stream_donep(struct stream *stream)
{
    archive_donep(&stream->plain);
    sha256_stream_free(stream->hash);
    error_free(stream->problem);
}

static ssize_t read_source(struct archive *archive, void *context, const void **ret)
{
    struct stream *stream = context;
    ssize_t n = stream->source->read(stream->source->context, ret, &stream->problem);

    if (n >= 0)
        return n;
    stream->problem_code = (int)n;
    archive_set_error(archive, EIO, "its bytes cannot be read");
    return -1;
}

/* The next uncompressed bytes, hashed. 0: the end; -code with *err. */
static ssize_t next_plain(struct stream *stream, const void **ret, struct error **err)
{
    size_t size = 0;
    int64_t offset = 0;

    if (stream->at_end)
        return 0;
    int status = archive_read_data_block(stream->plain, ret, &size, &offset);

    if (status == ARCHIVE_EOF) {
        stream->at_end = true;
        return 0;
    }
    if (stream->problem != NULL) {
        *err = take(stream->problem);
        return stream->problem_code;
    }
    if (status < ARCHIVE_WARN)
        return layer_archive_error(stream->plain, stream->name, err);
    if (size > stream->bytes_max - stream->bytes)
        return error_set(err, ERROR_LIMIT, "%s: more than %ju bytes when uncompressed",
                         stream->name, (uintmax_t)stream->bytes_max);
    stream->bytes += size;
    sha256_stream_add(stream->hash, *ret, size);
    return (ssize_t)size;
}

static ssize_t read_plain(struct archive *archive, void *context, const void **ret)
{
    struct stream *stream = context;
    struct error *problem = NULL;
    ssize_t n = 0;

    do {
        n = next_plain(stream, ret, &problem);
    } while (n == 0 && !stream->at_end);
    if (n >= 0)
        return n;
    stream->problem = problem;
    stream->problem_code = (int)n;
    archive_set_error(archive, EIO, "its bytes cannot be read");
    return -1;
}

static int open_plain(struct stream *stream, struct error **err)
{
    struct archive_entry *entry = NULL;

    stream->plain = archive_read_new();
    ASSERT(stream->plain != NULL);
    (void)archive_read_support_filter_gzip(stream->plain); /* built in, as is the next */
    (void)archive_read_support_filter_zstd(stream->plain);
    (void)archive_read_support_format_raw(stream->plain);
    (void)archive_read_support_format_empty(stream->plain);
    int status = archive_read_open(stream->plain, stream, NULL, read_source, NULL);

    if (status >= ARCHIVE_WARN)
        status = archive_read_next_header(stream->plain, &entry);
    if (stream->problem != NULL) {
        *err = take(stream->problem);
        return stream->problem_code;
    }
    stream->at_end = status == ARCHIVE_EOF;
    return status < ARCHIVE_WARN ? layer_archive_error(stream->plain, stream->name, err) : 0;
}

/* --- entries */

static int name_of(struct archive_entry *entry, struct entry_name *ret, struct error **err)
{
    const char *name = archive_entry_pathname(entry);

    if (name == NULL)
        name = archive_entry_pathname_utf8(entry);
    if (name == NULL)
        return error_set(err, ERROR_TASK, "an entry whose name cannot be read");
    return entry_name_parse(name, ret, err);
}

static struct rootfs_status status_of(struct archive_entry *entry)
{
    return (struct rootfs_status){
        .mode = archive_entry_perm(entry),
        .modified = {.tv_sec = archive_entry_mtime(entry),
                     .tv_nsec = archive_entry_mtime_nsec(entry)},
    };
}

static int write_at(int fd, const void *bytes, size_t size, int64_t offset, struct error **err)
{
    const char *from = bytes;

    while (size > 0) {
        ssize_t n = pwrite(fd, from, size, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot write a file of the image");
        from += n;
        size -= (size_t)n;
        offset += n;
    }
    return 0;
}

static int copy_data(struct archive *archive, const char *name, int64_t size, int fd,
                     struct error **err)
{
    const void *bytes = NULL;
    size_t count = 0;
    int64_t offset = 0, end = 0;
    int status;

    while ((status = archive_read_data_block(archive, &bytes, &count, &offset)) >= ARCHIVE_WARN &&
           status != ARCHIVE_EOF) {
        if (offset < 0 || offset > size || (int64_t)count > size - offset)
            return error_set(err, ERROR_TASK, "%s: a file holds more than its size", name);
        int r = write_at(fd, bytes, count, offset, err);

        if (r < 0)
            return r;
        end = offset + (int64_t)count;
    }
    if (status != ARCHIVE_EOF)
        return layer_archive_error(archive, name, err);
    if (end < size && ftruncate(fd, size) < 0)
        return error_errno(err, errno, "cannot size a file of the image");
    return 0;
}

static int add_file(struct archive *archive, struct archive_entry *entry, const char *layer,
                    const struct entry_name *name, struct rootfs *rootfs, struct error **err)
{
    const struct rootfs_status status = status_of(entry);
    int64_t size = archive_entry_size(entry);
    int fd = -1;

    if (size < 0)
        return error_set(err, ERROR_TASK, "a file of a negative size");
    int r = rootfs_count_bytes(rootfs, (uint64_t)size, err);

    if (r == 0)
        r = rootfs_begin_file(rootfs, name, &fd, err);
    if (r < 0)
        return r;
    r = size > 0 ? copy_data(archive, layer, size, fd, err) : 0;
    int closed = rootfs_end_file(rootfs, fd, &status, r == 0 ? err : NULL);

    return r < 0 ? r : closed;
}

static int add_hard_link(struct archive_entry *entry, const struct entry_name *name,
                         struct rootfs *rootfs, struct error **err)
{
    scoped(entry_name_done) struct entry_name target = {.kind = ENTRY_PLAIN};
    int r = entry_name_parse(archive_entry_hardlink(entry), &target, err);

    return r < 0 ? r : rootfs_add_hard_link(rootfs, name, &target, err);
}

static int add_link(struct archive_entry *entry, const struct entry_name *name,
                    struct rootfs *rootfs, struct error **err)
{
    const struct rootfs_status status = status_of(entry);
    const char *text = archive_entry_symlink(entry);

    if (text == NULL || text[0] == '\0')
        return error_set(err, ERROR_TASK, "a link that names nothing");
    return rootfs_add_link(rootfs, name, text, &status, err);
}

/* What an entry is made into. */
struct applying {
    struct archive *archive;
    const char *name;
    struct rootfs *rootfs;
    uint64_t *dropped;
};

static int apply_entry(const struct applying *to, struct archive_entry *entry, struct error **err)
{
    scoped(entry_name_done) struct entry_name name = {.kind = ENTRY_PLAIN};
    const struct rootfs_status status = status_of(entry);
    int r = name_of(entry, &name, err);

    if (r < 0 || name.kind == ENTRY_IGNORED)
        return r;
    if (name.kind == ENTRY_WHITEOUT || name.kind == ENTRY_OPAQUE)
        return rootfs_hide(to->rootfs, &name, err);
    if (archive_entry_hardlink(entry) != NULL)
        return add_hard_link(entry, &name, to->rootfs, err);
    switch (archive_entry_filetype(entry)) {
    case AE_IFDIR:
        return rootfs_add_dir(to->rootfs, &name, &status, err);
    case AE_IFREG:
        return add_file(to->archive, entry, to->name, &name, to->rootfs, err);
    case AE_IFLNK:
        return add_link(entry, &name, to->rootfs, err);
    default:
        ++*to->dropped;
        return rootfs_drop(to->rootfs, &name, err);
    }
}

static int apply_entries(const struct applying *to, struct stream *stream, struct error **err)
{
    struct archive_entry *entry = NULL;
    int status, r = 0;

    while ((status = archive_read_next_header(to->archive, &entry)) >= ARCHIVE_WARN &&
           status != ARCHIVE_EOF && r == 0)
        r = apply_entry(to, entry, err);
    /* What a callback met is the cause of all that followed. */
    if (stream->problem != NULL) {
        if (r < 0)
            error_free(take(*err));
        *err = take(stream->problem);
        return stream->problem_code;
    }
    if (r < 0)
        return error_wrap(err, r, "%s", to->name);
    return status < ARCHIVE_WARN ? layer_archive_error(to->archive, to->name, err) : 0;
}

int layer_apply(const char *name, const struct layer_source *source, struct rootfs *rootfs,
                struct sha256 *ret, uint64_t *dropped, struct error **err)
{
    scoped(stream_donep) struct stream stream = {
        .name = name,
        .source = source,
        .hash = sha256_stream_new(),
        .bytes_max = rootfs_bytes_max(rootfs) + STREAM_SLACK_BYTES,
    };
    scoped(archive_donep) struct archive *archive = archive_read_new();
    const void *rest = NULL;
    ssize_t n = 1;

    ASSERT(archive != NULL);
    rootfs_next_layer(rootfs);
    int r = open_plain(&stream, err);

    if (r < 0)
        return r;
    (void)archive_read_support_format_tar(archive); /* built in */
    (void)archive_read_support_format_empty(archive);
    if (archive_read_open(archive, &stream, NULL, read_plain, NULL) < ARCHIVE_WARN &&
        stream.problem == NULL)
        return layer_archive_error(archive, name, err);
    const struct applying to = {
        .archive = archive, .name = name, .rootfs = rootfs, .dropped = dropped};

    r = apply_entries(&to, &stream, err);
    /* What follows the archive's end is part of what the digest is of. */
    while (r == 0 && n > 0) {
        n = next_plain(&stream, &rest, err);
        if (n < 0)
            r = (int)n;
        else if (n == 0 && !stream.at_end)
            n = 1;
    }
    if (r == 0)
        *ret = sha256_stream_end(stream.hash);
    return r;
}
