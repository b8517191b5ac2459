#include "run/mocks_sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "broker/call_frame.h"
#include "collect/tar.h"
#include "run/limits.h"
#include "run/mocks.h"
#include "task/task_public.h"

#define KEPT_DIR "mocks"
#define KEPT_PATH "mocks/kept.tar"
#define OUTPUT_BYTES_MAX 4096
#define PATIENCE_NS UINT64_C(60000000000)
#define KEPT_PATH_BYTES_MAX 4096u
#define PIECE_BYTES ((size_t)65536)

static const struct task_public *public_of(const struct trial_job *job)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    return public_half;
}

bool mocks_are_sealed(const struct trial_job *job)
{
    return public_of(job)->mocks_sealed;
}

/* --- the cell --------------------------------------------------------------------------------- */

static int add_mount(struct cell_spec *spec, int fd, const char *target, struct error **err)
{
    if (spec->mount_count >= CELL_MOUNTS_MAX)
        return error_set(err, ERROR_LIMIT, "more than %d trees in a cell", CELL_MOUNTS_MAX);
    spec->mounts[spec->mount_count++] = (struct cell_mount){.fd = fd, .target = target};
    return 0;
}

/* As the agent's, but for the workspace, of which it has a look, and what is in it besides. */
static int start_cell(const struct trial_job *job, const struct cell *agent, struct cell **ret,
                      struct error **err)
{
    struct cell_spec spec = {.etc_fd = -1};
    int r = view_fill_cell(job->view, job->monitor, CELL_AGENT, &spec, err);

    if (r == 0)
        r = add_mount(&spec, job->mock_fd, CALL_PROGRAM_PATH, err);
    if (r == 0)
        r = add_mount(&spec, view_mock_tools(job->view), CALL_TOOLS_DIR, err);
    if (r == 0)
        r = add_mount(&spec, view_sealed_mocks(job->view), CALL_SEALED_SOURCE, err);
    if (r < 0)
        return r;
    spec.role = CELL_GRADER;
    spec.workspace =
        (struct cell_workspace){.kind = CELL_WORKSPACE_SHARED, .keep_cell_id = cell_id(agent)};
    return cell_start(job->monitor, &spec, ret, err);
}

static void make_env(const struct trial_job *job, struct str_list *ret)
{
    view_env(job->view, CELL_AGENT, ret, NULL);
    limits_env(&public_of(job)->limits, ret);
    mocks_on_path(public_of(job), ret);
}

/* A program of ours to its end; extra_fd becomes descriptor 3. */
static int run_helper(const struct trial_job *job, struct cell *cell, const char *const *argv,
                      int extra_fd, struct error **err)
{
    static const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
    scoped(fd_closep) int said_fd = memfd_create("said", MFD_CLOEXEC);
    scoped(buf_done) struct buf said = {0};
    const struct cell_command command = {
        .argv = argv, .envp = envp, .fds = {-1, said_fd, said_fd, extra_fd}, .fd_count = 4};
    const struct cell_patience patience = {.deadline_ns = clock_ns() + PATIENCE_NS,
                                           .stop = job->stop};
    enum cell_wait_result end = CELL_EXITED;
    struct cell_exit status = {0};
    uint32_t process = 0;

    if (said_fd < 0)
        return error_errno(err, errno, "cannot make a file in memory");
    int r = cell_exec(cell, &command, &process, err);

    if (r == 0)
        r = cell_wait(cell, process, &patience, &end, &status, err);
    if (r < 0 || (end == CELL_EXITED && status.exit_code == 0))
        return r;
    if (lseek(said_fd, 0, SEEK_SET) < 0 ||
        fs_read_fd(said_fd, "its output", OUTPUT_BYTES_MAX, &said, NULL) < 0)
        buf_clear(&said);
    return error_set(err,
                     end == CELL_STOPPED                                           ? ERROR_USER
                     : end == CELL_EXITED && status.exit_code == KEPT_STATUS_LIMIT ? ERROR_AGENT
                                                                                   : ERROR_SYSTEM,
                     "%s",
                     end == CELL_STOPPED    ? "interrupted"
                     : end == CELL_DEADLINE ? "it took longer than 60 s"
                     : said.size_bytes == 0 ? "it failed and said nothing"
                                            : buf_text(&said));
}

/* Where they can write beside themselves. */
static int copy_folders(const struct trial_job *job, struct cell *cell, struct error **err)
{
    const char *shell = root_shell(view_system(job->view, CELL_AGENT));
    const char *const argv[] = {
        shell, "-c",
        "cp -R " CALL_SEALED_SOURCE " " CALL_SEALED_DIR " && chmod -R u+w " CALL_SEALED_DIR, NULL};

    if (shell == NULL)
        return error_set(err, ERROR_TASK,
                         "mocks: sealed: the agent's root has no /bin/sh, which they need");
    int r = run_helper(job, cell, argv, -1, err);

    return r < 0 ? error_wrap(err, r, "cannot copy the folders of mock_path_dirs") : 0;
}

