#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "collect/gather_internal.h"
#include "collect/tar.h"

/* On the stack: never more of it is touched than a file is long. */
#define COPY_BYTES ((size_t)64 << 10)
#define FLUSH_BYTES ((size_t)64 << 10)

static int opened_file(int dir_fd, const char *path, uint64_t size)
{
    scoped(fd_closep) int fd = fs_open_beneath(
        dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, FS_NO_LINKS);
    struct stat status;

    if (fd < 0)
        return fd;
    if (fstat(fd, &status) < 0)
        return -errno;
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != size)
        return -ESTALE;
    return take_fd(&fd);
}

/* The bytes of a planned file: in the workspace, or in the topmost staged layer that has them. */
static int open_content(const struct gather_input *input, const struct planned *planned)
{
    uint64_t size = planned->entry.size_bytes;

    if (planned->lower_path == NULL)
        return opened_file(input->workspace_fd, planned->entry.path, size);
    for (size_t i = input->layer_count; i-- > 0;) {
        int fd = opened_file(input->layer_fds[i], planned->lower_path, size);

        if (fd >= 0)
            return fd;
    }
    return -ENOENT;
}

static int content_error(const struct planned *planned, int errno_value, struct error **err)
{
    scoped(buf_done) struct buf path = {0};

    manifest_escape(&path, planned->entry.path);
    return error_errno(err, errno_value, "cannot collect '%s'", buf_text(&path));
}

static int write_content(struct tar_writer *writer, int fd, struct planned *planned,
                         struct error **err)
{
    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    char bytes[COPY_BYTES];
    uint64_t size = planned->entry.size_bytes;

    for (uint64_t left = size; left > 0;) {
        ssize_t n = read(fd, bytes, size_min(left, COPY_BYTES));

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return content_error(planned, n < 0 ? errno : ESTALE, err);
        sha256_stream_add(stream, bytes, (size_t)n);
        int r = tar_writer_bytes(writer, bytes, (size_t)n, err);

        if (r < 0)
            return r;
        left -= (uint64_t)n;
    }
    struct sha256 digest = sha256_stream_end(stream);

    if (planned->lower_path != NULL && !sha256_equal(&digest, &planned->entry.digest))
        return content_error(planned, ESTALE, err);
    planned->entry.digest = digest;
    return tar_writer_pad(writer, size, err);
}

static int write_planned(const struct gather_input *input, struct tar_writer *writer,
                         struct planned *planned, struct error **err)
{
    const struct manifest_entry *entry = &planned->entry;
    scoped(fd_closep) int fd = -1;

    if (entry->type == MANIFEST_FILE) {
        fd = open_content(input, planned);
        if (fd < 0)
            return content_error(planned, -fd, err);
    }
    struct tar_entry tar = {.path = entry->path,
                            .type = entry->type,
                            .mode = entry->mode,
                            .size_bytes = entry->size_bytes,
                            .target = entry->target};
    int r = tar_writer_add(writer, &tar, err);

    if (r == 0 && entry->type == MANIFEST_FILE)
        r = write_content(writer, fd, planned, err);
    return r;
}

static int write_archive(struct gather *gather, int archive_fd, struct gather_counts *counts,
                         struct error **err)
{
    scoped(tar_writer_done) struct tar_writer writer;

    tar_writer_init(&writer, archive_fd, "artifacts.tar");
    for (size_t i = 0; i < gather->plan.count; i++) {
        int r = write_planned(gather->input, &writer, &gather->plan.items[i], err);

        if (r < 0)
            return r;
    }
    counts->files = gather->plan.count;
    counts->bytes = gather->plan.bytes;
    return tar_writer_end(&writer, &counts->archive, err);
}

/* Writes changes.json piece by piece. */
struct listing {
    int fd;
    struct buf text;
    struct sha256_stream *stream;
    bool first; /* of the list that is being written */
};

static void listing_done(struct listing *listing)
{
    buf_done(&listing->text);
    sha256_stream_free(listing->stream);
}

