#include "collect/collect.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "collect/gather.h"

#define RESULT_BYTES_MAX ((size_t)16 << 20)
#define HEADER_BYTES_MAX ((size_t)256 << 10) /* of a file's answer */
#define ERROR_BYTES_MAX ((size_t)16 << 10)

void collect_result_done(struct collect_result *result)
{
    json_freep(&result->refused_list);
}

/* What the worker must know of the workspace: how the overlay's marks are spelled, if it is one. */
static const char *workspace_kind(const struct monitor *monitor, const struct cell *cell)
{
    if (!cell_workspace_layered(cell))
        return "--kind=tree";
    return monitor_facts(monitor)->tier == TIER_A ? "--kind=upper-trusted" : "--kind=upper-user";
}

static bool get_digest(const json_t *json, const char *key, struct sha256 *ret)
{
    const char *text = json_get_text(json, key);

    return text != NULL && sha256_parse(text, ret);
}

static int parse_result(const struct buf *output, struct collect_result *ret, struct error **err)
{
    scoped(json_freep) json_t *json = NULL;
    int r = json_parse("the worker's answer", buf_text(output), output->size_bytes, &json, err);

    if (r < 0)
        return r;
    struct collect_result result = {
        .added = (uint64_t)json_get_int(json, "added", 0),
        .modified = (uint64_t)json_get_int(json, "modified", 0),
        .deleted = (uint64_t)json_get_int(json, "deleted", 0),
        .moved = (uint64_t)json_get_int(json, "moved", 0),
        .refused = (uint64_t)json_get_int(json, "refused", 0),
        .files = (uint64_t)json_get_int(json, "files", 0),
        .bytes = (uint64_t)json_get_int(json, "bytes", 0),
    };
    json_t *refused = json_get_array(json, "refused_list");

    if (refused == NULL || !get_digest(json, "archive", &result.digest) ||
        !get_digest(json, "changes", &result.changes_digest))
        return error_set(err, ERROR_BUG, "the worker's answer lacks a field");
    result.refused_list = json_incref(refused);
    *ret = result;
    return 0;
}

static int create_file(int dir_fd, const char *name, int *ret, struct error **err)
{
    int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return error_errno(err, errno, "cannot create '%s'", name);
    *ret = fd;
    return 0;
}

static int manifest_memfd(const struct manifest *manifest, int *ret, struct error **err)
{
    scoped(buf_done) struct buf text = {0};

    manifest_write(&text, manifest);
    if (text.overflowed)
        return error_set(err, ERROR_LIMIT, "the staged manifest is too large");
    return fs_memfd("manifest", buf_text(&text), text.size_bytes, ret, err);
}

/* Where there is nothing to gather there is no hostile input, and no cell is needed to write that.
 */
static int collect_nothing(const struct collect_source *source, int archive_fd, int changes_fd,
                           struct collect_result *ret, struct error **err)
{
    const struct gather_input input = {.staged = source->staged, .workspace_fd = -1};
    scoped(gather_freep) struct gather *gather = NULL;
    struct gather_counts counts = {0};

    gather_nothing(&input, &gather);
    int r = gather_write(gather, archive_fd, changes_fd, &counts, err);

    if (r < 0)
        return error_wrap(err, r, "cannot record that the workspace is as it was");
    *ret = (struct collect_result){
        .digest = counts.archive, .changes_digest = counts.changes, .refused_list = json_array()};
    return 0;
}

/* The monitor's word for it, when nothing runs there any more. */
static bool is_as_staged(const struct cell *cell, const struct collect_source *source)
{
    return cell_workspace_empty(cell) &&
           (cell_workspace_layered(cell) || source->staged->count == 0);
}

int collect_run(struct monitor *monitor, const struct cell *cell,
                const struct collect_source *source, int dir_fd, struct collect_result *ret,
                struct error **err)
{
    scoped(fd_closep) int manifest_fd = -1;
    scoped(fd_closep) int archive_fd = -1;
    scoped(fd_closep) int changes_fd = -1;
    scoped(buf_done) struct buf output = {0};
    bool layered = cell_workspace_layered(cell);
    size_t layer_count = layered ? source->layer_count : 0;
    scoped(mem_freep) char *layers = str_format("--layers=%zu", layer_count);
    scoped(mem_freep) char *bytes =
        str_format("--max-bytes=%llu", (unsigned long long)source->max_bytes);
    scoped(mem_freep) char *entries =
        str_format("--max-entries=%llu", (unsigned long long)source->max_entries);
    const char *const args[] = {"collect", workspace_kind(monitor, cell), layers, bytes, entries,
                                NULL};
    int r = manifest_memfd(source->staged, &manifest_fd, err);