static int start_server(const struct trial_job *job, struct cell *cell, int listener,
                        struct error **err)
{
    const struct str_list *dirs = &public_of(job)->mock_dirs;
    scoped(str_list_done) struct str_list argv = {0};
    scoped(str_list_done) struct str_list env = {0};
    struct cell_command command = {.fds = {-1, -1, -1, listener}, .fd_count = 4};
    uint32_t process = 0;

    str_list_add(&argv, CALL_PROGRAM_PATH);
    str_list_add(&argv, "--serve");
    for (size_t i = 0; i < dirs->count; i++)
        str_list_add_take(&argv, path_join(CALL_SEALED_DIR, dirs->items[i]));
    make_env(job, &env);
    command.argv = (const char *const *)argv.items;
    command.envp = (const char *const *)env.items;
    return cell_exec(cell, &command, &process, err);
}

int mocks_sealed_open(const struct trial_job *job, struct cell *agent, struct cell **ret,
                      struct error **err)
{
    scoped(cell_freep) struct cell *cell = NULL;
    scoped(fd_closep) int listener = -1;

    *ret = NULL;
    if (!mocks_are_sealed(job))
        return 0;
    int r = mocks_listen(agent, CALL_SEALED_SOCKET_PATH, &listener, err);

    if (r == 0)
        r = start_cell(job, agent, &cell, err);
    if (r == 0)
        r = copy_folders(job, cell, err);
    if (r == 0)
        r = start_server(job, cell, listener, err);
    if (r < 0)
        return error_wrap(err, r, "cell of the sealed programs");
    *ret = take(cell);
    return 0;
}

/* --- what they wrote -------------------------------------------------------------------------- */

/* One entry of the archive; a folder has no bytes. */
struct kept_entry {
    char *path;
    enum manifest_type type;
    mode_t mode;
    uint64_t size_bytes;
    off_t offset; /* of its bytes in what the cell's program told */
};

/* What the cell's program told. */
struct kept {
    int from_fd;
    struct kept_entry *entries;
    size_t count;
    json_t *paths;
    uint64_t bytes;
};

static void kept_done(struct kept *kept)
{
    fd_closep(&kept->from_fd);
    for (size_t i = 0; i < kept->count; i++)
        free(kept->entries[i].path);
    free(kept->entries);
    json_decref(kept->paths);
}

static void add_entry(struct kept *kept, const struct kept_entry *entry)
{
    for (size_t i = 0; i < kept->count; i++) {
        if (strcmp(kept->entries[i].path, entry->path) == 0)
            return;
    }
    kept->entries = mem_resize(kept->entries, kept->count + 1, sizeof(*kept->entries));
    kept->entries[kept->count] = *entry;
    kept->entries[kept->count++].path = str_dup(entry->path);
}

/* The folders above the path. */
static void add_folders(struct kept *kept, const char *path)
{
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        scoped(mem_freep) char *folder = str_ndup(path, (size_t)(slash - path));

        add_entry(kept, &(struct kept_entry){.path = folder, .type = MANIFEST_DIR, .mode = 0755});
    }
}

static int compare_entries(const void *a, const void *b)
{
    return manifest_path_compare(((const struct kept_entry *)a)->path,
                                 ((const struct kept_entry *)b)->path);
}

/* False at the end. */
static int read_whole(int fd, void *bytes, size_t size, bool *ret_end, struct error **err)
{
    char *at = bytes;
    size_t have = 0;

    while (have < size) {
        ssize_t n = read(fd, at + have, size - have);

        if (n < 0)
            return error_errno(err, errno, "cannot read what sealed programs wrote");
        if (n == 0)
            break;
        have += (size_t)n;
    }
    *ret_end = have == 0;
    return have == 0 || have == size
               ? 0
               : error_set(err, ERROR_SYSTEM, "what sealed programs wrote ends too early");
}

static int copy_bytes(const struct kept *kept, struct tar_writer *writer, uint64_t size,
                      struct error **err)
{
    scoped(mem_freep) char *bytes = mem_new(PIECE_BYTES, 1);
    int r = 0;

    for (uint64_t left = size; r == 0 && left > 0;) {
        size_t piece = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        bool is_end = false;

        r = read_whole(kept->from_fd, bytes, piece, &is_end, err);
        if (r == 0 && is_end)
            r = error_set(err, ERROR_SYSTEM, "what sealed programs wrote ends too early");
        if (r == 0)
            r = tar_writer_bytes(writer, bytes, piece, err);
        left -= piece;
    }
    return r < 0 ? r : tar_writer_pad(writer, size, err);
}

/* The cell ran an author's programs on an agent's words: nothing of it is believed. */
static bool is_sound(const struct trial_job *job, const struct kept_header *header,
                     const char *path)
{
    const struct str_list *dirs = &public_of(job)->mock_dirs;

    for (size_t i = 0; i < dirs->count; i++) {
        if (path_is_inside(path) && str_starts(path, dirs->items[i]) &&
            path[strlen(dirs->items[i])] == '/')
            return header->reserved == 0 && (header->mode & ~0777u) == 0;
    }
    return false;
}

