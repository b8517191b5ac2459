#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "record/run_internal.h"
#include "record/signing.h"

const char *const run_sealed_files[] = {"run.json", "plan.json", "host.json", NULL};

/* Bytes of the whole lines at the start of text: what stands after the last newline is torn. */
static size_t whole_bytes(const char *text, size_t size)
{
    const char *last = memrchr(text, '\n', size);

    return last == NULL ? 0 : (size_t)(last - text) + 1;
}

static int read_all(const struct run_dir *run, struct buf *ret, struct error **err)
{
    scoped(fd_closep) int fd = openat(run->dir_fd, JOURNAL_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_errno(err, errno, "cannot open '%s/" JOURNAL_FILE "'", run->path);
    return fs_read_fd(fd, JOURNAL_FILE, RUN_FILE_BYTES_MAX, ret, err);
}

/* What the next line goes on from. */
static void find_last(struct run_dir *run, const char *text)
{
    size_t size = (size_t)run->journal_bytes;
    const char *newline = size < 2 ? NULL : memrchr(text, '\n', size - 1);
    const char *line = newline == NULL ? text : newline + 1;

    run->last = (struct sha256){{0}};
    if (size > 0)
        run->last = sha256_of(line, (size_t)(text + size - 1 - line));
}

int journal_open(struct run_dir *run, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    int r = read_all(run, &text, err);

    if (r < 0)
        return r;
    run->journal_fd = openat(run->dir_fd, JOURNAL_FILE,
                             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (run->journal_fd < 0)
        return error_errno(err, errno, "cannot open '%s/" JOURNAL_FILE "'", run->path);
    run->journal_bytes = (off_t)whole_bytes(buf_text(&text), text.size_bytes);
    find_last(run, buf_text(&text));
    if (ftruncate(run->journal_fd, run->journal_bytes) < 0)
        return error_errno(err, errno, "cannot repair '%s/" JOURNAL_FILE "'", run->path);
    return 0;
}

static void put_digest(json_t *json, const char *key, const struct sha256 *digest)
{
    char hex[SHA256_HEX_CHARS + 1];

    sha256_format(digest, hex);
    json_put_text(json, key, hex);
}

static void append_line(struct run_dir *run, const json_t *line)
{
    size_t begin = run->pending.size_bytes;

    json_write_line(&run->pending, line);
    run->last = sha256_of(run->pending.data + begin, run->pending.size_bytes - begin);
    buf_char(&run->pending, '\n');
}

void run_dir_journal(struct run_dir *run, json_t *line)
{
    scoped(json_freep) json_t *whole = json_object();

    ASSERT(json_typeof(line) == JSON_OBJECT);
    if (json_object_get(line, "t") == NULL)
        json_put_int(whole, "t", (int64_t)clock_unix_ms());
    ASSERT(json_object_update(whole, line) == 0);
    json_decref(line);
    put_digest(whole, "prev", &run->last);
    append_line(run, whole);
}

static int put_file(const struct run_dir *run, const char *name, json_t *files, struct error **err)
{
    struct sha256 digest;
    struct stat status;

    if (fstatat(run->dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    int r = digest_file(run->dir_fd, name, &digest, err);

    if (r == 0)
        put_digest(files, name, &digest);
    return r;
}

static void put_signature(json_t *line, const struct sha256 *digest, const struct signing_key *key)
{
    const struct signing_public public = signing_key_public(key);
    uint8_t signature[SIGNING_BYTES];
    char text[SIGNING_CHARS + 1], name[SIGNING_PUBLIC_CHARS + 1];

    signing_sign(key, digest, signature);
    signing_public_format(&public, name);
    signing_format(signature, text);
    json_put_text(line, "key", name);
    json_put_text(line, "signature", text);
}

int run_dir_promise(struct run_dir *run, struct error **err)
{
    json_t *line = json_object();
    struct sha256 digest;
    int r = digest_file(run->dir_fd, "plan.json", &digest, err);

    if (r < 0) {
        json_decref(line);
        return r;
    }
    json_put_text(line, "event", "promise");
    put_digest(line, "plan", &digest);
    run_dir_journal(run, line);
    return run_dir_commit(run, err);
}

int run_dir_seal(struct run_dir *run, const struct signing_key *key, struct error **err)
{
    scoped(json_freep) json_t *line = json_object();
    scoped(buf_done) struct buf text = {0};
    json_t *files = json_object();
    struct sha256 digest;
    int r = 0;

    json_put_int(line, "t", (int64_t)clock_unix_ms());
    json_put_text(line, "event", "seal");
    json_put(line, "files", files);
    for (size_t i = 0; r == 0 && run_sealed_files[i] != NULL; i++)
        r = put_file(run, run_sealed_files[i], files, err);
    if (r < 0)
        return r;
    put_digest(line, "prev", &run->last);
    json_write_line(&text, line);
    digest = sha256_of(buf_text(&text), text.size_bytes);
    put_digest(line, "digest", &digest);
    if (key != NULL)
        put_signature(line, &digest, key);
    append_line(run, line);
    return run_dir_commit(run, err);
}

int run_dir_commit(struct run_dir *run, struct error **err)
{
    ASSERT(run->journal_fd >= 0);
    if (run->pending.overflowed)
        return error_set(err, ERROR_BUG, "the journal of '%s' was never committed", run->path);
    if (run->pending.size_bytes == 0)
        return 0;

    int r = fs_write_all(run->journal_fd, JOURNAL_FILE, run->pending.data, run->pending.size_bytes,
                         err);

    if (r == 0 && fdatasync(run->journal_fd) < 0)
        r = error_errno(err, errno, "cannot sync '" JOURNAL_FILE "'");
    if (r < 0) {
        /* Half a group must not stay; should even this fail, the torn line is ignored on load. */
        (void)!ftruncate(run->journal_fd, run->journal_bytes);
        return error_wrap(err, r, "cannot write the journal of '%s'", run->path);
    }
    run->journal_bytes += (off_t)run->pending.size_bytes;
    buf_clear(&run->pending);
    return 0;
}

static int parse_line(const struct run_dir *run, size_t number, const char *line, size_t size,
                      json_t *lines, struct error **err)
{
    scoped(error_freep) struct error *cause = NULL;
    json_t *value = NULL;
    int r = json_parse(JOURNAL_FILE, line, size, &value, &cause);

    if (r < 0)
        return error_set(err, ERROR_SYSTEM, "'%s/" JOURNAL_FILE "' is damaged in line %zu",
                         run->path, number);
    json_push(lines, value);
    return 0;
}

int run_dir_journal_read(const struct run_dir *run, json_t **ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};
    scoped(json_freep) json_t *lines = json_array();
    int r = read_all(run, &text, err);

    if (r < 0)
        return r;

    const char *at = buf_text(&text);
    const char *end = at + whole_bytes(at, text.size_bytes);

    for (size_t number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        r = parse_line(run, number, at, (size_t)(newline - at), lines, err);
        if (r < 0)
            return r;
        at = newline + 1;
    }
    *ret = take(lines);
    return 0;
}