    if (r == 0)
        r = create_file(dir_fd, "artifacts.tar", &archive_fd, err);
    if (r == 0)
        r = create_file(dir_fd, "changes.json", &changes_fd, err);
    if (r < 0)
        return r;
    if (is_as_staged(cell, source))
        return collect_nothing(source, archive_fd, changes_fd, ret, err);
    struct worker_job job = {
        .args = args,
        .mount_count = layer_count,
        .collect_cell_id = cell_id(cell),
        .fds = {-1, -1, -1, manifest_fd, archive_fd, changes_fd},
        .fd_count = 6,
        .output_max_bytes = RESULT_BYTES_MAX,
    };

    ASSERT(layer_count <= ARRAY_SIZE(job.mounts));
    for (size_t i = 0; i < layer_count; i++)
        job.mounts[i] = (struct cell_mount){.fd = source->layer_fds[i]};
    r = worker_run(monitor, &job, &output, err);
    if (r == 0)
        r = parse_result(&output, ret, err);
    return r < 0 ? error_wrap(err, r, "cannot collect the workspace") : 0;
}

struct pipe {
    int read_fd, write_fd;
};

static void pipe_done(struct pipe *ends)
{
    fd_closep(&ends->read_fd);
    fd_closep(&ends->write_fd);
}

static int pipe_open(struct pipe *ret, struct error **err)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_errno(err, errno, "cannot make a pipe");
    *ret = (struct pipe){.read_fd = fds[0], .write_fd = fds[1]};
    return 0;
}

/* The worker's own words for a failure, as an error of its kind. */
static int worker_error(const struct buf *text, const struct cell_exit *end, struct error **err)
{
    const char *line = buf_text(text);
    const char *colon = strstr(line, ": ");
    int length = (int)strcspn(line, "\n");

    for (enum error_code code = ERROR_USER; colon != NULL && code <= ERROR_BUG; code++) {
        const char *name = error_code_name(code);

        if (strlen(name) == (size_t)(colon - line) && str_starts(line, name))
            return error_set(err, code, "%.*s", length - (int)(colon + 2 - line), colon + 2);
    }
    return error_set(err, ERROR_SYSTEM, "the worker ended with status %d, signal %d",
                     end->exit_code, end->term_signal);
}

/* Runs the worker in the grading cell and takes its output. */
static int exec_worker(struct cell *cell, const char *const *argv, const int extra_fds[2],
                       struct buf *output, struct error **err)
{
    static const char *const environment[] = {NULL};
    scoped(buf_done) struct buf complaint = {.max_bytes = ERROR_BYTES_MAX};
    scoped(pipe_done) struct pipe out = {-1, -1};
    scoped(pipe_done) struct pipe complaints = {-1, -1};
    enum cell_wait_result how;
    struct cell_exit end;
    uint32_t process;

    int r = pipe_open(&out, err);

    if (r == 0)
        r = pipe_open(&complaints, err);
    if (r < 0)
        return r;
    struct cell_command command = {
        .argv = argv,
        .envp = environment,
        .fds = {-1, out.write_fd, complaints.write_fd, extra_fds[0], extra_fds[1]},
        .fd_count = extra_fds[0] < 0 ? 3 : 5,
    };

    r = cell_exec(cell, &command, &process, err);

    if (r < 0)
        return r;
    fd_closep(&out.write_fd);
    fd_closep(&complaints.write_fd);
    struct cell_capture captures[] = {
        {.fd = out.read_fd, .buf = output},
        {.fd = complaints.read_fd, .buf = &complaint},
    };

    r = cell_wait(cell, process, &(struct cell_patience){captures, ARRAY_SIZE(captures), 0, NULL},
                  &how, &end, err);
    if (r < 0)
        return r;
    return how == CELL_EXITED && end.exit_code == 0 ? 0 : worker_error(&complaint, &end, err);
}