static int flush(struct listing *listing, size_t least, struct error **err)
{
    struct buf *text = &listing->text;

    if (text->size_bytes < least || text->size_bytes == 0)
        return 0;
    sha256_stream_add(listing->stream, text->data, text->size_bytes);
    int r = fs_write_all(listing->fd, "changes.json", text->data, text->size_bytes, err);

    buf_clear(text);
    return r;
}

static void start_list(struct listing *listing, const char *name)
{
    buf_format(&listing->text, ",\n\"%s\":[", name);
    listing->first = true;
}

static void next_item(struct listing *listing)
{
    buf_text_append(&listing->text, listing->first ? "\n" : ",\n");
    listing->first = false;
}

/* ,"key":"value" with the value escaped as paths are; first: without the comma. */
static void put_member(struct listing *listing, bool first, const char *key, const char *value)
{
    buf_format(&listing->text, "%s\"%s\":\"", first ? "" : ",", key);
    manifest_escape(&listing->text, value);
    buf_char(&listing->text, '"');
}

static int list_planned(struct listing *listing, const struct gather *gather, bool modified,
                        uint64_t *ret_count, struct error **err)
{
    start_list(listing, modified ? "modified" : "added");
    for (size_t i = 0; i < gather->plan.count; i++) {
        const struct planned *planned = &gather->plan.items[i];

        if (planned->modified != modified)
            continue;
        ++*ret_count;
        next_item(listing);
        manifest_write_entry(&listing->text, &planned->entry);
        listing->text.data[--listing->text.size_bytes] = '\0'; /* its newline */
        int r = flush(listing, FLUSH_BYTES, err);

        if (r < 0)
            return r;
    }
    buf_char(&listing->text, ']');
    return 0;
}

static int list_deleted(struct listing *listing, const struct gather *gather, uint64_t *ret_count,
                        struct error **err)
{
    const struct manifest *staged = gather->input->staged;

    start_list(listing, "deleted");
    for (size_t i = 0; i < staged->count; i++) {
        if (gather->kept[i])
            continue;
        ++*ret_count;
        next_item(listing);
        buf_char(&listing->text, '"');
        manifest_escape(&listing->text, staged->entries[i].path);
        buf_char(&listing->text, '"');
        int r = flush(listing, FLUSH_BYTES, err);

        if (r < 0)
            return r;
    }
    buf_char(&listing->text, ']');
    return 0;
}

static int compare_content(const void *a, const void *b)
{
    const struct manifest_entry *const *x = a, *const *y = b;
    int order = memcmp((*x)->digest.bytes, (*y)->digest.bytes, SHA256_BYTES);

    return order != 0 ? order : manifest_path_compare((*x)->path, (*y)->path);
}

static void list_move(struct listing *listing, const char *from, const char *to)
{
    next_item(listing);
    buf_char(&listing->text, '{');
    put_member(listing, true, "from", from);
    put_member(listing, false, "to", to);
    buf_char(&listing->text, '}');
}

/* Files with content that are gone, and those that are new, by content: equal ones are pairs. */
static size_t gone_files(const struct gather *gather, const struct manifest_entry **ret)
{
    const struct manifest *staged = gather->input->staged;
    size_t count = 0;

    for (size_t i = 0; i < staged->count; i++) {
        const struct manifest_entry *entry = &staged->entries[i];

        if (!gather->kept[i] && entry->type == MANIFEST_FILE && entry->size_bytes > 0)
            ret[count++] = entry;
    }
    if (count > 1)
        qsort(ret, count, sizeof(*ret), compare_content);
    return count;
}

static size_t new_files(const struct gather *gather, const struct manifest_entry **ret)
{
    size_t count = 0;

    for (size_t i = 0; i < gather->plan.count; i++) {
        const struct planned *planned = &gather->plan.items[i];

        if (!planned->modified && planned->entry.type == MANIFEST_FILE &&
            planned->entry.size_bytes > 0)
            ret[count++] = &planned->entry;
    }
    if (count > 1)
        qsort(ret, count, sizeof(*ret), compare_content);
    return count;
}

/* What moved: pairs of borrowed paths. */
struct moves {
    struct move *items;
    size_t count;
};

