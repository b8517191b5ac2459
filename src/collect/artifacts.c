#include <errno.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/collect.h"
#include "collect/tar.h"

#define COPY_BYTES ((size_t)256 << 10)

int artifacts_each(int tar_fd, const char *name, artifacts_visit *visit, void *context,
                   struct error **err)
{
    scoped(tar_reader_done) struct tar_reader reader = {0};
    int r = tar_reader_init(&reader, tar_fd, name, err);

    while (r >= 0) {
        struct tar_entry entry;
        uint64_t offset;

        r = tar_reader_next(&reader, &entry, &offset, err);
        if (r <= 0)
            break;
        struct artifact artifact = {.path = entry.path,
                                    .type = entry.type,
                                    .mode = entry.mode,
                                    .size_bytes = entry.size_bytes,
                                    .target = entry.target,
                                    .offset = offset};

        r = visit(context, tar_fd, &artifact, err);
    }
    return r < 0 ? r : 0;
}

/* One piece of an artifact; *ret_size > 0 unless all was read. */
static int read_piece(int tar_fd, const struct artifact *artifact, uint64_t at, char *bytes,
                      size_t *ret_size, struct error **err)
{
    for (;;) {
        ssize_t n = pread(tar_fd, bytes, size_min(artifact->size_bytes - at, COPY_BYTES),
                          (off_t)(artifact->offset + at));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s' in the archive", artifact->path);
        if (n == 0 && at < artifact->size_bytes)
            return error_set(err, ERROR_SYSTEM, "the archive was cut while it was read");
        *ret_size = (size_t)n;
        return 0;
    }
}

struct wanted {
    const char *path;
    size_t max_bytes;
    struct buf *content;
    bool found;
};

static int read_wanted(void *context, int tar_fd, const struct artifact *artifact,
                       struct error **err)
{
    struct wanted *wanted = context;
    scoped(mem_freep) char *bytes = NULL;

    if (strcmp(artifact->path, wanted->path) != 0)
        return 0;
    wanted->found = true;
    if (artifact->type != MANIFEST_FILE)
        return error_set(err, ERROR_USER, "'%s' is a %s", artifact->path,
                         artifact->type == MANIFEST_DIR ? "directory" : "link");
    if (artifact->size_bytes > wanted->max_bytes)
        return error_set(err, ERROR_LIMIT, "'%s' is larger than %zu bytes", artifact->path,
                         wanted->max_bytes);
    bytes = mem_new(COPY_BYTES, 1);
    for (uint64_t at = 0; at < artifact->size_bytes;) {
        size_t size = 0;
        int r = read_piece(tar_fd, artifact, at, bytes, &size, err);

        if (r < 0)
            return r;
        buf_append(wanted->content, bytes, size);
        at += size;
    }
    return 0;
}

int artifacts_read(int tar_fd, const char *name, const char *path, size_t max_bytes,
                   struct buf *ret, struct error **err)
{
    struct wanted wanted = {.path = path, .max_bytes = max_bytes, .content = ret};
    int r = artifacts_each(tar_fd, name, read_wanted, &wanted, err);

    if (r == 0 && !wanted.found)
        return error_set(err, ERROR_USER, "%s: no '%s' in it", name, path);
    return r;
}

struct extraction {
    int to_fd;
    bool keep_git;
    uint64_t files;
    char *bytes;
};

/* The path that an entry is written to: what git would obey gets another name; owned. */
static char *safe_path(const char *path, bool keep_git)
{
    scoped(buf_done) struct buf safe = {0};

    for (const char *part = path; *part != '\0';) {
        size_t length = strcspn(part, "/");
        /* Whatever its case: some file systems do not tell them apart. */
        bool is_git = length == 4 && strncasecmp(part, ".git", 4) == 0;

        if (is_git && !keep_git) {
            buf_text_append(&safe, "dot-");
            buf_append(&safe, part + 1, length - 1);
        } else {
            buf_append(&safe, part, length);
        }
        part += length;
        if (*part == '/') {
            buf_char(&safe, '/');
            part++;
        }
    }
    return buf_take(&safe);
}

/* Makes the folders of a path one by one, never through a link; returns the last one's descriptor.
 */
static int open_folder(int to_fd, const char *folder, int *ret, struct error **err)
{
    scoped(fd_closep) int fd = openat(to_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open the destination");
    for (const char *part = strcmp(folder, ".") == 0 ? "" : folder; *part != '\0';) {
        size_t length = strcspn(part, "/");
        scoped(mem_freep) char *name = str_ndup(part, length);

        if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
            return error_errno(err, errno, "cannot make the folder '%s'", folder);
        int next = fs_open_beneath(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, FS_NO_LINKS);

        if (next < 0)
            return error_errno(err, -next, "cannot open the folder '%s'", folder);
        fd_closep(&fd);
        fd = next;
        part += length + (part[length] == '/');
    }
    *ret = take_fd(&fd);
    return 0;
}

static int write_file(struct extraction *extraction, int tar_fd, const struct artifact *artifact,
                      int to, struct error **err)
{
    for (uint64_t at = 0; at < artifact->size_bytes;) {
        size_t size = 0;
        int r = read_piece(tar_fd, artifact, at, extraction->bytes, &size, err);

        if (r == 0)
            r = fs_write_all(to, artifact->path, extraction->bytes, size, err);
        if (r < 0)
            return r;
        at += size;
    }
    return 0;
}

static int extract_entry(void *context, int tar_fd, const struct artifact *artifact,
                         struct error **err)
{
    struct extraction *extraction = context;
    scoped(mem_freep) char *path = safe_path(artifact->path, extraction->keep_git);
    scoped(mem_freep) char *folder =
        artifact->type == MANIFEST_DIR ? str_dup(path) : path_dir(path);
    scoped(fd_closep) int folder_fd = -1;

    if (artifact->type == MANIFEST_LINK)
        return 0;
    int r = open_folder(extraction->to_fd, folder, &folder_fd, err);

    if (r < 0 || artifact->type == MANIFEST_DIR)
        return r;
    mode_t mode = (artifact->mode & 0100) != 0 ? 0755 : 0644;
    scoped(fd_closep) int to = fs_open_beneath(
        folder_fd, path_base(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode, FS_NO_LINKS);

    if (to == -EEXIST)
        return error_set(err, ERROR_USER, "'%s' exists already", path);
    if (to < 0)
        return error_errno(err, -to, "cannot make '%s'", path);
    extraction->files++;
    return write_file(extraction, tar_fd, artifact, to, err);
}

int artifacts_extract(int tar_fd, const char *name, int to_fd, bool keep_git, uint64_t *ret_files,
                      struct error **err)
{
    scoped(mem_freep) char *bytes = mem_new(COPY_BYTES, 1);
    struct extraction extraction = {.to_fd = to_fd, .keep_git = keep_git, .bytes = bytes};
    int r = artifacts_each(tar_fd, name, extract_entry, &extraction, err);

    if (r < 0)
        return r;
    *ret_files = extraction.files;
    return 0;
}
