#include "run/mocks.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"
#include "broker/broker.h"
#include "broker/call_frame.h"
#include "task/task_private.h"

#define LOG_DIR "mocks"
#define LOG_PATH "mocks/calls.jsonl"
#define CHANGES_BYTES_MAX ((size_t)256 << 20)

/* --- PATH ------------------------------------------------------------------------------------- */

void mocks_put_first(struct str_list *env, const char *dir)
{
    static const char name[] = "PATH=";

    for (size_t i = 0; i < env->count; i++) {
        if (!str_starts(env->items[i], name))
            continue;
        char *longer = str_format("PATH=%s:%s", dir, env->items[i] + strlen(name));

        free(env->items[i]);
        env->items[i] = longer;
    }
}

void mocks_on_path(const struct task_public *task, struct str_list *env)
{
    for (size_t i = task->mocks_sealed ? 0 : task->mock_dirs.count; i-- > 0;) {
        scoped(mem_freep) char *path = path_join("/workspace", task->mock_dirs.items[i]);
        scoped(mem_freep) char *normal = path_normal(path);

        mocks_put_first(env, normal);
    }
    if (task->mock_tools.count > 0 || task->mocks_sealed)
        mocks_put_first(env, CALL_TOOLS_DIR);
}

/* --- the cell --------------------------------------------------------------------------------- */

static const struct task_public *public_of(const struct trial_job *job,
                                           const struct task_private **ret_private)
{
    const struct task_public *public_half = NULL;
    const struct task_private *private_half = NULL;

    task_split(job->task, &public_half, &private_half);
    if (ret_private != NULL)
        *ret_private = private_half;
    return public_half;
}

bool mocks_are_recorded(const struct trial_job *job)
{
    return job->broker_fd >= 0 && public_of(job, NULL)->mock_tools.count > 0;
}

int mocks_fill_cell(const struct trial_job *job, struct cell_spec *spec, struct error **err)
{
    int tools_fd = view_mock_tools(job->view);

    if (tools_fd < 0)
        return 0;
    if (monitor_facts(job->monitor)->driver != CELL_NATIVE)
        return error_set(err, ERROR_SYSTEM,
                         "record_cli and mocks: sealed need a cell with namespaces, and this "
                         "machine has tier %s",
                         cell_tier_name(monitor_facts(job->monitor)->tier));
    if (spec->mount_count + 2 > CELL_MOUNTS_MAX)
        return error_set(err, ERROR_LIMIT, "no room for recorded programs in the agent's cell");
    spec->mounts[spec->mount_count++] =
        (struct cell_mount){.fd = job->mock_fd, .target = CALL_PROGRAM_PATH};
    spec->mounts[spec->mount_count++] =
        (struct cell_mount){.fd = tools_fd, .target = CALL_TOOLS_DIR};
    return 0;
}

/* Runs the stand-in, which hands a socket out of the cell. */
static int run_listener(struct cell *cell, const char *const words[2], int theirs,
                        struct cell_exit *ret, struct error **err)
{
    const char *const argv[] = {CALL_PROGRAM_PATH, words[0], words[1], NULL};
    static const char *const envp[] = {NULL};
    const struct cell_command command = {
        .argv = argv, .envp = envp, .fds = {-1, -1, -1, theirs}, .fd_count = 4};
    const struct cell_patience patience = {0};
    enum cell_wait_result end = CELL_EXITED;
    uint32_t process = 0;
    int r = cell_exec(cell, &command, &process, err);

    return r < 0 ? r : cell_wait(cell, process, &patience, &end, ret, err);
}

/* The socket is made in the cell, where the agent's programs reach it, and listened to outside. */
static int listen_in(struct cell *cell, const char *const words[2], int *ret, struct error **err)
{
    int ends[2], fds[MESSAGE_FDS_MAX];
    struct cell_exit status = {0};
    size_t count = 0;
    char byte;
    int r = message_pair(ends);

    if (r < 0)
        return error_errno(err, -r, "cannot make a socket");
    scoped(fd_closep) int ours = ends[0];
    scoped(fd_closep) int theirs = ends[1];

    r = run_listener(cell, words, theirs, &status, err);
    if (r < 0)
        return r;
    fd_closep(&theirs);
    theirs = -1;
    r = message_receive(ours, &byte, sizeof(byte), fds, &count);
    if (r < 0 || count != 1)
        return error_set(err, ERROR_SYSTEM,
                         "the stand-in for recorded programs did not start (exit code %d)",
                         status.exit_code);
    *ret = fds[0];
    return 0;
}