static int compare_moves(const void *a, const void *b)
{
    const struct move *x = a, *y = b;
    int order = manifest_path_compare(x->from, y->from);

    return order != 0 ? order : manifest_path_compare(x->to, y->to);
}

static void moves_done(struct moves *moves)
{
    free(moves->items);
}

/* Pairs gone and new files of equal content, in the order of their paths. */
static void pair_files(const struct gather *gather, struct moves *moves)
{
    scoped(mem_freep) const struct manifest_entry **gone =
        mem_new(gather->input->staged->count + 1, sizeof(struct manifest_entry *));
    scoped(mem_freep) const struct manifest_entry **made =
        mem_new(gather->plan.count + 1, sizeof(struct manifest_entry *));
    size_t gone_count = gone_files(gather, gone), made_count = new_files(gather, made);

    for (size_t i = 0, j = 0; i < gone_count && j < made_count;) {
        int order = memcmp(gone[i]->digest.bytes, made[j]->digest.bytes, SHA256_BYTES);

        if (order == 0)
            moves->items[moves->count++] =
                (struct move){.from = gone[i]->path, .to = made[j]->path};
        i += order <= 0;
        j += order >= 0;
    }
}

static int list_moved(struct listing *listing, const struct gather *gather, uint64_t *ret_count,
                      struct error **err)
{
    size_t most = gather->redirect_count + gather->plan.count + 1;
    scoped(moves_done) struct moves moves = {.items = mem_new(most, sizeof(*moves.items))};

    for (size_t i = 0; i < gather->redirect_count; i++)
        moves.items[moves.count++] =
            (struct move){.from = gather->redirects[i].from, .to = gather->redirects[i].to};
    pair_files(gather, &moves);
    qsort(moves.items, moves.count, sizeof(*moves.items), compare_moves);
    *ret_count = moves.count;
    start_list(listing, "moved");
    for (size_t i = 0; i < moves.count; i++) {
        list_move(listing, moves.items[i].from, moves.items[i].to);
        int r = flush(listing, FLUSH_BYTES, err);

        if (r < 0)
            return r;
    }
    buf_char(&listing->text, ']');
    return 0;
}

static void list_remarks(struct listing *listing, const char *name, const char *key,
                         const struct gather_remarks *remarks)
{
    start_list(listing, name);
    for (size_t i = 0; i < remarks->count; i++) {
        next_item(listing);
        buf_char(&listing->text, '{');
        put_member(listing, true, "path", remarks->items[i].path);
        put_member(listing, false, key, remarks->items[i].reason);
        buf_char(&listing->text, '}');
    }
    buf_format(&listing->text, "],\n\"%s_total\":%llu", name, (unsigned long long)remarks->total);
}

static int write_changes(const struct gather *gather, int changes_fd, struct gather_counts *counts,
                         struct error **err)
{
    scoped(listing_done) struct listing listing = {.fd = changes_fd, .stream = sha256_stream_new()};

    buf_text_append(&listing.text, "{\"schema\":\"closedbook/changes/1\"");
    int r = list_planned(&listing, gather, false, &counts->added, err);

    if (r == 0)
        r = list_planned(&listing, gather, true, &counts->modified, err);
    if (r == 0)
        r = list_deleted(&listing, gather, &counts->deleted, err);
    if (r == 0)
        r = list_moved(&listing, gather, &counts->moved, err);
    if (r < 0)
        return r;
    list_remarks(&listing, "refused", "reason", &gather->refused);
    list_remarks(&listing, "notes", "note", &gather->notes);
    buf_text_append(&listing.text, "}\n");
    r = flush(&listing, 0, err);
    if (r < 0)
        return r;
    counts->changes = sha256_stream_end(listing.stream);
    return 0;
}

int gather_write(struct gather *gather, int archive_fd, int changes_fd, struct gather_counts *ret,
                 struct error **err)
{
    struct gather_counts counts = {0};
    int r = write_archive(gather, archive_fd, &counts, err);

    if (r == 0)
        r = write_changes(gather, changes_fd, &counts, err);
    if (r == 0)
        *ret = counts;
    return r;
}