static int take_file(const struct trial_job *job, struct kept *kept,
                     const struct kept_header *header, struct error **err)
{
    char path[KEPT_PATH_BYTES_MAX + 1] = {0};
    bool is_end = false;

    if (header->magic != KEPT_MAGIC || header->path_bytes == 0 ||
        header->path_bytes > KEPT_PATH_BYTES_MAX ||
        header->size_bytes > KEPT_BYTES_MAX - kept->bytes ||
        json_array_size(kept->paths) >= KEPT_FILES_MAX)
        return error_set(err, ERROR_SYSTEM, "what sealed programs wrote makes no sense");
    int r = read_whole(kept->from_fd, path, header->path_bytes, &is_end, err);

    if (r < 0)
        return r;
    kept->bytes += header->size_bytes;
    const struct kept_entry entry = {.path = path,
                                     .type = MANIFEST_FILE,
                                     .mode = header->mode | 0600,
                                     .size_bytes = header->size_bytes,
                                     .offset = lseek(kept->from_fd, 0, SEEK_CUR)};

    if (lseek(kept->from_fd, (off_t)header->size_bytes, SEEK_CUR) < 0)
        return error_errno(err, errno, "cannot read what sealed programs wrote");
    /* Beside their folders nothing is the workspace's. */
    if (!is_sound(job, header, path))
        return 0;
    json_push(kept->paths, json_text(path, strlen(path)));
    add_folders(kept, path);
    add_entry(kept, &entry);
    return 0;
}

static int read_told(const struct trial_job *job, struct kept *kept, struct error **err)
{
    const struct str_list *dirs = &public_of(job)->mock_dirs;
    struct kept_header header;
    bool is_end = false;
    int r = 0;

    for (size_t i = 0; i < dirs->count; i++) {
        add_folders(kept, dirs->items[i]);
        add_entry(kept,
                  &(struct kept_entry){.path = dirs->items[i], .type = MANIFEST_DIR, .mode = 0755});
    }
    while (r == 0 && !is_end) {
        r = read_whole(kept->from_fd, &header, sizeof(header), &is_end, err);
        if (r == 0 && !is_end)
            r = take_file(job, kept, &header, err);
    }
    return r;
}

static int write_archive(const struct kept *kept, int tar_fd, struct error **err)
{
    scoped(tar_writer_done) struct tar_writer writer = {0};
    struct sha256 digest;
    int r = 0;

    tar_writer_init(&writer, tar_fd, KEPT_PATH);
    for (size_t i = 0; r == 0 && i < kept->count; i++) {
        const struct kept_entry *from = &kept->entries[i];
        const struct tar_entry entry = {.path = from->path,
                                        .type = from->type,
                                        .mode = from->mode,
                                        .size_bytes = from->size_bytes};

        r = tar_writer_add(&writer, &entry, err);
        if (r < 0 || from->type != MANIFEST_FILE)
            continue;
        if (lseek(kept->from_fd, from->offset, SEEK_SET) < 0)
            return error_errno(err, errno, "cannot read what sealed programs wrote");
        r = copy_bytes(kept, &writer, from->size_bytes, err);
    }
    return r < 0 ? r : tar_writer_end(&writer, &digest, err);
}

static int take_kept(const struct trial_job *job, struct kept *kept, struct error **err)
{
    scoped(fd_closep) int dir_fd = -1;
    int r = fs_open_dir(job->dir_fd, KEPT_DIR, 0700, &dir_fd, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int tar_fd =
        openat(job->dir_fd, KEPT_PATH, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (tar_fd < 0 || lseek(kept->from_fd, 0, SEEK_SET) < 0)
        return error_errno(err, errno, "cannot keep what sealed programs wrote");
    r = read_told(job, kept, err);
    if (r < 0)
        return r;
    qsort(kept->entries, kept->count, sizeof(*kept->entries), compare_entries);
    return write_archive(kept, tar_fd, err);
}

static void note(struct trial_record *record, json_t *paths)
{
    if (record->mocks == NULL)
        record->mocks = json_object();
    json_put(record->mocks, "kept", json_incref(paths));
    if (json_object_get(record->mocks, "forged") == NULL)
        json_put(record->mocks, "forged", json_array());
}

int mocks_sealed_close(const struct trial_job *job, struct cell *cell, struct trial_record *record,
                       struct error **err)
{
    static const char *const argv[] = {CALL_PROGRAM_PATH, "--kept", NULL};
    struct cell_receipt receipt = {0};

    if (cell == NULL)
        return 0;
    scoped(kept_done) struct kept kept = {.from_fd = memfd_create("kept", MFD_CLOEXEC),
                                          .paths = json_array()};

    if (kept.from_fd < 0)
        return error_errno(err, errno, "cannot make a file in memory");
    int r = run_helper(job, cell, argv, kept.from_fd, err);

    if (r == 0)
        r = cell_end(cell, &receipt, err);
    if (r == 0)
        r = take_kept(job, &kept, err);
    if (r < 0)
        return error_wrap(err, r, "cell of the sealed programs");
    note(record, kept.paths);
    return 0;
}

int mocks_sealed_kept(int dir_fd)
{
    return fs_open_regular(dir_fd, KEPT_PATH);
}
