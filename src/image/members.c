#include "image/members.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define READ_BYTES ((size_t)256 << 10)

static void archive_donep(struct archive **archive)
{
    if (*archive != NULL)
        (void)archive_read_free(*archive); /* only read from */
}

/* Only what libarchive does itself: its other filters start programs. */
static struct archive *open_any(int fd)
{
    struct archive *archive = archive_read_new();

    if (archive == NULL)
        return NULL;
    (void)archive_read_support_filter_gzip(archive);
    (void)archive_read_support_filter_bzip2(archive);
    (void)archive_read_support_filter_xz(archive);
    (void)archive_read_support_filter_lzma(archive);
    (void)archive_read_support_filter_lzip(archive);
    (void)archive_read_support_filter_zstd(archive);
    (void)archive_read_support_filter_lz4(archive);
    (void)archive_read_support_format_tar(archive);
    (void)archive_read_support_format_cpio(archive);
    (void)archive_read_support_format_ar(archive);
    (void)archive_read_support_format_zip(archive);
    (void)archive_read_support_format_7zip(archive);
    (void)archive_read_support_format_raw(archive);
    if (archive_read_open_fd(archive, fd, READ_BYTES) == ARCHIVE_OK)
        return archive;
    archive_donep(&archive);
    return NULL;
}

/* What can be read of a member, within the budget. */
static void read_content(struct archive *archive, size_t *left, struct buf *ret)
{
    char piece[16384];

    while (*left > 0) {
        la_ssize_t n = archive_read_data(archive, piece, size_min(sizeof(piece), *left));

        if (n <= 0)
            return;
        buf_append(ret, piece, (size_t)n);
        *left -= (size_t)n;
    }
}

static int print_member(const char *name, const struct buf *content, int to_fd, struct error **err)
{
    size_t name_size = size_min(strlen(name), MEMBERS_NAME_BYTES_MAX);
    scoped(mem_freep) char *head = str_format("%08zx%016zx", name_size, content->size_bytes);
    int r = fs_write_all(to_fd, "the output", head, strlen(head), err);

    if (r == 0)
        r = fs_write_all(to_fd, "the output", name, name_size, err);
    return r < 0 ? r
                 : fs_write_all(to_fd, "the output", buf_text(content), content->size_bytes, err);
}

int members_print(int archive_fd, int to_fd, struct error **err)
{
    scoped(archive_donep) struct archive *archive = open_any(archive_fd);
    struct archive_entry *entry = NULL;
    size_t left = MEMBERS_BYTES_MAX;

    if (archive == NULL)
        return 0;
    for (size_t i = 0; i < MEMBERS_COUNT_MAX && left > 0; i++) {
        scoped(buf_done) struct buf content = {0};
        int status = archive_read_next_header(archive, &entry);

        if (status != ARCHIVE_OK && status != ARCHIVE_WARN)
            return 0;
        bool is_raw = archive_format(archive) == ARCHIVE_FORMAT_RAW;
        const char *name = is_raw ? "" : archive_entry_pathname(entry);

        read_content(archive, &left, &content);
        if (content.size_bytes == 0)
            continue;
        int r = print_member(name != NULL ? name : "", &content, to_fd, err);

        if (r < 0)
            return r;
    }
    return 0;
}