int collect_apply(struct cell *grading_cell, int tar_fd, int changes_fd, struct error **err)
{
    static const char *const argv[] = {CELL_WORKER_PATH, "apply", NULL};
    const int fds[2] = {tar_fd, changes_fd};
    scoped(buf_done) struct buf output = {.max_bytes = ERROR_BYTES_MAX};

    if (lseek(changes_fd, 0, SEEK_SET) < 0)
        return error_errno(err, errno, "cannot read 'changes.json' from its start");
    int r = exec_worker(grading_cell, argv, fds, &output, err);

    return r < 0 ? error_wrap(err, r, "cannot make the workspace what the agent left") : 0;
}

void collect_file_done(struct collect_file *file)
{
    free(file->resolved);
    free(file->what);
    str_list_done(&file->matches);
    buf_done(&file->content);
}

/* Hands the file over: what stays behind is empty. */
static struct collect_file file_take(struct collect_file *file)
{
    struct collect_file taken = *file;

    *file = (struct collect_file){0};
    return taken;
}

static bool parse_state(const char *text, enum collect_file_state *ret)
{
    static const char *const names[] = {
        [COLLECT_FILE_OK] = "ok",
        [COLLECT_FILE_ABSENT] = "absent",
        [COLLECT_FILE_NOT_REGULAR] = "not_regular",
        [COLLECT_FILE_TOO_LARGE] = "too_large",
        [COLLECT_FILE_AMBIGUOUS] = "ambiguous",
    };

    for (size_t i = 0; text != NULL && i < ARRAY_SIZE(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum collect_file_state)i;
            return true;
        }
    return false;
}

static bool parse_matches(const json_t *header, struct str_list *ret)
{
    const json_t *matches = json_get_array(header, "matches");

    if (matches == NULL)
        return false;
    for (size_t i = 0; i < json_array_size(matches); i++) {
        const char *text = json_string_value(json_array_get(matches, i));
        char *path = text == NULL ? NULL : manifest_unescape(text);

        if (path == NULL)
            return false;
        str_list_add_take(ret, path);
    }
    return true;
}

int collect_file_parse(const char *text, size_t size, struct collect_file *ret, struct error **err)
{
    const char *newline = memchr(text, '\n', size_min(size, HEADER_BYTES_MAX));
    scoped(collect_file_done) struct collect_file file = {0};
    scoped(json_freep) json_t *header = NULL;

    if (newline == NULL)
        return error_set(err, ERROR_SYSTEM, "the worker's answer has no header");
    size_t length = (size_t)(newline - text);
    int r = json_parse("the worker's answer", text, length, &header, err);

    if (r < 0)
        return r;
    const char *resolved = json_get_text(header, "resolved");
    const char *what = json_get_text(header, "what");

    if (!parse_state(json_get_text(header, "state"), &file.state) ||
        !parse_matches(header, &file.matches))
        return error_set(err, ERROR_SYSTEM, "the worker's answer has a bad header");
    if (resolved != NULL)
        file.resolved = manifest_unescape(resolved);
    if (what != NULL)
        file.what = str_dup(what);
    file.size_bytes = (uint64_t)json_get_int(header, "size", 0);
    file.match_count = (uint64_t)json_get_int(header, "match_count", 0);
    buf_append(&file.content, newline + 1, size - length - 1);
    *ret = file_take(&file);
    return 0;
}

int collect_read(struct cell *grading_cell, const char *path, size_t max_bytes,
                 struct collect_file *ret, struct error **err)
{
    static const int no_fds[2] = {-1, -1};
    scoped(mem_freep) char *max = str_format("--max-bytes=%zu", max_bytes);
    const char *const with[] = {CELL_WORKER_PATH, "read", "--content", max, "--", path, NULL};
    const char *const without[] = {CELL_WORKER_PATH, "read", "--", path, NULL};
    scoped(buf_done) struct buf output = {.max_bytes = max_bytes + HEADER_BYTES_MAX};
    int r = exec_worker(grading_cell, max_bytes > 0 ? with : without, no_fds, &output, err);

    if (r == 0)
        r = collect_file_parse(buf_text(&output), output.size_bytes, ret, err);
    return r < 0 ? error_wrap(err, r, "cannot read '%s' in the grading cell", path) : 0;
}
