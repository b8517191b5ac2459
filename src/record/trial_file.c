#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "record/internal.h"

/* On the stack: only as much of it is touched as a file, most often a small one, is long. */
#define PIECE_BYTES ((size_t)64 << 10)

int digest_file(int dir_fd, const char *path, struct sha256 *ret, struct error **err)
{
    scoped(fd_closep) int fd = fs_open_beneath(dir_fd, path, O_RDONLY | O_NONBLOCK, 0, FS_NO_LINKS);

    if (fd < 0)
        return error_errno(err, -fd, "cannot open '%s'", path);

    scoped(sha256_stream_freep) struct sha256_stream *stream = sha256_stream_new();
    char piece[PIECE_BYTES];

    for (;;) {
        ssize_t n = read(fd, piece, PIECE_BYTES);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "cannot read '%s'", path);
        if (n == 0)
            break;
        sha256_stream_add(stream, piece, (size_t)n);
    }
    *ret = sha256_stream_end(stream);
    return 0;
}

int trial_record_digest(int trial_dir_fd, struct sha256 *ret, struct error **err)
{
    return digest_file(trial_dir_fd, TRIAL_FILE_NAME, ret, err);
}

/* A walk over one trial's directory: where it is and what it found. */
struct walk {
    const char *prefix; /* "" or "grade/" */
    unsigned depth;
    size_t files;
    json_t *digests;
};

static int walk_tree(struct walk *walk, int dir_fd, struct error **err);

static int walk_dir(struct walk *walk, int dir_fd, const char *name, struct error **err)
{
    scoped(fd_closep) int fd =
        openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s%s'", walk->prefix, name);
    if (walk->depth == TRIAL_DEPTH_MAX)
        return error_set(err, ERROR_LIMIT, "'%s%s': deeper than %d directories", walk->prefix, name,
                         TRIAL_DEPTH_MAX);

    scoped(mem_freep) char *prefix = str_format("%s%s/", walk->prefix, name);
    struct walk below = {
        .prefix = prefix,
        .depth = walk->depth + 1,
        .files = walk->files,
        .digests = walk->digests,
    };
    int r = walk_tree(&below, fd, err);

    walk->files = below.files;
    return r;
}

static int walk_file(struct walk *walk, int dir_fd, const char *name, struct error **err)
{
    struct sha256 digest;
    char hex[SHA256_HEX_CHARS + 1];

    if (walk->files++ == TRIAL_FILES_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d files", TRIAL_FILES_MAX);

    int r = digest_file(dir_fd, name, &digest, err);

    if (r < 0)
        return r;
    sha256_format(&digest, hex);

    scoped(mem_freep) char *key = str_format("%s%s", walk->prefix, name);
    scoped(mem_freep) char *text = str_format("sha256:%s", hex);

    json_put_text(walk->digests, key, text);
    return 0;
}

static int visit(void *context, int dir_fd, const char *name, struct error **err)
{
    struct walk *walk = context;
    struct stat st;

    /* The record itself, and what a write that was killed left of it. */
    if (walk->depth == 0 && (strcmp(name, TRIAL_FILE_NAME) == 0 || str_starts(name, ".tmp-")))
        return 0;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return error_errno(err, errno, "cannot look at '%s%s'", walk->prefix, name);
    if (S_ISDIR(st.st_mode))
        return walk_dir(walk, dir_fd, name, err);
    if (S_ISREG(st.st_mode))
        return walk_file(walk, dir_fd, name, err);
    return error_set(err, ERROR_SYSTEM, "'%s%s': neither a file nor a directory", walk->prefix,
                     name);
}

static int walk_tree(struct walk *walk, int dir_fd, struct error **err)
{
    return fs_each(dir_fd, visit, walk, err);
}

int digest_tree(int dir_fd, json_t **ret, struct error **err)
{
    scoped(json_freep) json_t *digests = json_object();
    struct walk walk = {.prefix = "", .digests = digests};
    int r = walk_tree(&walk, dir_fd, err);

    if (r < 0)
        return r;
    *ret = take(digests);
    return 0;
}

int trial_record_save(int trial_dir_fd, struct trial_record *record, struct error **err)
{
    scoped(json_freep) json_t *digests = NULL;
    int r = digest_tree(trial_dir_fd, &digests, err);

    if (r < 0)
        return error_wrap(err, r, "cannot save the record of trial '%s'", record->trial_id);
    json_decref(record->digests);
    record->digests = take(digests);

    scoped(json_freep) json_t *json = trial_record_to_json(record);
    scoped(buf_done) struct buf text = {.max_bytes = TRIAL_BYTES_MAX};

    json_write_pretty(&text, json);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "the record of trial '%s' is larger than %zu bytes",
                         record->trial_id, TRIAL_BYTES_MAX);
    r = fs_write_atomic(trial_dir_fd, TRIAL_FILE_NAME,
                        &(struct fs_content){text.data, text.size_bytes, 0600, FS_SYNC_FILE}, err);
    if (r < 0)
        return error_wrap(err, r, "cannot save the record of trial '%s'", record->trial_id);
    return 0;
}

int trial_record_load(int trial_dir_fd, const char *name, struct trial_record *ret,
                      struct error **err)
{
    scoped(mem_freep) char *file = str_format("%s/" TRIAL_FILE_NAME, name);
    scoped(json_freep) json_t *json = NULL;
    scoped(error_freep) struct error *cause = NULL;
    int r = json_load(trial_dir_fd, TRIAL_FILE_NAME, TRIAL_BYTES_MAX, &json, &cause);

    /* Whatever is wrong with a record, it is not the fault of a task's author. */
    if (r < 0 && error_errno_of(cause) != 0)
        return error_errno(err, error_errno_of(cause), "cannot read '%s'", file);
    if (r < 0)
        return error_set(err, ERROR_SYSTEM, "'%s' is damaged: %s", file, error_message(cause));
    return trial_record_from_json(file, json, ret, err);
}

/* True when the file is there and has the digest. An error only when it cannot be read. */
static int matches(int dir_fd, const char *path, const json_t *expected, bool *ret,
                   struct error **err)
{
    scoped(error_freep) struct error *cause = NULL;
    struct sha256 want;
    struct sha256 got;

    *ret = false;
    if (!path_is_inside(path) || !json_is_string(expected) ||
        !sha256_parse(json_string_value(expected), &want))
        return 0;

    int r = digest_file(dir_fd, path, &got, &cause);

    if (r < 0 && (error_errno_of(cause) == ENOENT || error_errno_of(cause) == ENOTDIR ||
                  error_errno_of(cause) == ELOOP || error_errno_of(cause) == EISDIR))
        return 0;
    if (r < 0)
        return error_set(err, error_code_of(cause), "%s", error_message(cause));
    *ret = sha256_equal(&want, &got);
    return 0;
}

int trial_record_verify(int trial_dir_fd, const struct trial_record *record, char **ret_bad,
                        struct error **err)
{
    const char *path;
    json_t *digest;

    *ret_bad = NULL;
    json_object_foreach (record->digests, path, digest) {
        bool same = false;
        int r = matches(trial_dir_fd, path, digest, &same, err);

        if (r < 0)
            return r;
        if (same)
            continue;
        *ret_bad = str_dup(path);
        return 0;
    }
    return 0;
}

int trial_record_digests(int trial_dir_fd, json_t **ret, struct error **err)
{
    return digest_tree(trial_dir_fd, ret, err);
}