int mocks_listen(struct cell *cell, const char *path, int *ret, struct error **err)
{
    const char *const words[2] = {"--listen", path};

    return listen_in(cell, words, ret, err);
}

int mocks_listen_port(struct cell *cell, const char *port, int *ret, struct error **err)
{
    const char *const words[2] = {"--listen-port", port};

    return listen_in(cell, words, ret, err);
}

int mocks_open(const struct trial_job *job, struct cell *cell, struct error **err)
{
    const struct task_private *private_half = NULL;
    scoped(fd_closep) int listener = -1;
    scoped(fd_closep) int dir_fd = -1;

    (void)public_of(job, &private_half); /* for the other half */
    if (!mocks_are_recorded(job))
        return 0;
    int r = fs_open_dir(job->dir_fd, LOG_DIR, 0700, &dir_fd, err);

    if (r < 0)
        return r;
    scoped(fd_closep) int log_fd =
        openat(job->dir_fd, LOG_PATH, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);

    if (log_fd < 0)
        return error_errno(err, errno, "cannot make the log of calls");
    r = mocks_listen(cell, CALL_SOCKET_PATH, &listener, err);
    if (r < 0)
        return error_wrap(err, r, "recorded programs");
    const struct broker_mocks mocks = {
        .tools = private_half->record_cli, .listener = listener, .log_fd = log_fd};

    return broker_open(job->broker_fd, &mocks, err);
}

/* --- afterwards ------------------------------------------------------------------------------- */

int mocks_close(const struct trial_job *job, struct trial_record *record, struct error **err)
{
    struct broker_result result = {0};

    if (!mocks_are_recorded(job))
        return 0;
    int r = broker_close(job->broker_fd, &result, err);

    if (r < 0)
        return r;
    json_t *mocks = json_object();

    json_put_int(mocks, "calls", (int64_t)result.calls);
    json_put_int(mocks, "refused", (int64_t)result.refused);
    json_put_int(mocks, "unreported", (int64_t)result.unreported);
    json_put_bool(mocks, "cut", result.cut);
    json_put(mocks, "forged", json_array());
    json_decref(record->mocks);
    record->mocks = mocks;
    return 0;
}

/* The path stands in the list, whose items are paths or {path}. */
static bool is_at_or_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);

    return str_starts(path, folder) && (path[length] == '\0' || path[length] == '/');
}

/* The path itself, a folder above it, or something beside it in that folder. */
static bool has_path(const json_t *list, const char *path)
{
    scoped(mem_freep) char *folder = path_dir(path);
    size_t i;
    json_t *item;

    json_array_foreach (list, i, item) {
        const char *found =
            json_is_string(item) ? json_string_value(item) : json_get_text(item, "path");

        if (found != NULL && is_at_or_below(found, folder))
            return true;
    }
    return false;
}

static bool has_changed(const json_t *changes, const char *path)
{
    static const char *const lists[] = {"added", "modified"};

    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        if (has_path(json_get_array(changes, lists[i]), path))
            return true;
    }
    return false;
}

static void note_forged(struct trial_record *record, const char *path, const char *what)
{
    json_push(json_object_get(record->mocks, "forged"), json_text(path, strlen(path)));
    str_list_add_take(&record->integrity_reasons, str_format("attempt: the agent wrote %s", what));
}

/* In a sealed folder, which is none of its workspace. */
static void note_folders(struct trial_record *record, const struct str_list *dirs,
                         const json_t *changes)
{
    for (size_t i = 0; i < dirs->count; i++) {
        scoped(mem_freep) char *inside = path_join(dirs->items[i], ".");
        scoped(mem_freep) char *what =
            str_format("in %s, a folder of sealed mocks; all of it was put aside", dirs->items[i]);

        if (has_changed(changes, inside))
            note_forged(record, dirs->items[i], what);
    }
}

int mocks_note_forged(const struct trial_job *job, struct trial_record *record, struct error **err)
{
    scoped(json_freep) json_t *changes = NULL;

    if (record->mocks == NULL)
        return 0;
    int r = json_load(job->dir_fd, "changes.json", CHANGES_BYTES_MAX, &changes, err);

    if (r < 0)
        return error_wrap(err, r, "cannot look for forged logs");
    if (mocks_are_recorded(job) && has_changed(changes, MOCKS_LOG))
        note_forged(record, MOCKS_LOG,
                    "where " MOCKS_LOG ", the log of calls, belongs; the log was laid over it");
    if (public_of(job, NULL)->mocks_sealed)
        note_folders(record, &public_of(job, NULL)->mock_dirs, changes);
    return 0;
}

int mocks_log_open(int dir_fd)
{
    return fs_open_regular(dir_fd, LOG_PATH);
}
