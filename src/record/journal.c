#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "record/run_internal.h"

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
    if (ftruncate(run->journal_fd, run->journal_bytes) < 0)
        return error_errno(err, errno, "cannot repair '%s/" JOURNAL_FILE "'", run->path);
    return 0;
}

void run_dir_journal(struct run_dir *run, json_t *line)
{
    scoped(json_freep) json_t *whole = json_object();

    ASSERT(json_typeof(line) == JSON_OBJECT);
    if (json_object_get(line, "t") == NULL)
        json_put_int(whole, "t", (int64_t)clock_unix_ms());
    ASSERT(json_object_update(whole, line) == 0);
    json_decref(line);
    json_write_line(&run->pending, whole);
    buf_char(&run->pending, '\n');
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
